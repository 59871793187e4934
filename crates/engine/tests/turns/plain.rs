//! Turns that run through.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Barrier, Semaphore};
use turnwright_core::policy::{Action, Verdict};
use turnwright_core::{
    Declared, Entry, ProviderFailure, ProviderFailureKind, StreamDelta, ToolChoice, ToolErrorKind, TurnStatus,
};
use turnwright_engine::{
    CallLimits, EngineError, KnownAs, KnownSecrets, NewConversation, NewMessage, SettingsOverlay, ToolError, ToolOutput,
    TurnState,
};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, results, world};

fn echo() -> ScriptedSource {
    ScriptedSource::new("tools", [ScriptedTool::echo("echo")])
}

#[tokio::test]
async fn a_turn_with_parallel_calls_stores_each_step_in_one_append_and_answers() {
    let provider = ScriptedProvider::new([
        Answer::whole([text("Let me look."), call(0, "tools__echo", r#"{"a":1}"#), call(1, "tools__echo", r#"{"b":2}"#)]),
        Answer::whole([text("Done.")]),
    ]);
    let world = world(provider, echo(), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let expected = [
        "user",
        "claimed",
        "offered",
        "assistant",
        "decision",
        "decision",
        "started",
        "started",
        "result",
        "result",
        "assistant",
        "ended",
    ];
    assert_eq!(world.kinds().await, expected);
    assert_eq!(
        world.provider.asked(),
        ["user: go", "user: go\nassistant: Let me look. [tools__echo, tools__echo]\nresult: {\"a\":1}\nresult: {\"b\":2}",]
    );
}

#[tokio::test]
async fn a_tool_that_a_conversation_does_not_offer_is_explained_as_refused() {
    let world = world(ScriptedProvider::new([]), echo(), Setup::default()).await;
    let overlay = SettingsOverlay { tools: Some(vec!["other__*".to_owned()]), ..SettingsOverlay::default() };
    let narrow = world.engine.create(NewConversation { overlay, ..NewConversation::default() }).await.unwrap().id;
    let explained = async |id| world.engine.explain(Some(id), None, "tools__echo", "{}").await.unwrap().explanation;
    assert!(explained(&world.id).await.is_ok());
    let refused = explained(&narrow).await.unwrap_err();
    assert_eq!(refused, "nobody is asked about it, because it is not offered in this conversation");
}

#[tokio::test]
async fn what_a_conversation_lets_no_tool_do_or_always_asks_about_is_explained_so() {
    let world = world(ScriptedProvider::new([]), echo(), Setup::default()).await;
    let explained = async |overlay: SettingsOverlay| {
        let id = world.engine.create(NewConversation { overlay, ..NewConversation::default() }).await.unwrap().id;
        world.engine.explain(Some(&id), None, "tools__echo", "{}").await.unwrap().explanation
    };
    let none = SettingsOverlay { tool_choice: Some(ToolChoice::None), ..SettingsOverlay::default() };
    assert_eq!(explained(none).await.unwrap_err(), "nobody is asked about it, because no tool may be called in its turn");
    let asks = SettingsOverlay { always_ask: Some(vec!["tools__*".to_owned()]), ..SettingsOverlay::default() };
    let asked = Verdict { action: Action::Ask, rule: "the request".to_owned() };
    assert_eq!(explained(asks).await.unwrap().verdict, asked);
}

#[tokio::test]
async fn the_same_request_at_the_same_moment_makes_one_conversation() {
    let world = world(ScriptedProvider::new([]), echo(), Setup::default()).await;
    let new = |name: &str, key: &str| NewConversation {
        id: Some(name.parse().unwrap()),
        idempotency: Some((key.to_owned(), "hash".to_owned())),
        ..NewConversation::default()
    };
    let made = |key| world.engine.create(new("z", key));
    let (first, second, other) = tokio::join!(made("k"), made("k"), made("other"));
    assert_eq!(
        (&first.unwrap(), other.unwrap_err().to_string()),
        (&second.unwrap(), "there is a conversation `z` already".to_owned())
    );
    let forked = |key| world.engine.fork(&world.id, None, new("y", key));
    let (first, second, other) = tokio::join!(forked("f"), forked("f"), forked("other"));
    assert_eq!((&first.unwrap(), other.is_err()), (&second.unwrap(), true));
}

#[tokio::test]
async fn calls_of_a_step_run_at_the_same_time() {
    let all_there = Arc::new(Barrier::new(5));
    let meet = ScriptedTool::new("meet", move |_, _| {
        let all_there = all_there.clone();
        async move {
            all_there.wait().await;
            Ok(ToolOutput::text("met"))
        }
    });
    let calls = (0..5).map(|key| call(key, "tools__meet", "{}"));
    let provider = ScriptedProvider::new([Answer::whole(calls), Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [meet]), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
}

#[tokio::test]
async fn a_source_with_one_slot_runs_one_call_at_a_time_and_all_of_them() {
    let provider = ScriptedProvider::new([
        Answer::whole((0..4).map(|key| call(key, "tools__echo", "{}"))),
        Answer::whole([text("Done.")]),
    ]);
    let world = world(provider, echo().slots(1), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(world.source.effects().len(), 4);
}

#[tokio::test]
async fn serial_tools_run_in_call_order() {
    let running = Arc::new(Semaphore::new(1));
    let tool = ScriptedTool::new("write", move |_, _| {
        let running = running.clone();
        async move {
            let alone = running.try_acquire().is_ok();
            tokio::task::yield_now().await;
            Ok(ToolOutput::text(if alone { "alone" } else { "crowded" }))
        }
    })
    .declared(Declared { serial: true, ..Declared::default() });
    let calls = (0..3).map(|key| call(key, "tools__write", &format!("{{\"n\":{key}}}")));
    let provider = ScriptedProvider::new([Answer::whole(calls), Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [tool]), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let order: Vec<_> = world.source.effects().iter().map(|effect| effect.arguments["n"].clone()).collect();
    assert_eq!(order, [0, 1, 2]);
    assert!(results(&world.journal().await).iter().all(|result| result.ends_with("alone")));
}

#[tokio::test]
async fn what_cannot_run_gets_a_result_that_tells_the_model_why() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let source = ScriptedSource::new(
        "tools",
        [
            ScriptedTool::echo("read").schema(schema),
            ScriptedTool::new("fail", |_, _| async { Err(ToolError::new(ToolErrorKind::NotFound, "no such file")) }),
            ScriptedTool::new("panic", |_, _| async { panic!("inside") }),
        ],
    );
    let provider = ScriptedProvider::new([
        Answer::whole([
            call(0, "tools__red", "{}"),
            call(1, "tools__read", "{}"),
            call(2, "tools__read", "{\"path\""),
            call(3, "tools__fail", "{}"),
            call(4, "tools__panic", "{}"),
        ]),
        Answer::whole([text("I see.")]),
    ]);
    let world = world(provider, source, Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let mut results = results(&world.journal().await);
    results.sort();
    assert_eq!(
        results,
        [
            "call_4_0 Error(NotFound) There is no tool `tools__red`. The tools are: tools__read, tools__fail, tools__panic.",
            "call_4_1 Error(InvalidArguments) `tools__read` did not run: the arguments do not fit the tool's schema: \"path\" is a required property.",
            "call_4_2 Error(InvalidArguments) `tools__read` did not run: the arguments are not valid JSON: EOF while parsing an object at line 1 column 7.",
            "call_4_3 Error(NotFound) no such file",
            "call_4_4 Error(ExecutionFailed) `tools__panic` failed inside; this is a fault of the tool.",
        ]
    );
    assert_eq!(world.source.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gives_no_sign_of_life_is_ended_at_its_idle_limit() {
    let hang = ScriptedTool::new("hang", |_, _| std::future::pending());
    let limits = CallLimits { idle: Duration::from_secs(3), total: Duration::from_mins(1) };
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__hang", "{}")]), Answer::whole([text("So be it.")])]);
    let world = world(provider, ScriptedSource::new("tools", [hang]).limits(limits), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let expected =
        "call_4_0 Error(Timeout) `tools__hang` gave no sign of life for 3 s and was stopped. It may or may not have happened.";
    assert_eq!(results(&world.journal().await), [expected]);
}

#[tokio::test]
async fn the_last_allowed_step_must_answer_and_what_was_done_is_kept() {
    let again = || Answer::whole([call(0, "tools__echo", "{}")]);
    let provider = ScriptedProvider::new([again(), again(), Answer::whole([text("As far as I got.")])]);
    let world = world(provider, echo(), Setup { max_steps: 3, ..Setup::default() }).await;
    assert_eq!(world.turn("go").await, TurnState::Ended(TurnStatus::StepLimit));
    assert!(world.provider.asked()[2].ends_with("no calls"));
    assert_eq!(world.source.effects().len(), 2);
}

#[tokio::test]
async fn a_provider_that_fails_ends_the_turn_and_a_retry_takes_it_up() {
    let failure = ProviderFailure::new(ProviderFailureKind::Overloaded, "try later");
    let provider = ScriptedProvider::new([
        Answer::of([vec![StreamDelta::Text("Half an ans".to_owned())]]).failing(failure.clone()),
        Answer::of([]).failing(failure),
        Answer::whole([text("Whole.")]),
    ]);
    let world = world(provider, echo(), Setup::default()).await;
    let failed = TurnState::Ended(TurnStatus::Failed { reason: "try later".to_owned() });
    let sent = world.send("go").await;
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), failed);
    assert_eq!(world.kinds().await[3..], ["assistant", "ended"]);
    for expected in [failed, completed()] {
        let turn = world.engine.retry(&world.id, SettingsOverlay::default()).await.unwrap();
        assert_eq!(turn, sent.turn_id);
        assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), expected);
    }
    assert_eq!(world.provider.asked(), ["user: go"; 3]);
    let refused = world.engine.retry(&world.id, SettingsOverlay::default()).await.unwrap_err();
    assert_eq!(
        refused,
        EngineError::NoOpenTurn { why: format!("the last turn of {} ended well, there is nothing to retry", world.id) }
    );
}

#[tokio::test]
async fn a_message_that_comes_while_the_model_speaks_is_answered_in_the_same_turn() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([Answer::whole([text("First.")]).gated(&gate), Answer::whole([text("Second.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    let mut watch = world.engine.watch(&world.id, turnwright_engine::WatchFrom::Now).await.unwrap();
    let first = world.send("one").await;
    let is_asked = |event: &turnwright_engine::Event| matches!(event, turnwright_engine::Event::StepStarted { .. });
    while !watch.next().await.unwrap().events.iter().any(is_asked) {}
    let second = world.send("two").await;
    assert_eq!(second.turn_id, first.turn_id);
    gate.add_permits(10);
    assert_eq!(world.engine.wait(&world.id, first.turn_id).await.unwrap(), completed());
    assert_eq!(world.provider.asked()[1], "user: one\nassistant: First. []\nuser: two");
}

#[tokio::test]
async fn a_stop_reaches_the_provider_and_the_tool_and_keeps_what_was_said() {
    let gate = Arc::new(Semaphore::new(1));
    let provider = ScriptedProvider::new([Answer::of([text("Half"), text(" more")]).gated(&gate)]);
    let world = world(provider, echo(), Setup::default()).await;
    let mut watch = world.engine.watch(&world.id, turnwright_engine::WatchFrom::Now).await.unwrap();
    let sent = world.send("go").await;
    let is_delta = |event: &turnwright_engine::Event| matches!(event, turnwright_engine::Event::TextDelta { .. });
    while !watch.next().await.unwrap().events.iter().any(is_delta) {}
    world.engine.cancel(&world.id, None).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    assert_eq!(world.kinds().await[3..], ["cancel_requested", "assistant", "ended"]);

    let late = world.engine.cancel(&world.id, Some(sent.turn_id)).await.unwrap_err();
    assert_eq!(late, EngineError::NoOpenTurn { why: "turn `turn_1` is not open".to_owned() });
}

#[tokio::test]
async fn a_stop_keeps_the_end_of_what_was_said_although_it_could_have_become_a_secret() {
    let gate = Arc::new(Semaphore::new(1));
    let provider = ScriptedProvider::new([Answer::of([text("Up to n59"), text(" more")]).gated(&gate)]);
    let world = world(provider, echo(), Setup::default()).await;
    let known = KnownSecrets::default();
    known.learn(["n59-is-how-it-begins"]);
    world.engine.keep_secrets(known);
    let mut watch = world.engine.watch(&world.id, turnwright_engine::WatchFrom::Now).await.unwrap();
    let sent = world.send("go").await;
    let mut told = String::new();
    let mut listen = async |end: &str| {
        while !told.ends_with(end) {
            for event in &*watch.next().await.unwrap().events {
                if let turnwright_engine::Event::TextDelta { text, .. } = event {
                    told.push_str(text);
                }
            }
        }
    };
    listen("Up to ").await;
    world.engine.cancel(&world.id, None).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    let journal = world.journal().await;
    let Some(Entry::Assistant(said)) = journal.entries().iter().map(|stored| &*stored.entry).nth(4) else {
        panic!("{journal:?}")
    };
    assert_eq!(said.text(), "Up to n59");
    listen("n59").await;
    assert_eq!(told, "Up to n59");
}

#[tokio::test]
async fn a_stop_cancels_a_running_tool_whose_real_result_still_counts() {
    let (begun, ended) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let begun_inside = begun.clone();
    let tool = ScriptedTool::new("work", move |_, context| {
        let begun = begun_inside.clone();
        async move {
            begun.add_permits(1);
            context.cancel.cancelled().await;
            Ok(ToolOutput::text("wrote half"))
        }
    });
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__work", "{}")])]);
    let world = world(provider, ScriptedSource::new("tools", [tool]), Setup::default()).await;
    let sent = world.send("go").await;
    begun.acquire().await.unwrap().forget();
    world.engine.cancel(&world.id, None).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    assert_eq!(results(&world.journal().await), ["call_4_0 Success wrote half"]);
    drop(ended);
}

#[tokio::test]
async fn what_a_tool_says_to_a_stop_is_told_beside_it() {
    let cases = [
        (ToolErrorKind::Interrupted, "The user stopped the turn while `tools__work` ran. It says: half of it is written"),
        (
            ToolErrorKind::ExecutionFailed,
            "The user stopped the turn while `tools__work` ran. It may or may not have happened. It says: half of it is written",
        ),
        (ToolErrorKind::Cancelled, "The user stopped the turn while `tools__work` ran. It may or may not have happened."),
    ];
    for (kind, text) in cases {
        let begun = Arc::new(Semaphore::new(0));
        let begun_inside = begun.clone();
        let tool = ScriptedTool::new("work", move |_, context| {
            let begun = begun_inside.clone();
            async move {
                begun.add_permits(1);
                context.cancel.cancelled().await;
                tokio::time::sleep(Duration::from_millis(20)).await;
                Err(ToolError::new(kind, "half of it is written"))
            }
        });
        let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__work", "{}")])]);
        let world = world(provider, ScriptedSource::new("tools", [tool]), Setup::default()).await;
        let sent = world.send("go").await;
        begun.acquire().await.unwrap().forget();
        world.engine.cancel(&world.id, None).await.unwrap();
        assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
        assert_eq!(results(&world.journal().await), [format!("call_4_0 Error(Interrupted) {text}")]);
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_one_that_was_meant_and_how_many_more_there_are() {
    let others = (0..60).map(|number| ScriptedTool::echo(&format!("a{number:02}")));
    let source = ScriptedSource::new("tools", others.chain([ScriptedTool::echo("get_weather")]));
    let provider = ScriptedProvider::new([Answer::whole([call(0, "get_weather", "{}")]), Answer::whole([text("I see.")])]);
    let world = world(provider, source, Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let told = results(&world.journal().await).remove(0);
    assert!(told.contains("The tools are: tools__get_weather, tools__a00, "), "{told}");
    assert!(told.ends_with(", tools__a38 and 21 more."), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_a_tool_does_not_heed_is_told_to_watchers_within_a_fifth_of_a_second() {
    let begun = Arc::new(Semaphore::new(0));
    let begun_inside = begun.clone();
    let tool = ScriptedTool::new("deaf", move |_, _| {
        begun_inside.add_permits(1);
        std::future::pending::<Result<ToolOutput, _>>()
    });
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__deaf", "{}")])]);
    let world = world(provider, ScriptedSource::new("tools", [tool]), Setup::default()).await;
    let sent = world.send("go").await;
    begun.acquire().await.unwrap().forget();
    let mut watch = world.engine.watch(&world.id, turnwright_engine::WatchFrom::Now).await.unwrap();
    let stopped = tokio::time::Instant::now();
    world.engine.cancel(&world.id, None).await.unwrap();
    let text = "`tools__deaf` was told to end and has not ended yet".to_owned();
    let notice = turnwright_engine::Event::Notice { level: "info", text };
    while !watch.next().await.unwrap().events.contains(&notice) {}
    assert!(stopped.elapsed() <= Duration::from_millis(200), "by the clock that the test holds");
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
}

#[tokio::test]
async fn the_same_idempotency_key_stores_one_message() {
    let provider = ScriptedProvider::new([Answer::whole([text("Once.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    let keyed = |fingerprint: &str| NewMessage {
        idempotency: Some(("k".to_owned(), fingerprint.to_owned())),
        ..NewMessage::text("go")
    };
    let first = world.engine.send(&world.id, keyed("a")).await.unwrap();
    world.engine.wait(&world.id, first.turn_id).await.unwrap();
    assert_eq!(world.engine.send(&world.id, keyed("a")).await.unwrap(), first);
    assert_eq!(world.engine.send(&world.id, keyed("b")).await.unwrap_err(), EngineError::KeyReused { key: "k".to_owned() });
    assert_eq!(world.provider.asked().len(), 1);
}

#[tokio::test]
async fn a_message_is_stored_once_for_what_it_is_known_as_whatever_its_own_key() {
    let world = world(ScriptedProvider::new([Answer::whole([text("Once.")])]), echo(), Setup::default()).await;
    let known_as = |key: Option<&str>| NewMessage {
        idempotency: key.map(|key| (key.to_owned(), "f".to_owned())),
        known_as: Some(KnownAs { key: "page".to_owned(), after: None }),
        ..NewMessage::text("go")
    };
    let first = world.engine.send(&world.id, known_as(Some("k1"))).await.unwrap();
    for key in [Some("k1"), Some("k2"), None] {
        assert_eq!(world.engine.send(&world.id, known_as(key)).await.unwrap(), first, "{key:?}");
    }
    world.engine.wait(&world.id, first.turn_id).await.unwrap();
    assert_eq!(world.engine.said_before("page", "").await.unwrap(), Some((world.id.clone(), first)));
    assert_eq!(world.provider.asked().len(), 1);
}

#[tokio::test]
async fn a_message_that_is_known_by_what_was_said_before_it_is_stored_behind_that_alone() {
    let answers = [Answer::whole([text("One.")]), Answer::whole([text("Two.")])];
    let world = world(ScriptedProvider::new(answers), echo(), Setup::default()).await;
    let known_as = |after| NewMessage { known_as: Some(KnownAs { key: "page".to_owned(), after }), ..NewMessage::text("mine") };
    let other = world.engine.send(&world.id, NewMessage::text("another's")).await.unwrap();
    world.engine.wait(&world.id, other.turn_id).await.unwrap();
    let before = world.journal().await.last_seq();
    assert_eq!(world.engine.send(&world.id, known_as(None)).await.unwrap_err(), EngineError::SaidMeanwhile);
    assert_eq!(world.journal().await.last_seq(), before, "nothing is stored");
    let sent = world.engine.send(&world.id, known_as(Some(other.message_id.0))).await.unwrap();
    assert_eq!(world.engine.send(&world.id, known_as(Some(other.message_id.0))).await.unwrap(), sent);
    world.engine.wait(&world.id, sent.turn_id).await.unwrap();
}

#[tokio::test]
async fn a_turn_is_taken_up_once_for_an_idempotency_key() {
    let failure = ProviderFailure::new(ProviderFailureKind::Server, "out of order");
    let provider = ScriptedProvider::new([Answer::of([]).failing(failure), Answer::whole([text("Went on.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    let (engine, id) = (&world.engine, &world.id);
    let sent = engine.send(id, NewMessage::text("go")).await.unwrap();
    engine.wait(id, sent.turn_id).await.unwrap();
    let last = engine.journal(id).await.unwrap().last_seq();
    let retry = |fingerprint: &str| {
        let key = Some(("k".to_owned(), fingerprint.to_owned()));
        engine.retry_once(id, SettingsOverlay::default(), key)
    };
    let (one, other) = futures_util::join!(retry("a"), retry("a"));
    let one = one.unwrap();
    assert_eq!((one.turn_id, Some(one.message_id.0)), (sent.turn_id, last));
    assert_eq!(other.as_ref(), Ok(&one));
    assert_eq!(engine.wait(id, one.turn_id).await.unwrap(), completed());
    assert_eq!(retry("a").await, Ok(one), "also where it ended well");
    assert_eq!(retry("b").await, Err(EngineError::KeyReused { key: "k".to_owned() }));
    assert_eq!(world.provider.asked().len(), 2);
}

#[tokio::test]
async fn a_conversation_begins_with_its_first_message_and_gets_a_title() {
    let provider = ScriptedProvider::new([Answer::whole([text("Hi.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    let id = "fresh".parse().unwrap();
    let long = "\n  How do I plan a very long journey through all the capitals of Europe by night train?\nPlease.";
    let sent = world.engine.send(&id, NewMessage { create: true, ..NewMessage::text(long) }).await.unwrap();
    world.engine.wait(&id, sent.turn_id).await.unwrap();
    let title = world.engine.conversation(&id).await.unwrap().title;
    assert_eq!(title.as_deref(), Some("How do I plan a very long journey through all the capitals…"));
    let missing = world.engine.send(&"nobody".parse().unwrap(), NewMessage::text("x")).await.unwrap_err();
    assert_eq!(missing, EngineError::NotFound { what: "conversation `nobody`".to_owned() });
}

#[tokio::test]
async fn no_call_runs_in_a_turn_that_may_call_nothing() {
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__echo", "{}")]), Answer::whole([text("Done.")])]);
    let world = world(provider, echo(), Setup::default()).await;
    let overlay = SettingsOverlay { tool_choice: Some(ToolChoice::None), ..SettingsOverlay::default() };
    let sent = world.engine.send(&world.id, NewMessage { overlay, ..NewMessage::text("go") }).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    let text =
        "call_4_0 Error(PermissionDenied) `tools__echo` did not run: no tool may be called in this turn. Answer without one.";
    assert_eq!((world.source.effects().len(), results(&world.journal().await)), (0, vec![text.to_owned()]));
}
