//! The top of `turnwright.toml`.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_core::policy::RuleText;
use turnwright_core::{ApproveMode, ModelRef, ReasoningEffort, TurnSettings};

use super::format::duration;
use super::{
    AppsConfig, BudgetsConfig, EmbeddingsConfig, InstructionsConfig, KnowledgeConfig, LimitsConfig, LogFormat, LoopsConfig,
    McpConfig, MemoryConfig, ModelConfig, NatsConfig, NetworkConfig, NotifyConfig, ProviderConfig, Secret, TelemetryConfig,
    Tools, schema,
};

/// What a configuration says. Relative paths start at the file's folder; those of variables and flags at the working
/// directory. Once loaded they are absolute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "turnwright.toml")]
pub struct Config {
    /// The model that answers where nobody says otherwise, as PROVIDER/MODEL.
    #[schemars(schema_with = "schema::model")]
    pub model: Option<ModelRef>,
    /// What happens to calls for which no rule decides.
    #[schemars(schema_with = "schema::approve_mode")]
    pub approve: ApproveMode,
    /// The most model calls of one turn; 25 unless said otherwise.
    #[schemars(range(min = 1))]
    pub max_steps: Option<u32>,
    /// What the model is told before each conversation.
    pub system_prompt: Option<String>,
    /// Where conversations and other data are kept.
    #[schemars(extend("format" = "path"))]
    pub data_dir: Option<PathBuf>,
    /// What is logged: off, error, warn, info, debug, trace, or directives such as `warn,turnwright_mcp=debug`.
    #[schemars(extend("format" = "log-level"))]
    pub log_level: Option<String>,
    /// How a line of the log is written.
    pub log_format: LogFormat,
    /// What is asked of models.
    pub settings: Settings,
    /// Endpoints that answer, by name; the first one's first model is the default.
    #[schemars(extend("propertyNames" = { "format": "provider-name" }))]
    pub providers: IndexMap<String, ProviderConfig>,
    /// What is known of models, by PROVIDER/MODEL, where the catalogue does not know it or something else holds.
    #[schemars(extend("propertyNames" = { "format": "model" }))]
    pub models: IndexMap<String, ModelConfig>,
    /// MCP servers.
    pub mcp: McpConfig,
    /// The built-in tools.
    pub tools: Tools,
    /// Documents that are looked up for each message.
    pub knowledge: KnowledgeConfig,
    /// A model that turns texts into vectors.
    pub embeddings: EmbeddingsConfig,
    /// Files of instructions in the folders that are worked with.
    pub instructions: InstructionsConfig,
    /// What users had remembered.
    pub memory: MemoryConfig,
    /// Which calls may run.
    pub approval: Approval,
    /// When a model that goes in circles is told, asked about and stopped.
    pub loops: LoopsConfig,
    /// What may be spent on models.
    pub budgets: BudgetsConfig,
    /// How data is stored.
    pub storage: Storage,
    /// The HTTP server.
    pub server: Server,
    /// Pages that MCP servers have for the calls of their tools.
    pub apps: AppsConfig,
    /// How requests leave this machine.
    pub network: NetworkConfig,
    /// What is told of this process to whoever watches over it.
    pub telemetry: TelemetryConfig,
    /// Who is told that a turn waits for people.
    pub notify: NotifyConfig,
    /// Other servers over the same data.
    pub nats: NatsConfig,
}

impl Config {
    /// The step limit of a turn: the top-level key, else the one under `[settings]`, else 25.
    pub fn max_steps(&self) -> u32 {
        self.max_steps.or(self.settings.max_steps).unwrap_or(TurnSettings::DEFAULT_MAX_STEPS)
    }

