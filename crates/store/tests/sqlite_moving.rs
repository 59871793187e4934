//! Databases that are moved, backed up and looked at: which may be read, and what is left as it is.

#![cfg(all(test, unix))]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserId, UserMessage};
use turnwright_engine::{Append, ConversationRecord, Store};
use turnwright_store::{Location, SqliteOptions, SqliteStore, backup, check, move_all};

/// A database with one entry, closed.
async fn made(file: PathBuf) -> PathBuf {
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    let id = || "a".parse().unwrap();
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entries = vec![Entry::User(UserMessage { content: vec![ContentBlock::text("hello")], settings })];
    let record = ConversationRecord {
        id: id(),
        owner: UserId::local(),
        title: None,
        settings: "{}".to_owned(),
        created_at_ms: 1,
        updated_at_ms: 1,
    };
    store.create(record).await.unwrap();
    store.append(Append { conversation: id(), at: Seq::FIRST, entries, at_ms: 5, side: Vec::new() }).await.unwrap();
    store.close().await;
    file
}

fn at(file: impl Into<PathBuf>) -> Location {
    Location::Sqlite(SqliteOptions::at_file(file))
}

async fn is_whole(file: &Path) -> bool {
    let (counted, wrong) = check(&at(file)).await.unwrap();
    wrong.is_empty() && counted.rows.contains(&("entry", 1))
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|found| found.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_is_read_has_to_be_there_and_nothing_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("data")).unwrap();
    std::fs::write(path("empty.db"), "").unwrap();
    symlink(path("gone.db"), path("link.db")).unwrap();
    let before = names(folder.path());
    let places = [
        (at(path("nothere.db")), "nothere.db"),
        (at(path("empty.db")), "empty.db"),
        (at(path("link.db")), "link.db"),
        (at(path("nofolder/x.db")), "nofolder/x.db"),
        (Location::Sqlite(SqliteOptions::in_directory(path("data"))), "data/turnwright.db"),
        (Location::Sqlite(SqliteOptions::in_directory(path("nodata"))), "nodata/turnwright.db"),
    ];
    for (place, name) in places {
        let expected = format!("there is no database `{}`; name one that is there", path(name).display());
        assert_eq!(check(&place).await.unwrap_err().to_string(), expected);
        assert_eq!(backup(&place, &path("backup.db")).await.unwrap_err().to_string(), expected);
        assert_eq!(move_all(&place, &at(path("to.db"))).await.unwrap_err().to_string(), expected);
    }
    assert_eq!((names(folder.path()), names(&path("data"))), (before, Vec::new()));
    assert_eq!(std::fs::metadata(path("empty.db")).unwrap().len(), 0);
}
