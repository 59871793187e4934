//! Tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::List;

/// A tool that some server offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// The JSON Schema that its structured results promise to fit; null where there is none.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// The server's own hints (MCP `annotations`), not checked; null where there are none.
    #[serde(default)]
    pub annotations: Option<Value>,
    /// Pictures that stand for it, as its server names them.
    #[serde(default)]
    pub icons: Vec<Icon>,
    /// Whom its server means it for: `model`, `app`.
    #[serde(default)]
    pub visibility: Vec<String>,
    /// The page that its server has for its calls: a `ui://` address (MCP Apps); null where there is none.
    #[serde(default)]
    pub app: Option<String>,
    /// Whether the operator declared that it changes nothing.
    pub read_only: bool,
    /// What its server is doing: `starting | ready | failing | needs_sign_in | stopped | disabled`. A call starts one
    /// that is stopped.
    pub server_state: String,
}

/// A picture (MCP `icons`). Its address is the server's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Icon {
    /// An `https` address, or the picture itself as a `data:` address.
    pub src: String,
    /// Its MIME type; null where the server does not say it.
    pub mime_type: Option<String>,
    /// Its sizes, such as `48x48` or `any`.
    pub sizes: Vec<String>,
    /// The background that it is for, `light` or `dark`; null for any.
    pub theme: Option<String>,
}

/// A tool of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConversationTool {
    /// The tool.
    #[serde(flatten)]
    pub tool: Tool,
    /// Whether the conversation offers it to the model.
    pub enabled: bool,
}

/// Tools, and those that are there and cannot be offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolList<T> {
    /// The tools that can be offered.
    #[serde(flatten)]
    pub list: List<T>,
    /// The others. One that is broken takes none with it.
    pub set_aside: Vec<SetAsideTool>,
}

/// A tool that is there and cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetAsideTool {
    /// The server or built-in source.
    pub server_id: String,
    /// The tool's name at its server; empty where it has none.
    pub tool_name: String,
    /// Why, in words for people.
    pub reason: String,
    /// Only of one that changed since a person agreed to it: what it is now. Who agrees gives it back, and agrees to that alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

/// What a person agrees to of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolAgreement {
    /// The `definition` under which it was shown as set aside: where it is another by now, nothing is agreed to. Whatever it is by now
    /// where absent.
    #[serde(default)]
    pub definition: Option<String>,
}

/// Names a tool, in the form of mcp-open-client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolName {
    /// The server or built-in source.
    pub server_id: String,
    /// The tool's name at its server.
    pub tool_name: String,
}
