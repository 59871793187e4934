//! What was decided about calls, by the names of the questions that clients answer. Pure.

use turnwright_core::{ApprovalId, Decision, Entry, Journal, QuestionReason};

/// Whether a call about which a person was asked this may run, where that is decided.
pub(super) fn decided_before(journal: &Journal, asked: ApprovalId) -> Option<bool> {
    let (mut decided, mut was_asked) = (0_u32, false);
    let call = asked.call;
    journal.entries().iter().skip_while(|stored| stored.seq <= call.message).find_map(|stored| match &*stored.entry {
        Entry::Question(question) if question.call == call && question.reason != QuestionReason::ClientTool => {
            was_asked = decided.saturating_add(1) == asked.number;
            None
        }
        Entry::Decision(decision) if decision.call == call => {
            decided = decided.saturating_add(1);
            was_asked.then(|| decision.verdict.lets_run())
        }
        Entry::Result(result) if was_asked && result.call == call => Some(false),
        _ => None,
    })
}

/// What answered a question about a call.
pub(super) fn decision(journal: &Journal, asked: ApprovalId) -> Option<&Decision> {
    let decisions = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Decision(decision) if decision.call == asked.call => Some(decision),
        _ => None,
    });
    decisions.zip(1_u32..).find(|(_, number)| *number == asked.number).map(|(decision, _)| decision)
}
