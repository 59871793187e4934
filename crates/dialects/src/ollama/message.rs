//! The messages of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, ContentBlock, ToolCall};

use crate::dialect::Target;
use crate::json;
use crate::kept::MessageWriter;
use crate::media;
use crate::name::wire_name;

#[derive(Debug, Default, Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Option<&'a RawValue>,
}

/// Writes a prompt's messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer {
    /// Name and id of the newest assistant message's calls, as they were written.
    calls: Vec<(String, Option<String>)>,
}

impl MessageWriter for Writer {
    fn push(&mut self, target: &Target<'_>, message: &PromptMessage<'_>, out: &mut Vec<u8>) {
        match message {
            PromptMessage::User { message, .. } => said("user", target, &message.content).write(out),
            PromptMessage::Context { context, .. } => said("user", target, &[context.block()]).write(out),
            PromptMessage::Assistant { message, .. } => self.assistant(target, message, out),
            PromptMessage::Results(results) => self.results(target, results, out),
        }
    }

    fn finish(&self, _: &Target<'_>, _: &mut Vec<u8>) {}
}

impl Writer {
    fn assistant(&mut self, target: &Target<'_>, message: &AssistantMessage, out: &mut Vec<u8>) {
        let is_origin = message.origin == *target.origin;
        let (mut content, mut thinking) = (String::new(), String::new());
        self.calls.clear();
        let mut tool_calls = Vec::new();
        for block in &message.blocks {
            match block {
                AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => content.push_str(text),
                AssistantBlock::Reasoning { text, .. } if is_origin => thinking.push_str(text),
                AssistantBlock::Call(call) => tool_calls.push(self.call(call, is_origin)),
                AssistantBlock::Opaque { .. } => content.push_str(&media::for_others(block, is_origin, &content)),
                AssistantBlock::Reasoning { .. } => {}
            }
        }
        if content.is_empty() && tool_calls.is_empty() {
            // Nothing of it means anything here.
            return;
        }
        let thinking = (!thinking.is_empty()).then_some(thinking);
        Message { role: "assistant", content: content.into(), thinking, tool_calls, ..Message::default() }.write(out);
    }

    fn call<'a>(&mut self, call: &'a ToolCall, is_origin: bool) -> Call<'a> {
        let name = wire_name(&call.name);
        let id = call.provider_id.as_deref().filter(|id| is_origin && !id.is_empty());
        self.calls.push((name.clone().into_owned(), id.map(str::to_owned)));
        let arguments = serde_json::from_str(call.arguments_object()).ok();
        Call { id, kind: "function", function: Function { name, arguments } }
    }

    fn results(&mut self, target: &Target<'_>, results: &[PromptResult<'_>], out: &mut Vec<u8>) {
        let calls = std::mem::take(&mut self.calls);
        for (result, position) in results.iter().zip(0..) {
            let (name, id) = calls.get(position).map_or((result.call.name.as_str(), None), |(name, id)| (name, id.as_deref()));
            let mut text = result.text_beside(|block| image(target, block).is_some());
            if result.result.outcome.is_error() {
                text.insert_str(0, "ERROR: ");
            }
            Message {
                role: "tool",
                content: text.into(),
                images: images(target, &result.result.content),
                tool_name: Some(name),
                tool_call_id: id,
                ..Message::default()
            }
            .write(out);
        }
    }
}

impl<'a> Message<'a> {
    pub(super) fn system(text: &'a str) -> Self {
        Self { role: "system", content: text.into(), ..Self::default() }
    }

    /// Writes it behind the messages before it, which begin after a `[`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if out.last().is_some_and(|last| *last == b'}') {
            out.push(b',');
        }
        json::write(self, out);
    }
}

/// Content as one text, and the images beside it.
fn said<'a>(role: &'static str, target: &Target<'_>, blocks: &'a [ContentBlock]) -> Message<'a> {
    let images = images(target, blocks);
    let is_text = |block: &&ContentBlock| image(target, block).is_none();
    let content = match blocks {
        [ContentBlock::Text { text }] => text.into(),
        blocks => blocks.iter().filter(is_text).map(ContentBlock::as_text).collect::<Vec<_>>().join("\n").into(),
    };
    Message { role, content, images, ..Message::default() }
}

fn images<'a>(target: &Target<'_>, blocks: &'a [ContentBlock]) -> Vec<&'a str> {
    blocks.iter().filter_map(|block| image(target, block)).collect()
}

/// The bytes of a block that is an image which the model takes.
fn image<'a>(target: &Target<'_>, block: &'a ContentBlock) -> Option<&'a str> {
    let (data, declared) = match block {
        ContentBlock::Image { data, mime_type } => (data.as_str(), mime_type.as_str()),
        ContentBlock::Resource { resource } => resource.blob.as_deref().zip(resource.mime_type.as_deref())?,
        ContentBlock::Text { .. } | ContentBlock::Audio { .. } | ContentBlock::ResourceLink { .. } => return None,
    };
    let is_taken = declared.starts_with("image/")
        && matches!(media::image(data), Some("image/png" | "image/jpeg" | "image/webp"))
        && target.profile.images
        && target.model.images != Some(false);
    is_taken.then_some(data)
}

/// The images of a request.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    pub(super) count: u64,
    pub(super) bytes: usize,
}

pub(super) fn pictures(target: &Target<'_>, prompt: &Prompt<'_>) -> Pictures {
    let mut pictures = Pictures::default();
    let mut add = |blocks: &[ContentBlock]| {
        for data in blocks.iter().filter_map(|block| image(target, block)) {
            pictures.count += 1;
            pictures.bytes += data.len();
        }
    };
    for message in &prompt.messages {
        match message {
            PromptMessage::User { message, .. } => add(&message.content),
            PromptMessage::Assistant { .. } | PromptMessage::Context { .. } => {}
            PromptMessage::Results(results) => results.iter().for_each(|result| add(&result.result.content)),
        }
    }
    pictures
}
