//! What whoever is not let through the door of decisions can do all the same: nothing by which more runs without a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::Semaphore;
use turnwright_core::{
    ApproveMode, ContentBlock, ConversationId, Declared, ProviderFailure, ProviderFailureKind, ToolDefinition, Verdict,
};
use turnwright_engine::{
    Choice, ClientResult, ConversationChange, Door, EngineError, NewConversation, NewMessage, OnWaiting, SettingsOverlay,
    TurnState,
};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, decisions, world};

/// A door behind which nobody stands; it counts how often it was asked.
#[derive(Debug, Default)]
struct Closed(AtomicUsize);

#[async_trait]
impl Door for Closed {
    async fn open(&self) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err("a test asks".to_owned())
    }
}

#[derive(Debug)]
struct Open;

#[async_trait]
impl Door for Open {
    async fn open(&self) -> Result<(), String> {
        Ok(())
    }
}

fn overlay(approve: Option<ApproveMode>) -> SettingsOverlay {
    SettingsOverlay { approve, ..SettingsOverlay::default() }
}

async fn with_answers(approve: ApproveMode, count: usize) -> World {
    let provider = ScriptedProvider::new(std::iter::repeat_with(|| Answer::whole([text("Well.")])).take(count));
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
    world(provider, source, Setup { approve, ..Setup::default() }).await
}

/// A tool of a client's.
fn pick() -> ToolDefinition {
    ToolDefinition {
        name: "pick".to_owned(),
        source: "client".to_owned(),
        tool: "pick".to_owned(),
        title: None,
        description: String::new(),
        input_schema: serde_json::json!({"type": "object"}),
        annotations: None,
        declared: Declared::default(),
    }
}

fn refused() -> EngineError {
    EngineError::PeopleOnly { why: "a test asks".to_owned() }
}

/// Says something in a conversation of this stored mode with this mode of its own.
async fn say(
    world: &World,
    door: Option<Arc<dyn Door>>,
    (stored, own): (Option<ApproveMode>, Option<ApproveMode>),
) -> Result<(), EngineError> {
    let new = NewConversation { overlay: overlay(stored), ..NewConversation::default() };
    let made = world.engine.create(new).await.unwrap();
    let engine = world.engine.at_door(door);
    let message = NewMessage { overlay: overlay(own), ..NewMessage::text("go") };
    let sent = engine.send(&made.id, message).await?;
    engine.wait(&made.id, sent.turn_id).await.unwrap();
    Ok(())
}

#[tokio::test]
async fn no_turn_begins_in_which_more_runs_without_a_person_than_by_default_and_by_the_conversation() {
    use ApproveMode::{All, Ask, None as Nothing, ReadOnly};
    let table = [
        // The installation's mode, the conversation's, the message's, whether it needs a person.
        (Ask, None, None, false),
        (Ask, None, Some(Ask), false),
        (Ask, None, Some(ReadOnly), false),
        (Ask, None, Some(Nothing), false),
        (Ask, None, Some(All), true),
        (Ask, Some(All), None, true),
        (Ask, Some(All), Some(Ask), false),
        (Ask, Some(All), Some(All), true),
        (Ask, Some(Nothing), None, false),
        (Ask, Some(Nothing), Some(ReadOnly), true),
        (Ask, Some(Nothing), Some(Ask), true),
        (Nothing, None, Some(Ask), true),
        (Nothing, Some(Ask), None, true),
        (All, None, None, false),
        (All, None, Some(All), false),
        (All, Some(Ask), None, false),
        (All, Some(Ask), Some(All), true),
    ];
    for (default, stored, own, needs_a_person) in table {
        let world = with_answers(default, 2).await;
        let about = format!("{default} {stored:?} {own:?}");
        let door = Arc::new(Closed::default());
        let said = say(&world, Some(door.clone()), (stored, own)).await;
        assert_eq!(said, if needs_a_person { Err(refused()) } else { Ok(()) }, "{about}");
        // A look may cost something: nobody is looked at where it decides nothing.
        assert_eq!(door.0.load(Ordering::Relaxed), usize::from(needs_a_person), "{about}");
        say(&world, Some(Arc::new(Open)), (stored, own)).await.unwrap();
    }
}

