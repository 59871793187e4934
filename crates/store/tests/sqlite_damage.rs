//! Rows of a SQLite database that hold what nobody wrote there: each is named, and no other suffers from it.

use std::path::Path;

use rusqlite::Connection;
use turnwright_core::UserId;
use turnwright_engine::search::{Search, Texts};
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Chosen, ConversationRecord, Page, Store, StoreError};
use turnwright_store::{Location, SqliteOptions, SqliteStore, check};
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

#[tokio::test]
async fn a_row_that_cannot_be_read_is_found_by_a_check_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    made(&file, &["a", "b", "c", "d", "e"]).await;
    change(
        &file,
        "UPDATE conversation SET settings = '{broken' WHERE id = 'b'; UPDATE conversation SET owner = '' WHERE id = 'e'",
    );
    change(&file, "UPDATE conversation SET title = cast(x'ff' AS text) WHERE id = 'd'");
    change(&file, "INSERT INTO open_turn VALUES (1, 1, 0, 'xx'), (3, 1, 1, 'servers'), (4, 0, 0, 'chat')");
    change(&file, "UPDATE user SET role = 'king'");

    let (_, wrong) = check(&Location::Sqlite(SqliteOptions::at_file(&file))).await.unwrap();
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    let owner = UserId::local();
    let page = |limit| Page { owner: &owner, after: None, limit, only_pinned: false };
    let mut listed = Vec::new();
    for limit in [9, 2, 1] {
        let found = store.conversations(page(limit)).await.unwrap();
        listed.push(found.into_iter().map(|record| record.id.to_string()).collect::<Vec<_>>());
    }
    let found = store.search(Search { owner: &owner, words: "title", after: None, limit: 9 }).await.unwrap();
    let pinned = store.conversations(Page { only_pinned: true, ..page(9) }).await.unwrap();
    let open: Vec<_> = store.open_turns().await.unwrap().into_iter().map(|open| open.conversation.to_string()).collect();
    // Those with an open turn stay anyhow, and what may be pinned.
    let removed = store.remove_old(u64::MAX / 4, u64::MAX / 4, 9).await.unwrap();
    store.close().await;

    assert_eq!((pinned, removed), (Vec::new(), vec!["e".parse().unwrap()]));
    assert_eq!(listed, [vec!["c", "a"], vec!["c", "a"], vec!["c"]]);
    assert_eq!(found.into_iter().map(|found| found.conversation.id.to_string()).collect::<Vec<_>>(), ["c", "a"]);
    assert_eq!(open, ["c"]);
    let wrong: Vec<_> = wrong.iter().map(|wrong| wrong.split_once(" cannot be read: ").unwrap()).collect();
    let expected = [
        ("the settings of conversation `b`", "key must be a string at line 1 column 2"),
        ("conversation `d`", "its `title` is not UTF-8 text"),
        ("the owner of conversation `e`", ""),
        ("the open turn of conversation `a`", "`xx` takes no turn up"),
        ("the open turn of conversation `d`", "`0` names no entry"),
        ("the user `local`", ""),
    ];
    assert_eq!(wrong.len(), expected.len(), "{wrong:?}");
    for (wrong, (what, reason)) in wrong.iter().zip(expected) {
        assert!(wrong.0 == what && wrong.1.starts_with(reason), "{wrong:?}: {what}, {reason}");
    }
}
