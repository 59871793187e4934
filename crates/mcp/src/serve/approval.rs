//! The question whether a call may run, as a form that a client shows to its person.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Value, json};

use super::backing::{Leave, Question};

/// The form's only field.
const FIELD: &str = "decision";

/// The form. It has no default: whoever fills in defaults without looking allows nothing (law 6).
pub(super) fn form(question: &Question) -> Option<ElicitRequestParams> {
    let (yes, no) = words(question.leave);
    let described = match question.leave {
        Leave::ToRun => "allow: it runs once; deny: it does not run",
        Leave::ToRunAgain => "run_again: it runs, perhaps for the second time; skip: it does not run again",
    };
    let form = json!({
        "mode": "form",
        "message": question.text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                FIELD: {
                    "type": "string",
                    "title": "Decision",
                    "description": described,
                    "enum": [yes, no],
                },
            },
            "required": [FIELD],
        },
    });
    serde_json::from_value(form).ok()
}

/// Whether the person gives this leave. Leave to run is none to run again: whoever says it has not read the question.
pub(super) fn allows(answer: &ElicitResult, leave: Leave) -> bool {
    let decision = answer.content.as_ref().and_then(|content| content.get(FIELD));
    answer.action == ElicitationAction::Accept && decision == Some(&Value::from(words(leave).0))
}

/// Yes and no.
fn words(leave: Leave) -> (&'static str, &'static str) {
    match leave {
        Leave::ToRun => ("allow", "deny"),
        Leave::ToRunAgain => ("run_again", "skip"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(answer: Value) -> bool {
        serde_json::from_value(answer).is_ok_and(|answer| allows(&answer, Leave::ToRun))
    }

    #[test]
    fn only_a_person_who_says_allow_allows() {
        let table = [
            (json!({"action": "accept", "content": {"decision": "allow"}}), true),
            (json!({"action": "accept", "content": {"decision": "deny"}}), false),
            (json!({"action": "accept", "content": {"decision": true}}), false),
            (json!({"action": "accept", "content": {}}), false),
            (json!({"action": "accept"}), false),
            (json!({"action": "decline", "content": {"decision": "allow"}}), false),
            (json!({"action": "cancel"}), false),
            (json!({"action": "maybe"}), false),
            (json!("allow"), false),
        ];
        for (given, expected) in table {
            assert_eq!(allowed(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn leave_to_run_is_no_leave_to_run_again() {
        let says = |decision: &str| {
            let said = json!({"action": "accept", "content": {"decision": decision}});
            allows(&serde_json::from_value(said).unwrap(), Leave::ToRunAgain)
        };
        assert_eq!(["run_again", "skip", "allow"].map(says), [true, false, false]);
    }
}
