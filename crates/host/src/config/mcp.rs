//! `[mcp]` and `[mcp.servers.NAME]`.

use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_mcp::{LogLevel, Protocol};

use super::{Secret, schema};

/// MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// JSON files with servers, in the `mcpServers` form, VS Code's or the `servers` list; `config/mcp-servers.json` where
    /// it exists, unless said otherwise.
    #[schemars(extend("format" = "path"))]
    pub files: Option<Vec<PathBuf>>,
    /// What MCP servers that members add may reach although it is not public: names of hosts, addresses and ranges, the latter two
    /// with a port or without: `wiki.example.org`, `127.0.0.1:8080`, `10.1.0.0/16`.
    #[schemars(extend("format" = "members-address"))]
    pub members_allow: Vec<String>,
    /// How long people are waited for while a tool asks something and holds its connection for the answer, in milliseconds;
    /// 10 minutes unless said otherwise. A tool that holds nothing waits as long as an approval does.
    #[schemars(range(min = 1))]
    pub question_ms: Option<u64>,
    /// Servers by name.
    #[schemars(extend("propertyNames" = { "format": "server-name" }))]
    pub servers: IndexMap<String, McpServer>,
}

/// An MCP server. It has exactly one of `command`, `url` and `image`, or none where it is about a server of a JSON file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["command"] },
    { "required": ["url"] },
    { "required": ["image"] },
    { "not": { "anyOf": [{ "required": ["command"] }, { "required": ["url"] }, { "required": ["image"] }] } },
]))]
pub struct McpServer {
    /// The program of a server that talks over its standard input and output.
    #[schemars(extend("format" = "program"))]
    pub command: Option<String>,
    /// The program's arguments, or those of the container.
    pub args: Vec<String>,
    /// Variables that are added to a small inherited set.
    #[schemars(extend("propertyNames" = { "format": "variable-name" }))]
    pub env: IndexMap<String, Secret>,
    /// A file of variables, `NAME=VALUE` in each line, which is read at each start; those of `env` come before its own.
    #[schemars(extend("format" = "path"))]
    pub env_file: Option<PathBuf>,
    /// Where the program is started.
    #[schemars(extend("format" = "path"))]
    pub cwd: Option<PathBuf>,
    /// The address of a server that talks over HTTP.
    #[schemars(extend("format" = "http-url"))]
    pub url: Option<String>,
    /// HTTP headers that are sent with each request to `url`.
    #[schemars(extend("propertyNames" = { "format": "header-name" }))]
    pub headers: IndexMap<String, Secret>,
    /// How to sign in to `url` where the server asks for it.
    pub oauth: Option<McpOauth>,
    /// The Docker image of a server that runs in a container.
    pub image: Option<String>,
    /// What the container of `image` may do.
    pub docker: Option<McpDocker>,
    /// Whether the server is started and offered.
    pub enabled: bool,
    /// Whether its calls run one after another.
    pub serial: bool,
    /// Whether its own annotations count as the operator's declarations.
    pub trust_annotations: bool,
    /// Whether it remembers what calls told it: where several servers share turns, a conversation's calls stay at the one that
    /// called it before. A `command` and an `image` do, a `url` does not, unless said otherwise.
    pub keeps_state: Option<bool>,
    /// The folders that it is told to work in, where it asks; it is not told that it could ask where there are none.
    #[schemars(extend("format" = "path"))]
    pub roots: Vec<PathBuf>,
    /// Whether it may have models asked, and how much.
    pub sampling: Option<McpSampling>,
    /// From which level on it is asked to log; what it likes where not given.
    #[schemars(schema_with = "schema::log_level")]
    pub log_level: Option<LogLevel>,
    /// The version of the protocol that it is spoken to in; it is asked which where not given.
    #[schemars(schema_with = "schema::protocol")]
    pub protocol: Option<Protocol>,
    /// What the operator declares about single tools, by the server's own name for them.
    pub tools: IndexMap<String, McpTool>,
    /// When it is started: lazy, by the first call once it is known what it offers, or eager, with its host.
    pub start: Start,
    /// How long it runs without a call before it is ended, in milliseconds; the next call starts it. For ever where not given.
    #[schemars(range(min = 1))]
    pub idle_stop_ms: Option<u64>,
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
            env_file: None,
            cwd: None,
            url: None,
            headers: IndexMap::new(),
            oauth: None,
            image: None,
            docker: None,
            enabled: true,
            serial: false,
            trust_annotations: false,
            keeps_state: None,
            roots: Vec::new(),
            sampling: None,
            log_level: None,
            protocol: None,
            tools: IndexMap::new(),
            start: Start::default(),
            idle_stop_ms: None,
            start_ms: None,
            idle_ms: None,
            total_ms: None,
            max_concurrent_calls: None,
        }
    }
}

