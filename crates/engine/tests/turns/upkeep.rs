//! What removes old conversations for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use turnwright_core::ConversationId;
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Engine, NewConversation, NewMessage, Store, StoreError};
use turnwright_testkit::{Answer, ManualClock, MemoryStore, ScriptedProvider, ScriptedSource, text};

use crate::support::{Setup, engine_at, id, world};

/// Has one conversation that is old, and cannot overwrite it the first time.
#[derive(Debug, Default)]
struct Reluctant {
    removals: AtomicUsize,
    erasures: AtomicUsize,
    /// How long it overwrites.
    takes: Duration,
}

#[async_trait]
impl Upkeep for Reluctant {
    async fn has_old(&self, _before_ms: u64, _now_ms: u64) -> Result<bool, StoreError> {
        Ok(self.removals.load(Ordering::SeqCst) == 0)
    }

    async fn remove_old(&self, _before_ms: u64, _now_ms: u64, _limit: usize) -> Result<Vec<ConversationId>, StoreError> {
        let is_first = self.removals.fetch_add(1, Ordering::SeqCst) == 0;
        Ok(is_first.then(id).into_iter().collect())
    }

    async fn forget_requests(&self, _before_ms: u64) -> Result<(), StoreError> {
        Ok(())
    }

    async fn erase(&self) -> Result<(), StoreError> {
        if self.erasures.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(StoreError::Unusable { reason: "somebody reads".to_owned() });
        }
        tokio::time::sleep(self.takes).await;
        Ok(())
    }
}

/// A process that keeps there what it owes of erasures.
async fn process(documents: &Arc<MemoryStore>) -> Engine {
    let world = world(ScriptedProvider::new([]), ScriptedSource::new("tools", []), Setup::default()).await;
    world.engine.keep_erasures(documents.clone());
    world.engine
}

