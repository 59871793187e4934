//! Coming back in the middle of a message.

use turnwright_core::{ApprovalId, Claim, DriverId, ElicitationId};

use super::*;

pub(super) fn first(message: u64) -> ApprovalId {
    ApprovalId { call: call(message), number: 1 }
}

/// Chunks with their ids, as they are read one by one.
fn read(stream: &str) -> Vec<(u64, String)> {
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty());
    let field = |frame: &str, name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    frames.map(|frame| (field(frame, "id: ").parse().unwrap(), field(frame, "data: "))).collect()
}

fn ids(stream: &str) -> Vec<u64> {
    read(stream).into_iter().map(|(id, _)| id).collect()
}

fn moved(number: u64) -> Event {
    entry(number, Entry::Control(Control::Resumed { count: 1 }))
}

fn ended(number: u64) -> Event {
    let status = turnwright_core::TurnStatus::Completed;
    entry(number, Entry::Control(Control::Ended { turn: TurnId(seq(1)), status }))
}

/// A turn of four steps: one call succeeds, one fails, a person joins in, and a model call is repeated.
fn long_turn() -> Vec<Vec<Event>> {
    let mut turn = golden_turn();
    turn.pop();
    turn[7].insert(0, moved(4));
    turn.extend([
        vec![input_started(7), input_delta(7, 0, "{}")],
        vec![assistant(7), step_finished(7, "tool_calls"), input_ready(7, "{}")],
        vec![moved(8), decided(7, Verdict::Allow, None), Event::ToolStarted { call_id: call(7) }],
        vec![user(9, "and tomorrow?")],
        vec![moved(10), finished_tool(7, "execution_failed")],
        vec![step(11), text(0, 0, "Sun.")],
        vec![user(11, "and then?")],
        vec![answered_to(10, 12, Completion::Complete), step_finished(12, "stop")],
        vec![step(13), text(0, 0, "No ")],
        vec![Event::StepReset, step(13), text(0, 0, "Rain.")],
        vec![answered_to(12, 13, Completion::Complete), step_finished(13, "stop")],
        vec![ended(14), usage(), finished("completed")],
    ]);
    turn
}

/// What a watcher who comes now is told first: all that is stored, then the message in flight.
pub(super) fn replayed(frames: &[Vec<Event>]) -> Vec<Event> {
    let (mut stored, mut in_flight): (Vec<Event>, Vec<Event>) = (Vec::new(), Vec::new());
    for event in frames.iter().flatten() {
        match event {
            Event::StepStarted { .. } => in_flight = vec![event.clone()],
            Event::StepReset => in_flight.clear(),
            Event::Entry { entry, .. } if matches!(**entry, Entry::Assistant(_)) => {
                stored.append(&mut in_flight);
                stored.push(event.clone());
            }
            Event::TextDelta { .. }
            | Event::ReasoningDelta { .. }
            | Event::ToolInputStarted { .. }
            | Event::ToolInputDelta { .. } => in_flight.push(event.clone()),
            _ => stored.push(event.clone()),
        }
    }
    stored.extend(in_flight);
    stored
}

#[test]
fn the_id_of_a_chunk_says_which_step_is_open() {
    let stream = fold_all(
        &mut fold_of(UiVersion::V7, Begin::Turn),
        [
            vec![user(1, "hi"), started(), offered(2)],
            vec![step(3), text(0, 0, "a\nb")],
            vec![assistant(3), step_finished(3, "tool_calls"), input_ready(3, "{}")],
            vec![moved(4), finished_tool(3, "success")],
            vec![step(5), text(0, 0, "c")],
            vec![assistant(5), step_finished(5, "stop"), ended(6), finished("completed")],
        ],
    );
    let kind =
        |data: String| serde_json::from_str(&data).map_or(data, |chunk: Value| chunk["type"].as_str().unwrap().to_owned());
    let told: Vec<(u64, String)> = read(&stream).into_iter().map(|(id, data)| (id, kind(data))).collect();
    let expected = [
        (0, "start"),
        (2, "start-step"),
        (2, "text-start"),
        (2, "text-delta"),
        (2, "text-end"),
        (2, "tool-input-available"),
        (2, "tool-output-available"),
        (2, "finish-step"),
        (4, "start-step"),
        (4, "text-start"),
        (4, "text-delta"),
        (4, "text-end"),
        (4, "finish-step"),
        (4, "finish"),
        (6, "[DONE]"),
    ];
    assert_eq!(told, expected.map(|(id, kind)| (id, kind.to_owned())));
    assert_eq!(stream.matches("\n\n").count(), expected.len());
}

