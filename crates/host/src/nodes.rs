//! Other servers over the same data.

mod strangers;

use std::sync::Arc;

use turnwright_engine::documents::{Document, Documents};
use turnwright_nodes::{Credentials, JoinError, NatsNodes, Node, Options};

use crate::config::NatsConfig;
use crate::{Host, HostError};

/// The document by which a database is known to other nodes.
const KIND: &str = "cluster";
const KEY: &str = "id";

impl Host {
    /// Shares turns with the other servers over the same data, where the configuration says how they are reached; whether it
    /// does. `address` is where this one listens, for people. Before the first turn.
    ///
    /// # Errors
    /// [`HostError::Nodes`], where they cannot be reached or must not be joined.
    pub async fn join_nodes(&self, address: &str) -> Result<bool, HostError> {
        let nats = &self.config().nats;
        let urls = nats.urls();
        if urls.is_empty() {
            return Ok(false);
        }
        let options = Options {
            urls,
            credentials: credentials(nats),
            ca: nats.ca_file.clone(),
            prefix: nats.prefix.clone(),
            replicas: usize::from(nats.replicas),
            queue: nats.queue,
            cluster: cluster_id(&*self.documents).await?,
            driver: self.engine().driver().clone(),
            node: Node {
                name: nats.name.clone().unwrap_or_else(|| self.machine()),
                address: address.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at_ms: self.engine().clock().now_ms(),
            },
        };
        let nodes = Arc::new(NatsNodes::join(options).await?);
        let looking = strangers::keep_looking(self.documents.clone(), self.engine.clone(), nodes.clone());
        let ending = self.ending.clone();
        self.tasks.spawn(async move { ending.run_until_cancelled(looking).await });
        self.engine().join(nodes);
        Ok(true)
    }

    /// The machine's name.
    fn machine(&self) -> String {
        let of_system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let name = self.environment.filled("HOSTNAME").map(str::to_owned).or_else(of_system);
        name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "turnwright".to_owned())
    }
}

fn credentials(nats: &NatsConfig) -> Credentials {
    if let Some(path) = &nats.credentials {
        return Credentials::File(path.clone());
    }
    if let Some(token) = &nats.token {
        return Credentials::Token(token.expose().to_owned());
    }
    match (&nats.user, &nats.password) {
        (Some(user), Some(password)) => Credentials::Password { user: user.clone(), password: password.expose().to_owned() },
        (Some(_) | None, _) => Credentials::None,
    }
}

/// By what the database is known: made once. Of servers that start at once on a new one the first to write gives the name, as
/// the database decides, and all read that.
async fn cluster_id(documents: &dyn Documents) -> Result<String, HostError> {
    if let Some(known) = documents.document(KIND, KEY).await? {
        return Ok(known.body);
    }
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| JoinError::Stream { name: "the name of this database".to_owned(), reason: error.to_string() })?;
    let body = format!("{:032x}", u128::from_be_bytes(bytes));
    documents.add_document(KIND, Document { key: KEY.to_owned(), body: body.clone() }).await?;
    Ok(documents.document(KIND, KEY).await?.map_or(body, |known| known.body))
}
