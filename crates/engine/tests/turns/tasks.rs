//! Calls that go on by themselves at their sources.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tokio::sync::Semaphore;
use turnwright_core::TurnStatus;
use turnwright_engine::{CallContext, Engine, NewMessage, ToolError, ToolOutput, TurnState};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, kinds, results};

/// A source whose tool goes on by itself, and is done when somebody lets it; taken up, it says as which task.
fn source(done: &Arc<Semaphore>) -> Arc<ScriptedSource> {
    cancellable(done, &Arc::default())
}

/// The same; counts how often it was cancelled.
fn cancellable(done: &Arc<Semaphore>, cancelled: &Arc<AtomicU32>) -> Arc<ScriptedSource> {
    let (done, cancelled) = (done.clone(), cancelled.clone());
    let work = move |_, context: CallContext| {
        let (done, cancelled) = (done.clone(), cancelled.clone());
        async move {
            let task = if let Some(task) = &context.task {
                format!("taken up: {task}")
            } else {
                context.tasks.accepted(json!("t1")).await;
                "made".to_owned()
            };
            tokio::select! {
                _ = done.acquire() => Ok(ToolOutput::text(task)),
                () = context.cancel.cancelled() => {
                    cancelled.fetch_add(1, Ordering::Relaxed);
                    Err(ToolError::new(turnwright_core::ToolErrorKind::Interrupted, "cancelled here"))
                }
            }
        }
    };
    Arc::new(ScriptedSource::new("tools", [ScriptedTool::new("build", work)]))
}

fn provider() -> Arc<ScriptedProvider> {
    ScriptedProvider::new([Answer::whole([call(0, "tools__build", "{}")]), Answer::whole([text("Done.")])])
}

/// Starts a turn and waits until its task is stored.
async fn begin(engine: &Engine) -> turnwright_core::TurnId {
    let sent = engine.send(&id(), NewMessage { create: true, ..NewMessage::text("go") }).await.unwrap();
    while !kinds(&engine.journal(&id()).await.unwrap()).contains(&"task_accepted") {
        tokio::task::yield_now().await;
    }
    sent.turn_id
}

#[tokio::test(start_paused = true)]
async fn a_task_is_stored_before_it_is_waited_for_and_taken_up_by_the_next_process() {
    let (disk, gate, provider) = (MemoryStore::default(), Arc::new(Semaphore::new(0)), provider());
    let store = Arc::new(disk.another_process());
    let (before, after) = (source(&gate), source(&gate));
    let first = engine(store.clone(), provider.clone(), before.clone(), Setup::default());
    let turn = begin(&first).await;
    store.die();
    gate.add_permits(1);
    let second = engine(disk, provider, after.clone(), Setup::default());
    second.resume(&id()).await.unwrap();
    assert_eq!(second.wait(&id(), turn).await.unwrap(), completed());
    let journal = second.journal(&id()).await.unwrap();
    assert_eq!(results(&journal), [r#"call_4_0 Success taken up: "t1""#]);
    let expected = ["started", "task_accepted", "claimed", "resumed", "started", "result", "assistant", "ended"];
    assert_eq!(kinds(&journal)[5..], expected);
    assert_eq!((before.called_off(), after.called_off()), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_in_order_lets_go_of_its_tasks_and_cancels_none() {
    let (disk, gate, provider) = (MemoryStore::default(), Arc::new(Semaphore::new(0)), provider());
    let cancelled = Arc::new(AtomicU32::new(0));
    let before = cancellable(&gate, &cancelled);
    let first = engine(disk.another_process(), provider.clone(), before.clone(), Setup::default());
    let turn = begin(&first).await;
    let begun = tokio::time::Instant::now();
    assert!(first.drain(std::time::Duration::from_secs(10)).await, "what goes on elsewhere is not waited for");
    first.shutdown().await;
    assert_eq!((begun.elapsed().as_secs(), cancelled.load(Ordering::Relaxed), before.called_off()), (0, 0, vec![]));
    gate.add_permits(1);
    let second = engine(disk, provider, source(&gate), Setup::default());
    second.resume(&id()).await.unwrap();
    assert_eq!(second.wait(&id(), turn).await.unwrap(), completed());
    assert_eq!(results(&second.journal(&id()).await.unwrap()), [r#"call_4_0 Success taken up: "t1""#]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_comes_while_no_process_drives_reaches_the_source_of_the_task() {
    let (disk, gate, provider) = (MemoryStore::default(), Arc::new(Semaphore::new(0)), provider());
    let store = Arc::new(disk.another_process());
    let first = engine(store.clone(), provider.clone(), source(&gate), Setup::default());
    let turn = begin(&first).await;
    store.die();
    let after = source(&gate);
    let second = engine(disk, provider, after.clone(), Setup::default());
    second.cancel(&id(), None).await.unwrap();
    assert_eq!(second.wait(&id(), turn).await.unwrap(), TurnState::Ended(TurnStatus::Cancelled));
    assert_eq!((after.called_off(), after.effects().len()), (vec![json!("t1")], 0));
    let result = results(&second.journal(&id()).await.unwrap());
    assert!(result[0].starts_with("call_4_0 Error(Interrupted) "), "{result:?}");
}