#[test]
fn wherever_a_stream_breaks_and_whenever_it_is_come_back_to_the_message_is_the_same() {
    let turn = long_turn();
    let expected = assembled(&told(UiVersion::V7, Begin::Turn, turn.clone()));
    let count = |kind: &str| expected.iter().filter(|part| part["type"] == kind).count();
    assert_eq!((count("step-start"), count("dynamic-tool"), count("steering-message")), (4, 2, 2));
    let mut cases = 0;
    for cut in 1..=turn.len() {
        let seen = read(&fold_all(&mut fold_of(UiVersion::V7, Begin::Turn), turn[..cut].to_vec()));
        for length in 1..=seen.len() {
            let (last, data) = &seen[length - 1];
            if *last == 0 || data == "[DONE]" {
                continue;
            }
            for back in cut..=turn.len() {
                let frames = std::iter::once(replayed(&turn[..back])).chain(turn[back..].iter().cloned());
                let rest = told(UiVersion::V7, Begin::After(seq(*last)), frames);
                assert_eq!(rest[0], r#"{"type":"reset-step"}"#, "after {last}: {rest:?}");
                let all: Vec<String> = seen[..length].iter().map(|(_, data)| data.clone()).chain(rest).collect();
                assert_eq!(assembled(&all), expected, "cut after {length} chunks of {cut} frames, back at {back}: {all:#?}");
                assert_eq!(all.iter().filter(|chunk| *chunk == "[DONE]").count(), 1);
                cases += 1;
            }
        }
    }
    assert!(cases > 500, "{cases} cases");
}

#[test]
fn the_ids_of_a_stream_that_is_come_back_to_are_places_to_come_back_to() {
    let turn = long_turn();
    let expected = assembled(&told(UiVersion::V7, Begin::Turn, turn.clone()));
    let mut seen = read(&fold_all(&mut fold_of(UiVersion::V7, Begin::Turn), turn[..4].to_vec()));
    while seen.last().is_some_and(|(_, data)| data != "[DONE]") {
        let after = Begin::After(seq(seen.last().unwrap().0));
        let rest = read(&fold_all(&mut fold_of(UiVersion::V7, after), [replayed(&turn)]));
        let until = rest.iter().position(|(id, _)| *id > rest[0].0).unwrap();
        seen.extend_from_slice(&rest[..=until]);
    }
    let data: Vec<String> = seen.into_iter().map(|(_, data)| data).collect();
    assert_eq!(assembled(&data), expected);
}

#[test]
fn who_saw_a_question_is_told_what_came_of_it() {
    let asked = vec![
        user(1, "write"),
        started(),
        offered(2),
        step(3),
        text(0, 0, "I write."),
        assistant(3),
        step_finished(3, "tool_calls"),
        input_ready(3, "{}"),
        entry(4, Entry::Control(Control::Suspended)),
        Event::ToolApprovalRequested { call_id: call(3), approval_id: first(3), reason: "approval", rule: None },
        suspended(),
    ];
    let before = fold_all(&mut fold_of(UiVersion::V7, Begin::Turn), [asked.clone()]);
    assert_eq!(ids(&before).last(), Some(&4));
    let rest = vec![
        moved(5),
        decided(3, Verdict::Allow, None),
        finished_tool(3, "success"),
        step(8),
        text(0, 0, "done"),
        assistant(8),
        step_finished(8, "stop"),
        finished("completed"),
    ];
    let after = told(UiVersion::V7, Begin::After(seq(4)), [[asked, rest].concat()]);
    assert_eq!(after[0], r#"{"type":"tool-approval-response","approvalId":"appr_3_0","approved":true}"#);
    let all = assembled(&[chunks(&before), after].concat());
    let kinds: Vec<&str> = all.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["step-start", "text", "dynamic-tool", "step-start", "text"]);
}

#[test]
fn who_saw_a_failure_is_told_what_a_retry_gave_in_its_place() {
    let failure = ProviderFailure::new(ProviderFailureKind::CutOff, "cut off");
    let cut_off = Completion::CutOff(turnwright_core::CutOffCause::Provider(Box::new(failure)));
    let failed = vec![
        user(1, "hi"),
        started(),
        step(2),
        text(0, 0, "half"),
        answered(2, cut_off),
        step_finished(2, "error"),
        ended(3),
        finished("failed"),
    ];
    let before = chunks(&fold_all(&mut fold_of(UiVersion::V7, Begin::Turn), [failed.clone()]));
    let after = told(UiVersion::V7, Begin::After(seq(3)), [[failed, retried_whole()].concat()]);
    let expected = [json!({"type": "step-start"}), json!({"type": "text", "text": "whole"})];
    assert_eq!(assembled(&[before, after].concat()), expected);
}

#[test]
fn a_turn_before_the_last_is_told_to_its_end_and_no_further() {
    let next = Event::TurnStarted { turn_id: TurnId(seq(9)), model: ModelRef::new("p", "m") };
    let events = vec![
        user(1, "hi"),
        started(),
        step(2),
        text(0, 0, "hello"),
        assistant(2),
        step_finished(2, "stop"),
        ended(3),
        finished("completed"),
        user(9, "more"),
        next,
        step(10),
        text(0, 0, "other"),
    ];
    let stream = fold_all(&mut fold_of(UiVersion::V7, Begin::After(seq(1))), [events]);
    assert_eq!(ids(&stream), [1, 1, 1, 1, 1, 1, 3], "{stream}");
    assert!(!stream.contains("other") && !stream.contains("more"), "{stream}");
}

#[test]
fn what_is_asked_about_a_lost_call_has_another_name_than_what_a_rule_allowed() {
    let lost = |rule| Event::ToolApprovalRequested { call_id: call(2), approval_id: first(2), reason: "unknown_outcome", rule };
    let events =
        vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), decided(2, Verdict::Allow, Some("rule 2")), lost(None)];
    let told = told(UiVersion::V7, Begin::Turn, [events]);
    let asked =
        told.iter().filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok()?["approvalId"].as_str().map(str::to_owned));
    assert_eq!(asked.collect::<Vec<_>>(), ["appr_2_0", "appr_2_0", "appr_2_0-2"]);
}

