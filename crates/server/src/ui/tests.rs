use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{
    AssistantMessage, CallId, Completion, ContentBlock, Control, Declared, Entry, Finish, FinishReason, MessageId, ModelRef,
    Origin, ProviderFailure, ProviderFailureKind, Seq, ToolDefinition, TurnId, TurnSettings, Usage, UserMessage, Verdict,
};
use turnwright_engine::{Event, Frame, TurnError};

use super::{Begin, UiFold, UiVersion};
mod answered;
mod apart;
mod media;
mod resuming;
use resuming::first;

fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

fn entry(number: u64, entry: Entry) -> Event {
    Event::Entry { seq: seq(number), at_ms: 1_736_622_000_000, entry: Arc::new(entry) }
}

fn user(number: u64, text: &str) -> Event {
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    entry(number, Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings }))
}

fn assistant(number: u64) -> Event {
    answered(number, Completion::Complete)
}

fn answered(number: u64, completion: Completion) -> Event {
    answered_to(1, number, completion)
}

/// The answer to all up to the entry `saw`.
fn answered_to(saw: u64, number: u64, completion: Completion) -> Event {
    let origin = Origin { dialect: "d".to_owned(), provider: "p".to_owned(), model: "m".to_owned() };
    let finish = Finish { reason: FinishReason::Stop, raw: None };
    entry(
        number,
        Entry::Assistant(AssistantMessage {
            origin,
            saw: seq(saw),
            blocks: vec![],
            finish,
            completion,
            usage: Usage::default(),
        }),
    )
}

fn offered(number: u64) -> Event {
    let definition = ToolDefinition {
        name: "weather__get_forecast".to_owned(),
        source: "weather".to_owned(),
        tool: "get_forecast".to_owned(),
        title: Some("Get forecast".to_owned()),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        annotations: None,
        declared: Declared::default(),
    };
    entry(number, Entry::Control(Control::Offered { definitions: vec![Arc::new(definition)] }))
}

fn started() -> Event {
    Event::TurnStarted { turn_id: TurnId(seq(1)), model: ModelRef::new("p", "m") }
}

fn step(number: u64) -> Event {
    Event::StepStarted { message_id: MessageId(seq(number)) }
}

fn step_finished(number: u64, finish_reason: &'static str) -> Event {
    Event::StepFinished { message_id: MessageId(seq(number)), finish_reason, usage: Usage::default() }
}

fn text(block: u32, offset: u64, text: &str) -> Event {
    Event::TextDelta { block, offset, text: text.to_owned() }
}

fn reasoning(block: u32, text: &str) -> Event {
    Event::ReasoningDelta { block, offset: 0, text: text.to_owned() }
}

fn call(message: u64) -> CallId {
    CallId { message: seq(message), index: 0 }
}

fn input_started(message: u64) -> Event {
    Event::ToolInputStarted { call_id: call(message), block: 2, name: "weather__get_forecast".to_owned() }
}

fn input_delta(message: u64, offset: u64, text: &str) -> Event {
    Event::ToolInputDelta { call_id: call(message), block: 2, offset, text: text.to_owned() }
}

fn input_ready(message: u64, arguments: &str) -> Event {
    let name = "weather__get_forecast".to_owned();
    Event::ToolInputReady { call_id: call(message), name, arguments: arguments.to_owned() }
}

fn finished_tool(message: u64, outcome: &'static str) -> Event {
    Event::ToolFinished {
        call_id: call(message),
        outcome,
        is_error: outcome != "success",
        content: vec![ContentBlock::text("15 C")],
        structured_content: Some(json!({"tempC": 15})),
        duration_ms: Some(312),
    }
}

fn decided(message: u64, decision: Verdict, rule: Option<&str>) -> Event {
    Event::ToolApprovalDecided {
        call_id: call(message),
        decision,
        rule: rule.map(str::to_owned),
        arguments: None,
        reason: None,
    }
}

