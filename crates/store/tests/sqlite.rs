//! The store on SQLite does what every store must.

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_core::ContextPlace;
use turnwright_engine::Store;
use turnwright_engine::knowledge::{Beside, IndexedFile, KnowledgeIndex, Piece};
use turnwright_store::{SqliteOptions, SqliteStore, Storage};

struct Directory(tempfile::TempDir);

#[async_trait]
impl crate::conformance::Backend for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&SqliteOptions::in_directory(self.0.path())).unwrap())
    }
}

#[async_trait]
impl crate::conformance::Full for Directory {
    async fn open_all(&self) -> Arc<dyn Storage> {
        Arc::new(SqliteStore::open(&SqliteOptions::in_directory(self.0.path())).unwrap())
    }
}

conformance!(Some(Directory(tempfile::tempdir().unwrap())));
full_conformance!(Some(Directory(tempfile::tempdir().unwrap())));

#[tokio::test]
async fn of_two_documents_of_one_name_that_are_put_at_once_one_is_there_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap();
    let record = turnwright_testkit::record("c");
    store.create(record.clone()).await.unwrap();
    let beside = Beside { conversation: record.id, created_at_ms: record.created_at_ms };
    let put = |word: &str| {
        let hash = word.to_owned();
        let file = IndexedFile { path: "a.md".to_owned(), bytes: 1, modified_ns: 1, hash, skipped: None };
        let piece = |line| {
            let place = ContextPlace::Lines { first: line, last: line };
            Piece { place, heading: String::new(), text: format!("{word} ").repeat(4_000) }
        };
        store.put_beside(&beside, file, (1..40).map(piece).collect())
    };
    let (one, other) = tokio::join!(put("one"), put("other"));
    assert!(one.unwrap() && other.unwrap());
    let hash = store.files("conversation/c").await.unwrap().remove(0).hash;
    let pieces = store.without_vector("conversation/c", "p/m", 1_000).await.unwrap();
    let words: Vec<&str> = pieces.iter().map(|found| found.piece.text.split(' ').next().unwrap()).collect();
    assert_eq!(words, vec![hash.as_str(); 39]);
    store.close().await;
}
