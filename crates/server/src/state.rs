//! What the routes share.

use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use turnwright_engine::Engine;
use turnwright_host::{McpEndpoint, McpServers, ResourceSource};

use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::openai::activity::ToolActivity;
use crate::openai::known::KnownHistories;

/// What the server is told by its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerOptions {
    /// The largest request body, in bytes.
    pub body_limit_bytes: usize,
    /// How answers of OpenAI's APIs show what tools do on our side, where the request does not say.
    pub tool_activity: ToolActivity,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { body_limit_bytes: 32 * 1024 * 1024, tool_activity: ToolActivity::default() }
    }
}

/// What the routes share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    engine: Engine,
    mcp: Option<McpEndpoint>,
    servers: Option<McpServers>,
    options: ServerOptions,
    changing_settings: Mutex<()>,
    resources: OnceLock<Arc<ResourceSource>>,
    known: Arc<KnownHistories>,
    metrics: OnceLock<Metrics>,
}

impl ServerState {
    /// The state of a server for `engine`.
    pub fn new(engine: Engine, options: ServerOptions) -> Self {
        Self::of(engine, options, None, None)
    }

    /// With an endpoint for MCP clients, and with the MCP servers of a host, which can be listed and changed then.
    #[must_use]
    pub fn with_mcp(engine: Engine, options: ServerOptions, mcp: McpEndpoint, servers: McpServers) -> Self {
        Self::of(engine, options, Some(mcp), Some(servers))
    }

    fn of(engine: Engine, options: ServerOptions, mcp: Option<McpEndpoint>, servers: Option<McpServers>) -> Self {
        Self(Arc::new(Shared {
            engine,
            mcp,
            servers,
            options,
            changing_settings: Mutex::new(()),
            resources: OnceLock::new(),
            known: Arc::default(),
            metrics: OnceLock::new(),
        }))
    }

    /// The endpoint for MCP clients, where there is one.
    pub(crate) fn mcp(&self) -> Option<&McpEndpoint> {
        self.0.mcp.as_ref()
    }

    /// The MCP servers.
    pub(crate) fn servers(&self) -> Result<&McpServers, ApiError> {
        self.0.servers.as_ref().ok_or_else(|| ApiError::not_found("MCP server here: this host has no configuration"))
    }

    /// With MCP servers, for what they have besides tools.
    #[must_use]
    pub fn with_resources(self, resources: Arc<ResourceSource>) -> Self {
        let _ = self.0.resources.set(resources);
        self
    }

    /// MCP servers, for what they have besides tools.
    pub(crate) fn resources(&self) -> Option<&Arc<ResourceSource>> {
        self.0.resources.get()
    }

    /// With what was counted before the server began; the engine's observer.
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        let _ = self.0.metrics.set(metrics);
        self
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        self.0.metrics.get_or_init(Metrics::new)
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The conversations of clients that keep the history themselves.
    pub(crate) fn known(&self) -> &Arc<KnownHistories> {
        &self.0.known
    }

    /// The options.
    pub(crate) fn options(&self) -> ServerOptions {
        self.0.options
    }

    /// Held while a conversation's settings are read, changed and written, so that two changes do not undo each other.
    pub(crate) fn changing_settings(&self) -> &Mutex<()> {
        &self.0.changing_settings
    }
}
