//! Which nodes there are: each says so every few seconds, in a bucket that forgets who does not.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream::kv::{Config, Operation, Store};
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::{Context, kv};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::names::Names;
use crate::{JoinError, Node};

/// How often a node says that it lives.
const SAY_EVERY: Duration = Duration::from_secs(2);
/// How long that holds.
const HOLDS_FOR: Duration = Duration::from_secs(6);

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Said {
    name: String,
    address: String,
    version: String,
    started_at_ms: u64,
    draining: bool,
}

/// This node among the others.
#[derive(Debug)]
pub(crate) struct Presence {
    bucket: Store,
    key: String,
    node: Node,
    is_draining: AtomicBool,
    /// Wakes it to say at once what changed.
    changed: Notify,
    /// How many nodes live, where that is known.
    pub(crate) count: watch::Sender<Option<usize>>,
}

/// Checks that the prefix belongs to this database, or takes it. Gives the name by which all nodes know what is under it: `key`
/// where nobody was there before.
pub(crate) async fn claim_prefix(
    context: &Context,
    names: &Names,
    replicas: usize,
    ours: &str,
    key: &str,
) -> Result<String, JoinError> {
    let name = names.cluster();
    let wrong = |reason: String| JoinError::Stream { name: name.clone(), reason };
    let config = Config {
        bucket: name.clone(),
        description: "which database a prefix of turnwright belongs to".to_owned(),
        history: 1,
        storage: StorageType::File,
        num_replicas: replicas,
        ..Config::default()
    };
    let bucket = context.create_or_update_key_value(config).await.map_err(|error| wrong(error.to_string()))?;
    let first = async |key: &str, value: &str| {
        let created = bucket.create(key, value.to_owned().into()).await;
        let found = bucket.get(key).await.map_err(|error| wrong(error.to_string()))?;
        match (found, created) {
            (Some(found), _) => Ok(String::from_utf8_lossy(&found).into_owned()),
            (None, Ok(_)) => Ok(value.to_owned()),
            (None, Err(error)) => Err(wrong(error.to_string())),
        }
    };
    let theirs = first("cluster", ours).await?;
    if theirs != ours {
        return Err(JoinError::OtherCluster { prefix: names.prefix().to_owned(), theirs, ours: ours.to_owned() });
    }
    first("id", key).await
}

impl Presence {
    pub(crate) async fn open(
        context: &Context,
        names: &Names,
        replicas: usize,
        (key, node): (String, Node),
    ) -> Result<Arc<Self>, JoinError> {
        let name = names.nodes();
        let config = Config {
            bucket: name.clone(),
            description: "nodes of turnwright that live".to_owned(),
            history: 1,
            max_age: HOLDS_FOR,
            storage: StorageType::Memory,
            num_replicas: replicas,
            ..Config::default()
        };
        let bucket = context
            .create_or_update_key_value(config)
            .await
            .map_err(|error| JoinError::Stream { name, reason: error.to_string() })?;
        Ok(Arc::new(Self {
            bucket,
            key,
            node,
            is_draining: AtomicBool::new(false),
            changed: Notify::new(),
            count: watch::Sender::new(None),
        }))
    }

    /// Says at once that this node takes no more turns.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Says that this node is gone.
    pub(crate) async fn leave(&self) {
        if let Ok(Err(error)) = tokio::time::timeout(SAY_EVERY, self.bucket.purge(&self.key)).await {
            tracing::debug!(%error, "NATS was not told that this node ends");
        }
    }

    /// Says that this node lives, and counts the others, until `ending`.
    pub(crate) async fn keep(self: Arc<Self>, ending: CancellationToken) {
        let saying = ending.run_until_cancelled(self.keep_saying());
        let counting = ending.run_until_cancelled(self.keep_counting());
        tokio::join!(saying, counting);
    }

    async fn keep_saying(&self) {
        let mut every = tokio::time::interval(SAY_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = every.tick() => {}
                () = self.changed.notified() => {}
            }
            let Node { name, address, version, started_at_ms } = self.node.clone();
            let said = Said { name, address, version, started_at_ms, draining: self.is_draining.load(Ordering::Relaxed) };
            let Ok(body) = serde_json::to_vec(&said) else { continue };
            if let Ok(Err(error)) = tokio::time::timeout(SAY_EVERY, self.bucket.put(&self.key, body.into())).await {
                tracing::debug!(%error, "NATS was not told that this node lives");
            }
        }
    }

    async fn keep_counting(&self) {
        loop {
            if let Ok(watch) = self.bucket.watch_with_history(">").await {
                self.count_in(watch).await;
            }
            self.count.send_replace(None);
            tokio::time::sleep(SAY_EVERY).await;
        }
    }

    async fn count_in(&self, mut watch: kv::Watch) {
        let mut seen: HashMap<String, Instant> = HashMap::new();
        let mut every = tokio::time::interval(SAY_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                entry = watch.next() => match entry {
                    Some(Ok(entry)) => match entry.operation {
                        Operation::Put => drop(seen.insert(entry.key, Instant::now())),
                        Operation::Delete | Operation::Purge => drop(seen.remove(&entry.key)),
                    },
                    Some(Err(_)) | None => return,
                },
                _ = every.tick() => {}
            }
            seen.retain(|_, at| at.elapsed() < HOLDS_FOR);
            let count = seen.len();
            self.count.send_if_modified(|known| {
                let is_new = *known != Some(count);
                *known = Some(count);
                is_new
            });
        }
    }
}
