//! Another file, or none, in the place of one that is open or whose process was killed.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserMessage};
use turnwright_engine::{Append, Store, StoreError};
use turnwright_store::{Location, SqliteOptions, SqliteStore, backup};
use turnwright_testkit::record;

fn opened(file: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&SqliteOptions::at_file(file))
}

/// Makes a database with one conversation in it, and closes it.
async fn made(file: &Path, id: &str) {
    let store = opened(file).unwrap();
    store.create(record(id)).await.unwrap();
    store.close().await;
}

async fn say(store: &SqliteStore, id: &str, at: u64) -> Result<(), StoreError> {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entry = Entry::User(UserMessage { content: vec![ContentBlock::text("hello".repeat(2000))], settings });
    let append = Append {
        conversation: id.parse().unwrap(),
        at: Seq::new(at).unwrap(),
        entries: vec![entry],
        at_ms: 5,
        side: Vec::new(),
    };
    store.append(append).await.map(drop)
}

async fn count(store: &SqliteStore, id: &str) -> Option<u64> {
    store.last_seq(&id.parse().unwrap()).await.unwrap().map(Seq::get)
}

fn with(file: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", file.display()))
}

fn is_sound(file: &Path) -> bool {
    let said: String = Connection::open(file).unwrap().query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    said == "ok"
}

/// What a process leaves that has a database open and is killed at this moment.
fn killed(from: &Path, to: &Path) {
    for end in ["", "-wal"] {
        std::fs::copy(with(from, end), with(to, end)).unwrap();
    }
    let (from, to) = (with(from, ".locks"), with(to, ".locks"));
    std::fs::create_dir(&to).unwrap();
    for lock in std::fs::read_dir(from).unwrap() {
        let lock = lock.unwrap();
        std::fs::copy(lock.path(), to.join(lock.file_name())).unwrap();
    }
}

#[tokio::test]
async fn the_log_of_another_database_is_refused_and_put_into_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    made(&path("ours.db"), "a").await;
    made(&path("backup.db"), "b").await;
    let store = opened(&path("ours.db")).unwrap();
    for at in 1..=20 {
        say(&store, "a", at).await.unwrap();
    }
    for name in ["killed.db", "restored.db"] {
        killed(&path("ours.db"), &path(name));
    }
    // Written over.
    std::fs::copy(path("backup.db"), path("restored.db")).unwrap();
    let restored = std::fs::read(path("restored.db")).unwrap();

    for _ in 0..2 {
        let said = opened(&path("restored.db")).unwrap_err().to_string();
        for named in ["restored.db-wal` is the log of another database", "restored.db-shm` to use"] {
            assert!(said.contains(named), "{said}");
        }
    }
    assert_eq!(std::fs::read(path("restored.db")).unwrap(), restored);

    // As it is said.
    std::fs::remove_file(path("restored.db-wal")).unwrap();
    let there = opened(&path("restored.db")).unwrap();
    assert_eq!((count(&there, "a").await, say(&there, "b", 1).await), (None, Ok(())));
    there.close().await;
    assert!(is_sound(&path("restored.db")));
    // The log that is its own.
    let there = opened(&path("killed.db")).unwrap();
    assert_eq!(count(&there, "a").await, Some(20));
    there.close().await;
    store.close().await;
}

#[tokio::test]
async fn a_log_whose_database_is_gone_or_empty_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    made(&path("older.db"), "a").await;
    // One whose file has a mark, and one of which all but the first page is in the log.
    for name in ["older.db", "new.db"] {
        let store = opened(&path(name)).unwrap();
        if name == "new.db" {
            store.create(record("a")).await.unwrap();
        }
        for at in 1..=20 {
            say(&store, "a", at).await.unwrap();
        }
        for (has_locks, is_empty) in [(true, true), (true, false), (false, true), (false, false)] {
            let lost = path(&format!("lost-{has_locks}-{is_empty}-{name}"));
            killed(&path(name), &lost);
            let (file, log) = (std::fs::read(&lost).unwrap(), with(&lost, "-wal"));
            let said_last = std::fs::read(&log).unwrap();
            if is_empty {
                std::fs::write(&lost, "").unwrap();
            } else {
                std::fs::remove_file(&lost).unwrap();
            }
            if !has_locks {
                std::fs::remove_dir_all(with(&lost, ".locks")).unwrap();
            }
            for _ in 0..2 {
                let said = opened(&lost).unwrap_err().to_string();
                assert!(said.contains("is not there or is empty, and its log"), "{said}");
            }
            assert_eq!(std::fs::read(&log).unwrap(), said_last);
            // As it is said.
            std::fs::write(&lost, file).unwrap();
            let there = opened(&lost).unwrap();
            assert_eq!(count(&there, "a").await, Some(20));
            there.close().await;
        }
        store.close().await;
    }
}

