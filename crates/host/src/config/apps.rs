//! `[apps]`: pages that MCP servers have for the calls of their tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pages that MCP servers have for the calls of their tools (MCP Apps).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AppsConfig {
    /// Whether they are shown; where not, results are shown as any other tool's, and servers are not told that they could be.
    pub enabled: bool,
    /// The origin that their frames are loaded from, such as `https://apps.example.org`: another host name or port than that of
    /// `server.public_url`, which leads to this server too. Where it is not said they are shown to whoever opens the page as
    /// `localhost` or `127.0.0.1`.
    #[schemars(extend("format" = "origin"))]
    pub sandbox_origin: Option<String>,
}

impl Default for AppsConfig {
    fn default() -> Self {
        Self { enabled: true, sandbox_origin: None }
    }
}
