//! Calls that begin before they are stored: those of tools that their operator declared read-only, which change nothing.
//!
//! What is done at once is stored with the message that asked for it: one append instead of two (docs/journal.md, "One
//! append"). What began for a plan that is not stored is stopped and what it gave is thrown away. What began while its message
//! was being written ([`super::ahead`]) goes on here.

use std::collections::HashMap;
use std::task::Poll;

use futures_util::poll;
use tokio_util::sync::CancellationToken;
use turnwright_core::{CallId, Entry, Plan, Seq};

use super::{Driver, Halt, Job, Keyed};
use crate::ruler::Ready;

/// Calls of a plan that is not stored yet. Dropping them stops them.
#[derive(Default)]
pub(super) struct Early {
    begun: Vec<CallId>,
    pending: Vec<(CallId, CancellationToken, Job)>,
}

impl Drop for Early {
    fn drop(&mut self) {
        for (_, cancel, _) in &self.pending {
            cancel.cancel();
        }
    }
}

impl Early {
    pub(super) fn has_begun(&self, id: CallId) -> bool {
        self.begun.contains(&id)
    }
}

impl Driver {
    /// Begins the read-only calls of the plan for `at`, and plans on with the results of those that are done at once. Says
    /// whether the plan still holds: somebody may have appended meanwhile.
    pub(super) async fn run_early(
        &mut self,
        at: Seq,
        plan: &mut Plan,
        ready: &mut HashMap<CallId, Ready>,
        early: &mut Early,
    ) -> Result<bool, Halt> {
        loop {
            let done = self.begin_early(plan, ready, early).await;
            if done.is_empty() {
                return Ok(true);
            }
            let entries: Vec<Entry> = std::mem::take(&mut plan.entries).into_iter().chain(done).collect();
            let Some((_, next, more)) = self.plan(&entries, Some(at))? else { return Ok(false) };
            let run = std::mem::replace(plan, next).run;
            plan.run.splice(..0, run);
            ready.extend(more);
        }
    }

    /// The results of those calls that are done, in call order.
    async fn begin_early(&mut self, plan: &Plan, ready: &mut HashMap<CallId, Ready>, early: &mut Early) -> Vec<Entry> {
        let mut done = Vec::new();
        for id in &plan.run {
            if let Some(taken) = self.take_ahead(*id) {
                early.begun.push(*id);
                let rest = match taken.rest {
                    Ok(rest) => Poll::Ready(rest),
                    Err(mut job) => match poll!(job.as_mut()) {
                        Poll::Ready(rest) => Poll::Ready(rest),
                        Poll::Pending => {
                            early.pending.push((*id, taken.cancel, job));
                            Poll::Pending
                        }
                    },
                };
                if let Poll::Ready(rest) = rest {
                    self.slots.writing.retain(|call| call != *id);
                    done.extend(self.entries_of(rest));
                }
                continue;
            }
            let is_read_only = ready.get(id).is_some_and(|call| call.tool.definition.declared.read_only);
            // Its answers are not stored yet, so that it cannot be made again with them.
            let is_asking = plan.entries.iter().any(|entry| matches!(entry, Entry::Elicited(elicited) if elicited.call == *id));
            let Some(call) = (is_read_only && !is_asking).then(|| ready.remove(id)).flatten() else { continue };
            early.begun.push(*id);
            let cancel = CancellationToken::new();
            let mut job = self.job(*id, self.keyed_once_stored(*id, plan), call, cancel.clone());
            match poll!(job.as_mut()) {
                Poll::Ready(rest) => {
                    self.slots.writing.retain(|call| call != *id);
                    done.extend(self.entries_of(rest));
                }
                Poll::Pending => early.pending.push((*id, cancel, job)),
            }
        }
        done
    }

    /// Which call it is, once the plan is stored.
    fn keyed_once_stored(&self, id: CallId, plan: &Plan) -> Keyed {
        let is_decided = plan.entries.iter().any(|entry| matches!(entry, Entry::Decision(decision) if decision.call == id));
        self.keyed(id, u32::from(is_decided))
    }

    /// The plan is stored: what it began goes on.
    pub(super) fn keep_early(&mut self, mut early: Early) {
        for (id, cancel, job) in std::mem::take(&mut early.pending) {
            self.running.insert(id, cancel);
            self.calls.push(job);
        }
    }
}
