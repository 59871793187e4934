//! How far servers of users reach: those of members to no address of this machine and its network, where the configuration lists none.

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_core::UserId;
use turnwright_engine::StoreError;
use turnwright_engine::accounts::{Accounts, Role};
use turnwright_mcp::{Bounds, ServerConfig, Ways};
use turnwright_network::{Network, Outside};

/// The key that lists what servers of members may reach besides public addresses.
const KEY: &str = "mcp.members_allow";

/// See the module.
#[derive(Debug)]
pub(crate) struct WaysOfUsers {
    all: Network,
    outside: Network,
    accounts: Arc<dyn Accounts>,
}

impl WaysOfUsers {
    /// `listed` is what members may reach besides public addresses; each was looked at as it was read.
    pub(crate) fn new(network: &Network, listed: &[String], accounts: Arc<dyn Accounts>) -> Self {
        let listed = Outside::new(listed.iter().map(String::as_str), KEY);
        let outside = listed.or_else(|_| Outside::new([], KEY)).unwrap_or_default();
        Self { all: network.clone(), outside: network.clone().kept_outside(outside), accounts }
    }

    /// Whether what belongs to a user is kept outside: to a member, and to somebody who is gone.
    async fn keeps(&self, owner: &UserId) -> bool {
        is_members(&*self.accounts, owner).await.unwrap_or_else(|error| {
            tracing::warn!(%error, user = %owner, "whether a user is an admin cannot be read; their MCP server is a member's until it can");
            true
        })
    }
}

/// Whether what belongs to a user is a member's, or of somebody who is gone.
pub(super) async fn is_members(accounts: &dyn Accounts, owner: &UserId) -> Result<bool, StoreError> {
    Ok(match accounts.user(owner).await? {
        Some(user) => user.role == Role::Member,
        None => owner.as_str() != UserId::LOCAL,
    })
}

#[async_trait]
impl Ways for WaysOfUsers {
    async fn network(&self, of: &ServerConfig) -> Network {
        let is_kept = match (of.bounds, &of.owner) {
            (Bounds::Outside, _) => true,
            (Bounds::AsItsOwners, None) => false,
            (Bounds::AsItsOwners, Some(owner)) => self.keeps(owner).await,
        };
        if is_kept { self.outside.clone() } else { self.all.clone() }
    }
}