#[tokio::test]
async fn a_conversation_is_neither_made_nor_changed_so_that_more_runs_without_a_person() {
    let world = with_answers(ApproveMode::Ask, 0).await;
    let door: Arc<dyn Door> = Arc::new(Closed::default());
    let engine = world.engine.at_door(Some(door));
    let new = |approve| NewConversation { overlay: overlay(approve), ..NewConversation::default() };
    assert_eq!(engine.create(new(Some(ApproveMode::All))).await.unwrap_err(), refused());
    let begins = NewMessage { create: true, conversation: overlay(Some(ApproveMode::All)), ..NewMessage::text("go") };
    let other: ConversationId = "other".parse().unwrap();
    assert_eq!(engine.send(&other, begins).await.unwrap_err(), refused());
    let made = engine.create(new(Some(ApproveMode::None))).await.unwrap();
    for approve in [Some(ApproveMode::All), Some(ApproveMode::Ask), None] {
        let change = ConversationChange { overlay: Some(overlay(approve)), ..ConversationChange::default() };
        assert_eq!(engine.update(&made.id, change).await.unwrap_err(), refused(), "{approve:?}");
    }
    let call = engine.call_tool("tools__write", "{}", ApproveMode::All).await;
    assert_eq!(call.unwrap_err(), refused());
    assert!(world.source.effects().is_empty());
}

#[tokio::test]
async fn what_a_person_began_is_not_used_by_whoever_is_none() {
    let provider = ScriptedProvider::new([
        Answer::whole([call(0, "tools__write", "{}")]),
        Answer::whole([text("Done.")]),
        Answer::whole([text("Denied, then.")]),
    ]);
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
    let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
    assert_eq!(world.turn("go").await, TurnState::Parked);
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    let tool = world.engine.at_door(Some(Arc::new(Closed::default())));
    let choice = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    assert_eq!(tool.decide(&world.id, waiting[0].call, choice.clone()).await.unwrap_err(), refused());
    let decides = NewMessage { answers: decisions([(waiting[0].call, choice)]), ..NewMessage::text("go on") };
    assert_eq!(tool.send(&world.id, decides).await.unwrap_err(), refused());
    // A message may wait beside the question; it declines nothing in a person's name.
    let declines = NewMessage { on_waiting: OnWaiting::Deny, ..NewMessage::text("never mind") };
    assert_eq!(tool.send(&world.id, declines.clone()).await.unwrap_err(), refused());
    tool.send(&world.id, NewMessage { on_waiting: OnWaiting::Hold, ..declines.clone() }).await.unwrap();
    // Nor is what waits gone by a stop of its turn, or declined by whoever may not decide.
    assert_eq!(tool.cancel(&world.id, None).await.unwrap_err(), refused());
    let bounded = world.engine.without_decisions();
    let what = "the message would decline what waits for a person, for which the right to decide (`approve`) is \
                missing; with `on_waiting: hold`, where the route has that, it waits beside it";
    let what = what.to_owned();
    assert_eq!(bounded.send(&world.id, declines.clone()).await.unwrap_err(), EngineError::NotAllowed { what });
    assert_eq!(world.engine.waiting(&world.id).await.unwrap(), waiting);
    let turn = world.engine.send(&world.id, declines).await.unwrap().turn_id;
    world.engine.wait(&world.id, turn).await.unwrap();
    assert!(world.source.effects().is_empty());
}

#[tokio::test]
async fn whoever_may_not_decide_stops_a_turn_and_a_person_one_in_which_something_waits() {
    for may_decide in [true, false] {
        let provider = ScriptedProvider::new([Answer::whole([call(0, "tools__write", "{}")])]);
        let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
        let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
        assert_eq!(world.turn("go").await, TurnState::Parked);
        let person = world.engine.at_door(Some(Arc::new(Open)));
        let person = if may_decide { person } else { person.without_decisions() };
        let turn = person.cancel(&world.id, None).await.unwrap();
        assert_ne!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Parked);
        assert!(world.source.effects().is_empty());
    }
}

#[tokio::test]
async fn a_copy_of_whoever_may_not_decide_is_one_in_which_they_are_asked() {
    use ApproveMode::{All, Ask, None as Nothing};
    let table = [
        // The installation's mode, the conversation's, what a copy has of whoever may not decide.
        (Ask, Some(All), None),
        (Ask, Some(Nothing), Some(Nothing)),
        (Ask, None, None),
        (Nothing, Some(Ask), None),
        (All, Some(All), Some(All)),
    ];
    for (default, stored, copied) in table {
        let world = with_answers(default, 0).await;
        let overlay = SettingsOverlay { max_steps: Some(7), ..overlay(stored) };
        let new = NewConversation { overlay: overlay.clone(), ..NewConversation::default() };
        let made = world.engine.create(new).await.unwrap();
        let about = format!("{default} {stored:?}");
        for (engine, approve) in [
            (world.engine.clone(), stored),
            (world.engine.without_decisions(), copied),
            (world.engine.at_door(Some(Arc::new(Closed::default()))), copied),
        ] {
            let copy = engine.fork(&made.id, None, NewConversation::default()).await.unwrap();
            assert_eq!(copy.overlay, SettingsOverlay { approve, ..overlay.clone() }, "{about}");
        }
    }
}

