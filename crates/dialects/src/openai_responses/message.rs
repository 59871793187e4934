//! The items of a request.

use std::borrow::Cow;

use serde::Serialize;
use turnwright_core::prompt::{PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, ContentBlock, NativeBlock, Seq, ToolCall};

use super::wire::Item;
use crate::dialect::Target;
use crate::ids::Ids;
use crate::json;
use crate::kept::MessageWriter;
use crate::media::{self, DataUrl};
use crate::name::wire_name;
use crate::profile::{ReasoningReplay, ToolCallIds};

/// An item that is put together here: without an id, which belongs to what the provider made.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written<'a> {
    Message { role: &'static str, content: Content<'a> },
    FunctionCall { call_id: &'a str, name: Cow<'a, str>, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: Content<'a> },
    CustomToolCallOutput { call_id: &'a str, output: Content<'a> },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: DataUrl<'a>, detail: &'static str },
    InputFile { filename: &'a str, file_data: DataUrl<'a> },
    OutputText { text: &'a str },
    Refusal { refusal: &'a str },
}

/// Items of the provider's that are answered by another item, with the kind of that. One without its answer is refused.
const ANSWERED: [(&str, &str); 5] = [
    ("computer_call", "computer_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("shell_call", "shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("mcp_approval_request", "mcp_approval_response"),
];

/// Writes a prompt's messages as items for one target.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    ids: Ids,
    /// The newest assistant message's calls, in call order.
    newest: Vec<Called>,
}

/// A call as it was written.
#[derive(Debug, Clone)]
struct Called {
    id: String,
    form: CallForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallForm {
    Function,
    /// A tool that takes free text.
    Custom,
}

impl MessageWriter for Writer {
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>) {
        match message {
            PromptMessage::User { message, .. } => {
                let content = content(target, &message.content, None);
                Written::Message { role: "user", content }.write(out);
            }
            PromptMessage::Assistant { seq, message } => self.assistant(target, *seq, message, out),
            PromptMessage::Results(results) => self.results(target, results, out),
        }
    }

    fn finish(&self, _: &Target<'_>, _: &mut Vec<u8>, _: usize) {}
}

impl Writer {
    pub(super) fn new(ids: ToolCallIds) -> Self {
        // What the format takes at all, where the endpoint takes any.
        let ids = if ids == ToolCallIds::Any { ToolCallIds::Max64 } else { ids };
        Self { ids: Ids::new(ids), newest: Vec::new() }
    }

    fn assistant(&mut self, target: &Target<'_>, seq: Seq, message: &AssistantMessage, out: &mut Vec<u8>) {
        let is_origin = message.origin == *target.origin;
        self.newest.clear();
        // Reasoning that nothing of the same message follows is refused.
        let mut thoughts: Vec<&str> = Vec::new();
        let mut calls = 0;
        for block in &message.blocks {
            match block {
                AssistantBlock::Reasoning { native, .. } => {
                    let native = native.as_ref().filter(|_| is_origin);
                    thoughts
                        .extend(native.filter(|native| is_replayed(target, message, &native.0)).map(|native| native.0.trim()));
                }
                AssistantBlock::Opaque { native } if is_origin => match kind_of(&native.0).as_deref() {
                    Some("reasoning") if is_replayed(target, message, &native.0) => thoughts.push(native.0.trim()),
                    Some("reasoning") | None => {}
                    Some(kind) if is_answered(kind, &native.0, message) => {
                        flush(&mut thoughts, out);
                        write_raw(native.0.trim(), out);
                    }
                    Some(_) => {}
                },
                AssistantBlock::Opaque { .. } => {}
                AssistantBlock::Text { text, native } => {
                    let native = native.as_ref().filter(|native| is_origin && kind_of(&native.0).is_some());
                    if let Some(native) = native {
                        flush(&mut thoughts, out);
                        write_raw(native.0.trim(), out);
                    } else if !text.is_empty() {
                        flush(&mut thoughts, out);
                        says(Part::OutputText { text }).write(out);
                    }
                }
                AssistantBlock::Refusal { text } if text.is_empty() => {}
                AssistantBlock::Refusal { text } => {
                    flush(&mut thoughts, out);
                    says(if is_origin { Part::Refusal { refusal: text } } else { Part::OutputText { text } }).write(out);
                }
                AssistantBlock::Call(call) => {
                    flush(&mut thoughts, out);
                    self.call(CallId { message: seq, index: calls }, call, is_origin, out);
                    calls += 1;
                }
            }
        }
    }

    fn call(&mut self, own: CallId, call: &ToolCall, is_origin: bool, out: &mut Vec<u8>) {
        let id = self.ids.id(own, call.provider_id.as_deref().filter(|_| is_origin));
        let native = call.native.as_ref().filter(|_| is_origin && call.provider_id.as_ref() == Some(&id));
        let form = native.and_then(|native| replayed_form(native, call));
        if let Some((native, _)) = native.zip(form) {
            write_raw(native.0.trim(), out);
        } else {
            let (name, arguments) = (wire_name(&call.name), call.arguments_object());
            Written::FunctionCall { call_id: &id, name, arguments }.write(out);
        }
        self.newest.push(Called { id, form: form.unwrap_or(CallForm::Function) });
    }

    fn results(&mut self, target: &Target<'_>, results: &[PromptResult<'_>], out: &mut Vec<u8>) {
        for (result, position) in results.iter().zip(0..) {
            let own_id = result.id.to_string();
            let called = self.newest.get(position);
            let call_id = called.map_or(own_id.as_str(), |called| &called.id);
            let output = output(target, result);
            match called.map_or(CallForm::Function, |called| called.form) {
                CallForm::Function => Written::FunctionCallOutput { call_id, output }.write(out),
                CallForm::Custom => Written::CustomToolCallOutput { call_id, output }.write(out),
            }
        }
    }
}

impl Written<'_> {
    /// Writes it behind the items before it.
    fn write(&self, out: &mut Vec<u8>) {
        separate(out);
        json::write(self, out);
    }
}

