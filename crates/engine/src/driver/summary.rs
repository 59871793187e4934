//! The summary that a turn waits for, since the conversation is too long for its model.

use std::sync::Arc;

use turnwright_core::{Control, Entry, Journal, Reserved, Seq, Step};

use super::model::longest_answer;
use crate::inner::Inner;
use crate::live::Live;
use crate::summary::{Making, is_stale};

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

    /// The last entry that it can tell of.
    pub(super) fn seen(&self) -> Option<Seq> {
        self.0.seen()
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

/// What of these entries is true of the journal as it is now: no summary that may tell of what people have hidden since, or of what
/// another stands for. Then the turn wants one made anew.
pub(super) fn still_true(entries: &[Entry], summary_saw: Option<Seq>, journal: &Journal) -> Vec<Entry> {
    let is_summary = |entry: &Entry| matches!(entry, Entry::Control(Control::Compacted(_)));
    let is_true = |entry: &&Entry| !is_summary(entry) || !is_stale(summary_saw, journal);
    entries.iter().filter(is_true).cloned().collect()
}
