//! Calls that go on by themselves at their sources, and whose turn does not wait for them any more.

use std::time::Duration;

use turnwright_core::{CallId, Entry, Plan};

use super::Driver;

/// How long is waited until a source has heard that a task is not needed; after that it is told beside the turn.
const HEARD: Duration = Duration::from_secs(5);

impl Driver {
    /// Tells their sources of the tasks that a plan gives up and that nobody here asks for: the driver that began them is gone.
    /// What runs here is cancelled like any call.
    pub(super) async fn call_off(&mut self, first: &[Entry], plan: &Plan) {
        let given_up = |entry: &Entry| match entry {
            Entry::Result(result) if !self.running.contains_key(&result.call) && !first.contains(entry) => Some(result.call),
            _ => None,
        };
        let calls: Vec<CallId> =
            plan.entries.iter().filter_map(given_up).filter(|call| !self.called_off.contains(call)).collect();
        if calls.is_empty() {
            return;
        }
        let catalog = self.inner.catalogs.of(&self.live.owner);
        let told: Vec<_> = {
            let state = self.live.lock();
            let Some(turn) = state.journal.turn() else { return };
            let tasks = calls.iter().filter_map(|id| Some((turn.call(*id)?.name.to_owned(), turn.task(*id)?.clone())));
            let known = tasks.filter_map(|(name, task)| {
                let tool = catalog.get_changed_too(&name)?;
                Some((tool.source.clone(), tool.definition.tool.clone(), task))
            });
            known
                .map(|(source, tool, task)| {
                    let shutdown = self.inner.shutdown.clone();
                    self.inner.tasks.spawn(async move {
                        tokio::select! {
                            () = source.call_off(&tool, &task) => {}
                            () = shutdown.cancelled() => {}
                        }
                    })
                })
                .collect()
        };
        self.called_off.extend(calls);
        self.live.lock().watchers.release();
        // Whether they heard it changes nothing for the turn.
        let _ = tokio::time::timeout(HEARD, futures_util::future::join_all(told)).await;
    }
}
