//! Files in the database.

use turnwright_core::{ContentBlock, Entry, ModelRef, Seq, TurnSettings, UserId, UserMessage};
use turnwright_engine::artifacts::{Artifact, Draft, Removal};
use turnwright_engine::{Append, ConversationRecord, Copied, SideRecord, StoreError};
use turnwright_store::Storage;
use turnwright_testkit::{copied, record};

use super::Full;

async fn stored(store: &dyn Storage, owner: &UserId, id: &str, at_ms: u64) -> Artifact {
    let draft = store.begin_artifact(at_ms).await.unwrap();
    store.put_piece(draft, 0, b"first ".to_vec()).await.unwrap();
    store.put_piece(draft, 1, b"second".to_vec()).await.unwrap();
    let artifact = Artifact {
        id: id.to_owned(),
        owner: owner.clone(),
        name: "a.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: 12,
        created_at_ms: at_ms,
    };
    store.finish_artifact(draft, artifact.clone()).await.unwrap();
    artifact
}

fn conversation(id: &str, owner: &UserId) -> ConversationRecord {
    ConversationRecord { owner: owner.clone(), ..record(id) }
}

pub(crate) async fn a_file_belongs_to_its_owner_and_is_read_piece_by_piece(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let (ada, bob): (UserId, UserId) = ("ada".parse().unwrap(), "bob".parse().unwrap());
    let artifact = stored(store, &ada, "art_1", 5).await;
    // The same again is the same, and waits for a message as long as if it were new.
    for at_ms in [9, 7] {
        assert_eq!(stored(store, &ada, "art_1", at_ms).await.id, artifact.id);
        assert_eq!(store.artifact(&ada, "art_1").await.unwrap(), Some(Artifact { created_at_ms: 9, ..artifact.clone() }));
    }
    assert_eq!(store.piece(&ada, "art_1", 1).await.unwrap().as_deref(), Some(b"second".as_slice()));
    assert_eq!(store.piece(&ada, "art_1", 2).await.unwrap(), None);
    assert_eq!(store.artifact(&bob, "art_1").await.unwrap(), None);
    assert_eq!(store.piece(&bob, "art_1", 0).await.unwrap(), None);
    assert_eq!(store.remove_artifact(&bob, "art_1").await.unwrap(), Removal::Missing);
    assert_eq!(store.remove_artifact(&ada, "art_1").await.unwrap(), Removal::Removed);
    assert_eq!(store.piece(&ada, "art_1", 0).await.unwrap(), None);
    store.close().await;
}

pub(crate) async fn what_no_conversation_holds_and_what_was_never_finished_goes_when_it_is_old(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let ada: UserId = "ada".parse().unwrap();
    store.create(conversation("c1", &ada)).await.unwrap();
    store.create(conversation("c2", &ada)).await.unwrap();
    for (id, at_ms) in [("art_kept", 1), ("art_old", 1), ("art_new", 9)] {
        stored(store, &ada, id, at_ms).await;
    }
    store.use_artifact(&ada, "art_kept", &"c1".parse().unwrap()).await.unwrap();
    store.use_artifact(&ada, "art_kept", &"c2".parse().unwrap()).await.unwrap();
    let bob: UserId = "bob".parse().unwrap();
    assert!(store.use_artifact(&bob, "art_new", &"c1".parse().unwrap()).await.is_err());
    let Draft(key) = store.begin_artifact(1).await.unwrap();
    store.put_piece(Draft(key), 0, b"half".to_vec()).await.unwrap();
    store.sweep_artifacts(5).await.unwrap();
    let left = async |id: &str| store.artifact(&ada, id).await.unwrap().is_some();
    assert_eq!((left("art_kept").await, left("art_old").await, left("art_new").await), (true, false, true));
    let late = Artifact { id: "art_late".to_owned(), ..store.artifact(&ada, "art_new").await.unwrap().unwrap() };
    assert!(store.finish_artifact(Draft(key), late).await.is_err(), "what was swept is not finished");
    assert_eq!(store.remove_artifact(&ada, "art_kept").await.unwrap(), Removal::InUse);
    store.delete(&"c1".parse().unwrap()).await.unwrap();
    assert!(left("art_kept").await);
    store.delete(&"c2".parse().unwrap()).await.unwrap();
    assert!(!left("art_kept").await);
    store.close().await;
}

fn said() -> Entry {
    let settings = TurnSettings::new(ModelRef::new("test", "test"));
    Entry::User(UserMessage { content: vec![ContentBlock::text("hello")], settings })
}

