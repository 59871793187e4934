//! The index over documents.

use turnwright_core::{ContextPlace, Seq};
use turnwright_engine::knowledge::{Beside, IndexedFile, Piece};
use turnwright_engine::{Append, ConversationRecord, SideRecord};
use turnwright_store::Storage;
use turnwright_testkit::{copied, record};

use super::Full;
use super::fixtures::{append, said};

fn file(path: &str, hash: &str) -> IndexedFile {
    IndexedFile { path: path.to_owned(), bytes: 9, modified_ns: -1, hash: hash.to_owned(), skipped: None }
}

fn piece(first: u32, text: &str) -> Piece {
    let place = ContextPlace::Lines { first, last: first + 1 };
    Piece { place, heading: "Guide".to_owned(), text: text.to_owned() }
}

async fn claim(store: &dyn Storage, collection: &str) -> bool {
    store.claim(collection, "here", 0, 1_000).await.unwrap()
}

/// What is found by words, as `PATH:LINE`.
async fn found(store: &dyn Storage, collections: &[&str], words: &str) -> Vec<String> {
    let collections: Vec<String> = collections.iter().map(ToString::to_string).collect();
    let hits = store.by_words(&collections, words, 10).await.unwrap();
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score) && hits.iter().all(|hit| hit.score > 0.0), "{hits:?}");
    let ids: Vec<_> = hits.iter().map(|hit| hit.piece).collect();
    let pieces = store.pieces(&ids).await.unwrap();
    pieces.into_iter().map(|found| format!("{}: {}", found.path, found.piece.place)).collect()
}

pub(crate) async fn pieces_are_found_by_their_words_in_their_own_collections(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    for collection in ["a", "b"] {
        assert!(claim(store, collection).await);
    }
    let pieces = vec![piece(1, "Rotating the keys is done each March."), piece(5, "Soup at noon, soup at night.")];
    store.put("a", file("guide.md", "1"), pieces).await.unwrap();
    store.put("b", file("other.md", "1"), vec![piece(1, "The key of the house. \u{5b66}\u{4e60}")]).await.unwrap();
    assert_eq!(found(store, &["a"], "how do I rotate a key?").await, ["guide.md: lines 1-2"]);
    assert_eq!(found(store, &["a", "b"], "soup").await, ["guide.md: lines 5-6"]);
    assert_eq!(found(store, &["b"], "soup").await, [""; 0]);
    assert_eq!(found(store, &["b"], "\u{5b66}\u{4e60}").await, ["other.md: lines 1-2"]);
    assert_eq!(found(store, &["a"], "\" OR * NEAR( ) - :").await, [""; 0]);
    assert_eq!(found(store, &["nothing"], "soup").await, [""; 0]);
}

pub(crate) async fn a_document_that_changes_is_found_as_it_is_now_and_one_that_is_gone_is_not(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    claim(store, "a").await;
    store.put("a", file("x.md", "1"), vec![piece(1, "old words")]).await.unwrap();
    store.put("a", file("x.md", "2"), vec![piece(3, "new words")]).await.unwrap();
    assert_eq!(found(store, &["a"], "old").await, [""; 0]);
    assert_eq!(found(store, &["a"], "words").await, ["x.md: lines 3-4"]);
    store.moved("a", "x.md", file("y.md", "2")).await.unwrap();
    assert_eq!(found(store, &["a"], "words").await, ["y.md: lines 3-4"]);
    // What was at the other path goes.
    store.put("a", file("z.md", "3"), vec![piece(1, "words of z")]).await.unwrap();
    store.moved("a", "y.md", file("z.md", "2")).await.unwrap();
    assert_eq!(found(store, &["a"], "words").await, ["z.md: lines 3-4"]);
    assert!(store.has_files("a").await.unwrap());
    store.remove("a", vec!["z.md".to_owned(), "never".to_owned()]).await.unwrap();
    assert_eq!(found(store, &["a"], "words").await, [""; 0]);
    assert_eq!(store.files("a").await.unwrap(), []);
    assert!(!store.has_files("a").await.unwrap() && !store.has_files("never").await.unwrap());
}

