use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{
    AssistantBlock, AssistantMessage, Claim, Completion, ContentBlock, Control, DriverId, Entry, Finish, FinishReason,
    MessageId, ModelRef, Origin, Seq, TurnId, TurnSettings, Usage, UserId, UserMessage,
};
use turnwright_engine::{Event, Frame, SystemClock};

use super::{Asked, ChatFold};
use crate::openai::activity::ToolActivity;
use crate::openai::chunk::TellsUsage;
use crate::openai::known::KnownHistories;
use crate::openai::stops::Stops;
use crate::openai::track::Part;
use crate::sse::Fold;

fn seq(number: u64) -> Seq {
    Seq::new(number).unwrap()
}

fn asked(known: &Arc<KnownHistories>, stop: Option<&Value>) -> Asked {
    Asked {
        conversation: "c".parse().unwrap(),
        part: Part { turn: TurnId(seq(1)), after: seq(1), calls: Vec::new() },
        model: "p/m".to_owned(),
        offered: Arc::from([]),
        activity: ToolActivity::Hidden,
        tells_usage: TellsUsage::Never,
        history: known.fingerprint(&UserId::local()),
        stops: Stops::of(stop).unwrap(),
        has_form: false,
        command_flags: String::new(),
        known: known.clone(),
    }
}

fn step(number: u64) -> Event {
    Event::StepStarted { message_id: MessageId(seq(number)) }
}

fn text(text: &str) -> Event {
    Event::TextDelta { block: 0, offset: 0, text: text.to_owned() }
}

fn entry(number: u64, entry: Entry) -> Event {
    Event::Entry { seq: seq(number), at_ms: 0, entry: Arc::new(entry) }
}

fn said(number: u64, text: &str) -> Event {
    said_by("m", number, text)
}

fn said_by(model: &str, number: u64, text: &str) -> Event {
    let blocks = vec![AssistantBlock::Text { text: text.to_owned(), native: None }];
    let origin = Origin { dialect: "d".to_owned(), provider: "p".to_owned(), model: model.to_owned() };
    let finish = Finish { reason: FinishReason::Stop, raw: None };
    let (saw, completion, usage) = (seq(1), Completion::Complete, Usage::default());
    entry(number, Entry::Assistant(AssistantMessage { origin, saw, blocks, finish, completion, usage }))
}

/// A turn with these events in its middle.
fn turn(middle: &[Event]) -> Frame {
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    let first = entry(1, Entry::User(UserMessage { content: vec![ContentBlock::text("Go")], settings }));
    let last =
        Event::TurnFinished { turn_id: TurnId(seq(1)), status: "completed", stop: None, stop_summary: None, error: None };
    let events: Vec<Event> = [first].into_iter().chain(middle.iter().cloned()).chain([last]).collect();
    Frame { seq: None, events: events.into(), has_caught_up: true }
}

/// The chunks of its stream.
fn chunks(asked: Asked, frame: &Frame) -> Vec<Value> {
    let mut out = Vec::new();
    ChatFold::streamed(asked).fold(frame, &mut out);
    let out = String::from_utf8(out).unwrap();
    out.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

/// What the client has of a turn with these events in its middle: streamed, and whole. Its next request finds the conversation by it.
fn told(stop: Option<&Value>, middle: &[Event]) -> [String; 2] {
    let frame = turn(middle);
    let known = Arc::new(KnownHistories::new(Arc::new(SystemClock)));
    let found = |text: &str| {
        let mut history = known.fingerprint(&UserId::local());
        history.answer(text, std::iter::empty());
        known.find(&history).is_some()
    };

    let chunks = chunks(asked(&known, stop), &frame).into_iter();
    let streamed: String =
        chunks.filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())).collect();
    assert!(found(&streamed), "{streamed}");

    let mut whole = ChatFold::whole(asked(&known, stop));
    whole.fold(&frame, &mut Vec::new());
    let whole = whole.completion().unwrap().choices.remove(0).message.content.unwrap_or_default();
    assert!(found(&whole), "{whole}");
    [streamed, whole]
}

#[test]
fn a_message_that_is_told_anew_is_told_once() {
    let claim = Claim { driver: DriverId("other".to_owned()), epoch: 2, folder: None };
    let resumed = [Control::Claimed(claim), Control::Resumed { count: 1 }].map(Entry::Control);
    let resumed = resumed.into_iter().zip(2..).map(|(control, at)| entry(at, control)).chain([step(4)]).collect();
    for anew in [vec![Event::StepReset], vec![Event::StepReset, step(4)], vec![step(4)], resumed] {
        let told = |stop: Option<&Value>, first: &str, then: &str| {
            let middle = [step(2), text(first)].into_iter().chain(anew.clone());
            told(stop, &middle.chain([text(then), said(4, then)]).collect::<Vec<_>>())
        };
        assert_eq!(told(None, "I look. And", "I look. And then."), ["I look. And then."; 2], "{anew:?}");
        // What a client was told it has.
        assert_eq!(told(None, "Half", "Whole."), ["Half\n\nWhole.", "Whole."], "{anew:?}");
        assert_eq!(told(None, "I look. <call>", "I look."), ["I look. <call>", "I look."], "{anew:?}");
        let stop = json!(["STOP"]);
        assert_eq!(told(Some(&stop), "I look. ST", "I look. STAY."), ["I look. STAY."; 2], "{anew:?}");
        assert_eq!(told(Some(&stop), "I look.STOP", "I look.STOP No."), ["I look."; 2], "{anew:?}");
        assert_eq!(told(Some(&stop), "I look.STOP", "I look. No."), ["I look. No."; 2], "{anew:?}");
    }
}

#[test]
fn a_later_message_that_is_told_anew_is_a_paragraph_of_its_own() {
    let events = [
        step(2),
        text("One."),
        said(2, "One."),
        step(3),
        text("Two"),
        Event::StepReset,
        step(4),
        text("Two."),
        said(4, "Two."),
    ];
    assert_eq!(told(None, &events), ["One.\n\nTwo."; 2]);
    // What ended an earlier one has ended all.
    assert_eq!(told(Some(&json!("e.")), &events), ["On"; 2]);
}

#[test]
fn what_a_fallback_said_is_told_in_its_name() {
    let known = Arc::new(KnownHistories::new(Arc::new(SystemClock)));
    let frame = turn(&[step(2), text("One."), said(2, "One."), step(3), text("Two."), said_by("a \"fallback\"", 4, "Two.")]);
    let mut whole = ChatFold::whole(asked(&known, None));
    whole.fold(&frame, &mut Vec::new());
    assert_eq!(whole.completion().unwrap().model, r#"p/a "fallback""#);

    // Who says a message that is not whole is not known yet.
    let asked = Asked { tells_usage: TellsUsage::AtItsEnd, ..asked(&known, None) };
    let chunks = chunks(asked, &frame);
    let models: Vec<&str> = chunks.iter().map(|chunk| chunk["model"].as_str().unwrap()).collect();
    let (end, before) = models.split_last().unwrap();
    assert!(before.iter().all(|model| *model == "p/m"), "{models:?}");
    assert_eq!(*end, r#"p/a "fallback""#);
}
