//! The contents of a request.
//!
//! The API demands strict turns: the first is the user's, neighbours of one role are one, and after a model's calls comes
//! one content of the user's with exactly their responses and nothing else.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use turnwright_core::prompt::{PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, ContentBlock, NativeBlock, ToolCall};

use super::continuation_token;
use super::model::Model;
use crate::dialect::Target;
use crate::json;
use crate::kept::MessageWriter;
use crate::media;

/// What the user says where the API demands that the user speaks and no message of theirs is shown.
const OPENING: &str = "(The beginning of the conversation is not shown.)";
/// What the user says where the API demands that the user speaks last.
const GO_ON: &str = "(Go on.)";
/// A message of the user's that holds nothing.
const NOTHING: &str = "(empty message)";
/// Stands for the signature of a call that another model made (Gemini API, "Thought signatures").
pub(crate) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Part<'a> {
    Text(Cow<'a, str>),
    InlineData(Blob<'a>),
    FunctionResponse(Response<'a>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: Call<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    #[serde(rename = "response")]
    answer: Answer,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Output(String),
    Error(String),
}

/// Whose content it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Model,
    /// The user's, with responses alone.
    Responses,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::User | Self::Responses => "user",
            Self::Model => "model",
        }
    }
}

/// Writes a prompt's messages as contents. The last one stays open: more parts may follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer {
    open: Option<Role>,
    /// Name and id of the newest model content's calls, as they were written.
    calls: Vec<(String, Option<String>)>,
    /// The parts of an answer that is to be continued: where it comes last the request is repeated without it.
    held: Vec<String>,
}

impl MessageWriter for Writer {
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>) {
        for part in std::mem::take(&mut self.held) {
            self.raw(&part, out);
        }
        match message {
            PromptMessage::User { message, .. } => self.user(target, &message.content, out),
            PromptMessage::Context { context, .. } => self.user(target, &[context.block()], out),
            PromptMessage::Assistant { message, .. } => self.assistant(target, message, out),
            PromptMessage::Results(results) => self.results(target, results, out),
        }
    }

    fn finish(&self, _: &Target<'_>, out: &mut Vec<u8>) {
        let mut end = Self { open: self.open, ..Self::default() };
        match self.open {
            None => end.part(Role::User, &Part::Text(OPENING.into()), out),
            Some(Role::Model) => end.part(Role::User, &Part::Text(GO_ON.into()), out),
            Some(Role::User | Role::Responses) => {}
        }
        end.close(out);
    }

    fn close(&self, out: &mut Vec<u8>) {
        if self.open.is_some() {
            out.extend_from_slice(b"]}");
        }
    }
}

impl Writer {
    fn user(&mut self, target: &Target<'_>, blocks: &[ContentBlock], out: &mut Vec<u8>) {
        let mut is_empty = true;
        for block in blocks {
            let part = media_part(target, block).unwrap_or_else(|| Part::Text(block.as_text()));
            if !matches!(&part, Part::Text(text) if text.is_empty()) {
                self.part(Role::User, &part, out);
                is_empty = false;
            }
        }
        if is_empty {
            self.part(Role::User, &Part::Text(NOTHING.into()), out);
        }
    }

    fn assistant(&mut self, target: &Target<'_>, message: &AssistantMessage, out: &mut Vec<u8>) {
        let is_origin = message.origin == *target.origin;
        self.calls.clear();
        let parts: Vec<String> = message.blocks.iter().filter_map(|block| self.block(target, block, is_origin)).collect();
        let is_continued = is_origin
            && matches!(message.blocks.last(), Some(AssistantBlock::Opaque { native }) if continuation_token(native).is_some());
        if is_continued && self.calls.is_empty() {
            self.held = parts;
            return;
        }
        for part in parts {
            self.raw(&part, out);
        }
    }

    /// The part that a block is, where it means anything to the target.
    fn block(&mut self, target: &Target<'_>, block: &AssistantBlock, is_origin: bool) -> Option<String> {
        match block {
            AssistantBlock::Text { native: Some(native), .. } | AssistantBlock::Reasoning { native: Some(native), .. }
                if is_origin =>
            {
                Some(native.0.clone())
            }
            AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => {
                (!text.is_empty()).then(|| text_of(&Part::Text(text.into())))
            }
            AssistantBlock::Call(call) => Some(self.call(target, call, is_origin)),
            AssistantBlock::Opaque { native } if is_origin && continuation_token(native).is_none() => Some(native.0.clone()),
            AssistantBlock::Opaque { .. } => {
                let text = media::for_others(block, is_origin, "");
                (!text.is_empty()).then(|| text_of(&Part::Text(text.into())))
            }
            AssistantBlock::Reasoning { .. } => None,
        }
    }

