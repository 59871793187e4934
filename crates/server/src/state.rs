//! What the routes share.

use std::sync::Arc;

use tokio::sync::Mutex;
use turnwright_engine::Engine;
use turnwright_host::McpEndpoint;

/// What the server is told by its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerOptions {
    /// The largest request body, in bytes.
    pub body_limit_bytes: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { body_limit_bytes: 32 * 1024 * 1024 }
    }
}

/// What the routes share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    engine: Engine,
    mcp: Option<McpEndpoint>,
    options: ServerOptions,
    changing_settings: Mutex<()>,
}

impl ServerState {
    /// The state of a server for `engine`.
    pub fn new(engine: Engine, options: ServerOptions) -> Self {
        Self(Arc::new(Shared { engine, mcp: None, options, changing_settings: Mutex::new(()) }))
    }

    /// With an endpoint for MCP clients.
    #[must_use]
    pub fn with_mcp(engine: Engine, options: ServerOptions, mcp: McpEndpoint) -> Self {
        Self(Arc::new(Shared { engine, mcp: Some(mcp), options, changing_settings: Mutex::new(()) }))
    }

    /// The endpoint for MCP clients, where there is one.
    pub(crate) fn mcp(&self) -> Option<&McpEndpoint> {
        self.0.mcp.as_ref()
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
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
