//! The calls about which a person is asked.

use turnwright_core::policy::{Action, Policy, RuleText};
use turnwright_core::{CallView, ConversationId, Journal, QuestionReason};

use super::WaitingCall;

pub(super) fn waiting_in(id: &ConversationId, journal: &Journal, policy: &Policy) -> Vec<WaitingCall> {
    let Some(turn) = journal.open_turn() else { return Vec::new() };
    turn.waiting()
        .map(|(call, question)| WaitingCall {
            conversation: id.clone(),
            call: call.id,
            approval: call.approval(),
            name: call.name.to_owned(),
            arguments: call.arguments.to_owned(),
            reason: question.reason,
            rule: question.rule.clone(),
            always: always(policy, &call, question.reason),
        })
        .collect()
}

/// The rule that "always" would store for a call that waits, where it waits to be allowed.
pub fn always(policy: &Policy, call: &CallView<'_>, reason: QuestionReason) -> Option<RuleText> {
    match reason {
        QuestionReason::Approval | QuestionReason::DefinitionChanged => {
            let arguments = serde_json::from_str(call.arguments).unwrap_or_default();
            Some(policy.proposed(call.name, &arguments, Action::Allow))
        }
        QuestionReason::UnknownOutcome | QuestionReason::ClientTool | QuestionReason::Loop => None,
    }
}
