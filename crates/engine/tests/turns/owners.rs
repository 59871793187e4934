//! To whom a conversation belongs.

use turnwright_core::{ContentBlock, ConversationId, MessageId, UserId};
use turnwright_engine::{
    Choice, ConversationChange, Engine, EngineError, NewConversation, NewMessage, SettingsOverlay, WatchFrom,
};
use turnwright_testkit::{Answer, ScriptedProvider, ScriptedSource, text};

use crate::support::{Setup, World, world};

fn not_found(id: &ConversationId) -> EngineError {
    EngineError::NotFound { what: format!("conversation `{id}`") }
}

async fn two_users() -> (World, Engine) {
    let world = world(
        ScriptedProvider::new([Answer::of([text("one")]), Answer::of([text("two")])]),
        ScriptedSource::new("tools", []),
        Setup::default(),
    )
    .await;
    world.turn("hello").await;
    let ben = world.engine.acting_for("ben".parse().unwrap());
    (world, ben)
}

#[tokio::test]
async fn what_belongs_to_another_is_not_there() {
    let (world, ben) = two_users().await;
    let (id, kinds) = (world.id.clone(), world.kinds().await);
    let message = MessageId(turnwright_core::Seq::FIRST);
    let call = "call_2_0".parse().unwrap();
    let choice = Choice { verdict: turnwright_core::Verdict::Allow, arguments: None, reason: None };
    let refused = [
        ben.conversation(&id).await.unwrap_err(),
        ben.update(&id, ConversationChange::default()).await.unwrap_err(),
        ben.delete(&id).await.unwrap_err(),
        ben.journal(&id).await.unwrap_err(),
        ben.watch(&id, WatchFrom::Now).await.unwrap_err(),
        ben.watch(&id, WatchFrom::After(None)).await.unwrap_err(),
        ben.waiting(&id).await.unwrap_err(),
        ben.questions(&id).await.unwrap_err(),
        ben.resume(&id).await.unwrap_err(),
        ben.fork(&id, None, NewConversation::default()).await.unwrap_err(),
        ben.send(&id, NewMessage::text("mine?")).await.unwrap_err(),
        ben.send(&id, NewMessage { create: true, ..NewMessage::text("mine?") }).await.unwrap_err(),
        ben.decide(&id, call, choice).await.unwrap_err(),
        ben.cancel(&id, None).await.unwrap_err(),
        ben.retry(&id, SettingsOverlay::default()).await.unwrap_err(),
        ben.hide(&id, message).await.unwrap_err(),
        ben.wait(&id, turnwright_core::TurnId(message.0)).await.unwrap_err(),
    ];
    for (number, error) in refused.into_iter().enumerate() {
        assert_eq!(error, not_found(&id), "request {number}");
    }
    assert_eq!(ben.conversations(None, 9).await.unwrap(), []);
    assert_eq!(world.kinds().await, kinds);
}

#[tokio::test]
async fn what_a_user_makes_is_the_users_own() {
    let (world, ben) = two_users().await;
    let user: UserId = "ben".parse().unwrap();
    let made = ben.create(NewConversation::default()).await.unwrap();
    assert_eq!(made.owner, user);
    let begun: ConversationId = "begun".parse().unwrap();
    let message = NewMessage { create: true, content: vec![ContentBlock::text("hi")], ..NewMessage::text("") };
    let sent = ben.send(&begun, message).await.unwrap();
    ben.wait(&begun, sent.turn_id).await.unwrap();
    let listed = ben.conversations(None, 9).await.unwrap();
    assert!(listed.iter().all(|conversation| conversation.owner == user));
    let mut names: Vec<_> = listed.into_iter().map(|conversation| conversation.id).collect();
    names.sort();
    assert_eq!(names, [begun.clone(), made.id]);
    assert_eq!(world.engine.conversation(&begun).await.unwrap_err(), not_found(&begun));
    assert_eq!(world.engine.conversations(None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_idempotency_key_of_one_user_says_nothing_to_another() {
    let (world, ben) = two_users().await;
    let key = || Some(("conversations k".to_owned(), "same".to_owned()));
    let mine = world.engine.create(NewConversation { idempotency: key(), ..NewConversation::default() }).await.unwrap();
    let theirs = ben.create(NewConversation { idempotency: key(), ..NewConversation::default() }).await.unwrap();
    let again = ben.create(NewConversation { idempotency: key(), ..NewConversation::default() }).await.unwrap();
    assert_ne!(mine.id, theirs.id);
    assert_eq!(theirs, again);
    let other = Some(("conversations k".to_owned(), "other".to_owned()));
    let reused = ben.create(NewConversation { idempotency: other, ..NewConversation::default() }).await;
    assert_eq!(reused.unwrap_err(), EngineError::KeyReused { key: "conversations k".to_owned() });
}
