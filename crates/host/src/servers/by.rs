//! Who asks for MCP servers, and what they may do to them.

use serde_json::{Map, Value};
use turnwright_core::UserId;

use super::{Entry, McpChangeError, Origin, Owner, sealed};
use crate::config::mcp_server_takes_from_here;

/// The keys of a member's server. Any other runs, reads or tells what is this machine's.
const MEMBERS_KEYS: [&str; 8] = ["url", "headers", "enabled", "serial", "trust_annotations", "tools", "log_level", "protocol"];

/// Why something of this machine is not put into a member's server.
const HOLDS_NOTHING: &str =
    "a member's server holds no `${…}` and no `{file|env|keyring: …}`: what this machine has is its own";

/// What a user may do to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRights {
    /// Everything, to everyone's and their own.
    Everyones,
    /// What runs nothing on this machine, to their own.
    Own,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// Whoever has the process in their hands.
    Everybody,
    /// A user.
    User { user: UserId, may: ServerRights, may_declare: bool },
}

impl By {
    /// Whether the server is there for them.
    pub(super) fn sees(&self, entry: &Entry) -> bool {
        match &entry.origin {
            Origin::File(_) | Origin::Brought => true,
            Origin::Added(Some(stored)) => self.sees_owner(&stored.owner),
            // Nobody knows whose it was: whoever may change everything has to.
            Origin::Added(None) => !matches!(self, Self::User { may: ServerRights::Own, .. }),
        }
    }

    pub(super) fn sees_owner(&self, owner: &Owner) -> bool {
        match (self, owner) {
            (Self::Everybody, _) | (Self::User { .. }, Owner::Everyone) => true,
            (Self::User { user, .. }, Owner::User(owner)) => user == owner,
        }
    }

    /// Whether they may say what a server's tools are taken for.
    pub(super) fn may_declare(&self) -> bool {
        matches!(self, Self::Everybody | Self::User { may_declare: true, .. })
    }

    /// Whether the addresses that they give are kept outside of this machine and its network.
    pub(super) fn is_kept_outside(&self) -> bool {
        matches!(self, Self::User { may: ServerRights::Own, .. })
    }

    /// Whether they may do something to a server that is there for them.
    pub(super) fn may_change(&self, entry: &Entry) -> Result<(), McpChangeError> {
        let Self::User { may: ServerRights::Own, .. } = self else { return Ok(()) };
        let is_own = matches!(&entry.origin, Origin::Added(Some(stored)) if matches!(stored.owner, Owner::User(_)));
        if is_own {
            return Ok(());
        }
        Err(McpChangeError::NotAllowed(format!("`{}` is everyone's; an admin can do this", entry.name)))
    }

    /// Whether they may give another address to a server of these keys: what others had put in does not go there.
    pub(super) fn may_send_elsewhere(&self, config: &Map<String, Value>) -> Result<(), McpChangeError> {
        let Self::User { may: ServerRights::Own, .. } = self else { return Ok(()) };
        if mcp_server_takes_from_here(&sealed::without_references(config)) {
            return Err(McpChangeError::NotAllowed(HOLDS_NOTHING.to_owned()));
        }
        Ok(())
    }

    /// Whether they may have a server of these keys.
    pub(super) fn may_add(&self, owner: &Owner, config: &Map<String, Value>) -> Result<(), McpChangeError> {
        let Self::User { user, may, .. } = self else { return Ok(()) };
        let refuse = |why: &str| Err(McpChangeError::NotAllowed(why.to_owned()));
        match (may, owner) {
            (_, Owner::User(owner)) if owner != user => return refuse("a server is added for oneself, or for everyone"),
            (ServerRights::Everyones, _) => return Ok(()),
            (ServerRights::Own, Owner::Everyone) => return refuse("a server for everyone is added by an admin"),
            (ServerRights::Own, Owner::User(_)) => {}
        }
        if let Some(key) = config.keys().find(|key| !MEMBERS_KEYS.contains(&key.as_str())) {
            return refuse(&format!("a member's server is reached by its `url`; `{key}` is for admins"));
        }
        if mcp_server_takes_from_here(config) {
            return refuse(HOLDS_NOTHING);
        }
        Ok(())
    }
}
