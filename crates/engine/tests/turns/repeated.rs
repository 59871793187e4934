//! Results that are given again, and calls that are made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use turnwright_core::{Declared, Entry, ToolErrorKind};
use turnwright_engine::{ToolError, ToolOutput};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, World, completed, results, world};

const REPLAYABLE: Declared = Declared { read_only: false, replayable: true, serial: false, polled: false };

/// Makes these calls in each turn, all of them in one message.
fn calling(calls: &'static [&'static str]) -> Arc<ScriptedProvider> {
    ScriptedProvider::by(move |asked| {
        let asks = asked.lines().last().is_some_and(|line| line.starts_with("user: "));
        if !asks {
            return Answer::whole([text("Done.")]);
        }
        Answer::whole(calls.iter().zip(0..).map(|(arguments, key)| call(key, "tools__tool", arguments)))
    })
}

/// The results, each with whether it was one that was there.
async fn given(world: &World) -> Vec<(String, bool)> {
    let journal = world.journal().await;
    let result = |entry: &Entry| match entry {
        Entry::Result(result) => Some((turnwright_core::text_of(&result.content), result.is_cached)),
        _ => None,
    };
    journal.entries().iter().filter_map(|stored| result(&stored.entry)).collect()
}

/// Counts its calls, and takes a second for each.
fn counting() -> ScriptedTool {
    let count = AtomicUsize::new(0);
    ScriptedTool::new("tool", move |_, _| {
        let count = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(ToolOutput::text(format!("call {count}")))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_result_is_given_again_as_long_as_its_operator_says_and_marked() {
    let source = ScriptedSource::new("tools", [counting()]).cached_for(Duration::from_mins(1));
    let world = world(calling(&[r#"{"a":1,"b":2}"#]), source, Setup::default()).await;
    assert_eq!(world.turn("one").await, completed());
    assert_eq!(world.turn("two").await, completed());
    tokio::time::advance(Duration::from_mins(2)).await;
    assert_eq!(world.turn("three").await, completed());
    let expected = [("call 1".to_owned(), false), ("call 1".to_owned(), true), ("call 2".to_owned(), false)];
    assert_eq!(given(&world).await, expected);
    assert_eq!(world.source.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_for_the_same_wait_for_the_one_that_is_under_way() {
    let source = ScriptedSource::new("tools", [counting()]).cached_for(Duration::from_mins(1));
    // The order of members makes no difference, another value does.
    let world = world(calling(&[r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"a":1,"b":3}"#]), source, Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    assert_eq!(world.source.effects().len(), 2);
    let mut all = results(&world.journal().await);
    all.sort();
    assert_eq!(all, ["call_4_0 Success call 1", "call_4_1 Success call 1", "call_4_2 Success call 2"]);
    assert_eq!(given(&world).await.iter().filter(|(_, is_cached)| *is_cached).count(), 1);
}

#[tokio::test]
async fn nothing_is_given_again_that_failed_or_that_nobody_said_may_be() {
    let failing = |_, _| async { Ok(ToolOutput { is_error: true, ..ToolOutput::text("no") }) };
    let cached = ScriptedSource::new("tools", [ScriptedTool::new("tool", failing)]).cached_for(Duration::from_mins(1));
    for source in [cached, ScriptedSource::new("tools", [ScriptedTool::echo("tool")])] {
        let world = world(calling(&["{}"]), source, Setup::default()).await;
        world.turn("one").await;
        world.turn("two").await;
        assert_eq!(world.source.effects().len(), 2);
        assert!(given(&world).await.iter().all(|(_, is_cached)| !is_cached));
    }
}

/// Is not there for so many calls.
fn absent(times: usize, kind: ToolErrorKind) -> ScriptedTool {
    let left = AtomicUsize::new(times);
    ScriptedTool::new("tool", move |_, _| {
        let is_there = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err();
        async move { if is_there { Ok(ToolOutput::text("there")) } else { Err(ToolError::new(kind, "not there")) } }
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_again_where_its_source_was_not_there_and_that_is_safe() {
    let unavailable = ToolErrorKind::Unavailable;
    let read_only = Declared { read_only: true, ..Declared::default() };
    for (declared, kind, absent_for, calls, ends) in [
        (REPLAYABLE, unavailable, 2, 3, "Success there"),
        (read_only, unavailable, 1, 2, "Success there"),
        (REPLAYABLE, unavailable, 9, 3, "Error(Unavailable) not there"),
        (Declared::default(), unavailable, 1, 1, "Error(Unavailable) not there"),
        (REPLAYABLE, ToolErrorKind::ExecutionFailed, 1, 1, "Error(ExecutionFailed) not there"),
    ] {
        let source = ScriptedSource::new("tools", [absent(absent_for, kind).declared(declared)]);
        let world = world(calling(&["{}"]), source, Setup::default()).await;
        assert_eq!(world.turn("go").await, completed());
        assert_eq!(results(&world.journal().await), [format!("call_4_0 {ends}")]);
        let effects = world.source.effects();
        assert_eq!(effects.len(), calls);
        assert!(effects.iter().all(|effect| effect.idempotency_key == effects[0].idempotency_key), "one call, one key");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_run_at_once_than_there_are_slots_for_all_sources() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak) = (now.clone(), most.clone());
    let tool = ScriptedTool::new("tool", move |_, _| {
        let now = running.clone();
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("done"))
        }
    });
    let calls = calling(&["{\"a\":1}", "{\"a\":2}", "{\"a\":3}", "{\"a\":4}", "{\"a\":5}"]);
    let world = world(calls, ScriptedSource::new("tools", [tool]), Setup::default()).await;
    world.engine.limit_calls(2);
    assert_eq!(world.turn("go").await, completed());
    assert_eq!((results(&world.journal().await).len(), most.load(Ordering::SeqCst)), (5, 2));
}
