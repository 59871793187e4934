use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Claim, Completion, ContentBlock, Control, DecidedBy, Decision, DriverId, Entry,
    Finish, FinishReason, MessageId, ModelRef, Origin, Seq, TurnId, TurnSettings, Usage, UserMessage, Verdict,
};
use turnwright_engine::{Event, Frame};

use super::object::object;
use super::{DROPPED, Form, ResponseFold};
use crate::openai::track::{Call, Part};
use crate::sse::Fold;

fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

fn settings() -> TurnSettings {
    TurnSettings::new(ModelRef::new("p", "m"))
}

fn fold(form: Form) -> ResponseFold {
    let conversation = "c".parse().unwrap();
    let part = Part { turn: TurnId(seq(1)), after: seq(1), calls: Vec::new() };
    let object = object(&conversation, &part, &settings());
    ResponseFold::new(conversation, part, Arc::from([]), object, form)
}

fn step(number: u64) -> Event {
    Event::StepStarted { message_id: MessageId(seq(number)) }
}

fn text(text: &str) -> Event {
    Event::TextDelta { block: 0, offset: 0, text: text.to_owned() }
}

/// Another process takes the turn up, in entries from this one on.
fn resumed(first: u64) -> impl Iterator<Item = Event> {
    let claim = Claim { driver: DriverId("other".to_owned()), epoch: 2, folder: None };
    let resumed = [Entry::Control(Control::Claimed(claim)), Entry::Control(Control::Resumed { count: 1 })];
    resumed.into_iter().zip(first..).map(|(entry, at)| Event::Entry { seq: seq(at), at_ms: 0, entry: Arc::new(entry) })
}

/// A call of the message at 2.
fn called(index: u32) -> (CallId, Event) {
    let call_id = CallId { message: seq(2), index };
    (call_id, Event::ToolInputReady { call_id, name: "lab__look".to_owned(), arguments: "{}".to_owned() })
}

fn gave(call_id: CallId) -> Event {
    let content = vec![ContentBlock::text("Seen.")];
    Event::ToolFinished {
        call_id,
        outcome: "success",
        is_error: false,
        content,
        structured_content: None,
        duration_ms: Some(1),
    }
}

/// A turn with these events in its middle.
fn told(mut fold: ResponseFold, middle: impl IntoIterator<Item = Event>) -> Vec<Value> {
    let user = Entry::User(UserMessage { content: vec![ContentBlock::text("Go")], settings: settings() });
    let first = Event::Entry { seq: seq(1), at_ms: 0, entry: Arc::new(user) };
    let last = [
        Event::StepFinished { message_id: MessageId(seq(4)), finish_reason: "stop", usage: Usage::default() },
        Event::TurnFinished { turn_id: TurnId(seq(1)), status: "completed", stop: None, stop_summary: None, error: None },
    ];
    let events: Vec<Event> = [first].into_iter().chain(middle).chain(last).collect();
    let mut out = Vec::new();
    fold.fold(&Frame { seq: None, events: events.into(), has_caught_up: true }, &mut out);
    let text = String::from_utf8(out).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

/// The texts of the response that the last event holds.
fn texts(events: &[Value]) -> Vec<&str> {
    let output = events.last().unwrap()["response"]["output"].as_array().unwrap();
    output.iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect()
}

#[test]
fn what_was_told_of_a_message_that_is_told_anew_is_not_in_the_response() {
    let resumed: Vec<Event> = resumed(2).chain([step(4)]).collect();
    for anew in [vec![Event::StepReset], vec![Event::StepReset, step(4)], resumed] {
        let events = [step(2), text("Half")].into_iter().chain(anew.clone()).chain([text("Whole.")]);
        let streamed = told(fold(Form::Streamed), events);
        assert_eq!(texts(&streamed), ["Whole."], "{anew:?}");
        let done = streamed.iter().filter(|event| event["type"] == "response.output_item.done");
        let done: Vec<&Value> = done.map(|event| &event["item"]["status"]).collect();
        assert_eq!(done, [&json!("incomplete"), &json!("completed")]);
    }
}

#[test]
fn what_is_stored_stays_where_a_later_message_is_told_anew() {
    let (call_id, called) = called(0);
    let first = Event::StepFinished { message_id: MessageId(seq(2)), finish_reason: "tool_calls", usage: Usage::default() };
    let before = [step(2), text("I look."), first, called, Event::ToolStarted { call_id }];
    let events = before.into_iter().chain([step(4), text("Half"), Event::StepReset, text("Whole.")]);
    let streamed = told(fold(Form::Streamed), events);
    let output = streamed.last().unwrap()["response"]["output"].as_array().unwrap().clone();
    let kinds: Vec<&Value> = output.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "mcp_call", "message"]);
    assert_eq!((&output[0]["content"][0]["text"], &output[2]["content"][0]["text"]), (&json!("I look."), &json!("Whole.")));
}

