//! Appending entries and reading them.

use std::collections::HashSet;
use std::sync::Arc;

use turnwright_core::{Control, Entry, MessageId, Seq, TurnId};
use turnwright_engine::{KeptBy, SideRecord, StoreError};
use turnwright_testkit::copied;

use super::Backend;
use super::fixtures::{all, append, every_kind, record, said, seq, stored, with};

pub(super) async fn every_kind_of_entry_comes_back_as_it_was_appended(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    let append = append("a", 1, every_kind());
    let kinds: HashSet<&str> = append.entries.iter().map(Entry::kind).collect();
    assert_eq!(kinds.len(), 16, "the fixtures hold every kind");

    let answered = store.append(append.clone()).await.unwrap();

    assert_eq!(answered, stored(&append));
    assert_eq!(all(&*store, "a").await, stored(&append));
    assert_eq!(all(&*backend.open().await, "a").await, stored(&append));
}

pub(super) async fn entries_that_were_taken_over_keep_their_times(backend: &dyn Backend) {
    let store = backend.open().await;
    let times = SideRecord::Times(vec![11, 12]);
    let append = with(append("a", 1, vec![said("1"), said("2"), said("3")]), vec![SideRecord::Create(record("a", 5)), times]);
    let at_ms = append.at_ms;

    let answered = store.append(append).await.unwrap();

    let times_ms: Vec<u64> = answered.iter().map(|entry| entry.at_ms).collect();
    assert_eq!(times_ms, [11, 12, at_ms]);
    assert_eq!(all(&*store, "a").await, answered);
}

pub(super) async fn whether_something_is_taken_back_is_told_of_each_conversation(backend: &dyn Backend) {
    let store = backend.open().await;
    let hidden = Entry::Control(Control::Hidden { message: MessageId(seq(1)) });
    let retried = Entry::Control(Control::Retried { turn: TurnId(seq(1)), settings: None, hides: None });
    let journals =
        [("plain", said("2")), ("hides", hidden), ("retries", retried), ("quotes", said("{\"control\":{\"hidden\""))];
    for (id, second) in journals {
        store.create(record(id, 1)).await.unwrap();
        store.append(append(id, 1, vec![said("1"), second, said("3")])).await.unwrap();
    }

    let mut told = Vec::new();
    for id in ["plain", "hides", "retries", "quotes", "nobody"] {
        told.push(store.takes_back(&id.parse().unwrap()).await.unwrap());
    }

    assert_eq!(told, [false, true, true, false, false]);
}

pub(super) async fn a_conversation_begins_with_the_first_entries_of_another(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    store.append(append("a", 1, every_kind())).await.unwrap();
    let whole = all(&*store, "a").await;
    let id: turnwright_core::ConversationId = "a".parse().unwrap();

    store.copy(copied(record("b", 7), &record("a", 1), 5)).await.unwrap();
    store.append(append("b", 6, vec![said("more")])).await.unwrap();

    assert_eq!(all(&*store, "b").await[..5], whole[..5]);
    assert_eq!(all(&*store, "b").await[5..], stored(&append("b", 6, vec![said("more")])));
    assert_eq!(store.conversation(&"b".parse().unwrap()).await.unwrap().unwrap().created_at_ms, record("b", 7).created_at_ms);
    let exists = StoreError::Exists { conversation: "b".parse().unwrap() };
    assert_eq!(store.copy(copied(record("b", 7), &record("a", 1), 5)).await, Err(exists));
    let too_far = store.copy(copied(record("c", 7), &record("a", 1), whole.len() as u64 + 1)).await;
    assert_eq!(too_far, Err(StoreError::Gone { conversation: id.clone() }));
    let of_nobody = store.copy(copied(record("c", 7), &record("x", 1), 1)).await;
    assert_eq!(of_nobody, Err(StoreError::Gone { conversation: "x".parse().unwrap() }));
    // One that has the name of another that was deleted.
    let of_another = store.copy(copied(record("c", 7), &record("a", 2), 1)).await;
    assert_eq!(of_another, Err(StoreError::Gone { conversation: id.clone() }));
    assert_eq!(store.conversation(&"c".parse().unwrap()).await.unwrap(), None);
    store.delete(&id).await.unwrap();
    assert_eq!(all(&*store, "b").await.len(), 6);
}

