//! What happens to turns when their process is to end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use turnwright_core::{ApproveMode, Verdict, text_of};
use turnwright_engine::{Choice, EngineError, NewMessage, ToolOutput, TurnState};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, kinds};

const GRACE: Duration = Duration::from_secs(10);

fn tools() -> Arc<ScriptedSource> {
    Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("echo")]))
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_its_step_and_the_next_process_goes_on_with_it() {
    let store = MemoryStore::default();
    let next = store.another_process();
    let gate = Arc::new(Semaphore::new(0));
    let asks = Answer::whole([call(0, "tools__echo", r#"{"a":1}"#)]).gated(&gate);
    let provider = ScriptedProvider::new([asks, Answer::whole([text("Never asked.")])]);
    let first = engine(store, provider.clone(), tools(), Setup::default());
    let message = NewMessage { create: true, ..NewMessage::text("go") };
    let sent = first.send(&id(), message).await.unwrap();
    while provider.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    let (drained, ()) = tokio::join!(first.drain(GRACE), async {
        while !first.is_draining() {
            tokio::task::yield_now().await;
        }
        let late = first.send(&id(), NewMessage::text("more")).await;
        assert!(matches!(late, Err(EngineError::ShuttingDown)), "{late:?}");
        gate.add_permits(1_000);
    });
    assert!(drained, "the step was not over in time");
    let stored = first.journal(&id()).await.unwrap();
    assert_eq!(kinds(&stored).last(), Some(&"result"));
    assert_eq!(provider.asked().len(), 1);
    first.shutdown().await;

    let second = engine(next, ScriptedProvider::new([Answer::whole([text("Done.")])]), tools(), Setup::default());
    second.resume(&id()).await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_longer_than_the_grace_is_told_to_have_failed_to_rest() {
    let gate = Arc::new(Semaphore::new(0));
    let provider = ScriptedProvider::new([Answer::whole([text("Slow.")]).gated(&gate)]);
    let engine = engine(MemoryStore::default(), provider.clone(), tools(), Setup::default());
    engine.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    while provider.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!engine.drain(GRACE).await);
    engine.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_person_decides_meanwhile_is_stored_and_the_next_process_acts_on_it() {
    let store = MemoryStore::default();
    let next = store.another_process();
    let asks = Answer::whole([call(0, "tools__echo", r#"{"a":1}"#)]);
    let setup = || Setup { approve: ApproveMode::Ask, ..Setup::default() };
    let first = engine(store, ScriptedProvider::new([asks]), tools(), setup());
    let sent = first.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    assert_eq!(first.wait(&id(), sent.turn_id).await.unwrap(), TurnState::Parked);
    assert!(first.drain(GRACE).await);
    let waiting = first.waiting(&id()).await.unwrap();
    first.decide(&id(), waiting[0].call, Choice { verdict: Verdict::Allow, arguments: None, reason: None }).await.unwrap();
    assert_eq!(kinds(&first.journal(&id()).await.unwrap()).last(), Some(&"decision"));
    first.shutdown().await;

    let second = engine(next, ScriptedProvider::new([Answer::whole([text("Done.")])]), tools(), setup());
    second.resume(&id()).await.unwrap();
    assert_eq!(second.wait(&id(), sent.turn_id).await.unwrap(), completed());
}

#[tokio::test(start_paused = true)]
async fn a_call_by_hand_gets_the_time_that_steps_get_and_says_who_ended_it_where_that_is_too_short() {
    for (takes, drains, said) in [
        (Duration::from_secs(5), true, "done"),
        (Duration::from_mins(1), false, "The server ended while `tools__slow` ran: it may or may not have happened."),
    ] {
        let slow = ScriptedTool::new("slow", move |_, _| async move {
            tokio::time::sleep(takes).await;
            Ok(ToolOutput::text("done"))
        });
        let source = Arc::new(ScriptedSource::new("tools", [slow]));
        let engine = engine(MemoryStore::default(), ScriptedProvider::new([]), source, Setup::default());
        let ending = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let drained = engine.drain(GRACE).await;
            let late = engine.call_tool("tools__slow", "{}", ApproveMode::All).await;
            assert!(matches!(late, Err(EngineError::ShuttingDown)), "{late:?}");
            engine.shutdown().await;
            drained
        };
        let (result, drained) = tokio::join!(engine.call_tool("tools__slow", "{}", ApproveMode::All), ending);
        assert_eq!((text_of(&result.unwrap().content), drained), (said.to_owned(), drains));
    }
}
