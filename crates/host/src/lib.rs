//! Composition: from a configuration to a running engine; what an embedder or a binary calls.
//!
//! [`config::open`] reads the configuration, [`Host::start`] makes a running [`Host`] of it, [`Host::builder`] does so with
//! tool sources of one's own. Everything that happens in conversations is the engine's, see [`Host::engine`].

/// What programs are told that have a host in them: its code compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Embedding;

mod address_range;
mod apis;
pub mod config;
mod context;
pub mod database;
mod duties;
mod env_file;
pub mod environment;
mod error;
mod executables;
mod host;
mod kept;
mod keyring;
mod lineage;
mod look;
mod mcp_endpoint;
mod nodes;
mod notify;
mod oidc;
mod owner;
mod providers;
mod sandbox;
mod secrets;
mod servers;
mod sources;
mod storage;
mod swept_store;
mod tidy;

pub use address_range::{AddressRange, AddressRangeError};
pub use config::{Config, Loaded, Overrides, Problem, Problems};
pub use environment::Environment;
pub use error::HostError;
pub use host::{Host, HostBuilder, Needs};
pub use mcp_endpoint::{McpEndpoint, McpServing, Questions};
/// What a check of a model's endpoint finds, and what APIs are sent of a tool's schema.
pub use turnwright_network::Network;
pub use turnwright_providers::{Probe, ProbeFinding, SchemaReading, SchemaStrictness, Verdict, catalogue_date};

pub use providers::{KeyCheck, ModelProviders, NewProvider, ProviderChangeError, TestedProvider};
pub use servers::{Asked, McpChangeError, McpImport, McpImported, McpServers, McpStatus, NewMcpServer, Owner, ServerRights};
/// How the serving of an MCP client ended.
pub use turnwright_mcp::serve::StdioEnd;

pub use oidc::{Oidc, OidcBegun, OidcError, OidcUser};

/// What documents say to a question, and what users had remembered.
pub use turnwright_engine::knowledge::{FoundPiece, IndexedFile};
pub use turnwright_tools::knowledge::{Answer as KnowledgeAnswer, Refreshed};
pub use turnwright_tools::{Knowledge, MAX_MEMORY_BYTES, Memory, MemoryError};

pub use lineage::{has_ended, lineage, mark_of};
/// For the `main` of a program that is its own [`Environment::with_command_helper`].
pub use turnwright_tools::confine;

pub use look::{Finding, Level, ModelCheck, ModelFindings, ProviderModels, ToolCallForm};
/// What came of signing out at an MCP server.
pub use turnwright_mcp::SignedOut;
/// What an MCP server and we agreed on.
pub use turnwright_mcp::{Agreed, Ground, without_last_lines};
/// What MCP servers have besides tools.
pub use turnwright_mcp::{
    AppPage, AppPermission, Completion, CompletionOf, Domains, McpServer, Prompt, PromptMessages, Resource, ResourceSource,
    ResourceTemplate, SaidMessage, Shelf,
};
/// Conversations in the forms of others, out and in. Pure.
pub use turnwright_providers::{export, import};
