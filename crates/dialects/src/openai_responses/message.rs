//! The items of a request.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use turnwright_core::prompt::{PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, ContentBlock, Seq, ToolCall};

use super::own::Own;
use crate::dialect::Target;
use crate::ids::Ids;
use crate::json;
use crate::kept::MessageWriter;
use crate::media::{self, DataUrl};
use crate::name::wire_name;
use crate::profile::ToolCallIds;

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

/// Writes a prompt's messages as items for one target.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    ids: Ids,
    /// The ids of the provider's own items so far.
    item_ids: HashSet<Box<str>>,
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
            PromptMessage::Context { context, .. } => {
                let blocks = [context.block()];
                Written::Message { role: "user", content: content(target, &blocks, None) }.write(out);
            }
            PromptMessage::Assistant { seq, message } => self.assistant(target, *seq, message, out),
            PromptMessage::Results(results) => self.results(target, results, out),
        }
    }

    fn finish(&self, _: &Target<'_>, _: &mut Vec<u8>) {}
}

impl Writer {
    pub(super) fn new(ids: ToolCallIds) -> Self {
        // The format has a limit of its own, above that of Chat Completions.
        let ids = match ids {
            ToolCallIds::Any | ToolCallIds::Max40 | ToolCallIds::Max64 => ToolCallIds::Max64,
            ToolCallIds::Word64 | ToolCallIds::Alnum9 => ids,
        };
        Self { ids: Ids::new(ids), item_ids: HashSet::new(), newest: Vec::new() }
    }

    fn assistant(&mut self, target: &Target<'_>, seq: Seq, message: &AssistantMessage, out: &mut Vec<u8>) {
        let is_origin = message.origin == *target.origin;
        self.newest.clear();
        // Reasoning that nothing of the same message follows is refused.
        let mut thoughts: Vec<Own<'_>> = Vec::new();
        let mut calls = 0;
        for block in &message.blocks {
            let native = match block {
                AssistantBlock::Text { native, .. } | AssistantBlock::Reasoning { native, .. } => native.as_ref(),
                AssistantBlock::Opaque { native } => Some(native),
                AssistantBlock::Call(call) => call.native.as_ref(),
                AssistantBlock::Refusal { .. } => None,
            };
            let own = native.filter(|_| is_origin).and_then(Own::read).filter(|own| self.is_new(own));
            let written = match block {
                AssistantBlock::Opaque { .. } if !media::for_others(block, is_origin, "").is_empty() => {
                    flush(&mut thoughts, out);
                    let text = media::for_others(block, is_origin, "");
                    let content = Content::Parts(vec![Part::OutputText { text: &text }]);
                    Written::Message { role: "assistant", content }.write(out);
                    continue;
                }
                AssistantBlock::Reasoning { .. } | AssistantBlock::Opaque { .. } => {
                    match own {
                        Some(own) if own.kind() == "reasoning" => {
                            thoughts.extend(Some(own).filter(|own| own.is_wanted_reasoning(target.profile, message)));
                        }
                        Some(own) if own.is_answered(message) => {
                            flush(&mut thoughts, out);
                            own.write(separate(out));
                        }
                        Some(_) | None => {}
                    }
                    continue;
                }
                AssistantBlock::Call(call) => {
                    flush(&mut thoughts, out);
                    self.call(CallId { message: seq, index: calls }, call, (is_origin, own), out);
                    calls += 1;
                    continue;
                }
                AssistantBlock::Text { .. } if let Some(own) = own.filter(|own| own.kind() == "message") => {
                    flush(&mut thoughts, out);
                    own.write(separate(out));
                    continue;
                }
                AssistantBlock::Refusal { text } if is_origin => Part::Refusal { refusal: text },
                AssistantBlock::Refusal { text } | AssistantBlock::Text { text, .. } => Part::OutputText { text },
            };
            if !written.is_empty() {
                flush(&mut thoughts, out);
                Written::Message { role: "assistant", content: Content::Parts(vec![written]) }.write(out);
            }
        }
    }

    /// Whether no earlier item has the same id: a request with two is refused.
    fn is_new(&mut self, own: &Own<'_>) -> bool {
        own.id().is_none_or(|id| self.item_ids.insert(id.into()))
    }

    fn call(&mut self, id: CallId, call: &ToolCall, (is_origin, own): (bool, Option<Own<'_>>), out: &mut Vec<u8>) {
        let id = self.ids.id(id, call.provider_id.as_deref().filter(|_| is_origin));
        let name = wire_name(&call.name);
        let is_as_it_was = call.provider_id.as_ref() == Some(&id) && name == call.name;
        let own = own.filter(|_| is_as_it_was);
        let form = match own.as_ref().map(Own::kind) {
            Some("custom_tool_call") => Some(CallForm::Custom),
            // Arguments that are not JSON are in the result's note.
            Some("function_call") if call.arguments == call.arguments_object() => Some(CallForm::Function),
            _ => None,
        };
        if let (Some(own), Some(_)) = (own, form) {
            own.write(separate(out));
        } else {
            Written::FunctionCall { call_id: &id, name, arguments: call.arguments_object() }.write(out);
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
        json::write(self, separate(out));
    }
}

impl Part<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::OutputText { text } | Self::Refusal { refusal: text } => text.is_empty(),
            Self::InputText { text } => text.is_empty(),
            Self::InputImage { .. } | Self::InputFile { .. } => false,
        }
    }
}

/// Makes room for the next item.
fn separate(out: &mut Vec<u8>) -> &mut Vec<u8> {
    if out.last().is_some_and(|last| *last == b'}') {
        out.push(b',');
    }
    out
}

fn flush(thoughts: &mut Vec<Own<'_>>, out: &mut Vec<u8>) {
    for own in thoughts.drain(..) {
        own.write(separate(out));
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
    let note = result.note().unwrap_or_default();
    let first = if is_error { format!("ERROR: {note}").trim_end().to_owned() } else { note };
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
    let image = |data: &'a str| {
        let takes_images = target.profile.images && target.model.images != Some(false);
        let mime_type = media::image(data).filter(|_| takes_images)?;
        Some(Part::InputImage { image_url: DataUrl { mime_type, data }, detail: "auto" })
    };
    match block {
        ContentBlock::Image { data, .. } => image(data),
        ContentBlock::Resource { resource } => {
            let (data, mime_type) = resource.blob.as_deref().zip(resource.mime_type.as_deref())?;
            if mime_type != "application/pdf" {
                return Some(data).filter(|_| mime_type.starts_with("image/")).and_then(image);
            }
            let takes_documents = target.profile.documents && target.model.documents != Some(false);
            let filename = resource.uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("document.pdf");
            (takes_documents && media::is_base64(data))
                .then_some(Part::InputFile { filename, file_data: DataUrl { mime_type, data } })
        }
        ContentBlock::Text { .. } | ContentBlock::Audio { .. } | ContentBlock::ResourceLink { .. } => None,
    }
}
