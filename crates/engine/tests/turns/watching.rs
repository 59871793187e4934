//! What watchers are told.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use turnwright_core::{
    ApproveMode, AssistantBlock, Control, Entry, Finish, FinishReason, MessageId, NativeBlock, ProviderFailure,
    ProviderFailureKind, Seq, StoredEntry, StreamDelta, TurnId,
};
use turnwright_engine::{Append, EngineError, Event, NewConversation, NewMessage, Store, TurnState, Watch, WatchFrom};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, engine, world};

fn echo() -> ScriptedSource {
    ScriptedSource::new("tools", [ScriptedTool::echo("echo")])
}

/// The events until the turn is over, entries left out, deltas of a block joined.
async fn told(watch: &mut Watch) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    loop {
        let frame = watch.next().await.unwrap();
        for event in frame.events.iter() {
            match event {
                Event::Entry { .. } => {}
                Event::StepStarted { message_id } => lines.push(format!("step.started {message_id}")),
                Event::TextDelta { block, text, .. } => join(&mut lines, &format!("text {block}: "), text),
                Event::ToolInputDelta { call_id, text, .. } => join(&mut lines, &format!("input {call_id}: "), text),
                Event::ToolFinished { call_id, outcome, .. } => lines.push(format!("tool.finished {call_id} {outcome}")),
                Event::TurnFinished { status, .. } => {
                    lines.push(format!("turn.finished {status}"));
                    return lines;
                }
                other => lines.push(serde_json::to_value(other).unwrap()["type"].as_str().unwrap().to_owned()),
            }
        }
    }
}

fn join(lines: &mut Vec<String>, start: &str, more: &str) {
    match lines.last_mut() {
        Some(last) if last.starts_with(start) => last.push_str(more),
        _ => lines.push(format!("{start}{more}")),
    }
}

const WHOLE: [&str; 19] = [
    "turn.started",
    "step.started msg_4",
    "text 0: Let me look.",
    "tool.input_started",
    "input call_4_0: {\"a\":1}",
    "step.finished",
    "tool.input_ready",
    "tool.approval_decided",
    "tool.started",
    "tool.finished call_4_0 success",
    "step.started msg_8",
    "text 0: Done.",
    "step.finished",
    "usage",
    "turn.finished completed",
    "",
    "",
    "",
    "",
];

