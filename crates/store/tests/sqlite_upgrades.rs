//! A database of an older version: who brings it up, who waits, and what ends that.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use rusqlite::Connection;
use turnwright_engine::Store;
use turnwright_store::{Location, SqliteOptions, SqliteStore, backup, check, move_all};
use turnwright_testkit::record;

/// A database as the version before there were marks left it, with one conversation.
async fn older(file: &Path) -> PathBuf {
    let store = SqliteStore::open(&SqliteOptions::at_file(file)).unwrap();
    store.create(record("a")).await.unwrap();
    store.close().await;
    Connection::open(file)
        .unwrap()
        .execute_batch(
            "DROP TABLE origin; DROP INDEX conversation_by_beginning; ALTER TABLE conversation DROP COLUMN begins_as;
         ALTER TABLE conversation DROP COLUMN begins_through; PRAGMA user_version = 8",
        )
        .unwrap();
    file.to_owned()
}

fn version(file: &Path) -> i64 {
    Connection::open(file).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// As a process that brings it up has it.
fn held(file: &Path) -> (File, Connection) {
    let locks = PathBuf::from(format!("{}.locks", file.display()));
    std::fs::create_dir_all(&locks).unwrap();
    let alone = File::create(locks.join("upgrade")).unwrap();
    alone.lock().unwrap();
    let connection = Connection::open(file).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    (alone, connection)
}

#[tokio::test]
async fn who_starts_while_another_process_brings_the_database_up_waits_for_as_long_as_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = older(&folder.path().join("ours.db")).await;
    let (alone, connection) = held(&file);
    let options = SqliteOptions::at_file(&file).lock_wait(Duration::ZERO);

    let start = std::thread::spawn(move || SqliteStore::open(&options));
    // Longer than it waits for a lock, where it would fail.
    for _ in 0..30 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!start.is_finished());
    connection.execute_batch("COMMIT").unwrap();
    drop((connection, alone));

    let store = start.join().unwrap().unwrap();
    assert!(store.conversation(&"a".parse().unwrap()).await.unwrap().is_some());
    store.close().await;
    assert_eq!(version(&file), 10);
}

#[test]
fn a_start_that_nobody_waits_for_any_more_leaves_the_database_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = runtime().block_on(older(&folder.path().join("ours.db")));
    let before = std::fs::read(&file).unwrap();
    let (alone, connection) = held(&file);
    let options = SqliteOptions::at_file(&file);

    let starting = runtime();
    starting.block_on(async {
        let mut start = Box::pin(SqliteStore::start(&options));
        let polled = std::future::poll_fn(|context| Poll::Ready(start.as_mut().poll(context).is_pending())).await;
        assert!(polled);
    });
    drop((connection, alone));
    // Waits for what was begun.
    drop(starting);

    assert!(std::fs::read(&file).unwrap() == before);
    assert!(!folder.path().join("ours.db.before-v10").exists());
    // Once it is waited for it is done.
    let store = runtime().block_on(SqliteStore::start(&options)).unwrap();
    drop(store);
    assert_eq!(version(&file), 10);
}

/// What lies in a folder, with what is in it.
fn all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file());
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn what_an_older_version_wrote_is_moved_checked_and_backed_up_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let others = tempfile::tempdir().unwrap();
    let file = older(&folder.path().join("ours.db")).await;
    std::fs::remove_dir_all(folder.path().join("ours.db.locks")).unwrap();
    // With a log that holds the newest of it, which another process has not put back.
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    connection.execute("UPDATE conversation SET title = 'logged'", ()).unwrap();
    let before = all(folder.path());
    let from = Location::Sqlite(SqliteOptions::at_file(&file));

    for (at, name) in ["moved.db", "saved.db"].into_iter().enumerate() {
        let to = others.path().join(name);
        let moved = if at == 0 {
            move_all(&from, &Location::Sqlite(SqliteOptions::at_file(&to))).await
        } else {
            backup(&from, &to).await
        };
        assert!(moved.unwrap().rows.contains(&("conversation", 1)));
        assert_eq!(version(&to), 10);
        let store = SqliteStore::open(&SqliteOptions::at_file(&to)).unwrap();
        let title = store.conversation(&"a".parse().unwrap()).await.unwrap().unwrap().title;
        assert_eq!(title.as_deref(), Some("logged"));
        store.close().await;
    }
    assert_eq!(check(&from).await.unwrap().1, Vec::<String>::new());

    let is_same = |(path, bytes): (&PathBuf, &Vec<u8>)| path.ends_with("ours.db-shm") || before.get(path) == Some(bytes);
    let after = all(folder.path());
    assert!(after.iter().all(is_same) && after.len() == before.len(), "{:?}", after.keys());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), after.len(), "nothing is made beside it");
    drop(connection);

    // One that nobody has open, without a log.
    let before = all(folder.path());
    assert_eq!((check(&from).await.unwrap().1, before.len()), (Vec::new(), 1));
    assert!(all(folder.path()) == before);
}

#[tokio::test]
async fn what_an_older_version_has_open_is_not_moved() {
    let folder = tempfile::tempdir().unwrap();
    let file = older(&folder.path().join("ours.db")).await;
    let lock = File::create(folder.path().join(format!("ours.db.locks/{}.lock", "a".repeat(32)))).unwrap();
    lock.lock().unwrap();
    let at = |name: &str| Location::Sqlite(SqliteOptions::at_file(folder.path().join(name)));
    let said = move_all(&at("ours.db"), &at("moved.db")).await.unwrap_err().to_string();
    assert!(said.contains("is in use"), "{said}");
    assert_eq!(version(&file), 8);
}

#[tokio::test]
async fn what_is_damaged_in_what_an_older_version_wrote_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = older(&folder.path().join("ours.db")).await;
    Connection::open(&file).unwrap().execute("DELETE FROM entry", ()).unwrap();
    Connection::open(&file).unwrap().execute("UPDATE conversation SET next_seq = 5", ()).unwrap();
    let (_, wrong) = check(&Location::Sqlite(SqliteOptions::at_file(&file))).await.unwrap();
    assert_eq!(wrong, ["conversation `a` should have 4 entries and has 0 in a row"]);
}
