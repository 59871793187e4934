//! Why a host does not start.

use turnwright_core::policy::RuleError;
use turnwright_engine::{EngineError, StoreError};

use crate::config::Problem;

/// A host that could not be started. Shown to people as it is.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The turns that the last process left.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A database address that this build cannot use.
    #[error("the database `{address}` cannot be used: {reason}")]
    Database {
        /// The address, without its password.
        address: String,
        /// Why, and what would be right.
        reason: &'static str,
    },
    /// The key that seals what is secret.
    #[error(
        "`storage.seal_key` is another key than the one that the secrets in the database are sealed with; every server of a database needs the same"
    )]
    SealKey,
    /// A value of the configuration that only the host can judge.
    #[error("{0}")]
    Config(Problem),
    /// The name of a model provider that the program brings.
    #[error("`{name}` cannot be the name of a model provider: {reason}")]
    ProviderName {
        /// The name.
        name: String,
        /// Why, and what would be right.
        reason: &'static str,
    },
    /// An approval rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A built-in tool source whose folders cannot be used.
    #[error("the built-in tools cannot be used: {0}")]
    Roots(#[from] turnwright_tools::RootsError),
    /// The data directory.
    #[error("the data directory {path} cannot be used: {reason}")]
    DataDir {
        /// Where it lies.
        path: String,
        /// Why.
        reason: String,
    },
    /// The data is another user's, and this process is root's.
    #[error(
        "{path} belongs to the user with the id {uid}, and this process is root's: what it made there that user could not use"
    )]
    Owner {
        /// The folder.
        path: String,
        /// To whom it belongs.
        uid: u32,
    },
    /// The other nodes.
    #[error(transparent)]
    Nodes(#[from] turnwright_nodes::JoinError),
    /// The webhook that is told of waiting turns.
    #[error("the webhook of `[notify]` cannot be used: {reason}")]
    Webhook {
        /// Why.
        reason: String,
    },
}
