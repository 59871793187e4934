//! The UI messages of the AI SDK (`UIMessage` of the package `ai`, `validateUIMessages`): one of a model's holds all that was
//! said and called between two messages of a person.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::prompt::{PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    ApprovalId, AssistantBlock, AssistantMessage, CallId, ContentBlock, EmbeddedResource, MessageId, Outcome, Seq,
    ToolErrorKind, TurnId, text_of,
};

use super::ai_sdk::{Bytes, filename};
use super::raw;
use crate::media::DataUrl;

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Part<'a> {
    StepStart,
    Text {
        text: Cow<'a, str>,
    },
    Reasoning {
        text: &'a str,
    },
    File {
        media_type: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        url: Url<'a>,
    },
    /// What a person must know of a call that waits.
    DataNotice {
        data: Notice,
    },
    DynamicTool {
        tool_name: &'a str,
        tool_call_id: CallId,
        state: &'static str,
        input: Cow<'a, RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        approval: Option<Approval>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<Output<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_metadata: Option<ToolMetadata<'a>>,
    },
}

/// What a file holds.
#[derive(Serialize)]
#[serde(untagged)]
enum Url<'a> {
    Bytes(DataUrl<'a>),
    Text(String),
}

#[derive(Serialize)]
struct Notice {
    level: &'static str,
    text: String,
}

/// What a person is asked, as our UI message stream names it.
#[derive(Serialize)]
struct Approval {
    id: ApprovalId,
}

/// What the library keeps of a call besides, as our UI message stream tells it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolMetadata<'a> {
    /// What a person put in the place of the input.
    changed_arguments: &'a RawValue,
}

/// A tool's output in the shape of MCP, as our UI message stream tells it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// What a model's messages are called, as in our UI message stream: a client that has one in both has it once.
pub(super) struct Names<'a> {
    /// The turns, oldest first.
    pub(super) turns: &'a [TurnId],
    /// What a person said last, before the first message that is written.
    pub(super) said: Option<Seq>,
}

impl Names<'_> {
    /// The message that begins with a model's message at `seq`, after what a person said: it is the turn's, or of a message of its own
    /// that joined the turn.
    fn name(&self, seq: Seq, said: Option<Seq>) -> String {
        let before = self.turns.partition_point(|turn| turn.0 < seq);
        match before.checked_sub(1).and_then(|at| self.turns.get(at)) {
            None => MessageId(seq).to_string(),
            Some(turn) => match said.filter(|said| *said > turn.0) {
                None => turn.to_string(),
                Some(joined) => format!("{turn}_{joined}"),
            },
        }
    }
}

pub(super) fn messages(system: Option<&str>, messages: &[PromptMessage<'_>], names: &Names<'_>) -> Vec<Box<RawValue>> {
    let mut list = Vec::new();
    list.extend(system.and_then(|text| {
        raw(&Message { id: "system".to_owned(), role: "system", parts: vec![Part::Text { text: text.into() }] })
    }));
    let mut said_last = names.said;
    let mut open: Option<Message<'_>> = None;
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        match message {
            PromptMessage::User { seq, message } => {
                list.extend(open.take().as_ref().and_then(whole));
                said_last = Some(*seq);
                let parts = message.content.iter().map(said).collect();
                list.extend(whole(&Message { id: MessageId(*seq).to_string(), role: "user", parts }));
            }
            PromptMessage::Assistant { seq, message } => {
                let results = match rest.next_if(|next| matches!(next, PromptMessage::Results(_))) {
                    Some(PromptMessage::Results(results)) => results.as_slice(),
                    Some(PromptMessage::User { .. } | PromptMessage::Context { .. } | PromptMessage::Assistant { .. })
                    | None => &[],
                };
                let open = open.get_or_insert_with(|| Message {
                    id: names.name(*seq, said_last),
                    role: "assistant",
                    parts: Vec::new(),
                });
                open.parts.push(Part::StepStart);
                answered(message, results, &mut open.parts);
            }
            PromptMessage::Results(_) | PromptMessage::Context { .. } => {}
        }
    }
    list.extend(open.take().as_ref().and_then(whole));
    list
}

/// `None` where there is nothing to see.
fn whole(message: &Message<'_>) -> Option<Box<RawValue>> {
    if message.parts.iter().all(|part| matches!(part, Part::StepStart)) { None } else { raw(message) }
}

