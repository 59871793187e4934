//! Conversations as such: creating, listing, changing, deleting.

use std::sync::Arc;

use turnwright_core::{ConversationId, Seq, TurnId, UserId};
use turnwright_engine::{Chosen, ConversationRecord, Idempotent, KeptBy, Newest, Page, SideRecord, Store, StoreError};

use super::Backend;
use super::fixtures::{all, append, record, said, seq, stored, with};

fn gone(id: &str) -> StoreError {
    StoreError::Gone { conversation: id.parse().unwrap() }
}

async fn listed(store: &dyn Store, page: Page<'_>) -> Vec<String> {
    let records = store.conversations(page).await.unwrap();
    records.into_iter().map(|record| record.id.to_string()).collect()
}

pub(super) async fn questions_that_nobody_looks_after_hold_up_no_other(backend: &dyn Backend) {
    let store = backend.open().await;
    let first = append("a", 1, vec![said("x")]);
    store.create(record("a", 1)).await.unwrap();
    store.append(first.clone()).await.unwrap();
    // More of them than there are connections: some have one, the others are in line.
    let mut begun = Vec::new();
    for _ in 0..64 {
        let mut asking = Box::pin(all(&*store, "a"));
        if futures_util::poll!(&mut asking).is_pending() {
            begun.push(asking);
        }
    }

    for _ in 0..16 {
        assert_eq!(all(&*store, "a").await, stored(&first));
    }
    for asking in begun {
        assert_eq!(asking.await, stored(&first));
    }
}

pub(super) async fn a_conversation_is_found_as_it_was_created(backend: &dyn Backend) {
    let store = backend.open().await;
    let untitled = ConversationRecord { title: None, ..record("b", 2) };
    store.create(record("a", 1)).await.unwrap();
    store.create(untitled.clone()).await.unwrap();

    assert_eq!(store.conversation(&"a".parse().unwrap()).await, Ok(Some(record("a", 1))));
    assert_eq!(store.conversation(&"b".parse().unwrap()).await, Ok(Some(untitled)));
    assert_eq!(store.conversation(&"c".parse().unwrap()).await, Ok(None));
}

pub(super) async fn a_conversation_is_created_once(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();

    let again = store.create(record("a", 2)).await;

    assert_eq!(again, Err(StoreError::Exists { conversation: "a".parse().unwrap() }));
    assert_eq!(store.conversation(&"a".parse().unwrap()).await, Ok(Some(record("a", 1))));
}

pub(super) async fn an_update_replaces_title_and_settings_alone(backend: &dyn Backend) {
    let store = backend.open().await;
    store.create(record("a", 1)).await.unwrap();
    store.append(append("a", 1, vec![said("x")])).await.unwrap();
    let before = store.conversation(&"a".parse().unwrap()).await.unwrap().unwrap();
    let of = before.chosen();
    let changed = ConversationRecord { title: None, settings: "{}".to_owned(), ..before };

    store.update(&changed.id, changed.chosen(), (&changed.incarnation(), &of)).await.unwrap();

    assert_eq!(store.conversation(&"a".parse().unwrap()).await, Ok(Some(changed)));
    assert_eq!(all(&*store, "a").await.len(), 1);
}

