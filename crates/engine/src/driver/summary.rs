//! The summary that a turn waits for, since the conversation is too long for its model.

use std::sync::Arc;

use turnwright_core::{Control, Entry, Journal, Reserved, Step};

use super::model::longest_answer;
use crate::inner::Inner;
use crate::live::Live;
use crate::summary::Making;

/// A summary that is being made.
pub(super) struct Summary(Making);

impl Summary {
    /// Asks for it. `None` where the turn does not want it any more: somebody appended since it was planned, of whom the
    /// driver is about to hear.
    pub(super) fn start(inner: &Arc<Inner>, live: &Arc<Live>, reserved: Option<&Reserved>) -> Option<Self> {
        let (journal, model) = {
            let state = live.lock();
            let turn = state.journal.turn().filter(|turn| turn.step() == Step::Compact)?;
            (state.journal.clone(), turn.model().clone())
        };
        Making::begin(inner, live, &journal, &model, reserved.map(longest_answer)).map(Self)
    }

    /// Whether the turn still waits for it: it does not where people have stopped it or compacted the conversation, and another
    /// is to be made where this one may tell of what they have hidden.
    pub(super) fn is_wanted(&self, journal: &Journal) -> bool {
        journal.turn().is_some_and(|turn| turn.step() == Step::Compact) && !self.0.is_stale(journal)
    }

    /// The entry, once it is made.
    pub(super) async fn done(&mut self) -> Entry {
        Entry::Control(Control::Compacted(self.0.made().await))
    }
}

/// The summary, where one is made.
pub(super) async fn next_summary(summary: &mut Option<Summary>) -> Entry {
    match summary {
        Some(summary) => summary.done().await,
        None => std::future::pending().await,
    }
}
