//! Every enabled tool for MCP clients: `turnwright mcp serve` and `/mcp`.
//!
//! A client's call is a turn like any other: the client is its model, which asks for one tool and is content with the
//! result. So it is stored, limited, asked about and shown like every call, and there is no second way to run a tool.
//! [`caller`] is that model, [`backing`] turns calls into turns, [`running`] tells what becomes of one.

mod backing;
pub(crate) mod caller;
mod pool;
mod running;

use std::sync::Arc;

use turnwright_core::ApproveMode;
use turnwright_engine::KeptBy;
use turnwright_mcp::serve::{HttpEndpoint, StdioEnd, stdio};

use crate::Host;
use backing::EngineBacking;

/// How the tools are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpServing {
    /// What happens to calls for which no rule decides; the configuration's where `None`.
    pub approve: Option<ApproveMode>,
    /// A source whose tools are called by their own names, not by qualified ones.
    pub unqualified: Option<String>,
}

/// The endpoint for clients over HTTP, see [`Host::mcp_endpoint`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpEndpoint {
    http: HttpEndpoint,
    backing: Arc<EngineBacking>,
}

impl Host {
    /// Offers the tools to MCP clients over HTTP. A request's body may have `body_limit_bytes`.
    pub fn mcp_endpoint(&self, serving: McpServing, body_limit_bytes: usize) -> McpEndpoint {
        let backing = Arc::new(EngineBacking::new(self.engine.clone(), KeptBy::Servers, serving));
        McpEndpoint { http: HttpEndpoint::new(backing.clone(), body_limit_bytes), backing }
    }

    /// Offers the tools to the MCP client at standard input and output, until it closes its end or `stop` is ready.
    pub async fn serve_mcp(&self, serving: McpServing, stop: impl Future<Output = ()> + Send) -> StdioEnd {
        let backing = Arc::new(EngineBacking::new(self.engine.clone(), KeptBy::Chat, serving));
        let end = stdio(backing.clone(), stop).await;
        backing.end().await;
        end
    }
}

impl McpEndpoint {
    /// What answers requests.
    pub fn http(&self) -> &HttpEndpoint {
        &self.http
    }

    /// Ends all sessions and stops their calls. Call it before the engine is shut down.
    pub async fn end(&self) {
        self.http.end().await;
        self.backing.end().await;
    }
}
