//! What a node is told of the others before it joins them.

use std::fmt;
use std::path::PathBuf;

use turnwright_core::DriverId;

/// How to reach the other nodes.
#[derive(Debug, Clone)]
pub struct Options {
    /// The addresses of NATS servers, such as `nats://127.0.0.1:4222`; at least one. `tls://` asks for TLS.
    pub urls: Vec<String>,
    /// Who this is for NATS.
    pub credentials: Credentials,
    /// A file with certificates (PEM) that are trusted besides the well-known ones.
    pub ca: Option<PathBuf>,
    /// What streams, subjects and buckets begin with: the cluster's name. 1 to 32 of `[A-Za-z0-9_-]`.
    pub prefix: String,
    /// How many NATS servers keep a copy of the queue: 1, 3 or 5.
    pub replicas: usize,
    /// How many turns may wait or run over all nodes before no other is offered.
    pub queue: u64,
    /// By what the database is known: nodes of one prefix have one.
    pub cluster: String,
    /// This process, as journals name it.
    pub driver: DriverId,
    /// This node.
    pub node: Node,
}

/// This node, as others are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name, for people.
    pub name: String,
    /// Where it listens, for people.
    pub address: String,
    /// What runs.
    pub version: String,
    /// When it started, in milliseconds since 1970 UTC.
    pub started_at_ms: u64,
}

/// Who a node is for NATS.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nobody asks, or it is in the address.
    #[default]
    None,
    /// A file with a JWT and its key, as `nsc` writes it.
    File(PathBuf),
    /// A token.
    Token(String),
    /// A user with a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::File(_) => "File(…)",
            Self::Token(_) => "Token(…)",
            Self::Password { .. } => "Password(…)",
        })
    }
}

/// An address as it may be shown: without what stands before an `@` in it.
pub(crate) fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_an_address_nor_credentials_show_a_secret() {
        assert_eq!(shown("nats://ada:secret@host:4222"), "nats://host:4222");
        assert_eq!(shown("nats://host:4222"), "nats://host:4222");
        let credentials = Credentials::Password { user: "ada".to_owned(), password: "secret".to_owned() };
        assert_eq!(format!("{credentials:?}"), "Password(…)");
    }
}
