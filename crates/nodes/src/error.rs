//! Why a node could not join the others.

/// The oldest NATS server that does what is needed: a stream that keeps one message for each subject, and consumers that any
/// number of nodes pull from.
pub(crate) const MINIMUM: (i64, i64, i64) = (2, 10, 0);

/// Why a node could not join the others. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// No server answers at any address.
    #[error("no NATS server answers at {urls}: {reason}")]
    Unreachable {
        /// Where, without what is secret.
        urls: String,
        /// Why.
        reason: String,
    },
    /// The server does not let this node in.
    #[error("the NATS server at {urls} refuses these credentials")]
    Refused {
        /// Where, without what is secret.
        urls: String,
    },
    /// The file with credentials cannot be used.
    #[error("the NATS credentials in {path} cannot be used: {reason}")]
    Credentials {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// An address, or the prefix, is not one.
    #[error("`{value}` is not {expected}")]
    Invalid {
        /// What was given, without what is secret.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The server is too old.
    #[error("the NATS server at {urls} is version {version}; 2.10.0 or newer is needed")]
    TooOld {
        /// Where, without what is secret.
        urls: String,
        /// What it says that it is.
        version: String,
    },
    /// The server has no `JetStream`, or not for this account.
    #[error(
        "the NATS server at {urls} offers no JetStream to this account ({reason}); start it with `--jetstream`, or enable it for the account"
    )]
    NoJetStream {
        /// Where, without what is secret.
        urls: String,
        /// What it says.
        reason: String,
    },
    /// Another database uses this prefix.
    #[error(
        "the NATS prefix `{prefix}` belongs to nodes of another database (theirs is {theirs}, this one is {ours}); choose another prefix, or the same database"
    )]
    OtherCluster {
        /// The prefix.
        prefix: String,
        /// By what their database is known.
        theirs: String,
        /// By what this one is.
        ours: String,
    },
    /// A stream or bucket could not be made.
    #[error("`{name}` cannot be made or used at the NATS server: {reason}")]
    Stream {
        /// The stream or bucket.
        name: String,
        /// Why.
        reason: String,
    },
}