#[test]
fn a_client_before_7_is_told_what_must_be_known_of_a_lost_call() {
    let lost = Event::ToolApprovalRequested { call_id: call(2), approval_id: first(2), reason: "unknown_outcome", rule: None };
    let events = vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), lost];
    let told = told(UiVersion::V6, Begin::Turn, [events]);
    let [.., notice, asked] = &told[..] else { panic!("{told:?}") };
    assert!(
        notice.contains("data-notice") && notice.contains("weather__get_forecast: it was interrupted and may have happened")
    );
    assert!(asked.contains("tool-approval-request") && !asked.contains("reason"), "{asked}");
}

#[test]
fn a_call_that_its_client_ran_is_no_question_any_more() {
    let asked = Event::ToolApprovalRequested { call_id: call(2), approval_id: first(2), reason: "client_tool", rule: None };
    let events = vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), asked, finished_tool(2, "success")];
    let told = told(UiVersion::V7, Begin::Turn, [events]);
    let [.., answered, output] = &told[..] else { panic!("{told:?}") };
    assert_eq!(answered, r#"{"type":"tool-approval-response","approvalId":"appr_2_0","approved":true}"#);
    assert!(output.contains("tool-output-available"), "{output}");
}

#[test]
fn what_was_asked_over_a_connection_is_closed_where_another_process_drives() {
    let asks = |index| Event::ElicitationRequested {
        question_id: ElicitationId { call: call(2), index },
        call_id: call(2),
        server: "weather".to_owned(),
        mode: "form",
        message: "Where?".to_owned(),
        requested_schema: None,
        url: None,
        sampling: None,
        holds_connection: true,
        expires_at_ms: None,
    };
    let claimed =
        entry(3, Entry::Control(Control::Claimed(Claim { driver: DriverId("next".to_owned()), epoch: 2, folder: None })));
    let events = vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), asks(0), claimed, asks(1)];
    let told = told(UiVersion::V7, Begin::Turn, [events]);
    let states = told.iter().filter_map(|chunk| serde_json::from_str::<Value>(chunk).ok()).filter_map(|chunk| {
        let state = chunk["data"]["state"].as_str()?.to_owned();
        Some((chunk["id"].as_str()?.to_owned(), state))
    });
    let expected = [("question_2_0_0", "open"), ("question_2_0_0", "expired"), ("question_2_0_1", "open")];
    assert_eq!(states.collect::<Vec<_>>(), expected.map(|(id, state)| (id.to_owned(), state.to_owned())));
}

#[test]
fn an_answer_that_a_retry_hides_is_not_shown_beside_the_new_one() {
    let withheld = vec![
        user(1, "hi"),
        started(),
        step(2),
        text(0, 0, "withheld"),
        assistant(2),
        step_finished(2, "content_filter"),
        finished("stopped"),
    ];
    for version in [UiVersion::V5, UiVersion::V6, UiVersion::V7] {
        let stream = told(version, Begin::Turn, [[withheld.clone(), retried_whole()].concat()]);
        assert_eq!(assembled(&stream), [json!({"type": "step-start"}), json!({"type": "text", "text": "whole"})]);
    }
}