/// Copies of copies, shorter and longer than what those share, as their originals go, in every order.
pub(super) async fn what_copies_begin_with_stays_whichever_of_them_is_deleted(backend: &dyn Backend) {
    const ALL: [&str; 5] = ["a", "same", "shorter", "longer", "of-longer"];
    for turned in 0..ALL.len() {
        let store = backend.open().await;
        let id = |name: &str| format!("{name}-{turned}").parse::<turnwright_core::ConversationId>().unwrap();
        let own = |name: &str, at: u64| append(id(name).as_str(), at, vec![said(&format!("{name} alone")), said("more")]);
        store.create(record(id("a").as_str(), 1)).await.unwrap();
        store.append(append(id("a").as_str(), 1, (1..=6).map(|number| said(&number.to_string())).collect())).await.unwrap();
        for (copy, of, through) in [("same", "a", 6), ("shorter", "same", 2), ("longer", "same", 7), ("of-longer", "longer", 8)]
        {
            if copy == "longer" {
                store.append(own("same", 7)).await.unwrap();
            }
            store.copy(copied(record(id(copy).as_str(), 1), &record(id(of).as_str(), 1), through)).await.unwrap();
            if copy == "longer" {
                store.append(own(copy, 8)).await.unwrap();
            }
        }
        let mut expected = Vec::new();
        for name in ALL {
            expected.push((name, all(&*store, id(name).as_str()).await));
        }
        assert_eq!(expected.iter().map(|(_, entries)| entries.len()).collect::<Vec<_>>(), [6, 8, 2, 9, 8]);
        assert_eq!(expected[4].1, expected[3].1[..8]);
        expected.rotate_left(turned);

        while let Some((gone, _)) = expected.pop() {
            store.delete(&id(gone)).await.unwrap();
            // Another takes the place in the database that it had.
            store.create(record(id(gone).as_str(), 1)).await.unwrap();
            assert_eq!(all(&*store, id(gone).as_str()).await, [], "{gone} is new");
            store.append(append(id(gone).as_str(), 1, vec![said("new")])).await.unwrap();
            for (name, entries) in &expected {
                assert_eq!(&all(&*store, id(name).as_str()).await, entries, "{name} once {gone} is gone");
                let after = entries.iter().skip(1).take(2).cloned().collect::<Vec<_>>();
                assert_eq!(store.entries(&id(name), seq(2), 2).await.unwrap(), after, "{name} once {gone} is gone");
                assert_eq!(store.last_seq(&id(name)).await.unwrap(), entries.last().map(|last| last.seq));
            }
            store.delete(&id(gone)).await.unwrap();
        }
    }
}

pub(super) async fn a_copy_takes_back_what_its_beginning_does(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    let hidden = Entry::Control(Control::Hidden { message: MessageId(seq(1)) });
    store.append(append("a", 1, vec![said("1"), hidden, said("2")])).await.unwrap();
    store.copy(copied(record("before", 1), &record("a", 1), 1)).await.unwrap();
    store.copy(copied(record("after", 1), &record("a", 1), 2)).await.unwrap();
    assert!(!store.takes_back(&"before".parse().unwrap()).await.unwrap());
    assert!(store.takes_back(&"after".parse().unwrap()).await.unwrap());
}

