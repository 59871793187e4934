//! How much an engine takes.

use std::sync::Arc;

use tokio::sync::Semaphore;
use turnwright_engine::{
    ConversationChange, EngineError, Limits, NewConversation, NewMessage, OverLimit, SentState, SettingsOverlay,
};
use turnwright_testkit::{Answer, MemoryStore, ScriptedProvider, ScriptedSource, text};

use crate::support::{Setup, World, completed, engine, world};

/// A world in which one turn of one user runs at a time, and one that runs.
async fn full() -> (World, Arc<Semaphore>, turnwright_core::TurnId) {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let provider = ScriptedProvider::by(move |_| Answer::whole([text("Done.")]).gated(&held));
    let world = world(provider, ScriptedSource::new("tools", []), Setup::default()).await;
    world.engine.limit(Limits { turns: 2, turns_per_user: 1, message_bytes: 20, ..Limits::default() });
    let turn = world.send("one").await.turn_id;
    (world, gate, turn)
}

#[tokio::test]
async fn a_message_that_would_begin_a_turn_too_many_is_refused_and_nothing_of_it_is_stored() {
    let (world, gate, turn) = full().await;
    let second = "c2".parse().unwrap();
    let message = || NewMessage { create: true, ..NewMessage::text("two") };
    let refused = world.engine.send(&second, message()).await.unwrap_err();
    assert_eq!(refused, EngineError::OverLimit(OverLimit::UserTurns { most: 1 }));
    assert!(matches!(world.engine.conversation(&second).await, Err(EngineError::NotFound { .. })));
    // What joins the turn that runs is taken, and other users have their own places, as long as there are any.
    assert_eq!(world.send("more").await.state, SentState::Joined);
    let ada = world.engine.acting_for("ada".parse().unwrap());
    let adas = ada.send(&"c3".parse().unwrap(), message()).await.unwrap();
    let bob = world.engine.acting_for("bob".parse().unwrap());
    let refused = bob.send(&"c4".parse().unwrap(), message()).await.unwrap_err();
    assert_eq!(refused, EngineError::OverLimit(OverLimit::Turns { most: 2 }));
    gate.add_permits(100);
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(ada.wait(&"c3".parse().unwrap(), adas.turn_id).await.unwrap(), completed());
    // Whoever hears that a turn is over has its place.
    for _ in 0..3 {
        let sent = world.engine.send(&second, message()).await.unwrap();
        assert_eq!(sent.state, SentState::Started);
        assert_eq!(world.engine.wait(&second, sent.turn_id).await.unwrap(), completed());
    }
}

#[tokio::test]
async fn a_request_that_comes_again_has_its_answer_also_where_no_other_would_be_taken() {
    let (world, gate, _) = full().await;
    gate.add_permits(100);
    let id = "c2".parse().unwrap();
    let asked =
        || NewMessage { create: true, idempotency: Some(("key".to_owned(), "print".to_owned())), ..NewMessage::text("two") };
    world.engine.wait(&world.id, world.journal().await.turn().unwrap().id()).await.unwrap();
    let sent = world.engine.send(&id, asked()).await.unwrap();
    world.engine.wait(&id, sent.turn_id).await.unwrap();
    gate.forget_permits(1000);
    let other = world.engine.send(&"c5".parse().unwrap(), NewMessage { create: true, ..NewMessage::text("x") }).await.unwrap();
    assert_eq!(world.engine.send(&id, asked()).await.unwrap(), sent);
    gate.add_permits(100);
    world.engine.wait(&"c5".parse().unwrap(), other.turn_id).await.unwrap();
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_before_anything_is_stored() {
    let (world, gate, turn) = full().await;
    let before = world.kinds().await;
    let refused = world.engine.send(&world.id, NewMessage::text("x".repeat(21))).await.unwrap_err();
    assert_eq!(refused, EngineError::OverLimit(OverLimit::Message { bytes: 21, most: 20 }));
    assert_eq!(world.kinds().await.len(), before.len());
    gate.add_permits(100);
    assert_eq!(world.engine.wait(&world.id, turn).await.unwrap(), completed());
}

#[tokio::test]
async fn a_title_or_settings_that_are_too_large_are_refused_at_every_door() {
    let (world, gate, turn) = full().await;
    let title = || Some("t".repeat(1_001));
    let overlay = || SettingsOverlay { system_prompt: Some("x".repeat(21)), ..SettingsOverlay::default() };
    let too_long = EngineError::OverLimit(OverLimit::Title { characters: 1_001, most: 1_000 });
    let too_large = EngineError::OverLimit(OverLimit::Settings { bytes: 21, most: 20 });
    let engine = &world.engine;

    let refused = engine.create(NewConversation { title: title(), ..NewConversation::default() }).await;
    assert_eq!(refused, Err(too_long.clone()));
    let refused = engine.create(NewConversation { overlay: overlay(), ..NewConversation::default() }).await;
    assert_eq!(refused, Err(too_large.clone()));
    let refused = engine.update(&world.id, ConversationChange { title: Some(title()), ..ConversationChange::default() }).await;
    assert_eq!(refused, Err(too_long.clone()));
    let refused =
        engine.update(&world.id, ConversationChange { overlay: Some(overlay()), ..ConversationChange::default() }).await;
    assert_eq!(refused, Err(too_large.clone()));
    let refused = engine.fork(&world.id, None, NewConversation { title: title(), ..NewConversation::default() }).await;
    assert_eq!(refused, Err(too_long));
    for message in [
        NewMessage { overlay: overlay(), ..NewMessage::text("two") },
        NewMessage { conversation: overlay(), create: true, ..NewMessage::text("two") },
    ] {
        assert_eq!(engine.send(&"c2".parse().unwrap(), message).await, Err(too_large.clone()));
    }
    assert_eq!(engine.retry(&world.id, overlay()).await, Err(too_large));
    gate.add_permits(100);
    assert_eq!(engine.wait(&world.id, turn).await.unwrap(), completed());
    assert_eq!(engine.conversations(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_same_request_at_once_waits_for_the_turn_that_the_first_of_them_is_about_to_begin() {
    let store = Arc::new(MemoryStore::default());
    let provider = ScriptedProvider::by(|_| Answer::whole([text("Done.")]));
    let source = Arc::new(ScriptedSource::new("tools", []));
    let engine = engine(store.clone(), provider, source, Setup::default());
    let gate = Arc::new(Semaphore::new(0));
    store.acknowledge_through(&gate);
    let ask = || {
        let engine = engine.clone();
        let idempotency = Some(("key".to_owned(), "print".to_owned()));
        let message = NewMessage { create: true, idempotency, ..NewMessage::text("one") };
        async move {
            let id = "c1".parse().unwrap();
            let sent = engine.send(&id, message).await?;
            engine.wait(&id, sent.turn_id).await
        }
    };
    // The first is stored, and the others read it, before the first hears of that.
    let opens = async {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(1);
    };
    let (all, ()) = tokio::join!(futures_util::future::join_all((0..20).map(|_| ask())), opens);
    assert!(all.iter().all(|one| *one == Ok(completed())), "{all:?}");
}