fn asked(message: u64) -> Event {
    Event::ToolApprovalRequested { call_id: call(message), approval_id: first(message), reason: "approval", rule: None }
}

fn suspended() -> Event {
    Event::TurnSuspended { turn_id: TurnId(seq(1)), waiting: vec![] }
}

fn finished(status: &'static str) -> Event {
    let error = (status == "failed").then(|| TurnError::new("it broke", None));
    Event::TurnFinished { turn_id: TurnId(seq(1)), status, stop: None, stop_summary: None, error }
}

fn fold_of(version: UiVersion, begin: Begin) -> UiFold {
    UiFold::new("conv_1".parse().unwrap(), TurnId(seq(1)), version, begin, Arc::from([]))
}

fn frame(events: Vec<Event>, has_caught_up: bool) -> Frame {
    Frame { seq: Some(seq(1)), events: events.into(), has_caught_up }
}

fn fold_all(fold: &mut UiFold, frames: impl IntoIterator<Item = Vec<Event>>) -> String {
    let mut out = Vec::new();
    for events in frames {
        fold.fold(&frame(events, true), &mut out);
    }
    String::from_utf8(out).unwrap()
}

/// The chunks of a stream, without ids.
fn chunks(stream: &str) -> Vec<String> {
    let frames = stream.split("\n\n").filter(|frame| !frame.is_empty());
    frames.map(|frame| frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned()).collect()
}

fn told(version: UiVersion, begin: Begin, frames: impl IntoIterator<Item = Vec<Event>>) -> Vec<String> {
    chunks(&fold_all(&mut fold_of(version, begin), frames))
}

/// What the client makes of chunks (`ai` on npm, its UI message stream reader): its parts, in order.
fn assembled(chunks: &[String]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    for chunk in chunks.iter().filter(|chunk| *chunk != "[DONE]") {
        let chunk: Value = serde_json::from_str(chunk).unwrap();
        let of = |key: &str| chunk[key].as_str().unwrap_or_default().to_owned();
        let kind = of("type");
        match kind.as_str() {
            "start-step" => parts.push(json!({"type": "step-start"})),
            "text-start" | "reasoning-start" => {
                open.insert(of("id"), parts.len());
                parts.push(json!({"type": kind.trim_end_matches("-start"), "text": ""}));
            }
            "text-delta" | "reasoning-delta" => {
                let part = &mut parts[open[&of("id")]];
                part["text"] = Value::from(format!("{}{}", part["text"].as_str().unwrap(), of("delta")));
            }
            "text-end" | "reasoning-end" => drop(open.remove(&of("id")).expect("an open block")),
            "reset-step" => {
                let begin = parts.iter().rposition(|part| part["type"] == "step-start").map_or(0, |at| at + 1);
                parts.truncate(begin);
                open.retain(|_, at| *at < begin);
            }
            "tool-input-start" | "tool-input-available" | "tool-output-available" => {
                let at = *open.entry(of("toolCallId")).or_insert_with(|| {
                    assert_ne!(kind, "tool-output-available", "output for an unknown call");
                    parts.push(json!({"type": "dynamic-tool"}));
                    parts.len() - 1
                });
                for key in ["toolName", "input", "output"].into_iter().filter(|key| chunk.get(key).is_some()) {
                    parts[at][key] = chunk[key].clone();
                }
            }
            "steering-message" => parts.push(chunk),
            "tool-input-delta" => assert!(open.contains_key(&of("toolCallId")), "a delta without its start"),
            _ => {}
        }
    }
    parts
}

fn usage() -> Event {
    Event::Usage { usage: Usage { input_tokens: Some(1834), output_tokens: Some(212), ..Usage::default() } }
}