pub(super) async fn an_update_of_what_was_changed_since_writes_nothing(backend: &dyn Backend) {
    let store = backend.open().await;
    let id: ConversationId = "a".parse().unwrap();
    let meant = record("a", 1).incarnation();
    store.create(record("a", 1)).await.unwrap();
    let of = record("a", 1).chosen();
    let [untitled, other] = [
        Chosen { title: None, settings: of.settings.clone() },
        Chosen { title: of.title.clone(), settings: r#"{"model":"other/model"}"#.to_owned() },
    ];
    let changed = Err(StoreError::Changed { conversation: id.clone() });

    for stale in [&untitled, &other] {
        assert_eq!(store.update(&id, Chosen::default(), (&meant, stale)).await, changed);
    }
    assert_eq!(store.conversation(&id).await.unwrap().unwrap().chosen(), of);

    store.update(&id, untitled.clone(), (&meant, &of)).await.unwrap();
    assert_eq!(store.update(&id, other.clone(), (&meant, &of)).await, changed);
    store.update(&id, other.clone(), (&meant, &untitled)).await.unwrap();
    assert_eq!(store.conversation(&id).await.unwrap().unwrap().chosen(), other);
}

pub(super) async fn what_was_changed_since_is_not_deleted(backend: &dyn Backend) {
    let store = backend.open().await;
    let id: ConversationId = "a".parse().unwrap();
    let meant = record("a", 1).incarnation();
    assert_eq!(store.delete_meant(&id, &meant, Some(&Chosen::default())).await, Err(gone("a")));
    store.create(record("a", 1)).await.unwrap();
    store.append(append("a", 1, vec![said("x")])).await.unwrap();
    let of = record("a", 1).chosen();
    let untitled = Chosen { title: None, settings: of.settings.clone() };
    store.update(&id, untitled.clone(), (&meant, &of)).await.unwrap();
    assert_eq!(store.delete_meant(&id, &meant, Some(&of)).await, Err(StoreError::Changed { conversation: id.clone() }));
    assert_eq!(all(&*store, "a").await.len(), 1);
    // Of a change and a removal at once, of the same, one is made.
    let (changed, removed) =
        tokio::join!(store.update(&id, of.clone(), (&meant, &untitled)), store.delete_meant(&id, &meant, Some(&untitled)));
    assert!(changed.is_ok() != removed.is_ok(), "{changed:?} {removed:?}");
    if changed.is_ok() {
        store.delete_meant(&id, &meant, Some(&of)).await.unwrap();
    }
    assert_eq!(store.conversation(&id).await, Ok(None));
}

/// Who asks looks first to whom it belongs. It may be deleted after that, and somebody else may make one of its name.
pub(super) async fn another_of_the_name_is_neither_changed_nor_deleted_for_the_one_that_was_meant(backend: &dyn Backend) {
    let store = backend.open().await;
    let id: ConversationId = "a".parse().unwrap();
    let annas = ConversationRecord { owner: "anna".parse().unwrap(), ..record("a", 1) };
    let (later, bens) = (record("a", 2), ConversationRecord { owner: "ben".parse().unwrap(), ..record("a", 1) });
    let of = annas.chosen();
    for there in [later, bens] {
        store.create(annas.clone()).await.unwrap();
        store.delete_meant(&id, &annas.incarnation(), None).await.unwrap();
        store.create(there.clone()).await.unwrap();
        store.append(append("a", 1, vec![said("x")])).await.unwrap();
        let known = store.conversation(&id).await.unwrap();
        for chosen in [None, Some(&of)] {
            assert_eq!(store.delete_meant(&id, &annas.incarnation(), chosen).await, Err(gone("a")));
        }
        assert_eq!(store.update(&id, Chosen::default(), (&annas.incarnation(), &of)).await, Err(gone("a")));
        assert_eq!((store.conversation(&id).await.unwrap(), all(&*store, "a").await.len()), (known, 1));
        store.delete_meant(&id, &there.incarnation(), None).await.unwrap();
    }
}

pub(super) async fn who_looks_how_far_a_conversation_is_is_told_what_is_chosen_where_it_is_other(backend: &dyn Backend) {
    let store = backend.open().await;
    let id: ConversationId = "a".parse().unwrap();
    let known = Arc::new(record("a", 1).chosen());
    assert_eq!(store.newest(&id, &known).await, Ok(Newest::default()));
    store.create(record("a", 1)).await.unwrap();
    let incarnation = Some(record("a", 1).incarnation());
    let empty = Newest { last: None, chosen: None, incarnation };
    assert_eq!(store.newest(&id, &known).await, Ok(empty.clone()));
    store.append(append("a", 1, vec![said("x")])).await.unwrap();
    let with_one = Newest { last: Some(seq(1)), ..empty };
    assert_eq!(store.newest(&id, &known).await, Ok(with_one.clone()));
    let with_choice = Newest { chosen: Some(Chosen::clone(&known)), ..with_one };
    assert_eq!(store.newest(&id, &Arc::default()).await, Ok(with_choice));

    let untitled = Chosen { title: None, settings: "{}".to_owned() };
    store.update(&id, untitled.clone(), (&record("a", 1).incarnation(), &known)).await.unwrap();

    assert_eq!(store.newest(&id, &known).await.unwrap().chosen, Some(untitled));
}

pub(super) async fn what_is_not_there_is_gone(backend: &dyn Backend) {
    let store = backend.open().await;
    let id: ConversationId = "a".parse().unwrap();

    assert_eq!(store.append(append("a", 1, vec![said("x")])).await, Err(gone("a")));
    assert_eq!(store.entries(&id, Seq::FIRST, 1).await, Err(gone("a")));
    assert_eq!(store.entries(&id, Seq::FIRST, 0).await, Err(gone("a")));
    assert_eq!(store.update(&id, Chosen::default(), (&record("a", 1).incarnation(), &Chosen::default())).await, Err(gone("a")));
    assert_eq!(store.delete(&id).await, Err(gone("a")));
    assert_eq!(store.last_seq(&id).await, Ok(None));
    assert_eq!(store.idempotent("key").await, Ok(None));
    assert_eq!(store.open_turns().await, Ok(Vec::new()));
}

pub(super) async fn the_conversation_with_the_newest_entry_is_listed_first(backend: &dyn Backend) {
    let store = backend.open().await;
    for (id, at_ms) in [("a", 10), ("b", 20), ("c", 30)] {
        store.create(record(id, at_ms)).await.unwrap();
    }
    let owner = UserId::local();
    let page = Page { owner: &owner, after: None, limit: 10, only_pinned: false };
    assert_eq!(listed(&*store, page).await, ["c", "b", "a"]);

    store.append(append("a", 1, vec![said("x")])).await.unwrap();

    assert_eq!(listed(&*store, page).await, ["a", "c", "b"]);
    let updated = store.conversation(&"a".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(updated, ConversationRecord { updated_at_ms: 1_001, ..record("a", 10) });
}

pub(super) async fn pages_show_every_conversation_once(backend: &dyn Backend) {
    let store = backend.open().await;
    // Many of the same time, so that pages end among them.
    for number in 0..23 {
        store.create(record(&format!("c{number}"), 5 + number / 9)).await.unwrap();
    }
    let whole = listed(&*store, Page { owner: &UserId::local(), after: None, limit: 100, only_pinned: false }).await;
    assert_eq!(whole.len(), 23);

    for limit in [1, 4, 23] {
        let (mut shown, mut after) = (Vec::new(), None);
        loop {
            let page = store
                .conversations(Page { owner: &UserId::local(), after: after.as_ref(), limit, only_pinned: false })
                .await
                .unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.place());
            shown.extend(page.into_iter().map(|record| record.id.to_string()));
        }
        assert_eq!(shown, whole, "in pages of {limit}");
    }
    assert_eq!(
        listed(&*store, Page { owner: &UserId::local(), after: None, limit: 0, only_pinned: false }).await,
        Vec::<String>::new()
    );
}

pub(super) async fn those_that_are_pinned_are_found_however_old_they_are(backend: &dyn Backend) {
    let store = backend.open().await;
    for number in 0..9 {
        let settings = if number % 4 == 0 { r#"{"pinned":true}"# } else { r#"{"pinned":false}"# };
        let record = ConversationRecord { settings: settings.to_owned(), ..record(&format!("c{number}"), 5 + number / 5) };
        store.create(record).await.unwrap();
    }
    store.create(record("unsaid", 3)).await.unwrap();
    let owner = UserId::local();
    let page = Page { owner: &owner, after: None, limit: 9, only_pinned: true };
    assert_eq!(listed(&*store, page).await, ["c8", "c4", "c0"]);
    let after = record("c4", 5).place();
    assert_eq!(listed(&*store, Page { after: Some(&after), ..page }).await, ["c0"]);
    assert_eq!(listed(&*store, Page { limit: 1, ..page }).await, ["c8"]);
}

pub(super) async fn a_page_goes_on_behind_what_is_changed_or_gone_meanwhile(backend: &dyn Backend) {
    let store = backend.open().await;
    // Three of each time, so that a page ends among those of one.
    for (id, at_ms) in [("a", 1), ("b", 1), ("c", 1), ("d", 2), ("e", 2), ("f", 2)] {
        store.create(record(id, at_ms)).await.unwrap();
    }
    let owner = UserId::local();
    let behind = async |id: &str, at_ms: u64| {
        let place = record(id, at_ms).place();
        listed(&*store, Page { owner: &owner, after: Some(&place), limit: 9, only_pinned: false }).await
    };
    assert_eq!(behind("e", 2).await, ["d", "c", "b", "a"]);
    store.delete(&"e".parse().unwrap()).await.unwrap();
    assert_eq!(behind("e", 2).await, ["d", "c", "b", "a"]);
    store.append(append("b", 1, vec![said("x")])).await.unwrap();
    assert_eq!(behind("b", 1).await, ["a"], "the place of before, not the one that it has");
    assert_eq!(behind("e", 2).await, ["d", "c", "a"]);
    assert_eq!(
        listed(&*store, Page { owner: &owner, after: None, limit: 9, only_pinned: false }).await,
        ["b", "f", "d", "c", "a"]
    );
}

pub(super) async fn a_deleted_conversation_leaves_nothing_and_takes_nothing_else(backend: &dyn Backend) {
    let store = backend.open().await;
    let side = |key: &str| {
        let record = Idempotent { fingerprint: "f".to_owned(), answer: "{}".to_owned() };
        vec![
            SideRecord::TurnOpen { turn: TurnId(seq(1)), parked: false, kept_by: KeptBy::Chat },
            SideRecord::Idempotent { key: key.to_owned(), record },
        ]
    };
    for id in ["a", "b", "c"] {
        store.create(record(id, 1)).await.unwrap();
        store.append(with(append(id, 1, vec![said("x"), said("y")]), side(id))).await.unwrap();
    }

    store.delete(&"b".parse().unwrap()).await.unwrap();

    assert_eq!(store.conversation(&"b".parse().unwrap()).await, Ok(None));
    assert_eq!(store.entries(&"b".parse().unwrap(), Seq::FIRST, 9).await, Err(gone("b")));
    assert_eq!(store.append(append("b", 3, vec![said("late")])).await, Err(gone("b")));
    assert_eq!(store.idempotent("b").await, Ok(None));
    let kept = stored(&append("a", 1, vec![said("x"), said("y")]));
    assert_eq!((all(&*store, "a").await, all(&*store, "c").await), (kept.clone(), kept));
    assert!(store.idempotent("a").await.unwrap().is_some());
    let open: Vec<String> = store.open_turns().await.unwrap().into_iter().map(|open| open.conversation.to_string()).collect();
    assert_eq!(open, ["a", "c"]);
}

pub(super) async fn a_deleted_name_can_be_used_again(backend: &dyn Backend) {
    let store = backend.open().await;
    let id = "a".parse().unwrap();
    for round in 1..=2 {
        store.create(record("a", round)).await.unwrap();
        assert_eq!(all(&*store, "a").await, []);
        store.append(append("a", 1, vec![said("x")])).await.unwrap();
        store.delete(&id).await.unwrap();
    }
    assert_eq!(store.conversation(&id).await, Ok(None));
}

pub(super) async fn what_was_meant_for_a_deleted_conversation_is_not_stored_in_the_next_of_its_name(backend: &dyn Backend) {
    let store = backend.open().await;
    let id = "a".parse().unwrap();
    let of = |record: &ConversationRecord| vec![SideRecord::Of(record.incarnation())];
    let old = record("a", 1);
    let later = ConversationRecord { created_at_ms: old.created_at_ms + 1, ..old.clone() };
    let others = ConversationRecord { owner: "ben".parse().unwrap(), ..old.clone() };
    for new in [later, others] {
        store.create(old.clone()).await.unwrap();
        store.append(with(append("a", 1, vec![said("x")]), of(&old))).await.unwrap();
        store.delete(&id).await.unwrap();
        store.create(new.clone()).await.unwrap();
        // Both where it would fit, and where it comes too late.
        assert_eq!(store.append(with(append("a", 1, vec![said("y")]), of(&old))).await, Err(gone("a")));
        store.append(with(append("a", 1, vec![said("z")]), of(&new))).await.unwrap();
        assert_eq!(store.append(with(append("a", 1, vec![said("y")]), of(&old))).await, Err(gone("a")));
        assert_eq!(store.append(with(append("a", 2, vec![said("y")]), of(&old))).await, Err(gone("a")));
        assert_eq!(all(&*store, "a").await, stored(&append("a", 1, vec![said("z")])));
        assert_eq!(store.newest(&id, &Arc::default()).await.unwrap().incarnation, Some(new.incarnation()));
        store.delete(&id).await.unwrap();
    }
}

pub(super) async fn a_list_shows_what_belongs_to_one_owner_alone(backend: &dyn Backend) {
    let store = backend.open().await;
    let (anna, ben): (UserId, UserId) = ("anna".parse().unwrap(), "ben".parse().unwrap());
    for number in 0..9 {
        let owner = [&anna, &ben][number % 2].clone();
        // Of few times, so that the pages of one end among those of the other.
        let record = ConversationRecord { owner, ..record(&format!("c{number}"), 5 + u64::try_from(number / 4).unwrap()) };
        store.create(record).await.unwrap();
    }
    let annas = ["c8", "c6", "c4", "c2", "c0"];
    assert_eq!(listed(&*store, Page { owner: &anna, after: None, limit: 9, only_pinned: false }).await, annas);
    let after = record("c6", 6).place();
    assert_eq!(listed(&*store, Page { owner: &anna, after: Some(&after), limit: 9, only_pinned: false }).await, annas[2..]);
    assert_eq!(
        listed(&*store, Page { owner: &ben, after: Some(&after), limit: 9, only_pinned: false }).await,
        ["c5", "c3", "c1"]
    );
    assert_eq!(
        listed(&*store, Page { owner: &UserId::local(), after: None, limit: 9, only_pinned: false }).await,
        Vec::<String>::new()
    );
}

pub(super) async fn an_update_leaves_the_owner(backend: &dyn Backend) {
    let store = backend.open().await;
    let anna: UserId = "anna".parse().unwrap();
    let annas = ConversationRecord { owner: anna, ..record("a", 1) };
    store.create(annas.clone()).await.unwrap();

    store.update(&annas.id, annas.chosen(), (&annas.incarnation(), &annas.chosen())).await.unwrap();

    assert_eq!(store.conversation(&"a".parse().unwrap()).await, Ok(Some(annas)));
}