    fn call(&mut self, target: &Target<'_>, call: &ToolCall, is_origin: bool) -> String {
        let is_first = self.calls.is_empty();
        let id = call.provider_id.as_deref().filter(|id| is_origin && !id.is_empty());
        let name = wire_name(&call.name);
        // A name that the model made wrong is refused even as it made it.
        if let Some(NativeBlock(native)) = call.native.as_ref().filter(|_| is_origin && name == call.name) {
            self.calls.push((call.name.clone(), id.map(str::to_owned)));
            return native.clone();
        }
        // Only the first call of a step is signed.
        let is_signed = is_first && Model::new(&target.origin.model, target.model).is_signed();
        let args = serde_json::from_str(call.arguments_object()).ok();
        let part =
            CallPart { function_call: Call { id, name: &name, args }, thought_signature: is_signed.then_some(NO_SIGNATURE) };
        let text = text_of(&part);
        self.calls.push((name.into_owned(), id.map(str::to_owned)));
        text
    }

    fn results(&mut self, target: &Target<'_>, results: &[PromptResult<'_>], out: &mut Vec<u8>) {
        let takes_media = Model::new(&target.origin.model, target.model).is_signed();
        let mut later = Vec::new();
        let calls = std::mem::take(&mut self.calls);
        for (result, position) in results.iter().zip(0..) {
            let (name, id) = calls.get(position).map_or((result.call.name.as_str(), None), |(name, id)| (name, id.as_deref()));
            let is_media = |block: &ContentBlock| takes_media && media_part(target, block).is_some();
            let text = result.text_beside(is_media);
            let answer = if result.result.outcome.is_error() { Answer::Error(text) } else { Answer::Output(text) };
            let media = result.result.content.iter().filter_map(|block| media_part(target, block));
            let mut parts: Vec<Part<'_>> = media.collect();
            if !takes_media && !parts.is_empty() {
                later.push(Part::Text(format!("What the tool `{name}` returned beside its text:").into()));
                later.append(&mut parts);
            }
            self.part(Role::Responses, &Part::FunctionResponse(Response { id, name, answer, parts }), out);
        }
        // Older models take text alone in a response, and nothing else beside responses.
        for part in later {
            self.part(Role::User, &part, out);
        }
    }

    fn raw(&mut self, part: &str, out: &mut Vec<u8>) {
        self.open(Role::Model, out);
        out.extend_from_slice(part.as_bytes());
    }

    fn part(&mut self, role: Role, part: &Part<'_>, out: &mut Vec<u8>) {
        self.open(role, out);
        json::write(part, out);
    }

    /// Makes room for a part in a content of `role`.
    fn open(&mut self, role: Role, out: &mut Vec<u8>) {
        if self.open == Some(role) {
            out.push(b',');
            return;
        }
        if self.open.is_none() && role == Role::Model {
            self.part(Role::User, &Part::Text(OPENING.into()), out);
        }
        let is_first = self.open.is_none();
        self.close(out);
        if !is_first {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"role\":\"");
        out.extend_from_slice(role.as_str().as_bytes());
        out.extend_from_slice(b"\",\"parts\":[");
        self.open = Some(role);
    }
}

fn text_of(part: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    json::write(part, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// The block as a part that is not text, where the model takes one.
fn media_part<'a>(target: &Target<'_>, block: &'a ContentBlock) -> Option<Part<'a>> {
    let model = Model::new(&target.origin.model, target.model);
    let (data, declared) = match block {
        ContentBlock::Image { data, mime_type } | ContentBlock::Audio { data, mime_type } => {
            (data.as_str(), mime_type.as_str())
        }
        ContentBlock::Resource { resource } => resource.blob.as_deref().zip(resource.mime_type.as_deref())?,
        ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => return None,
    };
    let mime_type = if declared.starts_with("image/") { media::image_type(data, declared) } else { declared };
    let takes_images = target.profile.images && model.takes_images();
    let is_taken = match mime_type {
        "image/png" | "image/jpeg" | "image/webp" => takes_images && media::image(data).is_some(),
        "image/heic" | "image/heif" => takes_images,
        "application/pdf" => model.takes_documents(),
        other => other.starts_with("audio/") || other.starts_with("video/"),
    };
    (is_taken && media::is_base64(data)).then_some(Part::InlineData(Blob { mime_type, data }))
}

/// A name that the API takes in a history: the model's own, where it is one at all.
fn wire_name(name: &str) -> Cow<'_, str> {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    if name.len() <= 64 && name.starts_with(begins) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mended: String = name.chars().take(63).map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if mended.starts_with(begins) { mended } else { format!("_{mended}") })
}
