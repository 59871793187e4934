//! Which tools a turn was offered. Pure.

use std::sync::Arc;

use turnwright_core::{Control, Entry, Journal, Seq, ToolDefinition, TurnId};

/// What was offered in a turn once this entry was stored; of the newest turn, what is offered there by now.
pub(crate) fn offered_in(journal: &Journal, turn: TurnId, at: Seq) -> Arc<[Arc<ToolDefinition>]> {
    if journal.turn().is_some_and(|newest| newest.id() == turn) {
        return journal.offered().clone();
    }
    let before = journal.entries().partition_point(|stored| stored.seq <= at);
    let mut found: Vec<&[Arc<ToolDefinition>]> = Vec::new();
    for stored in journal.entries().iter().take(before).rev() {
        if let Entry::Control(Control::Offered { definitions } | Control::Found { definitions }) = &*stored.entry {
            found.push(definitions);
        }
        if let Entry::Control(Control::Offered { .. }) = &*stored.entry {
            break;
        }
    }
    found.into_iter().rev().flatten().cloned().collect()
}
