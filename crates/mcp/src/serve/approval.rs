//! The question whether a call may run, as a form that a client shows to its person.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Value, json};

/// The question's key among the input that a call requires (2026-07-28).
pub(super) const KEY: &str = "approval";
/// The form's only field.
const FIELD: &str = "decision";

/// The form. It has no default: whoever fills in defaults without looking allows nothing (law 6).
pub(super) fn form(text: &str) -> Option<ElicitRequestParams> {
    let form = json!({
        "mode": "form",
        "message": text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                FIELD: {
                    "type": "string",
                    "title": "Decision",
                    "description": "allow: it runs once; deny: it does not run",
                    "enum": ["allow", "deny"],
                },
            },
            "required": [FIELD],
        },
    });
    serde_json::from_value(form).ok()
}

/// Whether the person allows the call.
pub(super) fn allows(answer: &ElicitResult) -> bool {
    let decision = answer.content.as_ref().and_then(|content| content.get(FIELD));
    answer.action == ElicitationAction::Accept && decision == Some(&Value::from("allow"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(answer: Value) -> bool {
        serde_json::from_value(answer).is_ok_and(|answer| allows(&answer))
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
}
