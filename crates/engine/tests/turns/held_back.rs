//! Tools that are held back, and found.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::{ApproveMode, Control, Entry, Journal, Outcome, SEARCH_TOOL, ToolChoice, Verdict};
use turnwright_engine::{Choice, Engine, HoldBack, NewMessage, SettingsOverlay, TurnState};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, engine, id, results, world};

const HELD: &str = "mail__send_letter";

fn mail() -> ScriptedSource {
    let others = (0..30).map(|number| ScriptedTool::echo(&format!("archive_{number}")));
    let letter = ScriptedTool::echo("send_letter").schema(json!({
        "type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"], "additionalProperties": false
    }));
    ScriptedSource::new("mail", others.chain([letter, ScriptedTool::echo("print")]))
}

fn search(query: &str) -> Answer {
    Answer::whole([call(0, SEARCH_TOOL, &json!({"query": query}).to_string())])
}

fn letter() -> Answer {
    Answer::whole([call(0, HELD, r#"{"to":"Ana"}"#)])
}

fn done() -> Answer {
    Answer::whole([text("Done.")])
}

fn hold_back() -> HoldBack {
    HoldBack { above_share: 0.0, results: 1, ..HoldBack::default() }
}

async fn held(answers: impl IntoIterator<Item = Answer>, approve: ApproveMode) -> World {
    let world = world(ScriptedProvider::new(answers), mail(), Setup { approve, ..Setup::default() }).await;
    world.engine.hold_back(hold_back());
    world
}

fn offered(journal: &Journal) -> Vec<&str> {
    journal.offered().iter().map(|tool| tool.name.as_str()).collect()
}

fn offers(journal: &Journal) -> usize {
    let offers = |entry: &Entry| matches!(entry, Entry::Control(Control::Offered { .. }));
    journal.entries().iter().filter(|stored| offers(&stored.entry)).count()
}

#[tokio::test]
async fn a_search_stands_in_the_place_of_the_tools_and_what_it_finds_can_be_called_from_then_on() {
    let world = held([search("post a letter"), letter(), done(), letter(), done()], ApproveMode::All).await;
    assert_eq!(world.turn("write to Ana").await, completed());
    let journal = world.journal().await;
    assert_eq!(offered(&journal), [SEARCH_TOOL, HELD]);
    let all = results(&journal);
    assert!(all[0].contains("`mail__send_letter`"), "{all:?}");
    assert_eq!(world.source.effects().len(), 1);
    // The next turn offers the same, in the same order, without another entry.
    assert_eq!(world.turn("and again").await, completed());
    assert_eq!((offers(&world.journal().await), world.source.effects().len()), (1, 2));
}

#[tokio::test]
async fn another_process_goes_on_with_what_was_found() {
    let store = Arc::new(MemoryStore::default());
    let begun = |answers: Vec<Answer>| {
        let setup = Setup::default();
        let engine = engine(store.clone(), ScriptedProvider::new(answers), Arc::new(mail()), setup);
        engine.hold_back(hold_back());
        engine
    };
    let say = |engine: Engine| async move {
        let sent = engine.send(&id(), NewMessage { create: true, ..NewMessage::text("write") }).await.unwrap();
        assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
        engine.journal(&id()).await.unwrap()
    };
    let first = say(begun(vec![search("letter"), done()])).await;
    let second = say(begun(vec![letter(), done()])).await;
    assert_eq!((offered(&first), offers(&second)), (vec![SEARCH_TOOL, HELD], 1));
}

#[tokio::test]
async fn a_tool_that_the_model_names_without_having_found_it_runs_and_is_offered_from_then_on() {
    let world = held([letter(), done()], ApproveMode::All).await;
    assert_eq!(world.turn("write to Ana").await, completed());
    assert_eq!((offered(&world.journal().await), world.source.effects().len()), (vec![SEARCH_TOOL, HELD], 1));
}

#[tokio::test]
async fn arguments_that_were_guessed_are_refused_and_the_definition_is_there_to_do_it_right() {
    let world = held([Answer::whole([call(0, HELD, r#"{"recipient":"Ana"}"#)]), letter(), done()], ApproveMode::All).await;
    assert_eq!(world.turn("write to Ana").await, completed());
    let journal = world.journal().await;
    let all = results(&journal);
    assert!(all[0].contains("did not run"), "{all:?}");
    assert_eq!((offered(&journal), world.source.effects().len()), (vec![SEARCH_TOOL, HELD], 1));
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_refused_with_what_finds_one() {
    let world = held([Answer::whole([call(0, "mail__fly", "{}")]), search("qqq zzz"), done()], ApproveMode::All).await;
    assert_eq!(world.turn("fly").await, completed());
    let journal = world.journal().await;
    let all = results(&journal);
    assert!(all[0].contains("Call `tools__search`"), "{all:?}");
    assert!(all[1].contains("There are tools of: mail."), "{all:?}");
    assert_eq!(offered(&journal), [SEARCH_TOOL]);
}

#[tokio::test]
async fn a_found_tool_is_asked_about_like_any_other_and_the_search_is_not() {
    let world = held([search("letter"), letter(), done()], ApproveMode::Ask).await;
    assert_eq!(world.turn("write to Ana").await, TurnState::Parked);
    let waiting = world.engine.waiting(&world.id).await.unwrap();
    assert_eq!(waiting.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), [HELD]);
    let choice = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
    world.engine.decide(&world.id, waiting[0].call, choice).await.unwrap();
    let turn = world.journal().await.turn().unwrap().id();
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(world.source.effects().len(), 1);
}

#[tokio::test]
async fn what_a_conversation_does_not_use_is_neither_found_nor_callable() {
    let world = held([search("letter"), letter(), done()], ApproveMode::All).await;
    let overlay = SettingsOverlay { tools: Some(vec!["mail__archive*".to_owned()]), ..SettingsOverlay::default() };
    let sent = world.engine.send(&world.id, NewMessage { overlay, ..NewMessage::text("write") }).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    let journal = world.journal().await;
    assert!(!offered(&journal).contains(&HELD));
    assert_eq!(world.source.effects().len(), 0);
    let mut failed = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Result(result) => Some(result.outcome != Outcome::Success),
        _ => None,
    });
    assert_eq!(failed.next_back(), Some(true));
}

#[tokio::test]
async fn what_the_request_demands_and_what_is_always_offered_is_not_held_back() {
    let world = world(ScriptedProvider::new([done()]), mail(), Setup::default()).await;
    world.engine.hold_back(HoldBack { always: vec!["mail__pri*".to_owned()], ..hold_back() });
    let tool_choice = Some(ToolChoice::Tool(HELD.to_owned()));
    let overlay = SettingsOverlay { tool_choice, ..SettingsOverlay::default() };
    let sent = world.engine.send(&world.id, NewMessage { overlay, ..NewMessage::text("write") }).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    assert_eq!(offered(&world.journal().await), ["mail__print", HELD, SEARCH_TOOL]);
    assert_eq!(world.engine.tools().await.len(), 32, "people see all");
}

#[tokio::test]
async fn few_tools_are_offered_whole() {
    let world = world(ScriptedProvider::new([done()]), mail(), Setup::default()).await;
    world.engine.hold_back(HoldBack::default());
    assert_eq!(world.turn("hello").await, completed());
    assert_eq!(world.journal().await.offered().len(), 32);
}

#[tokio::test]
async fn more_tools_than_the_provider_takes_are_held_back_however_small_they_are() {
    for (most, count) in [(31, 1), (32, 32)] {
        let world = world(ScriptedProvider::with_few_tools(most, [done()]), mail(), Setup::default()).await;
        world.engine.hold_back(HoldBack::default());
        assert_eq!(world.turn("hello").await, completed());
        assert_eq!(world.journal().await.offered().len(), count, "{most}");
    }
}

#[tokio::test]
async fn what_was_called_before_tools_were_held_back_stays_offered() {
    let store = Arc::new(MemoryStore::default());
    let before = engine(store.clone(), ScriptedProvider::new([letter(), done()]), Arc::new(mail()), Setup::default());
    let sent = before.send(&id(), NewMessage { create: true, ..NewMessage::text("write") }).await.unwrap();
    assert_eq!(before.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let after = engine(store, ScriptedProvider::new([done()]), Arc::new(mail()), Setup::default());
    after.hold_back(hold_back());
    let sent = after.send(&id(), NewMessage::text("again")).await.unwrap();
    assert_eq!(after.wait(&id(), sent.turn_id).await.unwrap(), completed());
    assert_eq!(offered(&after.journal(&id()).await.unwrap()), [SEARCH_TOOL, HELD]);
}