#[tokio::test]
async fn a_turn_in_which_all_runs_is_neither_joined_nor_taken_up_again() {
    let gate = Arc::new(Semaphore::new(0));
    let failure = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "it failed");
    let provider = ScriptedProvider::new([Answer::of([]).failing(failure).gated(&gate), Answer::whole([text("Well.")])]);
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
    let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
    let all = NewMessage { overlay: overlay(Some(ApproveMode::All)), ..NewMessage::text("go") };
    let sent = world.engine.send(&world.id, all).await.unwrap();
    let tool = world.engine.at_door(Some(Arc::new(Closed::default())));
    assert_eq!(tool.send(&world.id, NewMessage::text("and more")).await.unwrap_err(), refused());
    gate.add_permits(1);
    world.engine.wait(&world.id, sent.turn_id).await.unwrap();
    assert_eq!(tool.retry(&world.id, SettingsOverlay::default()).await.unwrap_err(), refused());
    assert_eq!(tool.retry(&world.id, overlay(Some(ApproveMode::Ask))).await, Ok(sent.turn_id));
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
}

#[tokio::test]
async fn what_a_person_let_run_for_one_message_is_not_for_whoever_may_not_decide() {
    let gate = Arc::new(Semaphore::new(0));
    let failure = ProviderFailure::new(ProviderFailureKind::InvalidRequest, "it failed");
    let provider = ScriptedProvider::new([Answer::of([]).failing(failure).gated(&gate), Answer::whole([text("Well.")])]);
    let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
    let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
    let lets_run = NewMessage { overlay: overlay(Some(ApproveMode::All)), ..NewMessage::text("go") };
    let turn = world.engine.send(&world.id, lets_run).await.unwrap().turn_id;
    let bounded = world.engine.without_decisions();
    let what = "with approve mode `all` more runs without a person than with `ask`, which holds for whoever asks".to_owned();
    let refused = EngineError::NotAllowed { what };
    assert_eq!(bounded.send(&world.id, NewMessage::text("and this")).await.unwrap_err(), refused);
    gate.add_permits(2);
    assert!(matches!(world.engine.wait(&world.id, turn).await.unwrap(), TurnState::Ended(_)));
    assert_eq!(bounded.retry(&world.id, SettingsOverlay::default()).await.unwrap_err(), refused);
    // A turn of its own is one in which people are asked.
    let own = bounded.send(&world.id, NewMessage::text("and this")).await.unwrap().turn_id;
    assert_eq!(world.engine.wait(&world.id, own).await.unwrap(), completed());
}

#[tokio::test]
async fn whoever_may_not_decide_says_nothing_by_results_where_more_runs_than_was_chosen() {
    let what = "with approve mode `all` more runs without a person than with `ask`, which holds for whoever asks".to_owned();
    for (mode, refused_to_bounded) in [(ApproveMode::All, true), (ApproveMode::Ask, false)] {
        let answers = [Answer::whole([call(0, "pick", "{}")]), Answer::whole([call(0, "tools__write", "{}")])];
        let provider = ScriptedProvider::new(answers.into_iter().chain([Answer::whole([text("Well.")])]));
        let source = ScriptedSource::new("tools", [ScriptedTool::echo("write")]);
        let world = world(provider, source, Setup { approve: ApproveMode::Ask, ..Setup::default() }).await;
        let overlay = SettingsOverlay { client_tools: Some(vec![Arc::new(pick())]), ..overlay(Some(mode)) };
        let sent = world.engine.send(&world.id, NewMessage { overlay, ..NewMessage::text("go") }).await.unwrap();
        assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Parked);
        let waiting = world.engine.waiting(&world.id).await.unwrap();
        let given = || {
            let content = vec![ContentBlock::text("red")];
            vec![ClientResult { call: waiting[0].call, content, is_error: false }]
        };
        let bounded = world.engine.without_decisions();
        let tool = world.engine.at_door(Some(Arc::new(Closed::default())));
        if refused_to_bounded {
            let not_allowed = EngineError::NotAllowed { what: what.clone() };
            assert_eq!(bounded.give_results(&world.id, given()).await.unwrap_err(), not_allowed);
            assert_eq!(tool.give_results(&world.id, given()).await.unwrap_err(), refused());
            assert_eq!(world.engine.waiting(&world.id).await.unwrap(), waiting, "nothing is stored");
            world.engine.give_results(&world.id, given()).await.unwrap();
        } else {
            bounded.give_results(&world.id, given()).await.unwrap();
        }
        // What is there already changes nothing, whoever brings it.
        bounded.give_results(&world.id, given()).await.unwrap();
        let state = world.engine.wait(&world.id, sent.turn_id).await.unwrap();
        assert_eq!(state, if refused_to_bounded { completed() } else { TurnState::Parked });
    }
}