    /// The names of built-in sources that no MCP server can have, beside those of the HTTP APIs.
    pub(crate) fn built_in_sources(&self) -> Vec<&'static str> {
        let tools = &self.tools;
        let sources = [
            ("filesystem", tools.filesystem.enabled),
            ("command", tools.command.enabled),
            ("web", tools.web.working().is_some()),
            ("artifact", tools.artifact.enabled),
            ("executable", tools.executable.values().any(|tool| tool.enabled)),
            ("resources", true),
            ("memory", self.memory.enabled),
        ];
        sources.into_iter().filter(|(_, is_offered)| *is_offered).map(|(name, _)| name).collect()
    }

    /// What a turn of `model` runs with where neither its conversation nor its caller says otherwise.
    pub fn turn_settings(&self, model: ModelRef) -> TurnSettings {
        TurnSettings {
            approve: self.approve,
            max_steps: self.max_steps(),
            system_prompt: self.system_prompt.clone(),
            temperature: self.settings.temperature,
            max_output_tokens: self.settings.max_output_tokens,
            reasoning_effort: self.settings.reasoning_effort,
            parallel_calls: self.settings.parallel_calls,
            loops: self.loops.limits(),
            ..TurnSettings::new(model)
        }
    }
}

/// What is asked of models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Sampling temperature; the provider's own where not given.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The most tokens of one answer.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
    /// How much a reasoning model should think.
    #[schemars(schema_with = "schema::reasoning_effort")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Whether one answer may hold several calls; where not, calls also run one after another.
    pub parallel_calls: Option<bool>,
    /// The same as the top-level `max_steps`, which wins where both are given.
    #[schemars(range(min = 1))]
    pub max_steps: Option<u32>,
}

/// Which calls may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approval {
    /// Rules over tool names and arguments; deny wins over ask, ask over allow.
    #[schemars(schema_with = "schema::rules")]
    pub rules: Vec<RuleText>,
    /// How long a person is waited for before a call is denied in their place, such as `7d`; for ever unless said otherwise.
    #[schemars(extend("format" = "duration"))]
    pub timeout: Option<String>,
}

impl Approval {
    /// How long a person is waited for.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout.as_deref().and_then(duration)
    }
}

/// How data is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// What stored data survives.
    pub durability: Durability,
    /// A database other than the SQLite file in the data directory, such as `postgres://user@host/name`; may hold a password.
    #[schemars(extend("format" = "database"))]
    pub database: Option<Secret>,
    /// What seals the secrets that come while a server runs (sign-ins at MCP servers, keys that are typed in): 64 hexadecimal
    /// digits. They are kept in the database then, where every server of it finds them; else in files of the data directory.
    #[schemars(extend("format" = "seal-key"))]
    pub seal_key: Option<Secret>,
    /// How long a conversation is kept after its newest message, such as `90d`, unless it is pinned; for ever unless said
    /// otherwise. What runs or waits is never removed.
    #[schemars(extend("format" = "duration"))]
    pub retention: Option<String>,
}

impl Storage {
    /// How long conversations are kept.
    pub fn retention(&self) -> Option<Duration> {
        self.retention.as_deref().and_then(duration)
    }
}

/// What stored data survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The process being killed at any instant.
    #[default]
    Process,
    /// A power cut too, at the price of a disk flush per commit.
    Power,
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// The address and port to listen at.
    #[schemars(extend("format" = "listen"))]
    pub listen: String,
    /// What clients of OpenAI's APIs are shown of tools that run here.
    pub tool_activity: ToolActivity,
    /// How long turns may take to come to the end of their step once the server is told to end, in milliseconds.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub grace_ms: u64,
    /// Whether whoever comes has to sign in; `local` on loopback addresses where nothing is said.
    pub auth: Option<Auth>,
    /// The address by which browsers know the server, such as `https://turnwright.example.org`.
    #[schemars(extend("format" = "http-url"))]
    pub public_url: Option<String>,
    /// The path below which the server is found, such as `/turnwright`; that of `public_url` where nothing is said.
    #[schemars(extend("format" = "base-path"))]
    pub base_path: Option<String>,
    /// The addresses of proxies whose word counts for who asks, by what name and whether over TLS: such as `10.0.0.0/8`.
    #[schemars(schema_with = "schema::address_ranges")]
    pub trusted_proxies: Vec<String>,
    /// The origins of other sites whose pages may ask in a browser, such as `http://localhost:5173`: as whoever sits there where nobody signs
    /// in, else with a token.
    #[schemars(schema_with = "schema::origins")]
    pub allowed_origins: Vec<String>,
    /// How much the server takes at once, and how large.
    pub limits: LimitsConfig,
    /// An `OpenID` Connect provider at which users may sign in.
    pub oidc: Option<OidcConfig>,
    /// Has the server speak TLS by itself.
    pub tls: Option<TlsConfig>,
}

