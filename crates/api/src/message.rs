//! Messages in the form of mcp-open-client (`specs/mcp-open-client-tool-calling.md`, Message Model).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ContextPart;

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Its name, `msg_` and a number; unique within its conversation.
    pub id: String,
    /// Who speaks.
    pub role: Role,
    /// The text, without thinking or refusal; null where an assistant said nothing readable.
    pub content: Option<String>,
    /// The words with which an assistant refused; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Why the model stopped: `stop | tool_calls | length | content_filter | error`, where `length` is its limit for one answer
    /// and `content_filter` also a refusal; absent for others than an assistant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// When it was stored, ISO 8601 in UTC.
    pub timestamp: String,
    /// The calls that an assistant asks for; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The name of the tool whose message it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether a tool's message is a failure; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// How a tool's call failed: `denied`, `invalid_arguments`, `not_found`, `permission_denied`, `execution_failed`, `timeout`,
    /// `cancelled`, `unavailable` or `interrupted`; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The arguments that ran, where a person put them in the place of the call's; absent where nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_arguments: Option<String>,
    /// What models were shown besides a person's message; absent where there was nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<ContextPart>>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person.
    User,
    /// A model.
    Assistant,
    /// The instructions.
    System,
    /// A tool.
    Tool,
}

/// A call that an assistant asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    /// Its name, such as `call_13_0`; unique within its conversation.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: ToolCallType,
    /// What is called.
    pub function: Function,
}

/// The only kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallType {
    /// A function.
    Function,
}

/// What is called with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Function {
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The model's text as it came, also where it is not JSON.
    pub arguments: String,
}
