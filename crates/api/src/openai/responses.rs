//! Responses (Open Responses).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// `POST /v1/responses`. What is not named here is ignored.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct ResponsesRequest {
    /// As in Chat Completions.
    #[serde(default)]
    pub model: Option<String>,
    /// A user's text, or items.
    #[serde(default)]
    #[schema(value_type = ResponsesInput, required)]
    pub input: Value,
    /// What the model is told before the conversation.
    #[serde(default)]
    pub instructions: Option<String>,
    /// The response that this goes on from.
    #[serde(default)]
    pub previous_response_id: Option<String>,
    /// The conversation: its name, or an object with it as `id`.
    #[serde(default)]
    pub conversation: Option<Value>,
    /// Whether the answer is streamed.
    #[serde(default)]
    pub stream: Option<bool>,
    /// Whether the request is answered before the turn is over.
    #[serde(default)]
    pub background: Option<bool>,
    /// `function` for tools of the client's, `mcp` to narrow ours.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// `auto | none | required`, or a tool.
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
    pub max_output_tokens: Option<u32>,
    /// How much a reasoning model should think.
    #[serde(default)]
    pub reasoning: Option<ResponsesReasoning>,
    /// The form of the answer.
    #[serde(default)]
    pub text: Option<ResponsesText>,
    /// A prompt that is kept at OpenAI; refused.
    #[serde(default)]
    pub prompt: Option<Value>,
    /// The most calls of tools on this side in the turn; those that the model makes after them are not run.
    #[serde(default)]
    pub max_tool_calls: Option<u32>,
    /// `auto` or `disabled`; old messages are summed up when they have to be either way.
    #[serde(default)]
    pub truncation: Option<String>,
    /// What the response should hold besides, in OpenAI's words; of none of it there is more here.
    #[serde(default)]
    pub include: Option<Vec<String>>,
    /// Pairs of the client's; `conversation_id` names the conversation.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
}

/// What is said to a model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes `ResponsesRequest::input`")]
enum ResponsesInput {
    /// A user's text.
    Text(String),
    /// Items, the newest last.
    Items(Vec<Map<String, Value>>),
}

/// How much a reasoning model should think.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
pub struct ResponsesReasoning {
    /// A word.
    #[serde(default)]
    pub effort: Option<String>,
    /// How thoughts are to be summed up; told again by the response, and else ignored.
    #[serde(default)]
    pub summary: Option<Value>,
}

/// The form of the answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
pub struct ResponsesText {
    /// `text`, `json_object` or `json_schema`.
    #[serde(default)]
    pub format: Option<Value>,
    /// How long the answer is to be; told again by the response, and else ignored.
    #[serde(default)]
    pub verbosity: Option<Value>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "the fields of OpenAI's own object, in its words")]
pub struct WireResponse {
    pub id: String,
    pub object: String,
    pub created_at: u64,
    pub completed_at: Option<u64>,
    pub status: String,
    pub model: String,
    pub output: Vec<Value>,
    pub error: Option<Value>,
    pub incomplete_details: Option<Value>,
    pub instructions: Option<String>,
    pub metadata: Map<String, Value>,
    pub parallel_tool_calls: bool,
    pub previous_response_id: Option<String>,
    pub conversation: Value,
    pub store: bool,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub tool_choice: Value,
    pub tools: Vec<Value>,
    pub truncation: String,
    pub reasoning: Value,
    pub text: Value,
    pub background: bool,
    pub max_output_tokens: Option<u32>,
    /// The most calls of tools on this side in the turn.
    pub max_tool_calls: Option<u32>,
    /// Null while it runs.
    pub usage: Option<ResponsesUsage>,
    /// What OpenAI has no place for.
    pub turnwright: super::Extras,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResponsesUsage {
    /// Of all prompts.
    pub input_tokens: u64,
    /// Of the prompts.
    pub input_tokens_details: InputTokens,
    /// Of all answers.
    pub output_tokens: u64,
    /// Of the answers.
    pub output_tokens_details: OutputTokens,
    /// Of both.
    pub total_tokens: u64,
}

/// What is known of the tokens of prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InputTokens {
    /// Read from the provider's cache.
    pub cached_tokens: u64,
    /// Written to the provider's cache.
    pub cache_write_tokens: u64,
}

/// What is known of the tokens of answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputTokens {
    /// Spent on thinking.
    pub reasoning_tokens: u64,
}
