//! What tools ask of people, and the answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What a call asks of people, told with the call that waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// The call that asks.
    pub call_id: String,
    /// The tool source that asks, such as an MCP server.
    pub server: String,
    /// `form | url | sampling`.
    pub mode: String,
    /// What it says.
    pub message: String,
    /// The fields of a form: a flat JSON Schema of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// The address that it wants to have opened. Show it whole and open it only when a person says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The host of that address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What a model is to be asked. Accepting it allows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Whether the call holds its connection meanwhile: then the question ends with it, and with this process.
    pub holds_connection: bool,
    /// Until when it can be answered, ISO 8601 in UTC; null where it waits as long as an approval.
    pub expires_at: Option<String>,
}

/// What a tool wants a model to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sampling {
    /// The model that is asked, `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// What it is told before the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// What is said to it.
    pub messages: Vec<SamplingMessage>,
    /// The names of the tools that it may ask for. They are the server's, which runs them itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The most tokens of its answer.
    pub max_tokens: u32,
}

/// One message of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SamplingMessage {
    /// `user | assistant`.
    pub role: String,
    /// What it says, content blocks as in MCP.
    pub content: Vec<Value>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// What is answered.
    pub action: AnswerAction,
    /// The values of the form's fields; fields that are left out take their defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub content: Option<Map<String, Value>>,
}

/// The choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerAction {
    /// Here it is; or, of an address, it was opened.
    Accept,
    /// No.
    Decline,
    /// Neither yes nor no.
    Cancel,
}

/// What an answer is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnswerReceipt {
    /// The question.
    pub id: String,
    /// What was answered.
    pub action: AnswerAction,
    /// The values that the tool gets, with the defaults of the form; null where none are sent.
    #[schema(value_type = Option<Object>)]
    pub content: Option<Map<String, Value>>,
}
