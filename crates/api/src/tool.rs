//! Tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::List;

/// A tool that some server offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The qualified name that models see.
    pub id: String,
    /// The server or built-in source.
    pub server_id: String,
    /// The tool's name at its server.
    pub tool_name: String,
    /// A title for people; null where the server gives none.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// Whether the operator declared that it changes nothing.
    pub read_only: bool,
    /// What its server is doing: `starting | ready | failing | stopped`.
    pub server_state: String,
}

/// A tool of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationTool {
    /// The tool.
    #[serde(flatten)]
    pub tool: Tool,
    /// Whether the conversation offers it to the model.
    pub enabled: bool,
}

/// Tools, and those that are there and cannot be offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolList<T> {
    /// The tools that can be offered.
    #[serde(flatten)]
    pub list: List<T>,
    /// The others. One that is broken takes none with it.
    pub set_aside: Vec<SetAsideTool>,
}

/// A tool that is there and cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsideTool {
    /// The server or built-in source.
    pub server_id: String,
    /// The tool's name at its server; empty where it has none.
    pub tool_name: String,
    /// Why, in words for people.
    pub reason: String,
}

/// Names a tool, in the form of mcp-open-client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolName {
    /// The server or built-in source.
    pub server_id: String,
    /// The tool's name at its server.
    pub tool_name: String,
}
