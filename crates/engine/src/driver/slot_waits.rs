//! Waiting for slots of tool sources that are all taken.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Wait = Pin<Box<dyn Future<Output = (String, OwnedSemaphorePermit)> + Send>>;

/// The sources of which a slot is waited for: one at a time of each, so that a driver holds no more than it can use.
#[derive(Default)]
pub(super) struct SlotWaits {
    waits: FuturesUnordered<Wait>,
    sources: HashSet<String>,
}

impl SlotWaits {
    /// Waits for a slot of these sources, and of no others.
    pub(super) fn only(&mut self, wanted: HashMap<String, Arc<Semaphore>>) {
        if !self.sources.iter().all(|source| wanted.contains_key(source)) {
            // Whoever waits in vain would be given a slot that others need.
            self.waits.clear();
            self.sources.clear();
        }
        for (source, slots) in wanted {
            if !self.sources.insert(source.clone()) {
                continue;
            }
            self.waits.push(Box::pin(async move {
                match slots.acquire_owned().await {
                    Ok(permit) => (source, permit),
                    // They are never closed.
                    Err(_closed) => std::future::pending().await,
                }
            }));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// The next slot that came free, and whose. Never, where none is waited for.
    pub(super) async fn next(&mut self) -> (String, OwnedSemaphorePermit) {
        match self.waits.next().await {
            Some((source, permit)) => {
                self.sources.remove(&source);
                (source, permit)
            }
            None => std::future::pending().await,
        }
    }
}
