//! What a server and we agreed on when it was opened.

use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;

use crate::McpError;
use crate::client::Client;
use crate::connection::known_versions;
use crate::era::{Finding, Ground};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The version of the protocol that is spoken, such as `2025-11-25`.
    pub version: String,
    /// Why it was opened in the way of this version's era.
    pub ground: Ground,
    /// The server's own name and version, where it says them.
    pub server: Option<String>,
    /// What it wants the model to know of it.
    pub instructions: Option<String>,
    /// Whether it says that it has tools.
    pub has_tools: bool,
}

impl Agreed {
    /// What the handshake brought; an error where the version is one that nobody here knows.
    pub(crate) fn of(service: &RunningService<RoleClient, Client>, finding: Finding) -> Result<Self, McpError> {
        let Some(info) = service.peer_info() else {
            return Err(McpError::UnknownVersion { version: String::new(), known: known_versions() });
        };
        let version = info.protocol_version.to_string();
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) {
            return Err(McpError::UnknownVersion { version, known: known_versions() });
        }
        Ok(Self {
            version,
            ground: finding.ground,
            server: info.server_info.as_ref().map(|server| format!("{} {}", server.name, server.version)),
            instructions: info.instructions.clone(),
            has_tools: info.capabilities.tools.is_some(),
        })
    }
}