fn said(block: &ContentBlock) -> Part<'_> {
    if let Some(Bytes { data, media_type, filename }) = Bytes::of(block) {
        return Part::File {
            media_type: media_type.into(),
            filename,
            url: Url::Bytes(DataUrl { mime_type: media_type, data }),
        };
    }
    match block {
        ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text: Some(text), .. } } => {
            let media_type = mime_type.as_deref().unwrap_or("text/plain");
            let data = BASE64.encode(text);
            let url = Url::Text(format!("data:{media_type};base64,{data}"));
            Part::File { media_type: media_type.into(), filename: filename(uri), url }
        }
        _ => Part::Text { text: block.as_text() },
    }
}

fn answered<'a>(message: &'a AssistantMessage, results: &'a [PromptResult<'_>], parts: &mut Vec<Part<'a>>) {
    let mut results = results.iter();
    for block in &message.blocks {
        match block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } if !text.is_empty() => {
                parts.push(Part::Text { text: text.into() });
            }
            AssistantBlock::Reasoning { text, .. } if !text.is_empty() => parts.push(Part::Reasoning { text }),
            AssistantBlock::Call(_) => {
                if let Some(result) = results.next() {
                    parts.extend(to_know(result));
                    parts.push(called(result));
                }
            }
            AssistantBlock::Opaque { .. } => parts.extend(block.media().map(|media| {
                let url = Url::Text(media.url());
                Part::File { media_type: media.mime_type, filename: None, url }
            })),
            AssistantBlock::Text { .. } | AssistantBlock::Refusal { .. } | AssistantBlock::Reasoning { .. } => {}
        }
    }
}

/// What a person must know of a call before they answer what is asked about it.
fn to_know<'a>(result: &PromptResult<'_>) -> Option<Part<'a>> {
    let ShownResult::Awaited { asked: Some((_, reason)), .. } = &result.result else { return None };
    let text = format!("{}: {}", result.call.name, reason.to_know()?);
    Some(Part::DataNotice { data: Notice { level: "warning", text } })
}

fn called<'a>(result: &'a PromptResult<'_>) -> Part<'a> {
    let given = &result.result;
    let (state, output, error_text) = match given {
        ShownResult::Awaited { asked: Some(_), .. } => ("approval-requested", None, None),
        ShownResult::Awaited { asked: None, .. } => ("input-available", None, None),
        ShownResult::Stored(_) | ShownResult::Made(_) if !gave_a_result(given.outcome) => {
            ("output-error", None, Some(text_of(&given.content)))
        }
        ShownResult::Stored(_) | ShownResult::Made(_) => {
            let (structured_content, is_error) = (given.structured_content.as_ref(), given.outcome.is_error());
            ("output-available", Some(Output { content: &given.content, structured_content, is_error }), None)
        }
    };
    let id = result.id;
    let approval = match given {
        ShownResult::Awaited { asked, .. } => asked.map(|(id, _)| Approval { id }),
        ShownResult::Stored(_) | ShownResult::Made(_) => None,
    };
    let (tool_name, input) = (result.call.name.as_str(), input(&result.call.arguments));
    let changed = result.edit.and_then(|edit| serde_json::from_str(edit).ok());
    let tool_metadata = changed.map(|changed_arguments| ToolMetadata { changed_arguments });
    Part::DynamicTool { tool_name, tool_call_id: id, state, input, approval, output, error_text, tool_metadata }
}

/// Whether a call gave a result of its own, as our UI message stream tells it.
fn gave_a_result(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Success => true,
        Outcome::Denied => false,
        Outcome::Error(kind) => match kind {
            ToolErrorKind::Timeout | ToolErrorKind::Unavailable | ToolErrorKind::Interrupted | ToolErrorKind::Cancelled => {
                false
            }
            ToolErrorKind::InvalidArguments
            | ToolErrorKind::NotFound
            | ToolErrorKind::PermissionDenied
            | ToolErrorKind::ExecutionFailed => true,
        },
    }
}

/// The arguments of a call as the model wrote them; as a text where they are no JSON.
fn input(arguments: &str) -> Cow<'_, RawValue> {
    if arguments.trim().is_empty() {
        return serde_json::from_str("{}").map_or(Cow::Borrowed(RawValue::NULL), Cow::Borrowed);
    }
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(arguments) => Cow::Borrowed(arguments),
        Err(_) => raw(&arguments).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned),
    }
}
