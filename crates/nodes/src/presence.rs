//! Which nodes there are, and how many streams users have open at them: each says so every few seconds, in a bucket that forgets
//! who does not.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::jetstream::kv::{Config, Operation, Store};
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::{Context, kv};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use turnwright_core::UserId;
use turnwright_engine::Slots;

use crate::names::Names;
use crate::{JoinError, Node};

/// How often a node says that it lives.
const SAY_EVERY: Duration = Duration::from_secs(2);
/// How long that holds.
const HOLDS_FOR: Duration = Duration::from_secs(6);
/// How soon after another word it says that users have more or fewer streams open.
const SAY_STREAMS_AFTER: Duration = Duration::from_millis(200);
/// It says that of users who have this part of the streams that one may have: who has fewer is far from the limit, and most have,
/// so that streams which come and go are mostly not worth a word.
const TOLD_PART: usize = 64;
/// It says that of so many users at most, which fits into a message of NATS (1 MiB) with the longest of names.
const MOST_TOLD: usize = 4_096;

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Said {
    name: String,
    address: String,
    version: String,
    started_at_ms: u64,
    draining: bool,
    /// How many streams users have open there. A node of a version that did not say it counts none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    streams: BTreeMap<UserId, usize>,
}

/// What another node, or this one, said last.
#[derive(Debug)]
struct Heard {
    at: Instant,
    streams: BTreeMap<UserId, usize>,
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
    /// The streams that are open here.
    streams: OnceLock<Slots>,
    /// What was heard, by the key of the node that said it.
    heard: Mutex<HashMap<String, Heard>>,
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
            streams: OnceLock::new(),
            heard: Mutex::default(),
        }))
    }

    /// Says at once that this node takes no more turns.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Says from now on how many of these streams users have open.
    pub(crate) fn share_streams(&self, streams: &Slots) {
        if self.streams.set(streams.clone()).is_err() {
            tracing::error!("a node shares the count of its streams once");
        }
        self.changed.notify_one();
    }

    /// How many streams a user has open at other nodes, as far as those said so and live.
    pub(crate) fn streams_elsewhere(&self, user: &UserId) -> usize {
        let heard = self.heard();
        let others = heard.iter().filter(|(key, said)| **key != self.key && said.at.elapsed() < HOLDS_FOR);
        others.filter_map(|(_, said)| said.streams.get(user)).fold(0, |sum, count| sum.saturating_add(*count))
    }

    fn heard(&self) -> MutexGuard<'_, HashMap<String, Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut streams = BTreeMap::new();
        loop {
            tokio::select! {
                _ = every.tick() => {}
                () = self.changed.notified() => {}
                () = self.other_streams_than(&streams) => {}
            }
            streams = self.streams_here();
            let Node { name, address, version, started_at_ms } = self.node.clone();
            let draining = self.is_draining.load(Ordering::Relaxed);
            let said = Said { name, address, version, started_at_ms, draining, streams: streams.clone() };
            let Ok(body) = serde_json::to_vec(&said) else { continue };
            if let Ok(Err(error)) = tokio::time::timeout(SAY_EVERY, self.bucket.put(&self.key, body.into())).await {
                tracing::debug!(%error, "NATS was not told that this node lives");
            }
        }
    }

    fn streams_here(&self) -> BTreeMap<UserId, usize> {
        self.streams.get().map(|streams| streams.busiest(TOLD_PART, MOST_TOLD)).unwrap_or_default()
    }

    /// Waits until something else is to be said of the streams here than was a moment ago; what changes in between is one word.
    async fn other_streams_than(&self, said: &BTreeMap<UserId, usize>) {
        let Some(streams) = self.streams.get() else { return std::future::pending().await };
        loop {
            tokio::time::sleep(SAY_STREAMS_AFTER).await;
            streams.changed().await;
            if self.streams_here() != *said {
                return;
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
        let mut every = tokio::time::interval(SAY_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                entry = watch.next() => match entry {
                    Some(Ok(entry)) => match entry.operation {
                        Operation::Put => self.hear(entry.key, &entry.value),
                        Operation::Delete | Operation::Purge => drop(self.heard().remove(&entry.key)),
                    },
                    Some(Err(_)) | None => return,
                },
                _ = every.tick() => {}
            }
            let count = {
                let mut heard = self.heard();
                heard.retain(|_, said| said.at.elapsed() < HOLDS_FOR);
                heard.len()
            };
            self.count.send_if_modified(|known| {
                let is_new = *known != Some(count);
                *known = Some(count);
                is_new
            });
        }
    }
    /// A node that says more than is understood lives all the same.
    fn hear(&self, key: String, value: &[u8]) {
        let streams = serde_json::from_slice(value).map(|said: Said| said.streams).unwrap_or_default();
        self.heard().insert(key, Heard { at: Instant::now(), streams });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_an_older_version_and_of_a_newer_one_are_understood() {
        let older = r#"{"name":"one","address":"a","version":"1","started_at_ms":1,"draining":false}"#;
        let said: Said = serde_json::from_str(older).unwrap();
        assert_eq!(said.streams, BTreeMap::new());
        assert_eq!(serde_json::to_string(&said).unwrap(), older);
        let newer =
            r#"{"name":"one","address":"a","version":"3","started_at_ms":1,"draining":false,"streams":{"ada":2},"more":[]}"#;
        let said: Said = serde_json::from_str(newer).unwrap();
        assert_eq!(said.streams, [("ada".parse().unwrap(), 2)].into());
    }
}