fn separate(out: &mut Vec<u8>) {
    if out.last().is_some_and(|last| *last == b'}') {
        out.push(b',');
    }
}

fn write_raw(native: &str, out: &mut Vec<u8>) {
    separate(out);
    out.extend_from_slice(native.as_bytes());
}

fn flush(thoughts: &mut Vec<&str>, out: &mut Vec<u8>) {
    for native in thoughts.drain(..) {
        write_raw(native, out);
    }
}

fn says(part: Part<'_>) -> Written<'_> {
    Written::Message { role: "assistant", content: Content::Parts(vec![part]) }
}

/// The kind of an item; nothing where it is none.
fn kind_of(native: &str) -> Option<String> {
    let item: Item<'_> = serde_json::from_str(native).ok()?;
    item.kind.any().filter(|kind| !kind.is_empty()).map(str::to_owned)
}

/// Whether a reasoning item goes back: as ciphertext always, as text where the endpoint wants it.
fn is_replayed(target: &Target<'_>, message: &AssistantMessage, native: &str) -> bool {
    let Ok(item) = serde_json::from_str::<Item<'_>>(native) else { return false };
    if item.encrypted_content.any().is_some_and(|text| !text.is_empty()) {
        return true;
    }
    let is_wanted = match target.profile.reasoning_replay {
        ReasoningReplay::Never => false,
        ReasoningReplay::WithCalls => message.calls().next().is_some(),
        ReasoningReplay::Always | ReasoningReplay::Required => true,
    };
    is_wanted && !item.content.0.is_empty()
}

/// Whether an item of this kind needs no answer, or has one in the same message.
fn is_answered(kind: &str, native: &str, message: &AssistantMessage) -> bool {
    let Some((_, answer)) = ANSWERED.iter().find(|(known, _)| *known == kind) else { return true };
    let id_of = |native: &str| {
        let item: Item<'_> = serde_json::from_str(native).ok()?;
        item.call_id.any().map(str::to_owned)
    };
    let id = id_of(native);
    message.blocks.iter().any(|block| match block {
        AssistantBlock::Opaque { native } => kind_of(&native.0).as_deref() == Some(answer) && id_of(&native.0) == id,
        AssistantBlock::Text { .. }
        | AssistantBlock::Reasoning { .. }
        | AssistantBlock::Refusal { .. }
        | AssistantBlock::Call(_) => false,
    })
}

/// What a call's own item is, where it can go back as it is.
fn replayed_form(native: &NativeBlock, call: &ToolCall) -> Option<CallForm> {
    match kind_of(&native.0)?.as_str() {
        "custom_tool_call" => Some(CallForm::Custom),
        "function_call" if call.arguments.is_empty() || call.arguments == call.arguments_object() => Some(CallForm::Function),
        _ => None,
    }
}

/// A result for the model. The format has no mark for a failed one: its text says so.
fn output<'a>(target: &Target<'_>, result: &'a PromptResult<'_>) -> Content<'a> {
    let is_error = result.result.outcome.is_error();
    let has_media = result.result.content.iter().any(|block| part(target, block).is_some());
    if !has_media {
        let text = result.text();
        return Content::Text(Cow::Owned(if is_error { format!("ERROR: {text}") } else { text }));
    }
    let mut first = result.note.clone().unwrap_or_default();
    if is_error {
        first.insert_str(0, "ERROR: ");
    }
    content(target, &result.result.content, Some(first).filter(|first| !first.is_empty()))
}

fn content<'a>(target: &Target<'_>, blocks: &'a [ContentBlock], first: Option<String>) -> Content<'a> {
    if !blocks.iter().any(|block| part(target, block).is_some()) {
        return Content::Text(match blocks {
            [ContentBlock::Text { text }] => Cow::Borrowed(text),
            blocks => Cow::Owned(turnwright_core::text_of(blocks)),
        });
    }
    let first = first.map(|text| Part::InputText { text: Cow::Owned(text) });
    let rest = blocks.iter().map(|block| part(target, block).unwrap_or_else(|| Part::InputText { text: block.as_text() }));
    Content::Parts(first.into_iter().chain(rest).collect())
}

/// The block as a part that is not text, where the endpoint and the model take one.
fn part<'a>(target: &Target<'_>, block: &'a ContentBlock) -> Option<Part<'a>> {
    let takes_images = target.profile.images && target.model.images != Some(false);
    let takes_documents = target.profile.documents && target.model.documents != Some(false);
    match block {
        ContentBlock::Image { data, mime_type } if takes_images => Some(image(data, mime_type)),
        ContentBlock::Resource { resource } => {
            let (data, mime_type) = resource.blob.as_deref().zip(resource.mime_type.as_deref())?;
            match mime_type {
                "application/pdf" if takes_documents => {
                    let filename = resource.uri.rsplit('/').next().filter(|name| !name.is_empty());
                    let file_data = DataUrl { mime_type, data };
                    Some(Part::InputFile { filename: filename.unwrap_or("document.pdf"), file_data })
                }
                _ if mime_type.starts_with("image/") && takes_images => Some(image(data, mime_type)),
                _ => None,
            }
        }
        ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::ResourceLink { .. } => None,
    }
}

fn image<'a>(data: &'a str, declared: &'a str) -> Part<'a> {
    let mime_type = media::image_type(data, declared);
    Part::InputImage { image_url: DataUrl { mime_type, data }, detail: "auto" }
}
