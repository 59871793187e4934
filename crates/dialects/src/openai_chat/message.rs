//! The messages of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, ContentBlock, Seq, ToolCall, text_of};

use super::reasoning;
use super::settings;
use crate::dialect::Target;
use crate::facts::ReasoningStyle;
use crate::form::{self, Held};
use crate::gemini::{Model, NO_SIGNATURE};
use crate::ids::Ids;
use crate::json;
use crate::kept::MessageWriter;
use crate::media::{self, DataUrl};
use crate::name::wire_name;
use crate::outcome_mark;
use crate::profile::{DocumentParts, EmptyContent, Profile, ReasoningReplay, SystemRole};

/// One message, ready to be written.
#[derive(Debug, Default, Serialize)]
struct Message<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: File<'a> },
    DocumentUrl { document_url: DataUrl<'a>, document_name: &'a str },
}

#[derive(Debug, Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Debug, Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: DataUrl<'a>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Extra<'a>>,
}

/// What a call holds besides its name, id and arguments.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Extra<'a> {
    Own(&'a RawValue),
    Google { google: Signature },
}

#[derive(Debug, Serialize)]
struct Signature {
    thought_signature: &'static str,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

/// Writes a prompt's messages for one target.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    ids: Ids,
    /// The ids of the newest assistant message's calls, in call order.
    newest_ids: Vec<String>,
    /// Whether the newest message is a result.
    is_after_results: bool,
    /// How many bytes it has where it is a person's and what the person says next is joined to it; else none.
    joinable_bytes: usize,
    /// Whether results are marked so that a reader knows again which failed.
    marks_outcomes: bool,
}

/// What an assistant says between results and a user message, where an endpoint demands that one speaks there.
const AFTER_RESULTS: &str = "I have the results.";
/// The reasoning of a message that has none, where an endpoint demands some and takes an empty text for none.
const NO_REASONING: &str = " ";

impl MessageWriter for Writer {
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>) {
        match message {
            PromptMessage::User { message, .. } => self.user(target.profile, content(target, &message.content), out),
            PromptMessage::Context { context, .. } => {
                self.user(target.profile, content(target, &[context.block()]), out);
            }
            PromptMessage::Assistant { seq, message } => self.assistant(target, *seq, message, out),
            PromptMessage::Results(results) => self.results(target, results, out),
        }
    }

    fn finish(&self, _: &Target<'_>, _: &mut Vec<u8>) {}

    fn settled(&self, _newest: usize, end: usize) -> usize {
        end - self.joinable_bytes
    }
}

