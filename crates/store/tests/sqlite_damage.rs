//! Rows of a SQLite database that hold what nobody wrote there: each is named, and no other suffers from it.

#![cfg(test)]

use std::path::Path;

use rusqlite::Connection;
use turnwright_engine::{Chosen, ConversationRecord, Store, StoreError};
use turnwright_store::{SqliteOptions, SqliteStore};
use turnwright_testkit::record;

/// A database with conversations, closed.
async fn made(file: &Path, names: &[&str]) {
    let store = SqliteStore::open(&SqliteOptions::at_file(file)).unwrap();
    for name in names {
        let title = Some(format!("title of {name}"));
        store.create(ConversationRecord { title, ..record(name) }).await.unwrap();
    }
    store.close().await;
}

fn change(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

fn damaged(what: &str, reason: &str) -> StoreError {
    StoreError::Damaged { what: what.to_owned(), reason: reason.to_owned() }
}

#[tokio::test]
async fn text_that_is_no_text_is_damage_of_what_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    made(&file, &["a"]).await;
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    let id = "a".parse().unwrap();
    for column in ["title", "settings", "owner"] {
        change(&file, &format!("UPDATE conversation SET {column} = cast(cast({column} AS blob) || x'ff' AS text)"));
        let expected = damaged(&format!("the {column} of conversation `a`"), "it is not UTF-8 text");
        assert_eq!(store.conversation(&id).await, Err(expected.clone()));
        assert_eq!(store.newest(&id, &Chosen::default().into()).await.unwrap_err(), expected);
        change(&file, "UPDATE conversation SET title = 'x', settings = '{}', owner = 'local'");
    }
    change(&file, "INSERT INTO idempotency VALUES ('k', 1, 'f', cast(x'ff' AS text))");
    let StoreError::Damaged { what, .. } = store.idempotent("k").await.unwrap_err() else { panic!("it is damage") };
    assert_eq!(what, format!("a row of the database `{}`", file.display()));
    store.close().await;
}
