//! Records that are written with entries, or not at all.

use turnwright_core::TurnId;
use turnwright_engine::{ConversationRecord, Idempotent, KeptBy, OpenTurn, SideRecord, StoreError};

use super::Backend;
use super::fixtures::{all, append, record, said, seq, stored, with};

fn answer(text: &str) -> Idempotent {
    Idempotent { fingerprint: format!("hash of {text}"), answer: format!("{{\"text\":\"{text}\"}}") }
}

fn keyed(key: &str, text: &str) -> SideRecord {
    SideRecord::Idempotent { key: key.to_owned(), record: answer(text) }
}

pub(super) async fn a_conversation_begins_with_its_first_append(backend: &dyn Backend) {
    let store = backend.open().await;
    let title = SideRecord::Title("Made from the message".to_owned());
    let first = with(append("a", 1, vec![said("hello")]), vec![SideRecord::Create(record("a", 7)), title]);

    assert_eq!(store.append(first.clone()).await.unwrap(), stored(&first));

    assert_eq!(all(&*store, "a").await, stored(&first));
    let expected =
        ConversationRecord { title: Some("Made from the message".to_owned()), updated_at_ms: first.at_ms, ..record("a", 7) };
    assert_eq!(store.conversation(&"a".parse().unwrap()).await, Ok(Some(expected)));
    store.append(append("a", 2, vec![said("again")])).await.unwrap();
}

pub(super) async fn a_conversation_that_is_there_does_not_begin_again(backend: &dyn Backend) {
    let store = backend.open().await;
    let first = append("a", 1, vec![said("hello")]);
    store.append(with(first.clone(), vec![SideRecord::Create(record("a", 7))])).await.unwrap();

    let again = with(append("a", 1, vec![said("other")]), vec![SideRecord::Create(record("a", 8)), keyed("k", "x")]);

    assert_eq!(store.append(again).await, Err(StoreError::Exists { conversation: "a".parse().unwrap() }));
    assert_eq!(all(&*store, "a").await, stored(&first));
    assert_eq!(store.idempotent("k").await, Ok(None));
}

pub(super) async fn a_title_comes_with_entries(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(ConversationRecord { title: None, ..record("a", 1) }).await.unwrap();

    let titled = with(append("a", 1, vec![said("x")]), vec![SideRecord::Title("Ä".to_owned())]);
    store.append(titled).await.unwrap();

    let found = store.conversation(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(found, ConversationRecord { title: Some("Ä".to_owned()), updated_at_ms: 1_001, ..record("a", 1) });
}

pub(super) async fn the_index_of_open_turns_follows_the_journal(backend: &dyn Backend) {
    let store = backend.open().await;
    let open = |turn, parked, kept_by| SideRecord::TurnOpen { turn: TurnId(seq(turn)), parked, kept_by };
    let row = |id: &str, turn, parked, kept_by| OpenTurn {
        conversation: id.parse().unwrap(),
        owner: turnwright_core::UserId::local(),
        turn: TurnId(seq(turn)),
        parked,
        kept_by,
    };
    for id in ["a", "b"] {
        store.create(record(id, 1)).await.unwrap();
    }

    store.append(with(append("a", 1, vec![said("1")]), vec![open(1, false, KeptBy::Servers)])).await.unwrap();
    store.append(with(append("b", 1, vec![said("1")]), vec![open(1, false, KeptBy::Chat)])).await.unwrap();
    let both = [row("a", 1, false, KeptBy::Servers), row("b", 1, false, KeptBy::Chat)];
    assert_eq!(store.open_turns().await.unwrap(), both);
    let (own, other) = (turnwright_core::UserId::local(), "ada".parse().unwrap());
    assert_eq!((store.running_turns_of(&own).await, store.running_turns_of(&other).await), (Ok(2), Ok(0)));

    store.append(with(append("a", 2, vec![said("2")]), vec![open(2, true, KeptBy::Servers)])).await.unwrap();
    store.append(with(append("b", 2, vec![said("2")]), vec![SideRecord::TurnOver])).await.unwrap();
    assert_eq!(store.open_turns().await.unwrap(), [row("a", 2, true, KeptBy::Servers)]);
    assert_eq!(store.running_turns_of(&own).await, Ok(0), "what waits for a person does not run");

    store.append(with(append("a", 3, vec![said("3")]), vec![SideRecord::TurnOver])).await.unwrap();
    assert_eq!(store.open_turns().await.unwrap(), []);
}

pub(super) async fn an_idempotency_key_keeps_its_first_answer(backend: &dyn Backend) {
    let store = backend.open().await;
    for id in ["a", "b"] {
        store.create(record(id, 1)).await.unwrap();
    }
    store.append(with(append("a", 1, vec![said("1")]), vec![keyed("key", "first")])).await.unwrap();
    assert_eq!(store.idempotent("key").await, Ok(Some(answer("first"))));

    // The same request through another conversation, as when two of them create one each.
    let again = store.append(with(append("b", 1, vec![said("1")]), vec![keyed("key", "second")])).await;

    assert_eq!(again, Err(StoreError::Repeated { key: "key".to_owned() }));
    assert_eq!(all(&*store, "b").await, []);
    assert_eq!(store.idempotent("key").await, Ok(Some(answer("first"))));
    assert_eq!(store.idempotent("Key").await, Ok(None));
}

pub(super) async fn records_of_a_refused_append_are_not_written(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    store.append(append("a", 1, vec![said("1")])).await.unwrap();
    let before = store.conversation(&"a".parse().unwrap()).await.unwrap();

    let side = vec![
        SideRecord::Title("new".to_owned()),
        SideRecord::TurnOpen { turn: TurnId(seq(1)), parked: true, kept_by: KeptBy::Chat },
        keyed("key", "x"),
    ];
    let refused = store.append(with(append("a", 1, vec![said("2")]), side)).await;

    assert_eq!(refused, Err(StoreError::Conflict { next: seq(2) }));
    assert_eq!(store.conversation(&"a".parse().unwrap()).await.unwrap(), before);
    assert_eq!(store.open_turns().await.unwrap(), []);
    assert_eq!(store.idempotent("key").await, Ok(None));
}