impl Writer {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            ids: Ids::new(profile.tool_call_ids),
            newest_ids: Vec::new(),
            is_after_results: false,
            joinable_bytes: 0,
            marks_outcomes: false,
        }
    }

    /// Writes a conversation that is to be read again elsewhere.
    pub(crate) fn for_readers(profile: &Profile) -> Self {
        Self { marks_outcomes: true, ..Self::new(profile) }
    }

    /// Writes the system prompt, where there is one.
    pub(super) fn system(profile: &Profile, prompt: &Prompt<'_>, out: &mut Vec<u8>) {
        let own = prompt.settings.system_prompt.as_deref().filter(|text| !text.is_empty());
        let is_told = !matches!(settings::held(profile, prompt), Some(Held::Schema(_)));
        let form = prompt.settings.output.as_ref().filter(|_| is_told);
        if let Some(text) = form::system(own, form) {
            let role = match profile.system_role {
                SystemRole::System => "system",
                SystemRole::Developer => "developer",
            };
            write(role, Content::Text(text), out);
        }
    }

    /// Writes what the model is told for this request alone, behind all messages.
    pub(super) fn told(&self, profile: &Profile, words: &str, out: &mut Vec<u8>) {
        if self.is_after_results && profile.assistant_after_results {
            write("assistant", Content::Text(Cow::Borrowed(AFTER_RESULTS)), out);
        }
        let content = Content::Text(Cow::Owned(format!("({words})")));
        if self.joinable_bytes > 0 {
            join(content, out);
        } else {
            write("user", content, out);
        }
    }

    fn user(&mut self, profile: &Profile, content: Content<'_>, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_after_results) && profile.assistant_after_results {
            write("assistant", Content::Text(Cow::Borrowed(AFTER_RESULTS)), out);
        }
        if self.joinable_bytes > 0 {
            let begin = out.len() - self.joinable_bytes;
            join(content, out);
            self.joinable_bytes = out.len() - begin;
        } else {
            let begin = out.len();
            write("user", content, out);
            self.joinable_bytes = if profile.joins_messages { out.len() - begin } else { 0 };
        }
    }

    fn assistant(&mut self, target: &Target<'_>, seq: Seq, message: &AssistantMessage, out: &mut Vec<u8>) {
        let is_origin = message.origin == *target.origin;
        let mut written = Message { role: "assistant", ..Message::default() };
        let mut text = Cow::Borrowed("");
        let mut refusal = Cow::Borrowed("");
        self.newest_ids.clear();
        for block in &message.blocks {
            match block {
                AssistantBlock::Refusal { text: more } if is_origin && target.profile.refusal_field => {
                    append(&mut refusal, more);
                }
                AssistantBlock::Text { text: more, .. } | AssistantBlock::Refusal { text: more } => append(&mut text, more),
                AssistantBlock::Call(call) => {
                    let index = u32::try_from(written.tool_calls.len()).unwrap_or(u32::MAX);
                    written.tool_calls.push(self.call(target, CallId { message: seq, index }, call, is_origin));
                }
                AssistantBlock::Opaque { .. } => {
                    let told = media::for_others(block, is_origin, &text);
                    if !told.is_empty() {
                        text.to_mut().push_str(&told);
                    }
                }
                AssistantBlock::Reasoning { .. } => {}
            }
        }
        let has_calls = !written.tool_calls.is_empty();
        if text.is_empty() && refusal.is_empty() && !has_calls {
            // Nothing of it means anything here: it came from elsewhere, or was reasoning alone.
            return;
        }
        replay_reasoning(target, message, is_origin, &mut written);
        written.content = if text.is_empty() {
            match target.profile.empty_content {
                EmptyContent::Null => Some(Content::Null),
                EmptyContent::Omitted => None,
                EmptyContent::Text => Some(Content::Text(text)),
            }
        } else {
            Some(Content::Text(text))
        };
        written.refusal = (!refusal.is_empty()).then_some(refusal);
        (self.is_after_results, self.joinable_bytes) = (false, 0);
        written.write(out);
    }

    fn call<'a>(&mut self, target: &Target<'_>, own: CallId, call: &'a ToolCall, is_origin: bool) -> Call<'a> {
        let id = self.ids.id(own, call.provider_id.as_deref().filter(|_| is_origin));
        self.newest_ids.push(id.clone());
        let native = call.native.as_ref().filter(|_| is_origin);
        let extra = native.and_then(|native| reasoning::extra_content(&native.0)).map(Extra::Own);
        // Only the first call of a step is signed.
        let is_signed =
            own.index == 0 && target.profile.signed_calls && Model::new(&target.origin.model, target.model).is_signed();
        let unsigned = is_signed.then_some(Extra::Google { google: Signature { thought_signature: NO_SIGNATURE } });
        Call {
            id,
            kind: "function",
            function: Function { name: wire_name(&call.name), arguments: call.arguments_object() },
            extra_content: extra.or(unsigned),
        }
    }

    fn results(&mut self, target: &Target<'_>, results: &[PromptResult<'_>], out: &mut Vec<u8>) {
        let mut pictures = Vec::new();
        for (result, position) in results.iter().zip(0..) {
            let id = self.newest_ids.get(position).cloned().unwrap_or_else(|| result.id.to_string());
            let mut text = result.text();
            let is_error = result.result.outcome.is_error();
            if self.marks_outcomes {
                outcome_mark::put_on(&mut text, is_error);
            } else if is_error {
                text.insert_str(0, "ERROR: ");
            }
            let before = pictures.len();
            pictures.extend(result.result.content.iter().filter_map(|block| part(target, block)));
            if pictures.len() > before {
                let label = format!("Images in the result of the tool call {id}:");
                pictures.insert(before, Part::Text { text: Cow::Owned(label) });
            }
            let content = Some(Content::Text(Cow::Owned(text)));
            Message { role: "tool", tool_call_id: Some(id), content, ..Message::default() }.write(out);
        }
        (self.is_after_results, self.joinable_bytes) = (true, 0);
        // Tool messages hold text alone, and nothing may stand between them.
        if !pictures.is_empty() {
            self.user(target.profile, Content::Parts(pictures), out);
        }
    }
}

impl Message<'_> {
    /// Writes it behind the messages before it, which begin after a `[`.
    fn write(&self, out: &mut Vec<u8>) {
        if out.last().is_some_and(|last| *last == b'}') {
            out.push(b',');
        }
        json::write(self, out);
    }
}