#[test]
fn calls_stay_where_their_process_ends_while_they_run() {
    let ((one, calls_one), (other, calls_other)) = (called(0), called(1));
    let said = Event::StepFinished { message_id: MessageId(seq(2)), finish_reason: "tool_calls", usage: Usage::default() };
    let starts = |call_id| Event::ToolStarted { call_id };
    let message = vec![step(2), text("I look."), said, calls_one, calls_other];
    let approved = [one, other].map(|id| Call {
        id,
        name: "lab__look".to_owned(),
        arguments: "{}".to_owned(),
        changed: None,
        waits: None,
        decided: 1,
    });
    // The part holds the message, or begins after it, where a person was asked about its calls.
    for (message, calls) in [(message, Vec::new()), (resumed(3).take(1).collect(), approved.to_vec())] {
        let mut fold = fold(Form::Streamed);
        fold.track.calls = calls;
        let runs = [starts(one), starts(other), gave(one)].into_iter().chain(resumed(6));
        let goes_on = runs.chain([starts(other), gave(other), step(9), text("Both.")]);
        let streamed = told(fold, message.clone().into_iter().chain(goes_on));
        let output = streamed.last().unwrap()["response"]["output"].as_array().unwrap();
        let calls: Vec<&Value> = output.iter().filter(|item| item["type"] == "mcp_call").collect();
        let states: Vec<_> = calls.iter().map(|item| (&item["status"], &item["output"])).collect();
        assert_eq!(states, [(&json!("completed"), &json!("Seen.")); 2], "{message:?}");
        let ended = streamed.iter().filter(|event| event["type"] == "response.mcp_call.completed");
        let ended: Vec<&Value> = ended.map(|event| &event["item_id"]).collect();
        assert_eq!(ended, calls.iter().map(|item| &item["id"]).collect::<Vec<_>>(), "{message:?}");
        assert_eq!(output.last().unwrap()["content"][0]["text"], "Both.");
    }
}

#[test]
fn what_a_fallback_said_is_told_in_its_name() {
    let message = AssistantMessage {
        origin: Origin { dialect: "d".to_owned(), provider: "p".to_owned(), model: "fallback".to_owned() },
        saw: seq(1),
        blocks: vec![AssistantBlock::Text { text: "Done.".to_owned(), native: None }],
        finish: Finish { reason: FinishReason::Stop, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    };
    let said = Event::Entry { seq: seq(4), at_ms: 0, entry: Arc::new(Entry::Assistant(message)) };
    let streamed = told(fold(Form::Streamed), [step(4), text("Done."), said]);
    let model = |event: Option<&Value>| event.unwrap()["response"]["model"].clone();
    assert_eq!((model(streamed.first()), model(streamed.last())), (json!("p/m"), json!("p/fallback")));
}

#[test]
fn an_output_says_first_that_a_person_changed_the_arguments() {
    let (call_id, called) = called(0);
    let decision = Decision {
        call: call_id,
        verdict: Verdict::Allow,
        by: DecidedBy::Person,
        definition_hash: None,
        arguments: Some(r#"{"at":2}"#.to_owned()),
        reason: None,
        remembered: None,
    };
    let said = Event::StepFinished { message_id: MessageId(seq(2)), finish_reason: "tool_calls", usage: Usage::default() };
    let decided = Event::Entry { seq: seq(3), at_ms: 0, entry: Arc::new(Entry::Decision(decision)) };
    let events = [step(2), text("I look."), said, called, decided, Event::ToolStarted { call_id }, gave(call_id), step(6)];
    let streamed = told(fold(Form::Streamed), events.into_iter().chain([text("Done.")]));
    let output = streamed.last().unwrap()["response"]["output"].as_array().unwrap();
    let item = output.iter().find(|item| item["type"] == "mcp_call").unwrap();
    let expected = json!("[The user changed the arguments of this call to: {\"at\":2}]\nSeen.");
    assert_eq!((&item["arguments"], &item["output"]), (&json!("{}"), &expected));
}

#[test]
fn a_client_that_has_what_was_dropped_is_told_to_begin_anew() {
    let streamed = told(fold(Form::Streamed), [step(2), text("Half"), Event::StepReset, text("Whole.")]);
    let number = |event: &Value| event["sequence_number"].as_u64().unwrap();
    let delta = |text: &str| streamed.iter().find(|event| event["delta"] == text).unwrap();
    assert!(number(delta("Half")) < DROPPED && number(delta("Whole.")) > DROPPED);
    // Whoever tells it later knows nothing of what was dropped.
    let whole = || [step(2), text("Whole.")];
    for seen in [delta("Whole."), streamed.last().unwrap()] {
        let rest = told(fold(Form::Streamed).starting_after(number(seen)), whole());
        let codes: Vec<(&Value, bool)> = rest.iter().map(|event| (&event["code"], number(event) > number(seen))).collect();
        assert_eq!(codes, [(&json!("told_anew"), true)]);
    }
    let anew = told(fold(Form::Streamed), whole());
    assert_eq!(texts(&anew), ["Whole."]);
    // Who has all of it is told nothing more.
    assert_eq!(told(fold(Form::Streamed).starting_after(number(anew.last().unwrap())), whole()), Vec::<Value>::new());
}

#[test]
fn a_number_within_a_character_is_followed_by_the_whole_character() {
    let whole = "a\u{e9}\u{20ac}z";
    let streamed = told(fold(Form::Streamed), [step(2), text(whole)]);
    let delta = |events: &[Value]| events.iter().find(|event| event["type"] == "response.output_text.delta").cloned();
    let last = delta(&streamed).unwrap()["sequence_number"].as_u64().unwrap();
    let table = [(7, whole), (6, "\u{e9}\u{20ac}z"), (5, "\u{e9}\u{20ac}z"), (4, "\u{20ac}z"), (3, "\u{20ac}z"), (1, "z")];
    for (left, rest) in table {
        let resumed = told(fold(Form::Streamed).starting_after(last - left), [step(2), text(whole)]);
        let delta = delta(&resumed).unwrap();
        assert_eq!((&delta["delta"], &delta["sequence_number"]), (&json!(rest), &json!(last)), "{left} left");
    }
}