pub(crate) async fn a_large_document_is_found_whole_once_its_last_part_is_there(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    claim(store, "a").await;
    let pieces: Vec<Piece> = (1..=400).map(|line| piece(line, &format!("line{line} {}", "filler ".repeat(150)))).collect();
    store.put("a", file("large.md", "1"), pieces).await.unwrap();
    assert_eq!(found(store, &["a"], "line1").await, ["large.md: lines 1-2"]);
    assert_eq!(found(store, &["a"], "line400").await, ["large.md: lines 400-401"]);
    // One whose writing broke off has no hash: nothing of it is shown.
    store.put("a", file("broken.md", ""), vec![piece(1, "halfway")]).await.unwrap();
    assert_eq!(found(store, &["a"], "halfway").await, [""; 0]);
}

pub(crate) async fn only_one_of_two_processes_changes_a_collection(full: &dyn Full) {
    let (one, two) = (full.open_all().await, full.open_all().await);
    let (one, two) = (&*one, &*two);
    assert!(one.claim("a", "one", 0, 1_000).await.unwrap());
    assert!(!two.claim("a", "two", 999, 2_000).await.unwrap());
    assert!(one.claim("a", "one", 500, 1_500).await.unwrap());
    assert!(two.claim("a", "two", 1_500, 2_500).await.unwrap());
    assert!(!one.claim("a", "one", 1_600, 2_600).await.unwrap());
}

pub(crate) async fn vectors_find_what_points_the_same_way_and_are_of_one_model(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    claim(store, "a").await;
    let names = ["a".to_owned()];
    store.put("a", file("x.md", "1"), (1..=40).map(|line| piece(line, "text")).collect()).await.unwrap();
    let lacking = store.without_vector("a", "p/m", 100).await.unwrap();
    assert_eq!(lacking.len(), 40);
    let angle = |at: usize| {
        let turn = f32::from(u8::try_from(at).unwrap()) / 40.0 * std::f32::consts::PI;
        vec![turn.cos(), turn.sin(), 0.1, -0.1]
    };
    let vectors = lacking.iter().enumerate().map(|(at, found)| (found.id, angle(at))).collect();
    store.put_vectors("a", "p/m", vectors).await.unwrap();
    assert_eq!(store.without_vector("a", "p/m", 100).await.unwrap(), []);
    // How alike two are does not depend on how long they are.
    let twice: Vec<f32> = angle(17).iter().map(|number| number * 2.0).collect();
    let nearest = store.by_vector(&names, "p/m", &twice, 3).await.unwrap();
    assert!(nearest.is_sorted_by(|a, b| a.score >= b.score) && (nearest[0].score - 1.0).abs() < 1e-5, "{nearest:?}");
    let nearest: Vec<_> = nearest.iter().map(|hit| hit.piece).collect();
    let pieces = store.pieces(&nearest).await.unwrap();
    let firsts: Vec<String> = pieces.iter().map(|found| found.piece.place.to_string()).collect();
    assert_eq!(firsts[0], "lines 18-19");
    assert!(firsts.contains(&"lines 17-18".to_owned()) && firsts.contains(&"lines 19-20".to_owned()), "{firsts:?}");
    assert_eq!(store.by_vector(&names, "p/other", &angle(17), 3).await.unwrap(), []);
    // A vector of another length is compared with nothing.
    assert_eq!(store.by_vector(&names, "p/m", &[1.0], 3).await.unwrap(), []);
    assert_eq!(store.without_vector("a", "p/other", 100).await.unwrap().len(), 40);
    store.put_vectors("a", "p/other", vec![(lacking[0].id, angle(0))]).await.unwrap();
    assert_eq!(store.by_vector(&names, "p/m", &angle(17), 3).await.unwrap(), []);
    assert_eq!(store.sizes().await.unwrap()[0].vectors, 1);
}