#[tokio::test]
async fn a_new_database_whose_process_is_killed_has_what_its_log_alone_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    made(&path("other.db"), "a").await;
    let store = opened(&path("ours.db")).unwrap();
    killed(&path("ours.db"), &path("killed.db"));
    killed(&path("ours.db"), &path("restored.db"));
    std::fs::copy(path("other.db"), path("restored.db")).unwrap();

    opened(&path("killed.db")).unwrap().close().await;

    assert!(opened(&path("restored.db")).unwrap_err().to_string().contains("the log of another database"));
    store.close().await;
}

#[tokio::test]
async fn what_replaced_an_open_database_is_what_it_was_when_that_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = path("ours.db");
    made(&file, "a").await;
    made(&path("backup.db"), "b").await;
    let store = opened(&file).unwrap();
    for at in 1..=20 {
        say(&store, "a", at).await.unwrap();
    }
    std::fs::rename(&file, path("away.db")).unwrap();
    std::fs::copy(path("backup.db"), &file).unwrap();
    let restored = std::fs::read(&file).unwrap();

    // Nobody else comes in, whose log it would be too.
    let said = opened(&file).unwrap_err().to_string();
    assert!(said.contains("was replaced or written over while another process had it open"), "{said}");
    let said = say(&store, "a", 21).await.unwrap_err().to_string();
    for named in ["was replaced while it was open", "ours.db-wal`", "ours.db-shm`"] {
        assert!(said.contains(named), "{said}");
    }
    assert_eq!(std::fs::metadata(path("ours.db-wal")).unwrap().len(), 0, "also where it is killed now");
    store.close().await;

    assert_eq!(std::fs::read(&file).unwrap(), restored);
    let there = opened(&file).unwrap();
    assert_eq!((count(&there, "a").await, say(&there, "b", 1).await), (None, Ok(())));
    there.close().await;
    assert!(is_sound(&file));
    let away = opened(&path("away.db")).unwrap();
    assert_eq!(count(&away, "a").await, Some(20), "what was acknowledged is in the file of which it is");
}

#[tokio::test]
async fn nothing_is_stored_in_a_file_that_was_written_over_and_nothing_is_put_into_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = path("ours.db");
    made(&path("backup.db"), "b").await;
    for way in ["copied", "emptied"] {
        made(&file, "a").await;
        let store = opened(&file).unwrap();
        say(&store, "a", 1).await.unwrap();
        if way == "copied" {
            std::fs::copy(path("backup.db"), &file).unwrap();
            let later = std::fs::metadata(&file).unwrap().modified().unwrap() + Duration::from_secs(5);
            std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        } else {
            std::fs::File::create(&file).unwrap();
        }
        let after = std::fs::read(&file).unwrap();

        let read = store.entries(&"a".parse().unwrap(), Seq::FIRST, 9).await;
        assert!(way == "copied" || matches!(read, Err(StoreError::Damaged { .. })), "{way}: {read:?}");
        for refused in [say(&store, "a", 2).await, store.can_store().await] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("ours.db` was written over or cut off while it was open"), "{way}: {said}");
        }
        store.close().await;

        assert_eq!(std::fs::read(&file).unwrap(), after, "{way}");
        let said = opened(&file).unwrap_err().to_string();
        let is_told = if way == "emptied" {
            said.contains("ours.db` is not there or is empty, and its log")
        } else {
            said.contains("ours.db-wal` is the log of another database")
        };
        assert!(is_told, "{way}: {said}");
        for end in ["", "-wal", "-shm"] {
            drop(std::fs::remove_file(with(&file, end)));
        }
    }
}

