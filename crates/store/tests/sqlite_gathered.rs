//! What is written together: appends that are ready at once are one transaction, also where one of them is dropped.
//!
//! Transactions are counted from outside, in SQLite's write-ahead log: the last frame of each says how large the database
//! is after it, the others say nothing (SQLite file format, section 4.1).

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::task::JoinSet;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserMessage};
use turnwright_engine::{Append, ConversationRecord, Store};
use turnwright_store::{SqliteOptions, SqliteStore};
use turnwright_testkit::record;

const WRITERS: usize = 12;

fn name(number: usize) -> String {
    format!("c{number}")
}

fn append(number: usize) -> Append {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entry = Entry::User(UserMessage { content: vec![ContentBlock::text("hello")], settings });
    Append { conversation: name(number).parse().unwrap(), at: Seq::FIRST, entries: vec![entry], at_ms: 5, side: Vec::new() }
}

/// A database with empty conversations.
async fn store(folder: &Path) -> (SqliteStore, PathBuf) {
    let file = folder.join("ours.db");
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    for number in 0..WRITERS {
        let id = name(number).parse().unwrap();
        let record = ConversationRecord { id, ..record("a") };
        store.create(record).await.unwrap();
    }
    (store, file)
}

/// How many transactions the log of a database holds.
fn transactions(file: &Path) -> usize {
    let log = std::fs::read(file.with_extension("db-wal")).unwrap();
    let number = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let (page_bytes, salts) = (number(&log, 8) as usize, &log[16..24]);
    let frames = log[32..].chunks_exact(24 + page_bytes);
    // Frames of an older log carry other salts.
    frames.take_while(|frame| &frame[8..16] == salts).filter(|frame| number(frame, 4) != 0).count()
}

async fn is_stored(store: &SqliteStore, number: usize) -> bool {
    store.last_seq(&name(number).parse().unwrap()).await.unwrap() == Some(Seq::FIRST)
}

/// Asks a write once, so that it is gathered and not done.
async fn gather<F: Future>(write: &mut Pin<Box<F>>) {
    let is_done = poll_fn(|context| Poll::Ready(write.as_mut().poll(context).is_ready())).await;
    assert!(!is_done, "it was done and not gathered");
}

#[tokio::test]
async fn appends_that_are_ready_together_are_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = store(folder.path()).await;
    let before = transactions(&file);
    assert_eq!(before, 1 + WRITERS, "the schema, and each conversation for itself");
    let store = Arc::new(store);
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move { store.append(append(number)).await.unwrap() });
    }
    let stored = writers.join_all().await;
    assert_eq!(stored.len(), WRITERS);
    assert_eq!(transactions(&file) - before, 1);
    for number in 0..WRITERS {
        assert!(is_stored(&store, number).await, "{number}");
    }
}

#[tokio::test]
async fn a_write_that_is_dropped_while_it_is_gathered_is_done_with_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = store(folder.path()).await;
    let before = transactions(&file);
    let (mut dropped, mut kept) = (Box::pin(store.append(append(0))), Box::pin(store.append(append(1))));
    gather(&mut dropped).await;
    gather(&mut kept).await;
    assert_eq!(transactions(&file), before, "neither is written yet");
    drop(dropped);
    kept.await.unwrap();
    assert_eq!(transactions(&file) - before, 1);
    assert!(is_stored(&store, 0).await && is_stored(&store, 1).await);
}

#[tokio::test]
async fn a_write_that_is_dropped_alone_is_not_left_lying() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = store(folder.path()).await;
    let mut dropped = Box::pin(store.append(append(0)));
    gather(&mut dropped).await;
    drop(dropped);
    // Nothing else is written: the next reader finds it, after the end of the store at the latest.
    store.close().await;
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    assert!(is_stored(&store, 0).await);
}

#[tokio::test]
async fn of_writes_that_are_gathered_the_refused_one_harms_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = store(folder.path()).await;
    store.append(append(0)).await.unwrap();
    let before = transactions(&file);
    let (again, other) = tokio::join!(store.append(append(0)), store.append(append(1)));
    assert_eq!(again.unwrap_err().to_string(), store.append(append(0)).await.unwrap_err().to_string());
    assert!(other.is_ok() && is_stored(&store, 1).await);
    assert_eq!(transactions(&file) - before, 1);
}
