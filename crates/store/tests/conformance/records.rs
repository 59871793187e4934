//! Records that are written with entries, or not at all.

use turnwright_core::{TurnId, UserId};
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
    let title = SideRecord::Title(Some("Made from the message".to_owned()));
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

    let titled = with(append("a", 1, vec![said("x")]), vec![SideRecord::Title(Some("Ä".to_owned()))]);
    store.append(titled).await.unwrap();

    let found = store.conversation(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(found, ConversationRecord { title: Some("Ä".to_owned()), updated_at_ms: 1_001, ..record("a", 1) });
    store.append(with(append("a", 2, vec![said("x")]), vec![SideRecord::Title(None)])).await.unwrap();
    assert_eq!(store.conversation(&"a".parse().unwrap()).await.unwrap().unwrap().title, None);
}

pub(super) async fn an_answer_is_kept_without_entries_and_goes_with_its_conversation(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    let first = append("a", 1, vec![said("1")]);
    store.append(first.clone()).await.unwrap();
    let beside = |at, text| with(append("a", at, Vec::new()), vec![keyed("/beside/a/x", text)]);

    assert_eq!(store.append(beside(1, "early")).await, Err(StoreError::Conflict { next: seq(2) }));
    assert_eq!(store.append(beside(2, "x")).await, Ok(Vec::new()));
    assert_eq!(store.append(beside(2, "y")).await, Err(StoreError::Repeated { key: "/beside/a/x".to_owned() }));

    assert_eq!(store.idempotent("/beside/a/x").await, Ok(Some(answer("x"))));
    assert_eq!((all(&*store, "a").await, store.last_seq(&"a".parse().unwrap()).await), (stored(&first), Ok(Some(seq(1)))));
    store.delete(&"a".parse().unwrap()).await.unwrap();
    assert_eq!(store.idempotent("/beside/a/x").await, Ok(None));
}

pub(super) async fn the_index_of_open_turns_follows_the_journal(backend: &dyn Backend) {
    let store = backend.open().await;
    let open = |turn, parked, kept_by| SideRecord::TurnOpen { turn: TurnId(seq(turn)), parked, kept_by };
    let row = |id: &str, turn, parked, kept_by, last| OpenTurn {
        conversation: id.parse().unwrap(),
        owner: UserId::local(),
        turn: TurnId(seq(turn)),
        parked,
        kept_by,
        last: Some(seq(last)),
    };
    for id in ["a", "b"] {
        store.create(record(id, 1)).await.unwrap();
    }

    store.append(with(append("a", 1, vec![said("1")]), vec![open(1, false, KeptBy::Servers)])).await.unwrap();
    store.append(with(append("b", 1, vec![said("1")]), vec![open(1, false, KeptBy::Chat)])).await.unwrap();
    let both = [row("a", 1, false, KeptBy::Servers, 1), row("b", 1, false, KeptBy::Chat, 1)];
    assert_eq!(store.open_turns().await.unwrap(), both);

    store.append(with(append("a", 2, vec![said("2")]), vec![open(2, true, KeptBy::Servers)])).await.unwrap();
    store.append(with(append("b", 2, vec![said("2")]), vec![SideRecord::TurnOver])).await.unwrap();
    assert_eq!(store.open_turns().await.unwrap(), [row("a", 2, true, KeptBy::Servers, 2)]);

    store.append(with(append("a", 3, vec![said("3")]), vec![SideRecord::TurnOver])).await.unwrap();
    assert_eq!(store.open_turns().await.unwrap(), []);
}

pub(super) async fn no_more_turns_of_a_user_run_than_may_whoever_begins_them(backend: &dyn Backend) {
    const MOST: usize = 5;
    const ASKED: usize = 40;
    let stores = [backend.open().await, backend.open().await];
    let ann: UserId = "ann".parse().unwrap();
    let begins = |id: &str, at: u64, owner: &UserId| {
        let turn = SideRecord::TurnOpen { turn: TurnId(seq(at)), parked: false, kept_by: KeptBy::Servers };
        let limit = SideRecord::RunningTurns { owner: owner.clone(), most: MOST };
        with(append(id, at, vec![said("go")]), vec![limit, turn])
    };
    for number in 0..ASKED {
        stores[0].create(ConversationRecord { owner: ann.clone(), ..record(&format!("c{number}"), 1) }).await.unwrap();
    }
    let all: Vec<_> = (0..ASKED).map(|number| stores[number % 2].append(begins(&format!("c{number}"), 1, &ann))).collect();
    let verdicts = futures_util::future::join_all(all).await;
    let begun: Vec<usize> = (0..ASKED).filter(|number| verdicts[*number].is_ok()).collect();
    assert_eq!(begun.len(), MOST);
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Err(StoreError::TooManyTurns)).count(), ASKED - MOST);
    let open = stores[1].open_turns().await.unwrap();
    assert_eq!(open.len(), MOST, "who was refused has written nothing");

    // Another user's turns are not these, and one that waits for a person does not run.
    stores[1].create(record("other", 1)).await.unwrap();
    stores[1].append(begins("other", 1, &UserId::local())).await.unwrap();
    let (first, refused) = (format!("c{}", begun[0]), (0..ASKED).find(|number| !begun.contains(number)).unwrap());
    let parked = SideRecord::TurnOpen { turn: TurnId(seq(1)), parked: true, kept_by: KeptBy::Servers };
    stores[0].append(with(append(&first, 2, vec![said("?")]), vec![parked])).await.unwrap();
    stores[1].append(begins(&format!("c{refused}"), 1, &ann)).await.unwrap();
    // The conversation's own turn makes room for the one that takes its place.
    stores[0].append(begins(&format!("c{refused}"), 2, &ann)).await.unwrap();
    assert_eq!(stores[0].append(begins(&first, 3, &ann)).await, Err(StoreError::TooManyTurns));
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

pub(super) async fn the_last_of_the_idempotency_keys_between_two_is_found(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    for (at, key) in (1..).zip(["/a/2", "/a/1", "/a/3", "/b/9", "Z", "ä"]) {
        store.append(with(append("a", at, vec![said("x")]), vec![keyed(key, "x")])).await.unwrap();
    }
    for (from, before, expected) in
        [("/a/", "/a0", Some("/a/3")), ("/a/", "/a/3", Some("/a/2")), ("/a/31", "/a0", None), ("Y", "a", Some("Z"))]
    {
        assert_eq!(store.last_key(from, before).await, Ok(expected.map(str::to_owned)), "{from} to {before}");
    }
    store.delete(&"a".parse().unwrap()).await.unwrap();
    assert_eq!(store.last_key("/a/", "/a0").await, Ok(None), "they go with their conversation");
}

pub(super) async fn records_of_a_refused_append_are_not_written(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    store.append(append("a", 1, vec![said("1")])).await.unwrap();
    let before = store.conversation(&"a".parse().unwrap()).await.unwrap();

    let side = vec![
        SideRecord::Title(Some("new".to_owned())),
        SideRecord::TurnOpen { turn: TurnId(seq(1)), parked: true, kept_by: KeptBy::Chat },
        keyed("key", "x"),
    ];
    let refused = store.append(with(append("a", 1, vec![said("2")]), side)).await;

    assert_eq!(refused, Err(StoreError::Conflict { next: seq(2) }));
    assert_eq!(store.conversation(&"a".parse().unwrap()).await.unwrap(), before);
    assert_eq!(store.open_turns().await.unwrap(), []);
    assert_eq!(store.idempotent("key").await, Ok(None));
}
