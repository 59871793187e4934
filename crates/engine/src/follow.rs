//! What other processes store in conversations that are watched here.
//!
//! A driver looks for itself, see [`crate::driver`]. For all others there is one task for each engine, while anybody
//! watches: a page that is open on a conversation which another process drives, or which nobody drives yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::StoreError;
use crate::inner::Inner;
use crate::live::Followed;

/// How often it is looked whether anybody watches at all.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The task, where it runs.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    is_running: Mutex<bool>,
    /// Wakes it: somebody began to watch a conversation that is not driven here.
    joined: Notify,
}

impl Inner {
    /// Sees to it that those who watch are told what other processes store. Called after a watcher joined; `is_driven` says
    /// whether its conversation is driven here, where nothing can have been missed.
    pub(crate) fn follow(self: &Arc<Self>, is_driven: bool) {
        if !is_driven {
            self.follower.joined.notify_one();
        }
        let mut is_running = self.follower.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *is_running, true) {
            self.tasks.spawn(run(self.clone()));
        }
    }
}

async fn run(inner: Arc<Inner>) {
    let mut foreign = inner.store.foreign_writes();
    loop {
        tokio::select! {
            () = inner.shutdown.cancelled() => return,
            () = inner.follower.joined.notified() => look(&inner).await,
            changed = foreign.changed() => match changed {
                Ok(()) => look(&inner).await,
                Err(_closed) => return,
            },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        // Whoever joins does so before it asks whether this runs, so none is left without.
        let mut is_running = inner.follower.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.registry.watched().is_empty() {
            *is_running = false;
            return;
        }
    }
}

async fn look(inner: &Arc<Inner>) {
    for live in inner.registry.watched() {
        let is_told = {
            let state = live.lock();
            // The node that drives tells of entries in their place among the rest.
            state.is_driven || state.followed == Followed::InStep
        };
        if is_told {
            continue;
        }
        match inner.catch_up(&live).await {
            Ok(()) => inner.mirror(&live),
            Err(StoreError::Gone { .. }) => {}
            Err(error) => {
                live.context().in_scope(|| tracing::warn!(%error, "cannot see what other processes stored"));
            }
        }
    }
}
