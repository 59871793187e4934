//! Turns that wait for people: nothing is held for them.

use turnwright_core::{ApproveMode, ConversationId, Verdict};
use turnwright_engine::{Choice, Engine, EngineLoad, NewConversation, NewMessage, TurnState};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine};

/// More than are kept in memory to spare a read.
const TURNS: usize = 400;

/// What is kept of conversations at most that nobody uses.
const MOST_IN_MEMORY: usize = 320;

/// What the engine has to do once its drivers have ended.
async fn at_rest(engine: &Engine) -> EngineLoad {
    while engine.workload().driven_turns > 0 {
        tokio::task::yield_now().await;
    }
    engine.workload()
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_is_driven_and_watched_by_nobody_and_goes_on_from_what_is_stored() {
    let provider = ScriptedProvider::by(|asked| {
        let is_answered = asked.contains("result: ");
        Answer::whole([if is_answered { text("Done.") } else { call(0, "tools__write", "{}") }])
    });
    let source = std::sync::Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("write")]));
    let setup = Setup { approve: ApproveMode::Ask, ..Setup::default() };
    let engine = engine(MemoryStore::default(), provider, source.clone(), setup);
    let names = (0..TURNS).map(|number| format!("c{number}").parse().unwrap());
    let names: Vec<ConversationId> = names.collect();
    let mut turns = Vec::new();
    for name in &names {
        engine.create(NewConversation { id: Some(name.clone()), ..NewConversation::default() }).await.unwrap();
        let sent = engine.send(name, NewMessage::text("go")).await.unwrap();
        assert_eq!(engine.wait(name, sent.turn_id).await.unwrap(), TurnState::Parked);
        turns.push(sent.turn_id);
    }
    let load = at_rest(&engine).await;
    assert_eq!((load.driven_turns, load.watchers), (0, 0));
    assert!(load.conversations <= MOST_IN_MEMORY, "{TURNS} turns wait, {load:?}");
    assert_eq!(source.effects().len(), 0);
    // The first is not in memory any more; it goes on all the same, as the last does.
    for at in [0, TURNS - 1] {
        let call = engine.waiting(&names[at]).await.unwrap()[0].call;
        let choice = Choice { verdict: Verdict::Allow, arguments: None, reason: None };
        engine.decide(&names[at], call, choice).await.unwrap();
        assert_eq!(engine.wait(&names[at], turns[at]).await.unwrap(), completed());
    }
    assert_eq!(source.effects().len(), 2);
    assert_eq!(at_rest(&engine).await.driven_turns, 0);
    engine.shutdown().await;
}