/// A turn with a call that needs approval, as it happens.
fn golden_turn() -> Vec<Vec<Event>> {
    vec![
        vec![user(1, "What is the weather?"), started(), offered(2)],
        vec![step(3), reasoning(0, "The user wants the weather.")],
        vec![text(1, 0, "Let me look "), text(1, 12, "that up. ")],
        vec![input_started(3), input_delta(3, 0, "{\"city\":"), input_delta(3, 8, "\"Paris\"}")],
        vec![assistant(3), step_finished(3, "tool_calls"), input_ready(3, "{\"city\":\"Paris\"}")],
        vec![Event::ToolStarted { call_id: call(3) }],
        vec![finished_tool(3, "success")],
        vec![step(7), text(0, 0, "It is "), text(0, 6, "**15 C**.")],
        vec![assistant(7), step_finished(7, "stop"), usage(), finished("completed")],
    ]
}

#[test]
fn a_turn_with_a_tool_is_the_golden_stream() {
    let expected = [
        r#"{"type":"start","messageId":"turn_1","messageMetadata":{"turnId":"turn_1","conversationId":"conv_1","model":"p/m","createdAt":"2025-01-11T19:00:00.000Z"}}"#,
        r#"{"type":"start-step"}"#,
        r#"{"type":"reasoning-start","id":"r1"}"#,
        r#"{"type":"reasoning-delta","id":"r1","delta":"The user wants the weather."}"#,
        r#"{"type":"reasoning-end","id":"r1"}"#,
        r#"{"type":"text-start","id":"t1"}"#,
        r#"{"type":"text-delta","id":"t1","delta":"Let me look "}"#,
        r#"{"type":"text-delta","id":"t1","delta":"that up. "}"#,
        r#"{"type":"text-end","id":"t1"}"#,
        r#"{"type":"tool-input-start","toolCallId":"call_3_0","toolName":"weather__get_forecast","dynamic":true,"title":"Get forecast","toolMetadata":{"server":"weather","tool":"get_forecast"}}"#,
        r#"{"type":"tool-input-delta","toolCallId":"call_3_0","inputTextDelta":"{\"city\":"}"#,
        r#"{"type":"tool-input-delta","toolCallId":"call_3_0","inputTextDelta":"\"Paris\"}"}"#,
        r#"{"type":"tool-input-available","toolCallId":"call_3_0","toolName":"weather__get_forecast","dynamic":true,"title":"Get forecast","input":{"city":"Paris"},"toolMetadata":{"server":"weather","tool":"get_forecast"}}"#,
        r#"{"type":"tool-output-available","toolCallId":"call_3_0","dynamic":true,"output":{"content":[{"type":"text","text":"15 C"}],"structuredContent":{"tempC":15}},"toolMetadata":{"server":"weather","tool":"get_forecast","durationMs":312}}"#,
        r#"{"type":"finish-step"}"#,
        r#"{"type":"start-step"}"#,
        r#"{"type":"text-start","id":"t2"}"#,
        r#"{"type":"text-delta","id":"t2","delta":"It is "}"#,
        r#"{"type":"text-delta","id":"t2","delta":"**15 C**."}"#,
        r#"{"type":"text-end","id":"t2"}"#,
        r#"{"type":"data-usage","id":"usage","data":{"inputTokens":1834,"outputTokens":212,"model":"p/m"}}"#,
        r#"{"type":"finish-step"}"#,
        r#"{"type":"finish","finishReason":"stop"}"#,
        "[DONE]",
    ];
    for version in [UiVersion::V5, UiVersion::V6, UiVersion::V7] {
        assert_eq!(told(version, Begin::Turn, golden_turn()), expected);
    }
}

#[test]
fn a_replay_with_merged_deltas_assembles_to_what_was_live() {
    let live = told(UiVersion::V7, Begin::Turn, golden_turn());
    let merged = vec![
        user(1, "What is the weather?"),
        started(),
        offered(2),
        step(3),
        reasoning(0, "The user wants the weather."),
        text(1, 0, "Let me look that up. "),
        input_started(3),
        input_delta(3, 0, "{\"city\":\"Paris\"}"),
        assistant(3),
        step_finished(3, "tool_calls"),
        input_ready(3, "{\"city\":\"Paris\"}"),
        finished_tool(3, "success"),
        step(7),
        text(0, 0, "It is **15 C**."),
        assistant(7),
        step_finished(7, "stop"),
        usage(),
        finished("completed"),
    ];
    let replayed = told(UiVersion::V7, Begin::Turn, [merged]);
    assert_eq!(assembled(&replayed), assembled(&live));
    assert_eq!(assembled(&live).len(), 6);
}