fn script(gate: Option<&Arc<Semaphore>>) -> Arc<ScriptedProvider> {
    let first = Answer::whole([text("Let me "), text("look."), call(0, "tools__echo", r#"{"a":1}"#)]);
    let second = Answer::whole([text("Done.")]);
    match gate {
        Some(gate) => ScriptedProvider::new([first.gated(gate), second.gated(gate)]),
        None => ScriptedProvider::new([first, second]),
    }
}

async fn ended() -> World {
    let world = world(script(None), echo(), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    world
}

#[tokio::test]
async fn who_watches_live_and_who_comes_later_are_told_the_same() {
    let world = world(script(None), echo(), Setup::default()).await;
    let mut live = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
    world.send("go").await;
    let expected: Vec<&str> = WHOLE.into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(told(&mut live).await, expected);
    let mut later = world.engine.watch(&world.id, WatchFrom::After(None)).await.unwrap();
    assert_eq!(told(&mut later).await, expected);
}

#[tokio::test]
async fn who_comes_back_is_told_what_was_missed_and_no_more() {
    let world = ended().await;
    let mut back = world.engine.watch(&world.id, WatchFrom::After(Seq::new(7))).await.unwrap();
    assert_eq!(told(&mut back).await, WHOLE[10..15].to_vec());
    let beyond = world.engine.watch(&world.id, WatchFrom::After(Seq::new(99))).await.unwrap_err();
    assert_eq!(beyond, EngineError::NotFound { what: "entry 99 in conversation `c1`, of which 9 is the last".to_owned() });
}

#[tokio::test]
async fn what_a_turn_came_to_is_told_of_its_own_conversation_also_where_another_has_the_name_since() {
    let world = ended().await;
    let turn = TurnId(Seq::FIRST);
    let mut watch = world.engine.watch_once_settled(&world.id, turn, WatchFrom::After(None)).await.unwrap();
    world.engine.delete(&world.id).await.unwrap();
    world.engine.create(NewConversation { id: Some(world.id.clone()), ..NewConversation::default() }).await.unwrap();

    assert_eq!(told(&mut watch).await, WHOLE[..15].iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>());
    assert_eq!((watch.next().await, watch.is_deleted()), (None, true));
    // Nobody waits there for what was said in the other.
    let gone = world.engine.watch_once_settled(&world.id, turn, WatchFrom::After(None)).await.unwrap_err();
    assert_eq!(gone, EngineError::NotFound { what: "turn `turn_1` in this conversation".to_owned() });
}

#[tokio::test]
async fn who_comes_later_is_told_the_places_of_what_is_hidden_and_none_of_its_words() {
    let world = ended().await;
    let hidden: Vec<MessageId> = world.journal().await.entries().iter().filter_map(said).collect();
    for message in hidden {
        world.engine.hide(&world.id, message).await.unwrap();
    }
    let events = world.engine.watch(&world.id, WatchFrom::After(None)).await.unwrap().next().await.unwrap().events;
    let is_about_a_call = |event: &Event| matches!(event, Event::ToolInputReady { .. } | Event::ToolFinished { .. });
    assert!(!events.iter().any(is_about_a_call), "{events:?}");
    let places: Vec<u64> =
        events.iter().filter_map(|event| if let Event::Entry { seq, .. } = event { Some(seq.get()) } else { None }).collect();
    assert_eq!(places, (1..=12).collect::<Vec<_>>());
    let told = serde_json::to_string(&*events).unwrap();
    for word in ["go", "Let me ", "look.", r#"\"a\""#, "Done."] {
        assert!(!told.contains(&format!("\"{word}")), "{word} in {told}");
    }
}

fn said(stored: &StoredEntry) -> Option<MessageId> {
    matches!(*stored.entry, Entry::User(_) | Entry::Assistant(_)).then_some(MessageId(stored.seq))
}

#[tokio::test]
async fn the_end_of_a_turn_that_failed_is_told_with_all_that_is_known_of_it() {
    let failure = ProviderFailure::new(ProviderFailureKind::Auth, "no key");
    let failure = ProviderFailure { status: Some(401), request_id: Some("req_1".to_owned()), ..failure };
    let world = world(ScriptedProvider::new([Answer::of([]).failing(failure)]), echo(), Setup::default()).await;
    world.turn("go").await;
    let events = world.engine.watch(&world.id, WatchFrom::After(None)).await.unwrap().next().await.unwrap().events;
    let told: Vec<Value> = events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let unknown = json!({"input_tokens": null, "output_tokens": null, "cached_input_tokens": null, "cache_write_tokens": null,
        "reasoning_tokens": null, "cost_usd": null});
    let error = json!({"kind": "auth", "status": 401, "message": "no key", "request_id": "req_1"});
    let expected = [
        json!({"type": "usage", "usage": unknown}),
        json!({"type": "turn.finished", "turn_id": "turn_1", "status": "failed", "error": error}),
    ];
    assert_eq!(told[told.len() - 2..], expected);
}

#[tokio::test]
async fn a_call_that_waits_is_told_whatever_is_hidden() {
    let store = MemoryStore::default();
    let asking = || Setup { approve: ApproveMode::Ask, ..Setup::default() };
    let first = engine(store.another_process(), script(None), Arc::new(echo()), asking());
    let id = first.create(NewConversation::default()).await.unwrap().id;
    let turn = first.send(&id, NewMessage::text("go")).await.unwrap().turn_id;
    assert_eq!(first.wait(&id, turn).await.unwrap(), TurnState::Parked);
    let journal = first.journal(&id).await.unwrap();
    let why = "the message is part of an open turn: cancel that first";
    for message in journal.entries().iter().filter_map(said) {
        let refused = first.hide(&id, message).await.unwrap_err();
        assert_eq!(refused, EngineError::TurnOpen { why: why.to_owned() });
    }
    let message = journal.entries().iter().filter_map(said).next_back().unwrap();
    first.shutdown().await;
    // Older versions hid it.
    let (at, entries) = (journal.next_seq(), vec![Entry::Control(Control::Hidden { message })]);
    store.append(Append { conversation: id.clone(), at, entries, at_ms: 1_000, side: Vec::new() }).await.unwrap();
    let second = engine(store, script(None), Arc::new(echo()), asking());
    let events = second.watch(&id, WatchFrom::After(None)).await.unwrap().next().await.unwrap().events;
    assert!(events.iter().any(|event| matches!(event, Event::ToolInputReady { .. })), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, Event::ToolApprovalRequested { .. })), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, Event::TextDelta { .. })), "{events:?}");
}