#[tokio::test]
async fn nothing_is_stored_any_more_once_a_reader_finds_the_file_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ours.db");
    made(&file, "a").await;
    let store = opened(&file).unwrap();
    say(&store, "a", 1).await.unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();

    let read = store.entries(&"a".parse().unwrap(), Seq::FIRST, 9).await;
    assert!(matches!(read, Err(StoreError::Damaged { .. })), "{read:?}");

    for refused in [say(&store, "a", 2).await, store.can_store().await] {
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("ours.db` is damaged"), "{said}");
    }
    store.close().await;
}

#[tokio::test]
async fn what_an_older_version_wrote_is_refused_beside_the_log_of_what_it_was_brought_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    made(&path("ours.db"), "a").await;
    // As the version before there were marks left it.
    Connection::open(path("ours.db"))
        .unwrap()
        .execute_batch(
            "DROP TABLE origin; DROP INDEX conversation_by_beginning; ALTER TABLE conversation DROP COLUMN begins_as;
         ALTER TABLE conversation DROP COLUMN begins_through; PRAGMA user_version = 8",
        )
        .unwrap();
    let store = opened(&path("ours.db")).unwrap();
    for at in 1..=20 {
        say(&store, "a", at).await.unwrap();
    }
    for name in ["killed.db", "restored.db"] {
        killed(&path("ours.db"), &path(name));
    }
    // A new one, and the same in its place.
    let new = opened(&path("new.db")).unwrap();
    new.create(record("b")).await.unwrap();
    killed(&path("new.db"), &path("replaced.db"));
    for name in ["restored.db", "replaced.db"] {
        std::fs::copy(path("ours.db.before-v10"), path(name)).unwrap();
    }
    let before = std::fs::read(path("ours.db.before-v10")).unwrap();

    for name in ["restored.db", "replaced.db"] {
        let said = opened(&path(name)).unwrap_err().to_string();
        assert!(said.contains(&format!("{name}-wal` is the log of another database")), "{said}");
        assert!(std::fs::read(path(name)).unwrap() == before);
        std::fs::remove_file(with(&path(name), "-wal")).unwrap();
        let there = opened(&path(name)).unwrap();
        assert_eq!((count(&there, "a").await, say(&there, "a", 1).await), (None, Ok(())));
        there.close().await;
        assert!(is_sound(&path(name)));
    }
    let there = opened(&path("killed.db")).unwrap();
    assert_eq!(count(&there, "a").await, Some(20));
    there.close().await;
    new.close().await;
    store.close().await;
}

#[tokio::test]
async fn a_backup_that_is_restored_twice_is_another_database_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    made(&path("ours.db"), "a").await;
    let ours = Location::Sqlite(SqliteOptions::at_file(path("ours.db")));
    backup(&ours, &path("backup.db")).await.unwrap();
    std::fs::copy(path("backup.db"), path("restored.db")).unwrap();
    let store = opened(&path("restored.db")).unwrap();
    for at in 1..=20 {
        say(&store, "a", at).await.unwrap();
    }
    killed(&path("restored.db"), &path("killed.db"));
    // Its own log.
    killed(&path("restored.db"), &path("whole.db"));
    let whole = opened(&path("whole.db")).unwrap();
    assert_eq!(count(&whole, "a").await, Some(20));
    whole.close().await;

    // Once more beside what a killed process left.
    std::fs::copy(path("backup.db"), path("killed.db")).unwrap();
    let said = opened(&path("killed.db")).unwrap_err().to_string();
    assert!(said.contains("killed.db-wal` is the log of another database"), "{said}");
    std::fs::remove_file(path("killed.db-wal")).unwrap();
    let again = opened(&path("killed.db")).unwrap();
    assert_eq!((count(&again, "a").await, say(&again, "a", 1).await), (None, Ok(())));
    again.close().await;
    assert!(is_sound(&path("killed.db")));

    // And over the one that is open.
    std::fs::copy(path("backup.db"), path("restored.db")).unwrap();
    let later = std::fs::metadata(path("restored.db")).unwrap().modified().unwrap() + Duration::from_secs(5);
    std::fs::File::options().write(true).open(path("restored.db")).unwrap().set_modified(later).unwrap();
    // It is looked at so often.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let said = say(&store, "a", 21).await.unwrap_err().to_string();
    assert!(said.contains("was written over"), "{said}");
    store.close().await;
}
