//! How a stream ends where what was asked is answered and the turn waits on.

use turnwright_core::{ElicitationId, Verdict};

use super::*;

fn asks(message: u64) -> Event {
    Event::ElicitationRequested {
        question_id: ElicitationId { call: call(message), index: 0 },
        call_id: call(message),
        server: "weather".to_owned(),
        mode: "form",
        message: "Where?".to_owned(),
        requested_schema: None,
        url: None,
        sampling: None,
        holds_connection: false,
        expires_at_ms: None,
    }
}

/// A call of message 3 that was allowed, by a rule or a person, and asks something; its turn waits.
fn allowed_and_asks(rule: Option<&str>) -> Vec<Event> {
    let before = rule.is_none().then(|| vec![entry(4, Entry::Control(Control::Suspended)), asked(3), suspended()]);
    let mut events = vec![user(1, "write"), started(), offered(2), step(3), assistant(3), step_finished(3, "tool_calls")];
    events.push(input_ready(3, "{}"));
    events.extend(before.into_iter().flatten());
    events.extend([decided(3, Verdict::Allow, rule), asks(3), entry(8, Entry::Control(Control::Suspended)), suspended()]);
    events
}

#[test]
fn what_was_allowed_and_waits_for_something_else_is_no_answer_that_the_client_would_send_again() {
    let ended = [
        r#"{"type":"start-step"}"#,
        r#"{"type":"message-metadata","messageMetadata":{}}"#,
        r#"{"type":"finish-step"}"#,
        r#"{"type":"finish","finishReason":"tool-calls"}"#,
        "[DONE]",
    ];
    for version in [UiVersion::V6, UiVersion::V7] {
        for begin in [Begin::Turn, Begin::Continue { after: seq(4), joined: None }] {
            let told = told(version, begin, [allowed_and_asks(None)]);
            assert_eq!(told[told.len() - 5..], ended, "{version:?} {begin:?}");
        }
        let told = told(version, Begin::Turn, [allowed_and_asks(Some("rule 1"))]);
        assert_eq!(told[told.len() - 5..], ended, "{version:?}");
    }
    // Who is asked about a call answers in its step.
    let mut asked_again = allowed_and_asks(None);
    asked_again.pop();
    asked_again.extend([asked(3), suspended()]);
    let told = told(UiVersion::V7, Begin::Turn, [asked_again]);
    assert!(told[told.len() - 3..].iter().all(|chunk| !chunk.contains("start-step")), "{told:?}");
}