#[tokio::test]
async fn who_comes_in_the_middle_of_a_message_gets_it_from_its_beginning() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([Answer::of([text("One "), text("two "), text("three")]).gated(&gate)]);
    let world = world(provider, echo(), Setup::default()).await;
    let mut first = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
    world.send("go").await;
    gate.add_permits(2);
    let is_second = |event: &Event| matches!(event, Event::TextDelta { offset: 4, .. });
    while !first.next().await.unwrap().events.iter().any(is_second) {}
    let mut middle = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
    let frame = middle.next().await.unwrap();
    assert_eq!(
        *frame.events,
        [
            Event::StepStarted { message_id: MessageId(Seq::new(4).unwrap()) },
            Event::TextDelta { block: 0, offset: 0, text: "One two ".to_owned() },
        ]
    );
    gate.add_permits(2);
    assert_eq!(told(&mut middle).await[0], "text 0: three");
}

#[tokio::test]
async fn a_message_that_takes_another_place_than_announced_is_told_again() {
    let gate = Arc::new(Semaphore::new(0));
    let provider =
        ScriptedProvider::new([Answer::whole([call(0, "tools__echo", "{}")]).gated(&gate), Answer::whole([text("Done.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    let mut watch = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
    world.send("one").await;
    gate.add_permits(1);
    let is_input = |event: &Event| matches!(event, Event::ToolInputStarted { .. });
    while !watch.next().await.unwrap().events.iter().any(is_input) {}
    world.send("two").await;
    gate.add_permits(9);
    let told = told(&mut watch).await;
    assert_eq!(told[..4], ["step.reset", "step.started msg_5", "tool.input_started", "input call_5_0: {}"]);
}

#[tokio::test]
async fn an_answer_that_its_provider_gives_otherwise_at_its_end_is_told_again_and_stored_so() {
    let words = |text: &str, native: Option<&str>| AssistantBlock::Text {
        text: text.to_owned(),
        native: native.map(|native| NativeBlock(native.to_owned())),
    };
    let rewritten = |block: AssistantBlock| vec![StreamDelta::Rewritten(vec![block])];
    let answers = [
        Answer::whole([text("wrng"), rewritten(words("right", None))]),
        // Nothing that a watcher sees is other than told.
        Answer::whole([text("same"), rewritten(words("same", Some("{}")))]),
    ];
    let world = world(ScriptedProvider::new(answers), echo(), Setup::default()).await;
    for expected in [
        ["step.started msg_4", "text 0: wrng", "step.reset", "step.started msg_4", "text 0: right", "step.finished"].as_slice(),
        ["step.started msg_8", "text 0: same", "step.finished"].as_slice(),
    ] {
        let mut watch = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
        world.send("go").await;
        let told = told(&mut watch).await;
        assert_eq!(told[1..=expected.len()], *expected);
    }
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_is_cut_off_and_the_turn_goes_on() {
    let batches = (0..3_000).map(|n| text(&format!("{n} ")));
    let provider = ScriptedProvider::new([Answer::of(batches)]);
    let world = world(provider, echo(), Setup::default()).await;
    let mut slow = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
    assert_eq!(world.turn("go").await, completed());
    let mut frames = 0;
    while slow.next().await.is_some() {
        frames += 1;
    }
    assert_eq!(frames, 1_024);
}

#[tokio::test]
async fn words_that_were_told_are_not_told_again_where_somebody_appends_meanwhile() {
    for stops in [true, false] {
        let gate = Arc::new(Semaphore::new(1));
        let end = StreamDelta::Finished(Finish { reason: FinishReason::Stop, raw: None });
        let first = Answer::of([text("Half"), text(" more"), vec![end]]).gated(&gate);
        let provider = ScriptedProvider::new([first, Answer::whole([text("And you.")])]);
        let world = world(provider, echo(), Setup::default()).await;
        let mut watch = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
        world.send("go").await;
        let is_delta = |event: &Event| matches!(event, Event::TextDelta { .. });
        while !watch.next().await.unwrap().events.iter().any(is_delta) {}
        if stops {
            world.engine.cancel(&world.id, None).await.unwrap();
        } else {
            world.send("and I").await;
            gate.add_permits(10);
        }
        let after = told(&mut watch).await;
        let told: Vec<&str> = after.iter().map(String::as_str).filter(|line| *line != "usage").collect();
        let second = ["step.finished", "step.started msg_6", "text 0: And you.", "step.finished", "turn.finished completed"];
        if stops {
            assert_eq!(told, ["step.finished", "turn.finished cancelled"]);
        } else {
            assert_eq!(told, [["text 0:  more"].as_slice(), &second].concat());
        }
    }
}
