//! A store whose answer is lost: it stored what it was given, and says that it cannot be reached.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use turnwright_core::{Declared, Journal};
use turnwright_engine::{NewConversation, NewMessage, ToolOutput};
use turnwright_testkit::{Answer, Fuse, MemoryStore, ScriptedProvider, ScriptedSource, ScriptedTool, call, text};

use crate::support::{Setup, completed, engine, id, kinds, results};

/// A tool that takes so many seconds.
fn slow(name: &'static str, seconds: u64) -> ScriptedTool {
    ScriptedTool::new(name, move |_, _| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(ToolOutput::text(name))
    })
}

fn read_only() -> Declared {
    Declared { read_only: true, ..Declared::default() }
}

/// A model that looks and makes two slow calls together, and answers once it sees results.
fn model() -> Arc<ScriptedProvider> {
    ScriptedProvider::by(|asked| {
        if asked.contains("result: ") {
            return Answer::whole([text("Done.")]);
        }
        Answer::whole([call(0, "tools__look", "{}"), call(1, "tools__one", "{}"), call(2, "tools__three", "{}")])
    })
}

/// What is stored where the answer to this append is lost, as another process reads it, and how often a tool ran.
async fn stored_where(unheard: u64) -> (Journal, usize) {
    let disk = MemoryStore::default();
    let tools = [ScriptedTool::echo("look").declared(read_only()), slow("one", 1), slow("three", 3)];
    let source = Arc::new(ScriptedSource::new("tools", tools));
    let here = engine(disk.doomed_process(Fuse::Unheard(unheard)), model(), source.clone(), Setup::default());
    here.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = here.send(&id(), NewMessage::text("go")).await.unwrap();
    let ended = timeout(Duration::from_mins(5), here.wait(&id(), sent.turn_id)).await;
    assert_eq!(ended.unwrap().unwrap(), completed(), "append {unheard}");
    let elsewhere = engine(disk.another_process(), model(), source.clone(), Setup::default());
    let sent = elsewhere.send(&id(), NewMessage::text("go on")).await.unwrap();
    assert_eq!(elsewhere.wait(&id(), sent.turn_id).await.unwrap(), completed(), "append {unheard}");
    (elsewhere.journal(&id()).await.unwrap(), source.effects().len())
}

#[tokio::test(start_paused = true)]
async fn what_was_stored_although_the_store_failed_is_neither_stored_nor_done_again() {
    let (heard, effects) = stored_where(1_000).await;
    assert_eq!((results(&heard).len(), effects), (3, 3));
    // The message with the call that was over at once, each result, and the answer.
    for unheard in 2..=5 {
        let (stored, effects) = stored_where(unheard).await;
        assert_eq!(kinds(&stored), kinds(&heard), "append {unheard}");
        assert_eq!((results(&stored), effects), (results(&heard), 3), "append {unheard}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_after_the_lease_ran_out_is_stored_once() {
    let disk = MemoryStore::default();
    let store = Arc::new(disk.doomed_process(Fuse::Unheard(3)));
    // One is told to stop, and was done all the same.
    let late = ScriptedTool::new("one", |_, context| async move {
        context.cancel.cancelled().await;
        Ok(ToolOutput::text("one"))
    });
    let source = Arc::new(ScriptedSource::new("tools", [ScriptedTool::echo("look"), late, slow("three", 3)]));
    let here = engine(store.clone(), model(), source.clone(), Setup::default());
    here.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    here.send(&id(), NewMessage::text("go")).await.unwrap();
    while source.effects().len() < 3 {
        sleep(Duration::from_millis(10)).await;
    }
    store.lose_lease();
    sleep(Duration::from_secs(30)).await;
    let elsewhere = engine(disk.another_process(), model(), source, Setup::default());
    let stored = results(&elsewhere.journal(&id()).await.unwrap());
    assert_eq!(stored.iter().filter(|result| result.contains("Success one")).count(), 1, "{stored:?}");
    assert!(
        stored.iter().enumerate().all(|(at, result)| !stored.iter().take(at).any(|earlier| earlier == result)),
        "{stored:?}"
    );
}
