//! What is promised to clients of OpenAI's APIs: Chat Completions, Responses, models and errors, as far as we serve them.
//!
//! Here fields that are not known are ignored, as those clients expect of a server that is older than they are.

mod chat;
mod error;
mod models;
mod responses;

pub use chat::{
    ChatCall, ChatChoice, ChatCompletion, ChatCompletionRequest, ChatFunction, ChatMessage, ChatTool, ChatToolFunction,
    ChatUsage, CompletionTokens, Extras, PromptTokens, StreamOptions, ToolEvent,
};
pub use error::{OpenAiError, OpenAiErrorBody};
pub use models::{OpenAiModel, OpenAiModels};
pub use responses::{
    InputTokens, OutputTokens, ResponsesReasoning, ResponsesRequest, ResponsesText, ResponsesUsage, WireResponse,
};
