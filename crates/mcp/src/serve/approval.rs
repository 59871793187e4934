//! The question whether a call may run, as a form that a client shows to its person.

use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult, InputResponses,
};
use serde_json::{Value, json};

/// The question's key among the input that a call requires (2026-07-28).
const KEY: &str = "approval";
/// The form's only field.
const FIELD: &str = "decision";

/// Whether the client can show a form. One that names no kind of elicitation means forms.
pub(super) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

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

/// The same as input that the call requires, with the handle by which the call is found again.
pub(super) fn required(text: &str, handle: &str) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(text)?));
    Some(InputRequiredResult::new(Some(InputRequests::from([(KEY.to_owned(), request)])), Some(handle.to_owned())))
}

/// Whether the person allows the call.
pub(super) fn allows(answer: &ElicitResult) -> bool {
    let decision = answer.content.as_ref().and_then(|content| content.get(FIELD));
    answer.action == ElicitationAction::Accept && decision == Some(&Value::from("allow"))
}

/// What the person answered to the question among a call's input, where it was answered.
pub(super) fn answered(responses: Option<&InputResponses>) -> Option<bool> {
    let answer = responses?.get(KEY)?;
    Some(serde_json::from_value(answer.clone()).is_ok_and(|answer| allows(&answer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(answer: Value) -> Option<bool> {
        answered(Some(&InputResponses::from([(KEY.to_owned(), answer)])))
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
            assert_eq!(answer(given.clone()), Some(expected), "{given}");
        }
        assert_eq!(answered(None), None);
        assert_eq!(answered(Some(&InputResponses::new())), None);
    }

    #[test]
    fn a_client_that_can_show_forms_is_asked() {
        let can = |elicitation: Value| {
            let capabilities = serde_json::from_value(json!({"elicitation": elicitation})).unwrap();
            can_ask(Some(&capabilities))
        };
        assert_eq!([can(json!({})), can(json!({"form": {}})), can(json!({"form": {}, "url": {}}))], [true; 3]);
        assert!(!can(json!({"url": {}})));
        assert!(!can_ask(Some(&ClientCapabilities::default())));
        assert!(!can_ask(None));
    }
}