pub(crate) async fn what_an_append_says_that_it_holds_goes_with_the_last_conversation_that_has_it(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let (ada, bob): (UserId, UserId) = ("ada".parse().unwrap(), "bob".parse().unwrap());
    for (id, owner) in [("c1", &ada), ("of_bob", &bob)] {
        store.create(conversation(id, owner)).await.unwrap();
        let holds = |artifact: &str| SideRecord::Holds { artifact: artifact.to_owned() };
        stored(store, &ada, "art_1", 1).await;
        // One that is not there, and another's, are none.
        let side = vec![holds("art_1"), holds("art_1"), holds("art_missing")];
        let append = Append { conversation: id.parse().unwrap(), at: Seq::FIRST, entries: vec![said()], at_ms: 1, side };
        store.append(append).await.unwrap();
    }
    let copy = conversation("c2", &ada);
    let copy =
        Copied { holds: vec!["art_1".to_owned(), "art_missing".to_owned()], ..copied(copy, &conversation("c1", &ada), 1) };
    store.copy(copy).await.unwrap();
    // What the other holds it has not where it is not said.
    store.copy(copied(conversation("c3", &ada), &conversation("c1", &ada), 1)).await.unwrap();
    store.sweep_artifacts(9).await.unwrap();
    let left = async || store.artifact(&ada, "art_1").await.unwrap().is_some();
    assert!(left().await);
    store.delete(&"c1".parse().unwrap()).await.unwrap();
    assert!(left().await, "the copy holds it");
    store.delete(&"c2".parse().unwrap()).await.unwrap();
    assert!(!left().await, "another's conversation does not");
    store.close().await;
}

pub(crate) async fn a_file_that_is_uploaded_again_stays_where_the_conversation_that_held_it_goes(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let ada: UserId = "ada".parse().unwrap();
    // Uploaded, said in the same millisecond, and uploaded again or not.
    for (id, again) in [("c1", None), ("c2", Some(5)), ("c3", Some(6))] {
        store.create(ConversationRecord { created_at_ms: 1, updated_at_ms: 1, ..conversation(id, &ada) }).await.unwrap();
        let artifact = format!("art_{id}");
        stored(store, &ada, &artifact, 5).await;
        let side = vec![SideRecord::Holds { artifact: artifact.clone() }];
        let append = Append { conversation: id.parse().unwrap(), at: Seq::FIRST, entries: vec![said()], at_ms: 5, side };
        store.append(append).await.unwrap();
        if let Some(at_ms) = again {
            stored(store, &ada, &artifact, at_ms).await;
        }
        store.delete(&id.parse().unwrap()).await.unwrap();
        let is_left = store.artifact(&ada, &artifact).await.unwrap().is_some();
        assert_eq!(is_left, id == "c3", "{id}");
    }
    store.sweep_artifacts(7).await.unwrap();
    assert_eq!(store.artifact(&ada, "art_c3").await.unwrap(), None, "nobody named it");
    store.close().await;
}

pub(crate) async fn what_is_begun_as_another_holds_its_files_or_is_not_stored(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let ada: UserId = "ada".parse().unwrap();
    store.create(conversation("c1", &ada)).await.unwrap();
    for id in ["art_1", "art_2"] {
        stored(store, &ada, id, 1).await;
        store.use_artifact(&ada, id, &"c1".parse().unwrap()).await.unwrap();
    }
    let begins = |id: &str, of: &str| {
        let holds_one = SideRecord::Holds { artifact: "art_1".to_owned() };
        let holds_all = SideRecord::HoldsAs { other: of.parse().unwrap() };
        let side = vec![SideRecord::Create(conversation(id, &ada)), holds_one, holds_all];
        store.append(Append { conversation: id.parse().unwrap(), at: Seq::FIRST, entries: vec![said()], at_ms: 1, side })
    };
    assert_eq!(begins("c2", "c1").await.unwrap().len(), 1);
    let left = async || [store.artifact(&ada, "art_1").await.unwrap(), store.artifact(&ada, "art_2").await.unwrap()];
    store.delete(&"c1".parse().unwrap()).await.unwrap();
    assert!(left().await.iter().all(Option::is_some), "the other holds them");
    let gone = StoreError::Gone { conversation: "c1".parse().unwrap() };
    assert_eq!(begins("c3", "c1").await, Err(gone), "what it is begun as was deleted meanwhile");
    assert_eq!(store.conversation(&"c3".parse().unwrap()).await.unwrap(), None);
    // Of both at the same moment, either it is stored and holds them, or it is not.
    let (first, second) = ("c2".parse().unwrap(), "c4".parse().unwrap());
    let (begun, deleted) = tokio::join!(begins("c4", "c2"), store.delete(&first));
    deleted.unwrap();
    assert!(left().await.iter().all(|artifact| artifact.is_some() == begun.is_ok()), "{begun:?}");
    if begun.is_ok() {
        store.delete(&second).await.unwrap();
    }
    assert!(left().await.iter().all(Option::is_none));
    store.close().await;
}

pub(crate) async fn a_piece_that_is_stored_again_is_stored_once(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let ada: UserId = "ada".parse().unwrap();
    let draft = store.begin_artifact(1).await.unwrap();
    for bytes in [b"half".to_vec(), b"whole".to_vec()] {
        store.put_piece(draft, 0, bytes).await.unwrap();
    }
    let artifact = Artifact { id: "art_1".to_owned(), ..stored(store, &ada, "art_2", 1).await };
    store.finish_artifact(draft, artifact).await.unwrap();
    assert_eq!(store.piece(&ada, "art_1", 0).await.unwrap().as_deref(), Some(b"whole".as_slice()));
    store.close().await;
}