impl McpServer {
    /// How it is reached; `None` where a JSON file says it.
    pub fn transport(&self) -> Option<McpTransport<'_>> {
        match (&self.command, &self.url, &self.image) {
            (Some(command), _, _) => Some(McpTransport::Command(command)),
            (None, Some(url), _) => Some(McpTransport::Url(url)),
            (None, None, Some(image)) => Some(McpTransport::Image(image)),
            (None, None, None) => None,
        }
    }
}

/// When an MCP server is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// When one of its tools is called, or when it is not known what it offers.
    #[default]
    Lazy,
    /// With its host.
    Eager,
}

/// Whether an MCP server may have models asked, and how much of that in a turn. Each question is allowed like a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpSampling {
    /// Whether it is told that it could ask.
    pub allow: bool,
    /// The most questions of a turn; 5 unless said otherwise.
    #[schemars(range(min = 1))]
    pub max_requests: Option<u32>,
    /// The most tokens of all answers of a turn together; 8192 unless said otherwise.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
}

impl McpSampling {
    /// The most questions of a turn where nothing is said.
    pub const MAX_REQUESTS: u32 = 5;
    /// The most tokens of a turn's answers where nothing is said.
    pub const MAX_OUTPUT_TOKENS: u32 = 8_192;
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

/// How to sign in to an MCP server, where what it says of itself is not enough.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpOauth {
    /// The client's id at the authorization server, where it was given one by hand.
    pub client_id: Option<String>,
    /// The secret that belongs to `client_id`.
    pub client_secret: Option<Secret>,
    /// The address of a document that describes this client, which is its id then.
    #[schemars(extend("format" = "http-url"))]
    pub client_metadata_url: Option<String>,
    /// Who signs in: `person` in a browser, or `client_credentials`, the client with its id and secret.
    pub grant: McpGrant,
    /// What to ask for, where the server does not say.
    pub scopes: Vec<String>,
    /// The port of this machine that the browser comes back to; a free one where not given.
    #[schemars(range(min = 1, max = 65535))]
    pub redirect_port: Option<u32>,
}

/// Who signs in to an MCP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpGrant {
    /// A person, in the browser.
    #[default]
    Person,
    /// The client itself, with its id and secret.
    ClientCredentials,
}

/// What the container of an MCP server may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpDocker {
    /// Folders of this machine in the container, as `/here:/there` or `/here:/there:rw`; read-only unless said.
    #[schemars(extend("format" = "mount"))]
    pub mounts: Vec<String>,
    /// The Docker network it is in, such as `bridge`; none where not given.
    pub network: Option<String>,
    /// The most memory, in MiB.
    #[schemars(range(min = 1))]
    pub memory_mb: Option<u32>,
    /// The most processors, such as 0.5.
    #[schemars(range(min = 0.01))]
    pub cpus: Option<f64>,
    /// The most processes and threads.
    #[schemars(range(min = 1))]
    pub max_processes: Option<u32>,
    /// Whether its own files can be changed.
    pub writable: bool,
    /// The user inside, such as `1000:1000`; the image's where not given.
    pub user: Option<String>,
    /// When the image is fetched.
    pub pull: Pull,
}

/// When the image of a container is fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pull {
    /// It must be there already.
    #[default]
    Never,
    /// Where it is not there.
    Missing,
}

/// What the operator declares about a tool of an MCP server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpTool {
    /// Whether it changes nothing: runs without being asked, and may be run again. Said here, it holds whatever the server says.
    pub read_only: Option<bool>,
    /// Whether running it twice is the same as running it once. Said here, it holds whatever the server says.
    pub replayable: Option<bool>,
    /// Whether its calls run one after another; as the server's where not given.
    pub serial: Option<bool>,
    /// It is asked again and again for how far something is: its calls are no loop.
    pub polled: bool,
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
