//! What was decided about calls, by the names of the questions that clients answer. Pure.

use turnwright_core::{ApprovalId, Decision, Entry, Journal, QuestionReason};

use super::begin::Ask;
use super::ids;
use crate::error::ApiError;

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

/// Refuses decisions about calls of two conversations, and of another one than the request goes on with: a name that is taken for one of
/// the wrong conversation could let another call run.
pub(super) fn decides_in_one(ask: &Ask) -> Result<(), ApiError> {
    let previous = ask.previous.as_deref().and_then(|previous| ids::read_answer("resp_", previous));
    let mut conversation = previous.map(|(conversation, _)| conversation).or_else(|| ask.conversation.clone());
    for (place, request, ..) in ask.history.approvals() {
        let Some(held) = ids::read_request(request).and_then(|(_, held)| held) else { continue };
        if let Some(other) = conversation.as_ref().filter(|other| **other != held) {
            let what = format!("`{request}` waits in another conversation than `{other}`, which the request is about");
            return Err(ApiError::invalid(what).about(format!("input[{place}].approval_request_id")));
        }
        conversation = Some(held);
    }
    Ok(())
}
