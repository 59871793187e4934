//! The right of a driver to do what it does, looked at directly before each effect.
//!
//! A process that stood still, or that its database did not hear, may have been taken for dead: then another drives, and what
//! this one stored last (that a call is started) is no reason any more to do it. Its appends are refused by their place. What runs
//! when the right is lost is stopped, by whoever runs it: nobody else may make the call again while it goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Store;

#[cfg(all(turnwright_without_fence, not(debug_assertions)))]
compile_error!("a build without the fence is for the failure suite alone");

/// How long what runs may take to end once its driver has lost the right to it; and how long the driver that comes after one
/// whose process may still run waits before it is asked what became of calls.
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// The lease under which a driver claimed.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    store: Arc<dyn Store>,
    term: Option<u64>,
    lost: CancellationToken,
}

impl Fence {
    /// The one that is held now.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { term: store.lease(), store, lost: CancellationToken::new() }
    }

    /// Whether it is held without a break since. Where it is not, it never is again, and the driver hears of it.
    pub(super) fn holds(&self) -> bool {
        if cfg!(turnwright_without_fence) {
            return true;
        }
        let holds = self.term.is_some() && self.store.lease() == self.term && !self.lost.is_cancelled();
        if !holds {
            self.lost.cancel();
        }
        holds
    }

    /// Whether somebody found it lost.
    pub(super) fn has_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Ends once it is lost, whoever finds that first.
    pub(super) async fn lost(self) {
        let (Some(term), false) = (self.term, cfg!(turnwright_without_fence)) else {
            return self.lost.cancelled().await;
        };
        tokio::select! {
            () = self.lost.cancelled() => {}
            () = self.store.lease_over(term) => self.lost.cancel(),
        }
    }
}
