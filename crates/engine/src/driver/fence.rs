//! The right of a driver to do what it does, looked at directly before each effect.
//!
//! A process that stood still, or that its database did not hear, may have been taken for dead: then another drives, and what
//! this one stored last (that a call is started) is no reason any more to do it. Its appends are refused by their place.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::Store;

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
        let holds = self.term.is_some() && self.store.lease() == self.term && !self.lost.is_cancelled();
        if !holds {
            self.lost.cancel();
        }
        holds
    }

    /// Ends where somebody found it lost.
    pub(super) async fn is_lost(&self) {
        self.lost.cancelled().await;
    }
}