#[test]
fn a_question_ends_the_stream_and_its_answer_goes_on_in_the_same_message() {
    let asked = vec![
        user(1, "write"),
        started(),
        offered(2),
        step(3),
        input_started(3),
        input_delta(3, 0, "{}"),
        assistant(3),
        step_finished(3, "tool_calls"),
        input_ready(3, "{}"),
        entry(4, Entry::Control(Control::Suspended)),
        Event::ToolApprovalRequested {
            call_id: call(3),
            approval_id: first(3),
            reason: "approval",
            rule: Some("rule 1".to_owned()),
        },
        suspended(),
    ];
    let first = told(UiVersion::V7, Begin::Turn, [asked.clone()]);
    assert_eq!(
        first[first.len() - 4..],
        [
            r#"{"type":"tool-approval-request","approvalId":"appr_3_0","toolCallId":"call_3_0","reason":"asked by rule 1"}"#,
            r#"{"type":"finish-step"}"#,
            r#"{"type":"finish","finishReason":"tool-calls"}"#,
            "[DONE]",
        ]
    );
    let mut all = asked;
    all.extend([
        entry(5, Entry::Control(Control::Resumed { count: 1 })),
        decided(3, Verdict::Allow, None),
        finished_tool(3, "success"),
        step(8),
        text(0, 0, "done"),
        assistant(8),
        step_finished(8, "stop"),
        finished("completed"),
    ]);
    let second = told(UiVersion::V7, Begin::Continue { after: seq(4), joined: None }, [all.clone()]);
    let expected = [
        r#"{"type":"start","messageId":"turn_1","messageMetadata":{"turnId":"turn_1","conversationId":"conv_1","model":"p/m","createdAt":"2025-01-11T19:00:00.000Z"}}"#,
        r#"{"type":"tool-approval-response","approvalId":"appr_3_0","approved":true}"#,
        r#"{"type":"tool-output-available","toolCallId":"call_3_0","dynamic":true,"output":{"content":[{"type":"text","text":"15 C"}],"structuredContent":{"tempC":15}},"toolMetadata":{"server":"weather","tool":"get_forecast","durationMs":312}}"#,
        r#"{"type":"start-step"}"#,
        r#"{"type":"text-start","id":"t1"}"#,
        r#"{"type":"text-delta","id":"t1","delta":"done"}"#,
        r#"{"type":"text-end","id":"t1"}"#,
        r#"{"type":"finish-step"}"#,
        r#"{"type":"finish","finishReason":"stop"}"#,
        "[DONE]",
    ];
    assert_eq!(second, expected);
    let replayed = told(UiVersion::V7, Begin::Turn, [all]);
    assert_eq!(replayed.iter().filter(|chunk| chunk.contains(r#""type":"start","#)).count(), 1);
    assert_eq!(replayed.iter().filter(|chunk| *chunk == "[DONE]").count(), 1);
}

#[test]
fn a_message_that_joins_an_open_turn_is_answered_in_a_message_of_its_own() {
    let events = vec![
        user(1, "first"),
        started(),
        offered(2),
        step(3),
        text(0, 0, "begun "),
        input_started(3),
        assistant(3),
        step_finished(3, "tool_calls"),
        input_ready(3, "{}"),
        user(5, "second"),
        finished_tool(3, "success"),
        step(7),
        text(0, 0, "both"),
        answered_to(6, 7, Completion::Complete),
        step_finished(7, "stop"),
        finished("completed"),
    ];
    let joined = told(UiVersion::V7, Begin::Join(seq(5)), [events.clone()]);
    assert!(joined[0].starts_with(r#"{"type":"start","messageId":"turn_1_5","#), "{joined:?}");
    let parts = assembled(&joined);
    let expected = [
        json!({"type": "step-start"}),
        json!({"type": "dynamic-tool", "toolName": "weather__get_forecast", "input": {}, "output": {"content": [{"type": "text", "text": "15 C"}], "structuredContent": {"tempC": 15}}}),
        json!({"type": "step-start"}),
        json!({"type": "text", "text": "both"}),
    ];
    assert_eq!(parts, expected);
    let steered = told(UiVersion::V7, Begin::Turn, [events]);
    let steering = r#"{"type":"steering-message","id":"msg_5","parts":[{"type":"text","text":"second"}]}"#;
    assert!(steered.iter().any(|chunk| chunk == steering), "{steered:?}");
}

#[test]
fn what_is_said_while_the_model_answers_stands_after_that_answer_live_and_replayed() {
    let begun = [user(1, "first"), started(), offered(2), step(3), text(0, 0, "begun ")];
    let meanwhile = user(3, "second");
    let answered = [assistant(4), step_finished(4, "stop")];
    let next = [step(5), text(0, 0, "both"), assistant(5), step_finished(5, "stop"), finished("completed")];
    let rest = [text(0, 6, "ended")];
    let live = [&begun[..], std::slice::from_ref(&meanwhile), &rest, &answered, &next].concat();
    let live = told(UiVersion::V7, Begin::Turn, live.into_iter().map(|event| vec![event]));
    let replayed = [&begun[..3], &[meanwhile], &begun[3..], &rest, &answered, &next].concat();
    let replayed = told(UiVersion::V7, Begin::Turn, [replayed]);
    let steering = r#"{"type":"steering-message","id":"msg_3","parts":[{"type":"text","text":"second"}]}"#;
    for chunks in [&live, &replayed] {
        let at = chunks.iter().position(|chunk| chunk == steering).unwrap();
        assert_eq!(chunks[at - 1], r#"{"type":"finish-step"}"#, "{chunks:?}");
        assert_eq!(chunks[at + 1], r#"{"type":"start-step"}"#, "{chunks:?}");
    }
    assert_eq!(live, replayed);
}

#[test]
fn a_repeated_model_call_drops_what_came_before() {
    let events = |reset: Event| {
        vec![
            vec![user(1, "hi"), started(), step(2), text(0, 0, "wrong")],
            vec![reset, step(2), text(0, 0, "right"), assistant(2), step_finished(2, "stop"), finished("completed")],
        ]
    };
    let expected = [json!({"type": "step-start"}), json!({"type": "text", "text": "right"})];
    for reset in [Event::StepReset, step(2)] {
        assert_eq!(assembled(&told(UiVersion::V7, Begin::Turn, events(reset))), expected);
    }
    let old = told(UiVersion::V6, Begin::Turn, events(Event::StepReset));
    assert!(!old.iter().any(|chunk| chunk.contains("reset-step")));
    assert!(old.iter().any(|chunk| chunk.contains("data-notice")));
}

/// What follows where a turn of which the first three entries are known is tried again, and answers.
fn retried_whole() -> Vec<Event> {
    vec![
        entry(4, Entry::Control(Control::Retried { turn: TurnId(seq(1)), settings: None, hides: None })),
        started(),
        step(6),
        text(0, 0, "whole"),
        assistant(6),
        step_finished(6, "stop"),
        finished("completed"),
    ]
}

#[test]
fn a_retried_turn_does_not_show_the_message_that_was_cut_off() {
    let failure = ProviderFailure::new(ProviderFailureKind::CutOff, "cut off");
    let cut_off = Completion::CutOff(turnwright_core::CutOffCause::Provider(Box::new(failure)));
    let failed = vec![
        user(1, "hi"),
        started(),
        step(2),
        text(0, 0, "half"),
        answered(2, cut_off),
        step_finished(2, "error"),
        finished("failed"),
    ];
    for version in [UiVersion::V5, UiVersion::V6, UiVersion::V7] {
        let stream = told(version, Begin::Turn, [[failed.clone(), retried_whole()].concat()]);
        assert_eq!(assembled(&stream), [json!({"type": "step-start"}), json!({"type": "text", "text": "whole"})]);
        assert!(!stream.iter().any(|chunk| chunk.contains(r#""type":"error""#)), "{stream:?}");
    }
}

#[test]
fn a_model_that_is_passed_over_leaves_a_notice_and_no_empty_step() {
    let failure = ProviderFailure::new(ProviderFailureKind::Overloaded, "busy");
    let notice = Event::Notice { level: "warning", text: "busy; going on with `q/n`".to_owned() };
    let events = vec![
        vec![user(1, "hi"), started(), step(3)],
        vec![entry(3, Entry::Control(Control::Failed(failure))), notice],
        vec![step(4), text(0, 0, "hello"), assistant(4), step_finished(4, "stop"), finished("completed")],
    ];
    for version in [UiVersion::V5, UiVersion::V6, UiVersion::V7] {
        let stream = told(version, Begin::Turn, events.clone());
        assert_eq!(stream.iter().filter(|chunk| chunk.contains("start-step")).count(), 1, "{stream:?}");
        assert_eq!(stream.iter().filter(|chunk| chunk.contains("going on with `q/n`")).count(), 1, "{stream:?}");
        assert!(!stream.iter().any(|chunk| chunk.contains(r#""type":"error""#)), "{stream:?}");
    }
}

#[test]
fn each_end_of_a_turn_has_its_last_chunks() {
    let table = [
        ("completed", "stop", vec![r#"{"type":"finish","finishReason":"stop"}"#]),
        ("completed", "length", vec![r#"{"type":"finish","finishReason":"length"}"#]),
        ("stopped", "content_filter", vec![r#"{"type":"finish","finishReason":"content-filter"}"#]),
        ("cancelled", "error", vec![r#"{"type":"abort","reason":"stopped"}"#]),
        ("failed", "error", vec![r#"{"type":"error","errorText":"it broke"}"#]),
        (
            "step_limit",
            "stop",
            vec![
                r#"{"type":"data-notice","data":{"level":"warning","text":"The step limit of this turn is reached."}}"#,
                r#"{"type":"finish","finishReason":"other"}"#,
            ],
        ),
    ];
    for (status, reason, last) in table {
        let events = vec![user(1, "hi"), started(), step(2), assistant(2), step_finished(2, reason), finished(status)];
        let stream = told(UiVersion::V7, Begin::Turn, [events]);
        let mut expected = vec![r#"{"type":"start-step"}"#, r#"{"type":"finish-step"}"#];
        expected.extend(last);
        expected.push("[DONE]");
        assert_eq!(stream[1..], expected);
    }
}

#[test]
fn each_outcome_of_a_call_has_its_chunk_in_each_version() {
    let table = [
        ("execution_failed", UiVersion::V7, "tool-output-available"),
        ("invalid_arguments", UiVersion::V7, "tool-output-available"),
        ("timeout", UiVersion::V7, "tool-output-error"),
        ("unavailable", UiVersion::V7, "tool-output-error"),
        ("interrupted", UiVersion::V7, "tool-output-error"),
        ("cancelled", UiVersion::V7, "tool-output-error"),
        ("denied", UiVersion::V7, "tool-output-denied"),
        ("denied", UiVersion::V6, "tool-output-denied"),
        ("denied", UiVersion::V5, "tool-output-error"),
    ];
    for (outcome, version, expected) in table {
        let events = vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), finished_tool(2, outcome)];
        let stream = told(version, Begin::Turn, [events]);
        let chunk: Value = serde_json::from_str(stream.last().unwrap()).unwrap();
        assert_eq!(chunk["type"], expected, "{outcome}");
        if expected == "tool-output-available" {
            assert_eq!(chunk["output"]["isError"], true);
        }
    }
}

#[test]
fn decisions_of_the_policy_are_shown_to_clients_that_know_them() {
    let events = || vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), decided(2, Verdict::Allow, Some("rule 2"))];
    let new = told(UiVersion::V7, Begin::Turn, [events()]);
    let expected = [
        r#"{"type":"tool-approval-request","approvalId":"appr_2_0","toolCallId":"call_2_0","reason":"allowed by rule 2","isAutomatic":true}"#,
        r#"{"type":"tool-approval-response","approvalId":"appr_2_0","approved":true}"#,
    ];
    assert_eq!(new[new.len() - 2..], expected);
    let old = told(UiVersion::V6, Begin::Turn, [events()]);
    assert_eq!(old.len(), new.len() - 2);
}

#[test]
fn what_a_person_changed_is_told_with_the_decision_and_with_the_result() {
    let changed = Event::ToolApprovalDecided {
        call_id: call(2),
        decision: Verdict::Allow,
        rule: None,
        arguments: Some("{\n \"city\": \"Oslo\"}".to_owned()),
        reason: None,
    };
    let events = |outcome| {
        let before = vec![user(1, "hi"), started(), step(2), input_ready(2, "{}"), asked(2)];
        [before, vec![changed.clone(), finished_tool(2, outcome)]].concat()
    };
    let ran = r#""toolMetadata":{"changedArguments":{"city":"Oslo"}"#;
    let (good, bad) =
        (told(UiVersion::V7, Begin::Turn, [events("success")]), told(UiVersion::V7, Begin::Turn, [events("timeout")]));
    let decision = format!(r#"{{"type":"tool-approval-response","approvalId":"appr_2_0","approved":true,{ran}}}}}"#);
    assert_eq!(good[good.len() - 2], decision);
    assert!(good[good.len() - 1].ends_with(&format!(r#"{ran},"durationMs":312}}}}"#)), "{good:?}");
    assert!(bad[bad.len() - 1].ends_with(&format!(r#""errorText":"15 C",{ran}}}}}"#)), "{bad:?}");
    let old = told(UiVersion::V6, Begin::Turn, [events("success")]);
    assert!(old[old.len() - 1].contains(ran), "{old:?}");
}

#[test]
fn arguments_stand_in_one_line_and_are_an_error_where_they_are_no_json() {
    let input = |arguments: &str| {
        let events = vec![user(1, "hi"), started(), step(2), input_ready(2, arguments)];
        let stream = told(UiVersion::V7, Begin::Turn, [events]);
        serde_json::from_str::<Value>(stream.last().unwrap()).unwrap()
    };
    assert_eq!(input("{\n \"b\": 1,\r\n \"a\": \"x\\ny\"}")["input"], json!({"b": 1, "a": "x\ny"}));
    assert_eq!(input("")["input"], json!({}));
    let broken = input("{\"a\": ");
    assert_eq!((&broken["type"], &broken["input"]), (&json!("tool-input-error"), &json!("{\"a\": ")));
}

#[test]
fn a_call_that_never_became_whole_is_an_error_at_the_end() {
    let events = vec![user(1, "hi"), started(), step(2), input_started(2), finished("failed")];
    let stream = told(UiVersion::V7, Begin::Turn, [events]);
    assert!(
        stream.iter().any(|chunk| chunk.starts_with(r#"{"type":"tool-output-error","toolCallId":"call_2_0""#)),
        "{stream:?}"
    );
}

#[test]
fn the_end_waits_until_the_replay_is_over() {
    let mut fold = fold_of(UiVersion::V7, Begin::Turn);
    let mut out = Vec::new();
    fold.fold(&frame(vec![user(1, "hi"), started(), finished("failed")], false), &mut out);
    assert!(!fold.is_done());
    fold.fold(&frame(vec![finished("failed")], true), &mut out);
    assert!(fold.is_done());
}
