//! What a server and we agreed on when it was opened.

use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerCapabilities};
use rmcp::service::RunningService;
use turnwright_core::secrets::Secrets;

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
    /// What it says that it has.
    pub offers: Vec<Offer>,
}

/// Something that a server says it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Tools.
    Tools,
    /// It tells when its tools change.
    ToolChanges,
    /// Resources.
    Resources,
    /// It tells when the list of its resources changes.
    ResourceChanges,
    /// It tells when a resource changes.
    ResourceUpdates,
    /// Prompts.
    Prompts,
    /// It tells when its prompts change.
    PromptChanges,
    /// Completion of what prompts and templates are given.
    Completions,
    /// Log messages.
    Logging,
}

impl Offer {
    /// What it is, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::ToolChanges => "changes of tools",
            Self::Resources => "resources",
            Self::ResourceChanges => "changes of resources",
            Self::ResourceUpdates => "updates of resources",
            Self::Prompts => "prompts",
            Self::PromptChanges => "changes of prompts",
            Self::Completions => "completions",
            Self::Logging => "log messages",
        }
    }
}

impl Agreed {
    /// What the handshake brought, without secrets; an error where the version is one that nobody here knows.
    pub(crate) fn of(
        service: &RunningService<RoleClient, Client>,
        finding: Finding,
        secrets: &Secrets,
    ) -> Result<Self, McpError> {
        let Some(info) = service.peer_info() else {
            return Err(McpError::UnknownVersion { version: String::new(), known: known_versions() });
        };
        let version = info.protocol_version.to_string();
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) {
            return Err(McpError::UnknownVersion { version, known: known_versions() });
        }
        let shown = |text: &str| secrets.hide(text).into_owned();
        Ok(Self {
            version,
            ground: finding.ground,
            server: info.server_info.as_ref().map(|server| shown(format!("{} {}", server.name, server.version).trim_end())),
            instructions: info.instructions.as_deref().map(shown),
            offers: offers(&info.capabilities),
        })
    }

    /// Whether it says that it has this.
    pub fn offers(&self, offer: Offer) -> bool {
        self.offers.contains(&offer)
    }

    /// Whether its version has calls in the form of tasks.
    pub(crate) fn knows_tasks(&self) -> bool {
        self.version == ProtocolVersion::V_2025_11_25.as_str()
    }

    /// Whether it is spoken to without a handshake.
    pub(crate) fn is_modern(&self) -> bool {
        self.version == ProtocolVersion::V_2026_07_28.as_str()
    }
}

fn offers(capabilities: &ServerCapabilities) -> Vec<Offer> {
    let ServerCapabilities { tools, resources, prompts, completions, logging, .. } = capabilities;
    let is = |said: Option<bool>| said == Some(true);
    let said = [
        (Offer::Tools, tools.is_some()),
        (Offer::ToolChanges, is(tools.as_ref().and_then(|tools| tools.list_changed))),
        (Offer::Resources, resources.is_some()),
        (Offer::ResourceChanges, is(resources.as_ref().and_then(|resources| resources.list_changed))),
        (Offer::ResourceUpdates, is(resources.as_ref().and_then(|resources| resources.subscribe))),
        (Offer::Prompts, prompts.is_some()),
        (Offer::PromptChanges, is(prompts.as_ref().and_then(|prompts| prompts.list_changed))),
        (Offer::Completions, completions.is_some()),
        (Offer::Logging, logging.is_some()),
    ];
    said.into_iter().filter_map(|(offer, is_there)| is_there.then_some(offer)).collect()
}
