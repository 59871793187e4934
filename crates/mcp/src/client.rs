//! The client's side of the protocol: what is declared to servers, and what they may ask.

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};

/// Who we are to servers.
pub(crate) fn me() -> Implementation {
    Implementation::new("turnwright", env!("CARGO_PKG_VERSION"))
}

/// Declares no capability, so that servers ask nothing of it. Pings are answered by `rmcp`, forms declined.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), me()).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
