//! What the tests of Responses share.

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::prompt::{Prompt, PromptMessage, PromptOf, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, ConversationId, Finish, FinishReason, ModelRef,
    NativeBlock, Origin, Outcome, Seq, ToolCall, ToolDefinition, ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::openai_responses::OpenAiResponses;
use turnwright_dialects::{Dialect, Kept, ModelFacts, Offered, Profile, Target};

use crate::support::{Decoded, decode_reply};

/// One event, named as its `type`.
pub(super) fn event(data: &str) -> String {
    let value: Value = serde_json::from_str(data).unwrap();
    format!("event: {}\ndata: {data}\n\n", value["type"].as_str().unwrap())
}

pub(super) fn events(all: &[impl AsRef<str>]) -> String {
    all.iter().map(|data| event(data.as_ref())).collect()
}

pub(super) fn decode(chunks: &[&[u8]]) -> Decoded {
    let decoder = OpenAiResponses.decoder(&Profile::OPENAI, &Offered::default());
    decode_reply(decoder, Some("text/event-stream"), chunks)
}

pub(super) fn decode_text(body: &str) -> Decoded {
    decode(&[body.as_bytes()])
}

pub(super) fn target() -> Origin {
    Origin { dialect: "openai-responses".to_owned(), provider: "p".to_owned(), model: "m".to_owned() }
}

pub(super) fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

pub(super) fn user(content: Vec<ContentBlock>) -> UserMessage {
    UserMessage { content, settings: settings() }
}

/// An answer of the target.
pub(super) fn says(blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin: target(),
        saw: Seq::FIRST,
        blocks,
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

/// The same answer of another model.
pub(super) fn of_another(message: &AssistantMessage) -> AssistantMessage {
    AssistantMessage { origin: Origin { model: "other".to_owned(), ..target() }, ..message.clone() }
}

pub(super) fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

pub(super) fn call(id: &str, arguments: &str, own: Option<&str>) -> ToolCall {
    ToolCall {
        name: "s__f".to_owned(),
        arguments: arguments.to_owned(),
        provider_id: Some(id.to_owned()),
        native: own.map(native),
        recovered: false,
    }
}

pub(super) fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

pub(super) fn assistant(number: u64, message: &AssistantMessage) -> PromptMessage<'_> {
    PromptMessage::Assistant { seq: seq(number), message }
}

/// Results with these outcomes and contents of the calls of the message at `number`.
pub(super) fn results(
    number: u64,
    message: &AssistantMessage,
    contents: Vec<(Outcome, Vec<ContentBlock>)>,
) -> PromptMessage<'_> {
    let results = message.calls().zip(0..).zip(contents).map(|((call, index), (outcome, content))| {
        let id = CallId { message: seq(number), index };
        PromptResult {
            id,
            call,
            result: ShownResult::from(ToolResult { content, ..ToolResult::of(id, outcome, "") }),
            edit: None,
            nudge: None,
        }
    });
    PromptMessage::Results(results.collect())
}

/// A request that is to be made.
pub(super) struct Ask<'a> {
    pub(super) settings: TurnSettings,
    pub(super) conversation: Option<ConversationId>,
    pub(super) messages: Vec<PromptMessage<'a>>,
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    pub(super) allow_calls: bool,
    pub(super) profile: Profile,
    pub(super) model: ModelFacts,
}

impl<'a> Ask<'a> {
    pub(super) fn new(messages: Vec<PromptMessage<'a>>) -> Self {
        Self {
            settings: settings(),
            conversation: None,
            messages,
            tools: Vec::new(),
            allow_calls: true,
            profile: Profile::OPENAI,
            model: ModelFacts::default(),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let prompt = Prompt {
            conversation: self.conversation.as_ref().map(|id| PromptOf { id, beginning: None }),
            settings: &self.settings,
            messages: self.messages.clone(),
            tools: &self.tools,
            allow_calls: self.allow_calls,
            has_open_demand: false,
        };
        let target = Target { origin: &target(), profile: &self.profile, model: &self.model };
        OpenAiResponses.request(&target, &prompt, &mut Kept::default()).body.into_vec()
    }

    pub(super) fn body(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    pub(super) fn input(&self) -> Value {
        self.body()["input"].clone()
    }
}