#[tokio::test(start_paused = true)]
async fn rounds_leave_a_store_be_that_took_long_to_overwrite_and_a_purge_does_not_wait_for_that() {
    let world = world(ScriptedProvider::new([]), ScriptedSource::new("tools", []), Setup::default()).await;
    let upkeep = Reluctant { takes: Duration::from_secs(10), erasures: AtomicUsize::new(1), ..Reluctant::default() };
    world.engine.erase(&upkeep).await.unwrap();
    upkeep.removals.store(0, Ordering::SeqCst);
    assert_eq!(world.engine.remove_old(&upkeep, 1).await.unwrap(), 1);
    for (seconds, erasures) in [(0, 2), (199, 2), (2, 3), (300, 3)] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        world.engine.erase_due(&upkeep).await.unwrap();
        assert_eq!(upkeep.erasures.load(Ordering::SeqCst), erasures);
    }
    world.engine.erase(&upkeep).await.unwrap();
    world.engine.erase(&upkeep).await.unwrap();
    assert_eq!(upkeep.erasures.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_purge_that_could_not_be_carried_out_is_with_the_next_round() {
    let world = world(ScriptedProvider::new([]), ScriptedSource::new("tools", []), Setup::default()).await;
    let upkeep = Reluctant::default();
    world.engine.erase_due(&upkeep).await.unwrap();
    assert_eq!(upkeep.erasures.load(Ordering::SeqCst), 0, "nothing was deleted");
    assert!(world.engine.erase(&upkeep).await.is_err());
    for erasures in [2, 2] {
        world.engine.erase_due(&upkeep).await.unwrap();
        assert_eq!(upkeep.erasures.load(Ordering::SeqCst), erasures);
    }
}

#[tokio::test]
async fn a_purge_that_could_not_be_carried_out_outlives_its_process() {
    let documents = Arc::new(MemoryStore::default());
    let upkeep = Reluctant::default();
    let first = process(&documents).await;
    drop(first.owe_erasure().await.unwrap());
    assert!(first.erase(&upkeep).await.is_err());
    let next = process(&documents).await;
    for erasures in [2, 2] {
        next.erase_due(&upkeep).await.unwrap();
        assert_eq!(upkeep.erasures.load(Ordering::SeqCst), erasures);
    }
}

#[tokio::test]
async fn what_is_still_being_deleted_is_not_settled_and_what_another_process_deletes_is_left_to_that() {
    let disk = Arc::new(MemoryStore::default());
    let process = |store: MemoryStore| {
        let source = Arc::new(ScriptedSource::new("tools", []));
        let (store, clock) = (Arc::new(store), Arc::new(ManualClock::at(1)));
        let engine = engine_at(store.clone(), ScriptedProvider::new([]), source, Setup::default(), clock);
        engine.keep_erasures(disk.clone());
        (engine, store)
    };
    let (first, store_of_first) = process(disk.another_process());
    let (second, _) = process(disk.another_process());
    let upkeep = Reluctant { erasures: AtomicUsize::new(1), ..Reluctant::default() };
    let erasures = || upkeep.erasures.load(Ordering::SeqCst) - 1;
    let deleting = first.owe_erasure().await.unwrap();
    // Another deletion is over meanwhile.
    drop(first.owe_erasure().await.unwrap());
    first.erase(&upkeep).await.unwrap();
    second.erase_due(&upkeep).await.unwrap();
    assert_eq!(erasures(), 1);
    drop(deleting);
    second.erase_due(&upkeep).await.unwrap();
    assert_eq!(erasures(), 1, "the first is there to do it");
    store_of_first.close().await;
    for _ in 0..2 {
        second.erase_due(&upkeep).await.unwrap();
        assert_eq!(erasures(), 2);
    }
}

/// Removes what is old, and the process ends before it hears of that.
#[derive(Debug, Default)]
struct Deadly(Reluctant);

#[async_trait]
impl Upkeep for Deadly {
    async fn has_old(&self, before_ms: u64, now_ms: u64) -> Result<bool, StoreError> {
        self.0.has_old(before_ms, now_ms).await
    }

    async fn remove_old(&self, before_ms: u64, now_ms: u64, limit: usize) -> Result<Vec<ConversationId>, StoreError> {
        let removed = self.0.remove_old(before_ms, now_ms, limit).await?;
        if removed.is_empty() { Ok(removed) } else { std::future::pending().await }
    }

    async fn forget_requests(&self, before_ms: u64) -> Result<(), StoreError> {
        self.0.forget_requests(before_ms).await
    }

    async fn erase(&self) -> Result<(), StoreError> {
        self.0.erase().await
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_removed_for_its_age_is_overwritten_also_where_the_process_ends_at_that_moment() {
    let documents = Arc::new(MemoryStore::default());
    let upkeep = Deadly(Reluctant { erasures: AtomicUsize::new(1), ..Reluctant::default() });
    let first = process(&documents).await;
    tokio::time::timeout(Duration::from_secs(1), first.remove_old(&upkeep, 1)).await.unwrap_err();
    let next = process(&documents).await;
    for _ in 0..2 {
        assert_eq!(next.remove_old(&upkeep, 1).await.unwrap(), 0);
        assert_eq!(upkeep.0.erasures.load(Ordering::SeqCst), 2, "once, and no more after that");
    }
}

#[tokio::test]
async fn what_could_not_be_overwritten_is_in_the_next_round_and_then_no_more() {
    let world = world(ScriptedProvider::new([]), ScriptedSource::new("tools", []), Setup::default()).await;
    let upkeep = Reluctant::default();
    assert!(world.engine.remove_old(&upkeep, 1).await.is_err());
    for erasures in [2, 2] {
        assert_eq!(world.engine.remove_old(&upkeep, 1).await.unwrap(), 0);
        assert_eq!(upkeep.erasures.load(Ordering::SeqCst), erasures);
    }
}

#[tokio::test]
async fn a_copy_is_as_new_as_it_is_though_what_it_holds_is_old() {
    let clock = Arc::new(ManualClock::at(1_000));
    let provider = ScriptedProvider::new([Answer::whole([text("Hello.")])]);
    let source = Arc::new(ScriptedSource::new("tools", []));
    let engine = engine_at(Arc::new(MemoryStore::default()), provider, source, Setup::default(), clock.clone());
    engine.create(NewConversation { id: Some(id()), ..NewConversation::default() }).await.unwrap();
    let sent = engine.send(&id(), NewMessage::text("go")).await.unwrap();
    engine.wait(&id(), sent.turn_id).await.unwrap();
    clock.advance(5_000);
    let copy = engine.fork(&id(), None, NewConversation::default()).await.unwrap();
    assert_eq!((copy.created_at_ms, copy.updated_at_ms), (6_000, 6_000));
    assert_eq!(engine.conversation(&copy.id).await.unwrap(), copy, "it is told as it was made");
    let listed: Vec<_> = engine.conversations(None, 9).await.unwrap().into_iter().map(|listed| listed.id).collect();
    assert_eq!(listed, [copy.id.clone(), id()]);
    let times: Vec<u64> = engine.journal(&copy.id).await.unwrap().entries().iter().map(|stored| stored.at_ms).collect();
    assert_eq!(times.iter().max(), Some(&1_000), "what was said is as old as it was");
}
