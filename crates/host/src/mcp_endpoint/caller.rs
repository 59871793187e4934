//! An MCP client as the model of its calls' turns: it asks for the one tool that the message names, and is content.

use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Map, Value};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{
    ContentBlock, Finish, FinishReason, ModelRef, ProviderFailure, ProviderFailureKind, StreamDelta, UserMessage,
};
use turnwright_engine::{ModelInfo, ModelStream, Provider};

/// The name of the provider, its dialect and its one model. No list shows it: nobody can talk with it.
pub(crate) const NAME: &str = "mcp-client";

/// What the message that asks for a call begins with.
const VERB: &str = "call ";

/// The model of a client's turns.
pub(crate) fn model() -> ModelRef {
    ModelRef::new(NAME, NAME)
}

/// The message that asks for a call: `call NAME ARGUMENTS`, for people to read in the conversation.
pub(super) fn message(tool: &str, arguments: &Map<String, Value>) -> String {
    format!("{VERB}{tool} {}", Value::Object(arguments.clone()))
}

/// The tool and the arguments that a message asks for.
pub(super) fn asked(message: &UserMessage) -> Option<(&str, &str)> {
    match message.content.as_slice() {
        [ContentBlock::Text { text }] => asked_in(text),
        _ => None,
    }
}

/// The same of its text.
pub(super) fn asked_in(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(VERB)?.split_once(' ')
}

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller;

#[async_trait]
impl Provider for Caller {
    fn dialect(&self) -> &str {
        NAME
    }

    fn call(&self, _: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        let finished = |reason| StreamDelta::Finished(Finish { reason, raw: None });
        let deltas = match prompt.messages.last() {
            Some(PromptMessage::User { message, .. }) => {
                let Some((tool, arguments)) = asked(message) else {
                    let text = "an MCP client asks for tools, it does not answer messages; go on with another model";
                    return Err(ProviderFailure::new(ProviderFailureKind::InvalidRequest, text));
                };
                vec![
                    StreamDelta::CallStarted { key: 0, name: tool.to_owned(), provider_id: None },
                    StreamDelta::CallArguments { key: 0, text: arguments.to_owned() },
                    finished(FinishReason::ToolCalls),
                ]
            }
            Some(PromptMessage::Assistant { .. } | PromptMessage::Context { .. } | PromptMessage::Results(_)) | None => {
                vec![StreamDelta::Text("The MCP client has the result.".to_owned()), finished(FinishReason::Stop)]
            }
        };
        Ok(Box::pin(stream::iter([Ok(deltas)])))
    }

    fn asks_no_model(&self) -> bool {
        true
    }

    fn takes_results_whole(&self) -> bool {
        true
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        Ok(Vec::new())
    }
}
