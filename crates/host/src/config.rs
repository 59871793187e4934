//! The configuration: `turnwright.toml`, overridden by `TURNWRIGHT_*` variables, overridden by flags (docs/configuration.md).
//!
//! [`open`] finds and reads the file and is all the input there is; [`load`] turns its text into a [`Loaded`] configuration
//! or into the list of all [`Problems`]. On the way: `document` is the text as a tree that knows its lines, `expand` puts
//! variables into strings, `overrides` lays variables and flags over the file, `check` compares the tree with the `schema`,
//! which comes from the types themselves, and `meaning` adds what a schema cannot say. So a key exists for the parser, for
//! the messages and for `config schema` at once, or not at all.

mod added;
mod apps;
mod budgets;
mod check;
mod document;
mod endpoint;
mod expand;
pub(crate) mod fallback;
mod folders;
mod format;
mod http;
mod key_path;
mod knowledge;
mod known;
mod limits;
mod listed;
mod load;
mod loops;
mod mcp;
mod meaning;
mod model;
mod nats;
mod network;
mod notify;
mod overrides;
mod problem;
mod provider;
mod root;
mod schema;
mod secret;
mod secret_table;
mod show;
mod telemetry;
mod tools;
mod unusable;
mod web;
mod well_known;

pub(crate) use added::{mcp_server, mcp_server_takes_from_here};
pub use apps::AppsConfig;
pub use budgets::{BudgetConfig, BudgetsConfig, UserBudgetsConfig};
pub use endpoint::{DefaultModel, Endpoint, EndpointOrigin};
pub(crate) use endpoint::{added, key_names, key_path, model_facts};
pub use expand::{ExpandError, Expanded, expand};
pub(crate) use format::{base_url, server_name};
pub use http::{HttpAuthentication, HttpBasic, HttpNamed, HttpOperations, HttpTools};
pub use knowledge::{EmbeddingsConfig, InstructionsConfig, KnowledgeConfig, KnowledgeFolder, MemoryConfig};
pub use limits::LimitsConfig;
pub use load::{ConfigFile, FILE_NAME, Loaded, McpFile, find, load, open};
pub use loops::LoopsConfig;
pub use mcp::{McpConfig, McpDocker, McpGrant, McpOauth, McpSampling, McpServer, McpTool, McpTransport, Pull, Start};
pub use model::{LongPromptConfig, ModelConfig, PriceConfig};
pub use nats::NatsConfig;
pub use network::NetworkConfig;
pub use notify::{NotifyConfig, WebhookConfig};
pub use overrides::Overrides;
pub use problem::{Place, Problem, Problems};
pub use provider::{Dialect, Profile, ProviderConfig};
pub use root::{Approval, Auth, Config, Durability, OidcConfig, Server, Settings, Storage, TlsConfig, ToolActivity};
pub use schema::{json_schema, printed_schema};
pub use secret::Secret;
pub(crate) use secret::{MASK, argument_without_secrets, without_secrets_and_keys};
pub use telemetry::{LogFormat, TelemetryConfig};
pub use tools::{ArtifactTools, CommandTools, ExecutableTool, FilesystemTools, Sandbox, ToolSearch, Tools};
pub use web::{Engine, WebFetch, WebSearch, WebTools};
pub use well_known::local_candidates;
