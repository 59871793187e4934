//! Calls that begin while their message is still being written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use turnwright_core::{Declared, Finish, FinishReason, ProviderFailure, ProviderFailureKind, StreamDelta, TurnStatus};
use turnwright_engine::{NewMessage, ToolOutput, TurnState, WatchFrom};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, kinds, results, world};

const READ_ONLY: Declared = Declared { read_only: true, replayable: true, serial: false, polled: false };
const SERIAL: Declared = Declared { read_only: false, replayable: false, serial: true, polled: false };

fn finished(reason: FinishReason) -> Vec<StreamDelta> {
    vec![StreamDelta::Finished(Finish { reason, raw: None })]
}

/// Counts how many run at once.
#[derive(Debug, Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Running {
    fn enter(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Six calls in a message that takes three seconds; four of them read for a second each, two write the same thing. Time is
/// the test's own: it passes where nothing else happens.
#[tokio::test(start_paused = true)]
async fn readers_begin_while_the_message_is_written_and_writers_wait_for_one_another() {
    let (readers, writers) = (Arc::new(Running::default()), Arc::new(Running::default()));
    let slow = |name: &str, running: &Arc<Running>, takes: Duration| {
        let running = running.clone();
        ScriptedTool::new(name, move |_, _| {
            let running = running.clone();
            async move {
                running.enter();
                tokio::time::sleep(takes).await;
                running.leave();
                Ok(ToolOutput::text("done"))
            }
        })
    };
    let read = slow("read", &readers, Duration::from_secs(1)).declared(READ_ONLY);
    let write = slow("write", &writers, Duration::from_millis(100)).declared(SERIAL);
    let gate = Arc::new(Semaphore::new(0));
    let names = ["read", "read", "read", "read", "write", "write"];
    let mut batches: Vec<_> =
        (0_u32..).zip(names).map(|(key, name)| call(key, &format!("tools__{name}"), &format!(r#"{{"n":{key}}}"#))).collect();
    batches.push(finished(FinishReason::ToolCalls));
    let provider = ScriptedProvider::new([Answer::of(batches).gated(&gate), Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [read, write]), Setup::default()).await;
    let begun = tokio::time::Instant::now();
    let stream = async {
        // A call each half second, and the end after three.
        for _ in 0..6 {
            gate.add_permits(1);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(world.source.effects().len(), 4, "the readers began, the writers did not");
        gate.add_permits(2);
    };
    let (ended, ()) = tokio::join!(world.turn("go"), stream);
    assert_eq!(ended, completed());
    // All that is left after the stream are the writers, one after the other.
    assert_eq!(begun.elapsed().as_millis() / 10, 320);
    assert_eq!(readers.most.load(Ordering::SeqCst), 2, "a second each, half a second apart");
    assert_eq!(writers.most.load(Ordering::SeqCst), 1);
    let mut given = results(&world.journal().await);
    given.sort();
    assert_eq!(given.len(), 6);
    assert!(given.iter().all(|result| result.ends_with("Success done")), "{given:?}");
}

/// A provider whose first answer is this, behind a gate.
fn gated(batches: Vec<Vec<StreamDelta>>, gate: &Arc<Semaphore>) -> Answer {
    Answer::of(batches).gated(gate)
}

/// A read-only tool that says when it ran.
fn telling(ran: &Arc<Notify>) -> ScriptedTool {
    let ran = ran.clone();
    ScriptedTool::new("look", move |_, _| {
        ran.notify_one();
        async { Ok(ToolOutput::text("seen")) }
    })
    .declared(READ_ONLY)
}

#[tokio::test]
async fn what_a_call_gave_before_its_message_was_whole_is_stored_with_it() {
    let (gate, ran) = (Arc::new(Semaphore::new(1)), Arc::new(Notify::new()));
    let first = gated(vec![call(0, "tools__look", "{\"a\":1}"), finished(FinishReason::ToolCalls)], &gate);
    let provider = ScriptedProvider::new([first, Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [telling(&ran)]), Setup::default()).await;
    let sent = world.send("go").await;
    timeout(Duration::from_mins(1), ran.notified()).await.expect("it begins while the message is written");
    assert_eq!(world.kinds().await, ["user", "claimed", "offered"], "nothing of it is stored yet");
    gate.add_permits(2);
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    let expected = ["user", "claimed", "offered", "assistant", "decision", "started", "result", "assistant", "ended"];
    assert_eq!(world.kinds().await, expected);
    assert_eq!((results(&world.journal().await).len(), world.source.effects().len()), (1, 1));
}

#[tokio::test]
async fn what_a_call_gave_is_thrown_away_where_its_message_breaks_off_or_reaches_its_limit() {
    let failure = ProviderFailure::new(ProviderFailureKind::Server, "gone");
    let ends = [
        ("cut off", vec![call(0, "tools__look", "{}")], Some(failure)),
        ("length", vec![call(0, "tools__look", "{}"), finished(FinishReason::Length)], None),
    ];
    for (name, batches, failure) in ends {
        let (gate, ran) = (Arc::new(Semaphore::new(1)), Arc::new(Notify::new()));
        let mut first = gated(batches, &gate);
        if let Some(failure) = failure {
            first = first.failing(failure);
        }
        let provider = ScriptedProvider::new([first, Answer::whole([text("Done.")])]);
        let world = world(provider, ScriptedSource::new("tools", [telling(&ran)]), Setup::default()).await;
        let sent = world.send("go").await;
        timeout(Duration::from_mins(1), ran.notified()).await.expect("it begins");
        gate.add_permits(4);
        let _ended = world.engine.wait(&world.id, sent.turn_id).await.unwrap();
        let journal = world.journal().await;
        assert!(!kinds(&journal).contains(&"started"), "{name}: {:?}", kinds(&journal));
        let given = results(&journal);
        assert!(given.len() == 1 && given[0].contains("Error(Cancelled)"), "{name}: {given:?}");
    }
}

#[tokio::test]
async fn a_call_runs_again_where_somebody_spoke_while_its_message_was_written() {
    let (gate, ran) = (Arc::new(Semaphore::new(1)), Arc::new(Notify::new()));
    let first = gated(vec![call(0, "tools__look", "{}"), finished(FinishReason::ToolCalls)], &gate);
    let provider = ScriptedProvider::new([first, Answer::whole([text("Done.")])]);
    let world = world(provider, ScriptedSource::new("tools", [telling(&ran)]), Setup::default()).await;
    let sent = world.send("go").await;
    timeout(Duration::from_mins(1), ran.notified()).await.expect("it begins");
    world.engine.send(&world.id, NewMessage::text("and this")).await.unwrap();
    gate.add_permits(4);
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), completed());
    // Its place in the journal is another, and so is its name: what ran for the old one is nobody's.
    assert_eq!(results(&world.journal().await), ["call_5_0 Success seen"]);
    assert_eq!(world.source.effects().len(), 2);
}

#[tokio::test]
async fn a_stop_in_the_middle_of_the_message_stops_what_began() {
    let gate = Arc::new(Semaphore::new(1));
    let (ran, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (runs, stops) = (ran.clone(), stopped.clone());
    let look = ScriptedTool::new("look", move |_, context| {
        let (ran, stopped) = (runs.clone(), stops.clone());
        async move {
            ran.notify_one();
            let _told = DropTells(stopped);
            context.cancel.cancelled().await;
            Ok(ToolOutput::text("late"))
        }
    });
    let first = gated(vec![call(0, "tools__look", "{}"), finished(FinishReason::ToolCalls)], &gate);
    let source = ScriptedSource::new("tools", [look.declared(READ_ONLY)]);
    let world = world(ScriptedProvider::new([first]), source, Setup::default()).await;
    let sent = world.send("go").await;
    timeout(Duration::from_mins(1), ran.notified()).await.expect("it begins");
    world.engine.cancel(&world.id, None).await.unwrap();
    assert_eq!(world.engine.wait(&world.id, sent.turn_id).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    timeout(Duration::from_mins(1), stopped.notified()).await.expect("it ends");
    assert!(!world.kinds().await.contains(&"started"));
}

/// Tells when it is dropped.
struct DropTells(Arc<Notify>);

impl Drop for DropTells {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn nothing_begins_ahead_that_changes_something_or_that_a_person_must_allow() {
    for (declared, always_ask) in [(Declared::default(), false), (READ_ONLY, true)] {
        let gate = Arc::new(Semaphore::new(1));
        let first = gated(vec![call(0, "tools__look", "{}"), finished(FinishReason::ToolCalls)], &gate);
        let provider = ScriptedProvider::new([first, Answer::whole([text("Done.")])]);
        let source = ScriptedSource::new("tools", [ScriptedTool::echo("look").declared(declared)]);
        let world = world(provider, source, Setup::default()).await;
        let mut message = NewMessage::text("go");
        if always_ask {
            message.overlay.always_ask = Some(vec!["tools__*".to_owned()]);
        }
        let mut watch = world.engine.watch(&world.id, WatchFrom::Now).await.unwrap();
        let sent = world.engine.send(&world.id, message).await.unwrap();
        // The call is whole: its arguments were told.
        loop {
            let frame = watch.next().await.expect("it is told");
            let is_input = |event: &turnwright_engine::Event| matches!(event, turnwright_engine::Event::ToolInputDelta { .. });
            if frame.events.iter().any(is_input) {
                break;
            }
        }
        tokio::task::yield_now().await;
        assert_eq!(world.source.effects().len(), 0);
        gate.add_permits(4);
        world.engine.wait(&world.id, sent.turn_id).await.unwrap();
        assert_eq!(world.source.effects().len(), usize::from(!always_ask));
    }
}