/// Writes what a person says at the end of the newest message, which is a person's too.
fn join(content: Content<'_>, out: &mut Vec<u8>) {
    const BEGIN: &[u8] = br#"{"role":"user","content":"#;
    // No text holds this: its quotes are escaped there.
    let Some(begin) = out.windows(BEGIN.len()).rposition(|bytes| bytes == BEGIN) else { return write("user", content, out) };
    let before = begin + BEGIN.len();
    let is_list = out.get(before) == Some(&b'[');
    out.pop();
    match content {
        Content::Text(text) if !is_list => {
            out.pop();
            let mut more = Vec::new();
            json::write(&format!("\n\n{text}"), &mut more);
            out.extend_from_slice(more.get(1..).unwrap_or_default());
        }
        content => {
            if is_list {
                out.pop();
            } else {
                out.splice(before..before, br#"[{"type":"text","text":"#.iter().copied());
                out.push(b'}');
            }
            let parts = match content {
                Content::Text(text) => vec![Part::Text { text }],
                Content::Parts(parts) => parts,
                Content::Null => Vec::new(),
            };
            for part in parts {
                out.push(b',');
                json::write(&part, out);
            }
            out.push(b']');
        }
    }
    out.push(b'}');
}

fn write(role: &'static str, content: Content<'_>, out: &mut Vec<u8>) {
    Message { role, content: Some(content), ..Message::default() }.write(out);
}

fn content<'a>(target: &Target<'_>, blocks: &'a [ContentBlock]) -> Content<'a> {
    if let [ContentBlock::Text { text }] = blocks {
        return Content::Text(Cow::Borrowed(text));
    }
    if !blocks.iter().any(|block| part(target, block).is_some()) {
        return Content::Text(Cow::Owned(text_of(blocks)));
    }
    let text = |block: &'a ContentBlock| Part::Text { text: block.as_text() };
    Content::Parts(blocks.iter().map(|block| part(target, block).unwrap_or_else(|| text(block))).collect())
}

/// The block as a part that is not text, where the endpoint takes one.
fn part<'a>(target: &Target<'_>, block: &'a ContentBlock) -> Option<Part<'a>> {
    let takes_images = target.profile.images && target.model.images != Some(false);
    let takes_documents = target.profile.documents && target.model.documents != Some(false);
    match block {
        ContentBlock::Image { data, .. } if takes_images => image(data),
        ContentBlock::Resource { resource } => {
            let (data, mime_type) = resource.blob.as_deref().zip(resource.mime_type.as_deref())?;
            match mime_type {
                "application/pdf" if takes_documents && media::is_base64(data) => {
                    let filename = resource.uri.rsplit('/').next().filter(|name| !name.is_empty());
                    let (filename, file_data) = (filename.unwrap_or("document.pdf"), DataUrl { mime_type, data });
                    Some(match target.profile.document_parts {
                        DocumentParts::File => Part::File { file: File { filename, file_data } },
                        DocumentParts::DocumentUrl => Part::DocumentUrl { document_url: file_data, document_name: filename },
                    })
                }
                _ if mime_type.starts_with("image/") && takes_images => image(data),
                _ => None,
            }
        }
        ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::ResourceLink { .. } => None,
    }
}

fn replay_reasoning<'a>(target: &Target<'_>, message: &'a AssistantMessage, is_origin: bool, written: &mut Message<'a>) {
    let replay = target.profile.reasoning_replay;
    let has_calls = !written.tool_calls.is_empty();
    let is_wanted = match replay {
        ReasoningReplay::Never => return,
        ReasoningReplay::WithCalls | ReasoningReplay::RequiredWithCalls => has_calls,
        ReasoningReplay::Always | ReasoningReplay::Required => true,
    };
    if is_wanted && is_origin {
        for block in &message.blocks {
            let (text, native) = match block {
                AssistantBlock::Reasoning { text, native: Some(native) } => (text.as_str(), native),
                AssistantBlock::Opaque { native } => ("", native),
                AssistantBlock::Reasoning { native: None, .. }
                | AssistantBlock::Text { .. }
                | AssistantBlock::Refusal { .. }
                | AssistantBlock::Call(_) => continue,
            };
            let Some(native) = reasoning::read(&native.0) else { continue };
            match &*native.field {
                "reasoning_details" => written.reasoning_details.extend(native.items()),
                "reasoning_content" => append(written.reasoning_content.get_or_insert_default(), text),
                "reasoning" => append(written.reasoning.get_or_insert_default(), text),
                "reasoning_text" => append(written.reasoning_text.get_or_insert_default(), text),
                _ => {}
            }
        }
    }
    if replay == ReasoningReplay::Required {
        written.reasoning_content.get_or_insert_default();
    }
    if replay == ReasoningReplay::RequiredWithCalls && has_calls && may_think(target) {
        let text = written.reasoning_content.get_or_insert_default();
        if text.is_empty() {
            *text = Cow::Borrowed(NO_REASONING);
        }
    }
}

/// Whether nothing says that the model does not think: what is known of it, or a name of the family before those that do.
fn may_think(target: &Target<'_>) -> bool {
    let name = target.origin.model.rsplit('/').next().unwrap_or_default();
    target.model.reasoning != Some(ReasoningStyle::Never) && !name.starts_with("moonshot-v1")
}

fn image(data: &str) -> Option<Part<'_>> {
    let mime_type = media::image(data)?;
    Some(Part::ImageUrl { image_url: ImageUrl { url: DataUrl { mime_type, data } } })
}

fn append<'a>(text: &mut Cow<'a, str>, more: &'a str) {
    if text.is_empty() {
        *text = Cow::Borrowed(more);
    } else if !more.is_empty() {
        text.to_mut().push_str(more);
    }
}
