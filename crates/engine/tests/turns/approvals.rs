//! Turns that wait for a person.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::sync::Semaphore;
use turnwright_core::policy::{Action, RuleText};
use turnwright_core::{ApproveMode, CallId, Entry, Seq, Verdict};
use turnwright_engine::{
    Answers, Awaited, Choice, EngineError, NewMessage, OnWaiting, SentState, SettingsOverlay, Stale, ToolOutput, ToolReply,
    TurnState,
};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, decisions, results, world};

fn choice(verdict: Verdict) -> Choice {
    Choice { verdict, arguments: None, reason: None }
}

fn asks() -> Setup {
    let rule = RuleText {
        tool: "tools__write".to_owned(),
        when: BTreeMap::from([("path".to_owned(), "/secret/**".into())]),
        action: Action::Deny,
    };
    Setup { approve: ApproveMode::Ask, rules: vec![rule], ..Setup::default() }
}

async fn parked() -> (World, CallId) {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("write").schema(schema)]);
    let provider =
        ScriptedProvider::new([Answer::whole([call(0, "tools__write", r#"{"path":"/a"}"#)]), Answer::whole([text("Done.")])]);
    let world = world(provider, source, asks()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    (world, CallId { message: Seq::new(4).unwrap(), index: 0 })
}

#[tokio::test]
async fn a_call_that_needs_approval_parks_the_turn_and_runs_once_allowed() {
    let (world, call) = parked().await;
    assert_eq!(world.kinds().await[3..], ["assistant", "question", "suspended"]);
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    assert_eq!((waiting[0].call, waiting[0].rule.as_deref()), (call, Some("approve mode ask")));
    assert!(world.source.effects().is_empty());
    let wrong = world.engine.decide(&world.id, call, choice(Verdict::Happened)).await.unwrap_err();
    let what = format!("`{call}` cannot be decided like this: it waits to be allowed: decide allow or deny");
    assert_eq!(wrong, EngineError::Invalid { what });
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(world.kinds().await[6..], ["decision", "claimed", "started", "result", "assistant", "ended"]);
    let again = world.engine.decide(&world.id, call, choice(Verdict::Deny)).await.unwrap_err();
    assert_eq!(again, EngineError::NotWaiting { call, why: "it was decided already: allow, by a person".to_owned() });
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_hears_why() {
    let (world, call) = parked().await;
    let deny = Choice { reason: Some("not today".to_owned()), ..choice(Verdict::Deny) };
    world.engine.decide(&world.id, call, deny).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    let expected = "call_4_0 Denied This call was denied by the user: not today. It did not run.";
    assert_eq!(results(&world.journal().await), [expected]);
    assert!(world.source.effects().is_empty());
}

#[tokio::test]
async fn changed_arguments_are_checked_run_and_told_to_the_model() {
    let (world, call) = parked().await;
    let changed = |arguments: &str| Choice { arguments: Some(arguments.to_owned()), ..choice(Verdict::Allow) };
    for (arguments, problem) in [
        (r#"{"path":7}"#, "the arguments do not fit the tool's schema: 7 is not of type \"string\" (at /path)"),
        (r#"{"path":"/secret/x"}"#, "the changed arguments are denied by rule 1 (deny tools__write when path = /secret/**)"),
    ] {
        let refused = world.engine.decide(&world.id, call, changed(arguments)).await.unwrap_err();
        assert_eq!(refused, EngineError::Invalid { what: problem.to_owned() });
    }
    world.engine.decide(&world.id, call, changed(r#"{"path":"/b"}"#)).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(world.source.effects()[0].arguments["path"], "/b");
    let told = &world.provider.asked()[1];
    assert!(told.contains("[The user changed the arguments of this call to: {\"path\":\"/b\"}]"), "{told}");
}

#[tokio::test]
async fn arguments_that_come_back_as_they_were_are_no_change() {
    let (world, call) = parked().await;
    let asked = world.journal().await.turn().unwrap().call(call).unwrap().arguments.to_owned();
    let spaced = asked.replace(':', " : ");
    assert_ne!(spaced, asked);
    let untouched = Choice { arguments: Some(spaced), ..choice(Verdict::Allow) };
    world.engine.decide(&world.id, call, untouched).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    let told = &world.provider.asked()[1];
    assert!(world.source.effects().len() == 1 && !told.contains("changed the arguments"), "{told}");
}

#[tokio::test]
async fn a_message_to_a_parked_turn_is_held_or_declines_what_waits() {
    let (world, call) = parked().await;
    let held = world.send("hello?").await;
    assert_eq!(held.state, SentState::Held);
    assert_eq!(world.engine.waiting(&world.id).await.unwrap().len(), 1);
    let deny = NewMessage { on_waiting: OnWaiting::Deny, ..NewMessage::text("never mind") };
    let sent = world.engine.send(&world.id, deny).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    let expected =
        format!("{call} Denied This call was denied by the user: they sent another message instead. It did not run.");
    assert_eq!(results(&world.journal().await), [expected]);
    assert!(world.provider.asked()[1].ends_with("user: hello?\nuser: never mind"));
}

#[tokio::test]
async fn what_is_decided_with_a_message_stands_after_it_and_what_waits_no_more_is_left() {
    let (world, call) = parked().await;
    let decided = decisions([(call, choice(Verdict::Allow)), (call, choice(Verdict::Deny))]);
    let answers = Answers { stale: Stale::Left, ..decided };
    let message = NewMessage { answers, on_waiting: OnWaiting::Deny, ..NewMessage::text("gently") };
    let sent = world.engine.send(&world.id, message.clone()).await.unwrap();
    assert_eq!((sent.state, world.engine.wait(&world.id, sent.turn_id).await.unwrap()), (SentState::Joined, completed()));
    assert_eq!(world.kinds().await[6..], ["user", "decision", "claimed", "started", "result", "assistant", "ended"]);
    assert!(world.provider.asked()[1].contains("user: gently"), "{}", world.provider.asked()[1]);
    assert_eq!(world.engine.send(&world.id, message).await.unwrap().state, SentState::Started);
    assert_eq!(world.source.effects().len(), 1);
}

#[tokio::test]
async fn a_message_is_held_where_not_all_is_decided_with_it() {
    for (decided, state, left) in [(1, SentState::Held, 1), (2, SentState::Joined, 0)] {
        let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
        let calls = [call(0, "tools__write", r#"{"n":1}"#), call(1, "tools__write", r#"{"n":2}"#)];
        let provider = ScriptedProvider::new([Answer::whole(calls), Answer::whole([text("Done.")])]);
        let world = world(provider, source, asks()).await;
        assert_eq!(world.turn("go").await, TurnState::Parked);
        let waiting = world.engine.waiting(&world.id).await.unwrap();
        let answers = decisions(waiting.iter().take(decided).map(|waiting| (waiting.call, choice(Verdict::Deny))));
        let sent = world.engine.send(&world.id, NewMessage { answers, ..NewMessage::text("and") }).await.unwrap();
        assert_eq!(sent.state, state);
        let after = world.engine.wait(&world.id, sent.turn_id).await.unwrap();
        assert_eq!(after == TurnState::Parked, left > 0);
        assert_eq!(world.engine.waiting(&world.id).await.unwrap().len(), left);
    }
}

#[tokio::test]
async fn what_is_decided_with_a_message_is_decided_whole_where_that_is_asked_for_or_nothing_is_stored() {
    let (world, call) = parked().await;
    let before = world.journal().await.last_seq();
    let deny = |call: CallId| (call, choice(Verdict::Deny));
    let other = CallId { index: 7, ..call };
    let says = |decided: &[_]| NewMessage { answers: decisions(decided.iter().cloned()), ..NewMessage::text("and") };
    let allow = (call, choice(Verdict::Allow));
    for refused in [says(&[deny(call), deny(other)]), says(&[deny(call), allow])] {
        world.engine.send(&world.id, refused).await.unwrap_err();
        assert_eq!(world.journal().await.last_seq(), before);
    }
    let sent = world.engine.send(&world.id, says(&[deny(call), deny(call)])).await.unwrap();
    world.engine.wait(&world.id, sent.turn_id).await.unwrap();
    let after = world.journal().await.last_seq();
    let made = world.journal().await.entries().iter().filter(|stored| matches!(*stored.entry, Entry::Decision(_))).count();
    assert_eq!(made, 1, "who decides the same twice at once decides it");
    // It is decided, and the turn is over.
    let again = says(&[deny(call)]);
    world.engine.send(&world.id, again.clone()).await.unwrap_err();
    assert_eq!(world.journal().await.last_seq(), after);
    // Left as it is, the message is said nevertheless.
    let left = NewMessage { answers: Answers { stale: Stale::Left, ..again.answers }, ..NewMessage::text("and then") };
    assert_eq!(world.engine.send(&world.id, left).await.unwrap().state, SentState::Started);
}

#[tokio::test]
async fn for_whom_nobody_can_be_asked_mode_ask_denies_and_others_are_what_was_chosen() {
    for (chosen, mode) in [
        (ApproveMode::Ask, ApproveMode::ReadOnly),
        (ApproveMode::None, ApproveMode::None),
        (ApproveMode::All, ApproveMode::All),
    ] {
        let provider = ScriptedProvider::new([Answer::whole([text("Hi.")])]);
        let world = world(
            provider,
            ScriptedSource::new("tools", [ScriptedTool::echo("write")]),
            Setup { approve: chosen, ..Setup::default() },
        )
        .await;
        let sent = world.engine.send(&world.id, NewMessage { denies_questions: true, ..NewMessage::text("go") }).await.unwrap();
        world.engine.wait(&world.id, sent.turn_id).await.unwrap();
        assert_eq!(world.journal().await.turn().unwrap().settings().approve, mode, "{chosen:?}");
    }
    // A turn that is open goes on as it began.
    let (world, _) = parked().await;
    let joins = NewMessage { denies_questions: true, ..NewMessage::text("and") };
    assert_eq!(world.engine.send(&world.id, joins).await.unwrap().state, SentState::Held);
}

#[tokio::test]
async fn what_joins_a_turn_may_choose_another_model_and_no_other_setting() {
    let (world, _) = parked().await;
    let before = world.journal().await;
    let saying = |overlay: SettingsOverlay| world.engine.send(&world.id, NewMessage { overlay, ..NewMessage::text("go on") });
    let turn = before.turn().unwrap();
    let refusal = EngineError::OtherSettings { turn: turn.id(), settings: Box::new(turn.settings().clone()) };
    for chosen in [
        SettingsOverlay { approve: Some(ApproveMode::None), ..SettingsOverlay::default() },
        SettingsOverlay { max_steps: Some(7), ..SettingsOverlay::default() },
        SettingsOverlay { tools: Some(vec!["none".to_owned()]), ..SettingsOverlay::default() },
        SettingsOverlay { system_prompt: Some("Be brief.".to_owned()), ..SettingsOverlay::default() },
    ] {
        assert_eq!(saying(chosen).await.unwrap_err(), refusal);
    }
    assert_eq!(world.journal().await.last_seq(), before.last_seq(), "nothing was stored");
    let same = SettingsOverlay { approve: Some(turn.settings().approve), ..SettingsOverlay::default() };
    assert_eq!(saying(same).await.unwrap().state, SentState::Held);
    let model = SettingsOverlay { model: Some("test/other".parse().unwrap()), ..SettingsOverlay::default() };
    assert_eq!(saying(model).await.unwrap().state, SentState::Held);
}

#[tokio::test]
async fn a_stop_ends_a_parked_turn() {
    let (world, _) = parked().await;
    let turn = world.engine.cancel(&world.id, None).await.unwrap();
    let ended = world.engine.wait(&world.id, turn).await.unwrap();
    assert_eq!(ended, TurnState::Ended(turnwright_core::TurnStatus::Cancelled));
    assert!(world.engine.all_waiting().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_definition_that_changed_after_it_was_allowed_asks_again() {
    let (begun, goes_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let gates = (begun.clone(), goes_on.clone());
    let hold = ScriptedTool::new("hold", move |_, _| {
        let (begun, goes_on) = gates.clone();
        async move {
            begun.add_permits(1);
            goes_on.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("held"))
        }
    });
    let write = |about: &str| ScriptedTool::echo("write").schema(json!({"type": "object", "description": about}));
    let source = ScriptedSource::new("tools", [hold, write("one")]).slots(1);
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__write", "{}")])]);
    let world = world(provider, source, asks()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let call = CallId { message: Seq::new(4).unwrap(), index: 0 };
    // The only slot is taken, so that the allowed call cannot begin before its definition changes.
    let by_hand = world.engine.call_tool("tools__hold", "{}", ApproveMode::All);
    let meanwhile = async {
        begun.acquire().await.unwrap().forget();
        world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
        world.source.set_tools([write("another")]);
        goes_on.add_permits(1);
    };
    let (by_hand, ()) = tokio::join!(by_hand, meanwhile);
    assert!(!by_hand.unwrap().outcome.is_error());
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    assert_eq!(waiting[0].reason.as_str(), "definition_changed");
    assert_eq!(world.source.effects().len(), 1);
}

/// A tool whose source finds, as it is first called, that it is another than was offered.
fn found_changed() -> ScriptedTool {
    let calls = AtomicUsize::new(0);
    ScriptedTool::asking("write", move |_, _| {
        let is_first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        async move { Ok(if is_first { ToolReply::Changed } else { ToolReply::Done(ToolOutput::text("written")) }) }
    })
}

#[tokio::test]
async fn a_change_that_is_found_as_the_call_begins_asks_again() {
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__write", "{}")]), Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [found_changed()]), asks()).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let call = CallId { message: Seq::new(4).unwrap(), index: 0 };
    let turn = world.journal().await.turn().unwrap().id();
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    assert_eq!((waiting[0].reason.as_str(), waiting[0].approval.to_string().as_str()), ("definition_changed", "appr_4_0-2"));
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(results(&world.journal().await), ["call_4_0 Success written"]);
}

#[tokio::test]
async fn a_change_that_is_found_where_nobody_can_be_asked_ends_the_call() {
    let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__write", "{}")]), Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [found_changed()]), Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let told = "call_4_0 Error(PermissionDenied) `tools__write` did not run: its definition changed since it was allowed.";
    assert_eq!(results(&world.journal().await), [told]);
}

#[tokio::test]
async fn a_definition_that_changed_while_a_person_was_asked_is_asked_about() {
    let (world, call) = parked().await;
    let changed = ScriptedTool::echo("write").schema(json!({"type": "object", "description": "another"}));
    world.source.set_tools([changed]);
    let turn = world.journal().await.turn().unwrap().id();
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
    assert_eq!(world.engine.waiting(&world.id).await.unwrap()[0].reason.as_str(), "definition_changed");
    assert_eq!(world.source.effects(), []);
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(world.source.effects().len(), 1);
}

#[tokio::test]
async fn a_yes_to_one_change_is_none_to_a_later_one() {
    let (world, call) = parked().await;
    let write = |about: &str| ScriptedTool::echo("write").schema(json!({"type": "object", "description": about}));
    world.source.set_tools([write("another")]);
    let turn = world.journal().await.turn().unwrap().id();
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
    let asked = world.engine.waiting(&world.id).await.unwrap().remove(0).approval;
    world.source.set_tools([write("a third")]);
    world.engine.decide_and_remember(&world.id, asked, choice(Verdict::Allow), None).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
    let waiting = world.engine.waiting(&world.id).await.unwrap().remove(0);
    assert_eq!((waiting.reason.as_str(), waiting.approval.to_string().as_str()), ("definition_changed", "appr_4_0-3"));
    assert_eq!(world.source.effects(), []);
    world.engine.decide_and_remember(&world.id, waiting.approval, choice(Verdict::Allow), None).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(world.source.effects().len(), 1);
}

#[tokio::test]
async fn what_turns_wait_for_is_told_when_it_changes_whose_ever_they_are() {
    let (world, call) = parked().await;
    let engine = world.engine.acting_for("somebody".parse().unwrap());
    let mut looked = HashMap::new();
    let waits = engine.changed_waits(&mut looked).await.unwrap();
    let calls: Vec<_> = waits[0].waits.iter().map(|wait| (wait.seq.get(), wait.what.clone())).collect();
    let waiting = world.engine.waiting(&world.id).await.unwrap().remove(0);
    assert_eq!((waits.len(), calls), (1, vec![(5, Awaited::Call(waiting))]));
    assert_eq!(engine.changed_waits(&mut looked).await.unwrap(), []);
    world.engine.decide(&world.id, call, choice(Verdict::Allow)).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!((engine.changed_waits(&mut looked).await.unwrap(), looked), (Vec::new(), HashMap::new()));
}
