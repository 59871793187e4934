//! `[mcp]` and `[mcp.servers.NAME]`.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_core::Declared;

use super::Secret;

/// MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// JSON files with servers, in the `mcpServers` form, VS Code's or the `servers` list; `config/mcp-servers.json` where
    /// it exists, unless said otherwise.
    #[schemars(extend("format" = "path"))]
    pub files: Option<Vec<PathBuf>>,
    /// Servers by name.
    #[schemars(extend("propertyNames" = { "format": "server-name" }))]
    pub servers: IndexMap<String, McpServer>,
}

/// An MCP server. It has exactly one of `command`, `url` and `image`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpServer {
    /// The program of a server that talks over its standard input and output.
    #[schemars(extend("format" = "program"))]
    pub command: Option<String>,
    /// The program's arguments, or those of the container.
    pub args: Vec<String>,
    /// Variables that are added to a small inherited set.
    #[schemars(extend("propertyNames" = { "format": "variable-name" }))]
    pub env: IndexMap<String, Secret>,
    /// Where the program is started.
    #[schemars(extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// The address of a server that talks over HTTP.
    #[schemars(extend("format" = "http-url"))]
    pub url: Option<String>,
    /// HTTP headers that are sent with each request to `url`.
    #[schemars(extend("propertyNames" = { "format": "header-name" }))]
    pub headers: IndexMap<String, Secret>,
    /// The Docker image of a server that runs in a container.
    pub image: Option<String>,
    /// Whether the server is started and offered.
    pub enabled: bool,
    /// Whether its calls run one after another.
    pub serial: bool,
    /// Whether its own annotations count as the operator's declarations.
    pub trust_annotations: bool,
    /// What the operator declares about single tools, by the server's own name for them.
    pub tools: IndexMap<String, McpTool>,
    /// The most time to start, in milliseconds.
    #[schemars(range(min = 1))]
    pub start_ms: Option<u64>,
    /// The most time of a call without progress, in milliseconds.
    #[schemars(range(min = 1))]
    pub idle_ms: Option<u64>,
    /// The most time of a call in all, in milliseconds.
    #[schemars(range(min = 1))]
    pub total_ms: Option<u64>,
    /// The most calls at once.
    #[schemars(range(min = 1))]
    pub max_concurrent_calls: Option<u32>,
}

impl Default for McpServer {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: IndexMap::new(),
            cwd: None,
            url: None,
            headers: IndexMap::new(),
            image: None,
            enabled: true,
            serial: false,
            trust_annotations: false,
            tools: IndexMap::new(),
            start_ms: None,
            idle_ms: None,
            total_ms: None,
            max_concurrent_calls: None,
        }
    }
}

impl McpServer {
    /// How it is reached; `None` only where the server was not made by this module and has no such key.
    pub fn transport(&self) -> Option<McpTransport<'_>> {
        match (&self.command, &self.url, &self.image) {
            (Some(command), _, _) => Some(McpTransport::Command(command)),
            (None, Some(url), _) => Some(McpTransport::Url(url)),
            (None, None, Some(image)) => Some(McpTransport::Image(image)),
            (None, None, None) => None,
        }
    }
}

/// How an MCP server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpTransport<'a> {
    /// A program, over its standard input and output.
    Command(&'a str),
    /// Streamable HTTP.
    Url(&'a str),
    /// A Docker container.
    Image(&'a str),
}

/// What the operator declares about a tool of an MCP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpTool {
    /// It changes nothing: runs without being asked, and may be run again.
    pub read_only: bool,
    /// Running it twice is the same as running it once.
    pub replayable: bool,
    /// Its calls run one after another.
    pub serial: bool,
    /// How long a result is kept and given again, in milliseconds; never where not given.
    #[schemars(range(min = 1))]
    pub cache_ttl_ms: Option<u64>,
    /// The most time of a call without progress, in milliseconds; the server's where not given.
    #[schemars(range(min = 1))]
    pub idle_ms: Option<u64>,
    /// The most time of a call in all, in milliseconds; the server's where not given.
    #[schemars(range(min = 1))]
    pub total_ms: Option<u64>,
}

impl McpTool {
    /// The declarations alone.
    pub fn declared(self) -> Declared {
        Declared { read_only: self.read_only, replayable: self.replayable, serial: self.serial }
    }
}
