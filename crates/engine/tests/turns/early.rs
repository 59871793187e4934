//! Read-only calls, which begin before they are stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use turnwright_core::{ContentBlock, Declared, Entry, Journal, ModelRef, Seq, TurnSettings, UserMessage};
use turnwright_engine::{Append, NewConversation, NewMessage, Store, ToolOutput};
use turnwright_testkit::{Answer, Fuse, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, kinds, results, world};

fn read_only() -> Declared {
    Declared { read_only: true, replayable: true, ..Declared::default() }
}

/// A model that makes these calls together, and answers once it sees results.
fn calls(names: &'static [&'static str]) -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        if asked.contains("result: ") {
            return Answer::whole([text("Done.")]);
        }
        Answer::whole(
            names.iter().zip(0..).map(|(name, key)| call(key, &format!("tools__{name}"), &format!(r#"{{"n":{key}}}"#))),
        )
    })
}

/// What is stored by a process that dies before its third append: the message's own was the second.
async fn stored_with_the_message(tool: ScriptedTool) -> Journal {
    stored_before(3, &["tool"], [tool]).await
}

/// What is stored by a process that dies before this append, where a message makes these calls.
async fn stored_before(append: u64, names: &'static [&'static str], tools: impl IntoIterator<Item = ScriptedTool>) -> Journal {
    let disk = MemoryStore::default();
    let source = Arc::new(ScriptedSource::new("tools", tools));
    let doomed = engine(disk.doomed_process(Fuse::Before(append)), calls(names), source.clone(), Setup::default());
    doomed.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = doomed.send(&id(), NewMessage::text("go")).await.unwrap();
    let _died = timeout(Duration::from_mins(5), doomed.wait(&id(), sent.turn_id)).await;
    doomed.shutdown().await;
    let after = engine(disk.another_process(), calls(&[]), source, Setup::default());
    after.journal(&id()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_a_read_only_tool_gives_at_once_is_stored_with_the_message_that_asked_for_it() {
    let quick = stored_with_the_message(ScriptedTool::echo("tool").declared(read_only())).await;
    assert_eq!(kinds(&quick)[3..], ["assistant", "decision", "started", "result"]);
    let unsafe_tool = stored_with_the_message(ScriptedTool::echo("tool")).await;
    assert_eq!(kinds(&unsafe_tool)[3..], ["assistant", "decision", "started"]);
    let slow = ScriptedTool::new("tool", |_, _| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(ToolOutput::text("slow"))
    });
    let slow = stored_with_the_message(slow.declared(read_only())).await;
    assert_eq!(kinds(&slow)[3..], ["assistant", "decision", "started"]);
}

#[tokio::test(start_paused = true)]
async fn results_that_come_one_by_one_are_stored_together_and_wait_for_none_that_takes_long() {
    // Both at the earliest when the other tasks had their turns, one a little later than the other.
    let after = |name, turns: u32| {
        ScriptedTool::new(name, move |_, _| async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            Ok(ToolOutput::text("given"))
        })
    };
    let long = ScriptedTool::new("long", |_, _| async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        Ok(ToolOutput::text("late"))
    });
    let together = stored_before(4, &["one", "two"], [after("one", 20), after("two", 40)]).await;
    assert_eq!(kinds(&together)[3..], ["assistant", "decision", "decision", "started", "started", "result", "result"]);
    let alone = stored_before(4, &["one", "long"], [after("one", 20), long]).await;
    assert_eq!(kinds(&alone)[3..], ["assistant", "decision", "decision", "started", "started", "result"]);
}

#[tokio::test]
async fn calls_of_one_message_that_begin_early_late_and_slowly_have_one_result_each() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let slow = ScriptedTool::new("slow", move |_, _| {
        let gate = held.clone();
        async move {
            let _permit = gate.acquire().await;
            Ok(ToolOutput::text("slow"))
        }
    });
    let opens = ScriptedTool::new("touch", move |_, _| {
        gate.add_permits(1);
        async { Ok(ToolOutput::text("touched")) }
    });
    let source =
        ScriptedSource::new("tools", [slow.declared(read_only()), opens, ScriptedTool::echo("look").declared(read_only())]);
    let world = world(calls(&["slow", "look", "touch", "look"]), source, Setup::default()).await;
    assert_eq!(world.turn("go").await, completed());
    let mut given = results(&world.journal().await);
    given.sort();
    let expected =
        [r"call_4_0 Success slow", r#"call_4_1 Success {"n":1}"#, "call_4_2 Success touched", r#"call_4_3 Success {"n":3}"#];
    assert_eq!(given, expected);
    assert_eq!(world.source.effects().len(), 4);
}

#[tokio::test]
async fn what_began_for_an_append_that_is_refused_is_thrown_away() {
    let disk = Arc::new(MemoryStore::default());
    let other = Arc::new(disk.another_process());
    let is_first = AtomicBool::new(true);
    // Somebody else says something while the tool runs, before its message is stored.
    let look = ScriptedTool::new("look", move |_, _| {
        if is_first.swap(false, Ordering::SeqCst) {
            let settings = TurnSettings::new(ModelRef::new("test", "scripted"));
            let said = Entry::User(UserMessage { content: vec![ContentBlock::text("me too")], settings });
            let at = Seq::new(4).unwrap();
            let append = Append { conversation: id(), at, entries: vec![said], at_ms: 1, side: Vec::new() };
            other.append(append).now_or_never().unwrap().unwrap();
        }
        async { Ok(ToolOutput::text("seen")) }
    });
    let source = Arc::new(ScriptedSource::new("tools", [look.declared(read_only())]));
    let engine = engine(disk, calls(&["look"]), source.clone(), Setup::default());
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    assert_eq!(engine.wait(&id(), sent.turn_id).await.unwrap(), completed());
    let journal = engine.journal(&id()).await.unwrap();
    let expected = ["user", "claimed", "offered", "user", "assistant", "decision", "started", "result", "assistant", "ended"];
    assert_eq!(kinds(&journal), expected);
    assert_eq!((results(&journal).len(), source.effects().len()), (1, 2));
}
