//! The model messages of the AI SDK (`ModelMessage` of the package `ai`, `modelMessageSchema`).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::prompt::{PromptMessage, PromptResult};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, ContentBlock, Media, Seq, ToolCall};

use super::raw;
use crate::media;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System { content: &'a str },
    User { content: Vec<Said<'a>> },
    Assistant { content: Vec<Answered<'a>> },
    Tool { content: Vec<Gave<'a>> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Said<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        image: &'a str,
        media_type: &'a str,
    },
    File {
        data: &'a str,
        media_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Answered<'a> {
    Text { text: &'a str },
    Reasoning { text: &'a str },
    File { data: Cow<'a, str>, media_type: Cow<'a, str> },
    ToolCall { tool_call_id: CallId, tool_name: &'a str, input: &'a RawValue },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Gave<'a> {
    ToolResult { tool_call_id: CallId, tool_name: &'a str, output: Output<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", content = "value", rename_all = "kebab-case")]
enum Output<'a> {
    Text(String),
    Json(&'a Value),
    ErrorText(String),
    Content(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Piece<'a> {
    Text {
        text: Cow<'a, str>,
    },
    ImageData {
        data: &'a str,
        media_type: &'a str,
    },
    FileData {
        data: &'a str,
        media_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
    },
}

pub(super) fn messages(system: Option<&str>, messages: &[PromptMessage<'_>]) -> Vec<Box<RawValue>> {
    let system = system.into_iter().filter_map(|content| raw(&Message::System { content }));
    system.chain(messages.iter().filter_map(|message| raw(&self::message(message)?))).collect()
}

/// `None` where nothing of a message means anything outside of its provider.
fn message<'a>(message: &'a PromptMessage<'_>) -> Option<Message<'a>> {
    match message {
        PromptMessage::User { message, .. } => Some(Message::User { content: message.content.iter().map(said).collect() }),
        // What was gathered is no message of anybody.
        PromptMessage::Context { .. } => None,
        PromptMessage::Assistant { seq, message } => {
            let content = answered(*seq, message);
            (!content.is_empty()).then_some(Message::Assistant { content })
        }
        PromptMessage::Results(results) => Some(Message::Tool { content: results.iter().map(gave).collect() }),
    }
}

fn said(block: &ContentBlock) -> Said<'_> {
    match (block, Bytes::of(block)) {
        (_, Some(Bytes { data, media_type, filename: None })) if media_type.starts_with("image/") => {
            Said::Image { image: data, media_type }
        }
        (_, Some(Bytes { data, media_type, filename })) => Said::File { data, media_type, filename },
        (block, None) => Said::Text { text: block.as_text() },
    }
}

fn answered(seq: Seq, message: &AssistantMessage) -> Vec<Answered<'_>> {
    let mut calls = 0_u32;
    let parts = message.blocks.iter().filter_map(|block| match block {
        AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => {
            (!text.is_empty()).then_some(Answered::Text { text })
        }
        AssistantBlock::Reasoning { text, .. } => (!text.is_empty()).then_some(Answered::Reasoning { text }),
        AssistantBlock::Call(call) => {
            let tool_call_id = CallId { message: seq, index: calls };
            calls = calls.saturating_add(1);
            Some(Answered::ToolCall { tool_call_id, tool_name: &call.name, input: input(call) })
        }
        AssistantBlock::Opaque { .. } => {
            block.media().map(|Media { mime_type, data }| Answered::File { data, media_type: mime_type })
        }
    });
    parts.collect()
}

fn gave<'a>(result: &'a PromptResult<'_>) -> Gave<'a> {
    let (given, content) = (&result.result, &result.result.content);
    let has_text = content.iter().any(|block| matches!(block, ContentBlock::Text { .. }));
    let output = match &given.structured_content {
        _ if given.outcome.is_error() => Output::ErrorText(result.text()),
        _ if content.iter().any(|block| Bytes::of(block).is_some()) => {
            let note = result.note().map(|note| Piece::Text { text: note.into() });
            Output::Content(note.into_iter().chain(content.iter().map(piece)).collect())
        }
        Some(value) if !has_text && result.note().is_none() => Output::Json(value),
        Some(_) | None => Output::Text(result.text()),
    };
    Gave::ToolResult { tool_call_id: result.id, tool_name: &result.call.name, output }
}

fn piece(block: &ContentBlock) -> Piece<'_> {
    match Bytes::of(block) {
        Some(Bytes { data, media_type, .. }) if media_type.starts_with("image/") => Piece::ImageData { data, media_type },
        Some(Bytes { data, media_type, filename }) => Piece::FileData { data, media_type, filename },
        None => Piece::Text { text: block.as_text() },
    }
}

/// The arguments of a call as an object.
fn input(call: &ToolCall) -> &RawValue {
    serde_json::from_str(call.arguments_object()).unwrap_or(RawValue::NULL)
}

/// The name of the file at an address.
pub(super) fn filename(uri: &str) -> Option<&str> {
    uri.rsplit('/').next().filter(|name| !name.is_empty())
}

/// The bytes that a block holds, in base64.
pub(super) struct Bytes<'a> {
    pub(super) data: &'a str,
    pub(super) media_type: &'a str,
    pub(super) filename: Option<&'a str>,
}

impl<'a> Bytes<'a> {
    pub(super) fn of(block: &'a ContentBlock) -> Option<Self> {
        match block {
            ContentBlock::Image { data, mime_type } => {
                Some(Self { data, media_type: media::image_type(data, mime_type), filename: None })
            }
            ContentBlock::Audio { data, mime_type } => Some(Self { data, media_type: mime_type, filename: None }),
            ContentBlock::Resource { resource } => {
                let (data, media_type) = resource.blob.as_deref().zip(resource.mime_type.as_deref())?;
                Some(Self { data, media_type, filename: filename(&resource.uri) })
            }
            ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => None,
        }
    }
}