impl Server {
    /// The path below which browsers find the server, without a `/` at its end; empty at the top.
    pub fn path(&self) -> &str {
        let path = self.base_path.as_deref().or_else(|| self.public_url.as_deref().map(path_of));
        path.unwrap_or_default().trim_end_matches('/')
    }

    /// Scheme and authority by which browsers know the server, where that is configured.
    pub fn origin(&self) -> Option<&str> {
        self.public_url.as_deref().map(|url| url.strip_suffix(path_of(url)).unwrap_or(url))
    }

    /// The address under which people find a server that listens at `listens_at`. Who listens everywhere is found on the
    /// same machine as `localhost`.
    pub fn address(&self, listens_at: &str) -> String {
        let path = self.path();
        if let Some(origin) = self.origin() {
            return format!("{origin}{path}");
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let everywhere = listens_at.strip_prefix("0.0.0.0:").or_else(|| listens_at.strip_prefix("[::]:"));
        match everywhere {
            Some(port) => format!("{scheme}://localhost:{port}{path}"),
            None => format!("{scheme}://{listens_at}{path}"),
        }
    }
}

/// The path of a URL with what follows it.
pub(crate) fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default()
}

/// What the server proves by TLS who it is with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// A file with the certificate, and after it those that it was signed with, as PEM.
    #[schemars(extend("format" = "path"))]
    pub cert: PathBuf,
    /// A file with its private key, as PEM.
    #[schemars(extend("format" = "path"))]
    pub key: PathBuf,
}

/// Whether whoever comes to the server has to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// Nobody has to: who reaches it is the one local user. On loopback addresses alone.
    Local,
    /// With a token, a link, or at the identity provider.
    Tokens,
}

/// An `OpenID` Connect provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OidcConfig {
    /// Its address, as it calls itself.
    #[schemars(extend("format" = "http-url"))]
    pub issuer: String,
    /// The name by which it knows this server.
    pub client_id: String,
    /// The secret by which this server is known there, where it has one.
    #[serde(default)]
    pub client_secret: Option<Secret>,
    /// What it is asked for.
    #[serde(default = "oidc_scopes")]
    pub scopes: Vec<String>,
    /// The claim that holds a user's groups.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// The group whose members are admins; with it the provider decides that at each sign-in.
    #[serde(default)]
    pub admin_group: Option<String>,
    /// The group that may use this server; everybody whom the provider knows where it is not given.
    #[serde(default)]
    pub member_group: Option<String>,
    /// What its button says.
    #[serde(default)]
    pub name: Option<String>,
}

fn oidc_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).to_vec()
}

fn groups_claim() -> String {
    "groups".to_owned()
}

/// What clients of OpenAI's APIs are shown of tools that run here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolActivity {
    /// Nothing in the answer's text.
    #[default]
    Hidden,
    /// Lines among the model's thoughts.
    Reasoning,
    /// Lines in the text.
    Content,
    /// Blocks in the text that Open WebUI shows as tool calls.
    Details,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8700".to_owned(),
            tool_activity: ToolActivity::default(),
            auth: None,
            public_url: None,
            base_path: None,
            trusted_proxies: Vec::new(),
            allowed_origins: Vec::new(),
            limits: LimitsConfig::default(),
            oidc: None,
            tls: None,
            grace_ms: 10_000,
        }
    }
}
