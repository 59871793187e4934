//! Chat Completions.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// `POST /v1/chat/completions`. What is not named here is ignored.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ChatCompletionRequest<'a> {
    /// `PROVIDER/MODEL`, or a model's own name where one provider has it; the default model where there is none.
    #[serde(default)]
    pub model: Option<String>,
    /// The conversation so far, with what is new at its end.
    #[serde(borrow, default)]
    #[schema(value_type = Vec<Map<String, Value>>, required, min_items = 1)]
    pub messages: Vec<&'a RawValue>,
    /// Whether the answer is streamed.
    #[serde(default)]
    pub stream: Option<bool>,
    /// What a stream tells besides.
    #[serde(default)]
    pub stream_options: Option<StreamOptions>,
    /// Tools that the client runs.
    #[serde(default)]
    pub tools: Option<Vec<ChatTool>>,
    /// `auto | none | required`, a tool, or `allowed_tools`.
    #[serde(default)]
    pub tool_choice: Option<Value>,
    /// Whether one answer may hold several calls.
    #[serde(default)]
    pub parallel_tool_calls: Option<bool>,
    /// Sampling temperature, 0 to 2.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// The most tokens of one model answer.
    #[serde(default)]
    pub max_completion_tokens: Option<u32>,
    /// The same by its old name.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// A text, or up to four, before which the answer's text ends.
    #[serde(default)]
    pub stop: Option<Value>,
    /// How much a reasoning model should think.
    #[serde(default)]
    pub reasoning_effort: Option<String>,
    /// `text`, `json_object` or `json_schema`.
    #[serde(default)]
    pub response_format: Option<Value>,
    /// How many answers; only 1.
    #[serde(default)]
    pub n: Option<u32>,
    /// Kinds of answers; only text.
    #[serde(default)]
    pub modalities: Option<Vec<String>>,
    /// Whether probabilities are told; they are not.
    #[serde(default)]
    pub logprobs: Option<bool>,
    /// Functions by their old name; refused.
    #[serde(default)]
    pub functions: Option<Value>,
    /// Pairs of the client's; `conversation_id` names the conversation.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
}

/// What a stream tells besides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// Whether the tokens are told at its end.
    #[serde(default)]
    pub include_usage: Option<bool>,
}

/// A tool of the client's.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
pub struct ChatTool {
    /// `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is.
    #[serde(default)]
    pub function: Option<ChatToolFunction>,
}

/// What a tool of the client's is.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
pub struct ChatToolFunction {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
    /// The JSON Schema of its arguments; none where it takes none.
    #[serde(default)]
    pub parameters: Option<Value>,
}

/// The answer to a request that is not streamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatCompletion {
    /// Its name.
    pub id: String,
    /// `chat.completion`.
    pub object: String,
    /// Seconds since 1970 UTC.
    pub created: u64,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// One.
    pub choices: Vec<ChatChoice>,
    /// Tokens of all model calls that it took, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ChatUsage>,
    /// What OpenAI has no place for.
    pub turnwright: Extras,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChatChoice {
    /// 0.
    pub index: u32,
    /// What was said.
    pub message: ChatMessage,
    /// Null.
    pub logprobs: Option<Value>,
    /// `stop | length | tool_calls | content_filter`.
    pub finish_reason: String,
}

/// What was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChatMessage {
    /// `assistant`.
    pub role: String,
    /// The text; null where there is none.
    pub content: Option<String>,
    /// The words of a refusal.
    pub refusal: Option<String>,
    /// What the model thought, and tool activity where that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls that the client runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatCall>,
}

/// A call that the client runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChatCall {
    /// Its name, for the result.
    pub id: String,
    /// `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is called.
    pub function: ChatFunction,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChatFunction {
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them, JSON text.
    pub arguments: String,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChatUsage {
    /// Of all prompts.
    pub prompt_tokens: u64,
    /// Of all answers.
    pub completion_tokens: u64,
    /// Of both.
    pub total_tokens: u64,
    /// Of the prompts.
    pub prompt_tokens_details: PromptTokens,
    /// Of the answers.
    pub completion_tokens_details: CompletionTokens,
}

/// What is known of the tokens of prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PromptTokens {
    /// Read from the provider's cache.
    pub cached_tokens: u64,
}

/// What is known of the tokens of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompletionTokens {
    /// Spent on thinking.
    pub reasoning_tokens: u64,
}

/// What OpenAI has no place for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Extras {
    /// The conversation that the answer is kept in.
    pub conversation_id: String,
    /// The turn that it belongs to.
    pub turn_id: String,
    /// What tools did on our side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_events: Vec<ToolEvent>,
    /// Whether it was stopped and what ran has not ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_stopping: bool,
    /// Why the turn was stopped: `refused`, `loop` or `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// How the turn ended where the answer is not whole: `cancelled`, `step_limit`, `stopped`, `failed`; `waiting` where a person is
    /// asked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A call that ran on our side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolEvent {
    /// The call, as under `/api/v1`.
    pub call_id: String,
    /// The tool's qualified name.
    pub name: String,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it ran; null where it did not.
    pub duration_ms: Option<u64>,
}