pub(crate) async fn what_is_beside_a_conversation_goes_with_it(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let record = record("c");
    store.create(record.clone()).await.unwrap();
    store.create(ConversationRecord { id: "cc".parse().unwrap(), ..record.clone() }).await.unwrap();
    let of = |id: &str, created_at_ms| Beside { conversation: id.parse().unwrap(), created_at_ms };
    let words = || (file("x.md", "1"), vec![piece(1, "words")]);
    let put = async |beside: &Beside| store.put_beside(beside, words().0, words().1).await.unwrap();
    assert!(put(&of("c", 1)).await && put(&of("cc", 1)).await);
    let id = "c".parse().unwrap();
    store.delete(&id).await.unwrap();
    let left = async || -> Vec<String> { store.sizes().await.unwrap().into_iter().map(|size| size.collection).collect() };
    assert_eq!(left().await, ["conversation/cc"]);
    assert_eq!(found(store, &["conversation/c"], "words").await, [""; 0]);
    // What comes after it is not kept, nor is it beside the next one of its name.
    assert!(!put(&of("c", 1)).await && !claim(store, "conversation/c").await);
    store.put("conversation/c", words().0, words().1).await.unwrap();
    assert_eq!(left().await, ["conversation/cc"]);
    store.create(ConversationRecord { created_at_ms: 2, ..record }).await.unwrap();
    assert!(!put(&of("c", 1)).await);
    assert_eq!(left().await, ["conversation/cc"]);
    assert!(put(&of("c", 2)).await && claim(store, "conversation/c").await);
    assert_eq!(found(store, &["conversation/c"], "words").await, ["x.md: lines 1-2"]);
}

pub(crate) async fn what_begins_as_another_has_its_documents_and_keeps_them(full: &dyn Full) {
    let store = full.open_all().await;
    let store = &*store;
    let record = record("c");
    store.create(record.clone()).await.unwrap();
    let beside = Beside { conversation: record.id.clone(), created_at_ms: record.created_at_ms };
    let pieces = vec![piece(1, "The fuse is under the \u{5b66}\u{4e60} seat."), piece(5, "The door.")];
    assert!(store.put_beside(&beside, file("other.md", "1"), vec![piece(1, "Soup at noon.")]).await.unwrap());
    assert!(store.put_beside(&beside, file("manual.md", "2"), pieces).await.unwrap());
    let lacking = store.without_vector("conversation/c", "p/m", 9).await.unwrap();
    let vectors = lacking.iter().zip([1.0, 2.0, 3.0]).map(|(found, number)| (found.id, vec![number, -1.0])).collect();
    store.put_vectors("conversation/c", "p/m", vectors).await.unwrap();
    let copy = async |id: &str| {
        let created = ConversationRecord { id: id.parse().unwrap(), ..record.clone() };
        let side = vec![SideRecord::Create(created), SideRecord::HoldsAs { other: record.id.clone() }];
        let conversation = id.parse().unwrap();
        store.append(Append { conversation, at: Seq::FIRST, entries: vec![said("hello")], at_ms: 1, side }).await.unwrap();
    };
    copy("d").await;
    // Not so one that only begins with the same entries.
    let e = ConversationRecord { id: "e".parse().unwrap(), ..record.clone() };
    store.append(append("c", 1, vec![said("hello")])).await.unwrap();
    store.copy(copied(e.clone(), &record, 1)).await.unwrap();
    assert!(found(store, &["conversation/e"], "fuse").await.is_empty());
    store.delete(&e.id).await.unwrap();
    let own = ["conversation/d".to_owned()];
    let files = async |name: &str| store.files(name).await.unwrap();
    assert_eq!(files("conversation/d").await, files("conversation/c").await);
    assert_eq!(found(store, &["conversation/d"], "fuse").await, ["manual.md: lines 1-2"]);
    assert_eq!(found(store, &["conversation/d"], "\u{4e60}").await, ["manual.md: lines 1-2"]);
    assert_eq!(store.by_vector(&own, "p/m", &[3.0, -1.0], 9).await.unwrap().len(), 3);
    assert_eq!(store.without_vector("conversation/d", "p/m", 9).await.unwrap(), []);
    // What comes to the one is not the other's, and what is erased of the one is the other's still.
    assert!(store.put_beside(&beside, file("late.md", "3"), vec![piece(1, "Late.")]).await.unwrap());
    assert_eq!(files("conversation/d").await.len(), 2);
    store.delete(&record.id).await.unwrap();
    assert_eq!(found(store, &["conversation/d"], "fuse").await, ["manual.md: lines 1-2"]);
    let own_shelf = Beside { conversation: "d".parse().unwrap(), ..beside };
    assert!(store.put_beside(&own_shelf, file("own.md", "4"), vec![piece(1, "A fuse of its own.")]).await.unwrap());
    assert_eq!(found(store, &["conversation/d"], "fuse").await.len(), 2);
    store.delete(&"d".parse().unwrap()).await.unwrap();
    assert_eq!(store.sizes().await.unwrap(), []);
}