pub(super) async fn entries_are_read_from_any_place_and_in_part(backend: &dyn Backend) {
    let store = backend.open().await;
    for id in ["before", "a", "zafter"] {
        store.create(record(id, 1)).await.unwrap();
        store.append(append(id, 1, vec![said("1"), said("2")])).await.unwrap();
        store.append(append(id, 3, vec![said("3")])).await.unwrap();
    }
    let whole: Vec<_> =
        [append("a", 1, vec![said("1"), said("2")]), append("a", 3, vec![said("3")])].iter().flat_map(stored).collect();
    let id = "a".parse().unwrap();

    for from in 1..=4 {
        for limit in [0, 1, 2, 3, 4, usize::MAX] {
            let read = store.entries(&id, seq(from), limit).await.unwrap();
            let expected: Vec<_> = whole.iter().filter(|entry| entry.seq.get() >= from).take(limit).cloned().collect();
            assert_eq!(read, expected, "from {from}, at most {limit}");
        }
    }
    assert_eq!(store.entries(&id, seq(u64::MAX), 10).await.unwrap(), []);
    assert_eq!(store.last_seq(&id).await.unwrap(), Some(seq(3)));
}

pub(super) async fn an_append_at_a_taken_place_conflicts_and_leaves_nothing(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    let first = append("a", 1, vec![said("first"), said("second")]);
    store.append(first.clone()).await.unwrap();

    let open = SideRecord::TurnOpen { turn: TurnId(seq(1)), parked: false, kept_by: KeptBy::Servers };
    let late = with(append("a", 2, vec![said("late"), said("later")]), vec![open]);
    let refused = store.append(late).await;

    assert_eq!(refused, Err(StoreError::Conflict { next: seq(3) }));
    assert_eq!(all(&*store, "a").await, stored(&first));
    assert_eq!(store.open_turns().await.unwrap(), []);
}

pub(super) async fn an_append_beyond_the_next_place_conflicts(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();

    assert_eq!(store.append(append("a", 2, vec![said("x")])).await, Err(StoreError::Conflict { next: Seq::FIRST }));
    assert_eq!(store.append(append("a", u64::MAX, vec![said("x")])).await, Err(StoreError::Conflict { next: Seq::FIRST }));
    assert_eq!(all(&*store, "a").await, []);
}

pub(super) async fn an_append_without_entries_writes_its_records_alone(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();

    let written = store.append(with(append("a", 1, Vec::new()), vec![SideRecord::Title(Some("T".to_owned()))])).await;

    assert_eq!(written, Ok(Vec::new()));
    let id = "a".parse().unwrap();
    assert_eq!(store.conversation(&id).await.unwrap().and_then(|record| record.title), Some("T".to_owned()));
    assert_eq!(store.last_seq(&id).await.unwrap(), None);
    store.append(append("a", 1, vec![said("first")])).await.unwrap();
}

pub(super) async fn many_appenders_leave_no_gap(backend: &dyn Backend) {
    const APPENDERS: u64 = 64;
    const EACH: u64 = 4;
    let stores = [backend.open().await, backend.open().await];
    stores[0].create(record("a", 1)).await.unwrap();

    let mut appenders = tokio::task::JoinSet::new();
    for appender in 0..APPENDERS {
        let store = Arc::clone(&stores[usize::try_from(appender % 2).unwrap()]);
        appenders.spawn(async move {
            let mut at = 1;
            for number in 0..EACH {
                loop {
                    match store.append(append("a", at, vec![said(&format!("{appender}.{number}"))])).await {
                        Ok(_) => break at += 1,
                        Err(StoreError::Conflict { next }) => at = next.get(),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
    }
    appenders.join_all().await;

    let read = all(&*stores[0], "a").await;
    let places: Vec<u64> = read.iter().map(|entry| entry.seq.get()).collect();
    assert_eq!(places, (1..=APPENDERS * EACH).collect::<Vec<_>>());
    let mut texts: Vec<String> = read.iter().map(|entry| format!("{:?}", entry.entry)).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len() as u64, APPENDERS * EACH, "every acknowledged entry is there once");
}
