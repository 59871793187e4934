//! `[nats]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Secret;

/// Other servers ("nodes") over the same data, reached through NATS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// The addresses of NATS servers, such as `nats://127.0.0.1:4222`, with commas between them; `tls://` asks for TLS. A server
    /// is alone where nothing is said.
    #[schemars(extend("format" = "nats-url"))]
    pub url: Option<String>,
    /// A file with a JWT and its key, as `nsc` writes it.
    #[schemars(extend("format" = "path"))]
    pub credentials: Option<PathBuf>,
    /// A token by which this server is known to NATS.
    pub token: Option<Secret>,
    /// The user by which this server is known to NATS.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<Secret>,
    /// A file with certificates that are trusted besides the well-known ones, as PEM.
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// What streams, subjects and buckets begin with; one for all servers over the same database.
    #[schemars(extend("format" = "nats-prefix"))]
    pub prefix: String,
    /// How many NATS servers keep a copy of the queue: 1, 3 or 5.
    #[schemars(range(min = 1, max = 5))]
    pub replicas: u8,
    /// How many turns may wait or run over all servers before no other is offered.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub queue: u64,
    /// This server's name, for people; the machine's where nothing is said.
    pub name: Option<String>,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            url: None,
            credentials: None,
            token: None,
            user: None,
            password: None,
            ca_file: None,
            prefix: "turnwright".to_owned(),
            replicas: 1,
            queue: 100_000,
            name: None,
        }
    }
}

impl NatsConfig {
    /// The addresses.
    pub fn urls(&self) -> Vec<String> {
        let urls = self.url.iter().flat_map(|urls| urls.split(','));
        urls.map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect()
    }
}

/// Addresses of NATS servers, or what would be right.
pub(crate) fn nats_urls(text: &str) -> Result<String, String> {
    for url in text.split(',').map(str::trim) {
        let rest = ["nats://", "tls://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let Some(rest) = rest.filter(|rest| !rest.is_empty() && !rest.contains([' ', '/'])) else {
            return Err("`nats://HOST:PORT` or `tls://HOST:PORT`, more than one with commas between them".to_owned());
        };
        if rest.contains('@') {
            return Err(
                "`nats://HOST:PORT` without a user; that belongs in `token`, or `user` and `password`, below [nats]".to_owned()
            );
        }
    }
    Ok(text.to_owned())
}
