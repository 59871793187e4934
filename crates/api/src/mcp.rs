//! MCP servers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpServer {
    /// Its name.
    pub id: String,
    /// The same: the first half of its tools' names.
    pub name: String,
    /// `everyone`, or `local` for the one user who needs no login; null for a server of a file.
    pub owner: Option<String>,
    /// The file that names it, or `added`.
    pub origin: String,
    /// Whether it can be changed and removed here.
    pub editable: bool,
    /// Whether it may run.
    pub enabled: bool,
    /// What runs, or where it is: a command line, an image, an address.
    pub transport: String,
    /// What it is doing in this process: `disabled | starting | ready | needs_sign_in | failing | stopped`.
    pub state: String,
    /// Why, where it is failing or wants a sign-in.
    pub reason: Option<String>,
    /// What it and we agreed on, while it is there.
    pub protocol: Option<McpProtocol>,
    /// The qualified names of its tools.
    pub tools: Vec<String>,
    /// Its tools that are not offered, with the reasons.
    pub set_aside: Vec<String>,
    /// The keys of one that was added, as in `[mcp.servers.NAME]`. A value that may be secret is `***`, a reference such as
    /// `${TOKEN}` stays.
    #[schema(value_type = Option<Object>)]
    pub config: Option<Map<String, Value>>,
    /// What whoever added or changed it should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a server and we agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpProtocol {
    /// The revision of the protocol.
    pub version: String,
    /// Why this one.
    pub because: String,
    /// How the server names itself.
    pub server: Option<String>,
}

/// A server to add, or a change of one: the keys of `[mcp.servers.NAME]` beside these, or under `config`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
pub struct McpServerRequest {
    /// Its name. Of a server to add; `id` means the same.
    #[serde(alias = "id")]
    pub name: Option<String>,
    /// `everyone` where not given, or `local`.
    pub owner: Option<String>,
    /// The keys.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub config: Map<String, Value>,
    /// The same keys, given beside the name.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub keys: Map<String, Value>,
}

/// A sign-in that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpSignIn {
    /// What a person opens in a browser on the machine of this server.
    pub address: String,
}

/// A line that a server wrote, or that was written about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpLogLine {
    /// When it came.
    pub timestamp: String,
    /// `stderr | stdout | message | host`.
    pub origin: String,
    /// The line.
    pub text: String,
}
