//! What the store says about files that it cannot use, and that it leaves them as they are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserId, UserMessage};
use turnwright_engine::search::{Search, Texts};
use turnwright_engine::{Append, Store, StoreError};
use turnwright_store::{Durability, SqliteOptions, SqliteStore};
use turnwright_testkit::record;

fn entry(text: &str) -> Entry {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings })
}

fn append(id: &str, at: u64, text: &str) -> Append {
    let at = Seq::new(at).unwrap();
    Append { conversation: id.parse().unwrap(), at, entries: vec![entry(text)], at_ms: 5, side: Vec::new() }
}

fn open(file: &Path) -> SqliteStore {
    SqliteStore::open(&SqliteOptions::at_file(file)).unwrap()
}

fn refusal(file: &Path) -> String {
    SqliteStore::open(&SqliteOptions::at_file(file)).unwrap_err().to_string()
}

/// A database of ours with one entry, closed.
async fn made(folder: &Path) -> PathBuf {
    let file = folder.join("ours.db");
    let store = open(&file);
    store.create(record("a")).await.unwrap();
    store.append(append("a", 1, "hello")).await.unwrap();
    store.close().await;
    file
}

fn change(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_database_is_kept_between_two_openings() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;

    let store = open(&file);

    let read = store.entries(&"a".parse().unwrap(), Seq::FIRST, 9).await.unwrap();
    assert_eq!(read.iter().map(|stored| (*stored.entry).clone()).collect::<Vec<_>>(), [entry("hello")]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_database_is_for_its_owner_alone_and_one_that_is_there_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let rights = |file: &Path, mode| std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    let mode = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
    rights(folder.path(), 0o755);

    let file = folder.path().join("ours.db");
    let store = open(&file);
    store.create(record("a")).await.unwrap();
    let beside = ["ours.db-wal", "ours.db-shm"].map(|name| folder.path().join(name));
    assert_eq!([mode(&file), mode(&beside[0]), mode(&beside[1])], [0o600; 3]);
    store.close().await;

    rights(&file, 0o640);
    let store = open(&file);
    assert_eq!(mode(&file), 0o640);
    store.close().await;
}

#[tokio::test]
async fn a_data_directory_is_created_with_its_parents() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("a/b");

    let store = SqliteStore::open(&SqliteOptions::in_directory(&directory).durability(Durability::Power)).unwrap();
    store.create(record("a")).await.unwrap();
    let lock = directory.join("locks").join(format!("{}.lock", store.driver()));

    assert!(directory.join("turnwright.db").is_file());
    assert!(lock.is_file());
    store.close().await;
    assert!(!lock.exists());
}

#[tokio::test]
async fn a_name_that_sqlite_reads_in_another_way_is_a_file_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x?mode=memory", "a b%20'\"?.db"] {
        let file = folder.path().join(name);
        let store = open(&file);
        store.create(record("a")).await.unwrap();
        store.close().await;
        assert!(file.is_file(), "{name}");
        assert!(open(&file).conversation(&"a".parse().unwrap()).await.unwrap().is_some(), "{name}");
    }
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("missing/x.db");

    let parent = file.parent().unwrap().display().to_string();
    let expected =
        format!("the folder of the database `{}` does not exist; create `{parent}` or name another file", file.display());
    assert_eq!(refusal(&file), expected);
    assert!(!Path::new(&parent).exists());
}

#[test]
fn a_folder_in_the_place_of_the_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().display();
    let expected = format!("`{shown}` is a folder; name the database file in it, such as `{shown}/turnwright.db`");
    assert_eq!(refusal(folder.path()), expected);
}

#[test]
fn a_file_in_the_place_of_the_data_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    std::fs::write(&file, "mine").unwrap();

    let error = SqliteStore::open(&SqliteOptions::in_directory(&file)).unwrap_err().to_string();

    assert!(error.starts_with(&format!("`{}` cannot be created as a folder: ", file.display())), "{error}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for content in ["x", "a diary\n", &"page after page\n".repeat(2_000)] {
        let file = folder.path().join("diary.txt");
        std::fs::write(&file, content).unwrap();

        let expected = format!("`{}` is not a SQLite database; name another file or move this one away", file.display());
        assert_eq!(refusal(&file), expected);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

#[test]
fn the_database_of_another_application_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let marks = ["CREATE TABLE entry (place INTEGER PRIMARY KEY)", "PRAGMA application_id = 7", "PRAGMA user_version = 3"];
    for (number, mark) in marks.into_iter().enumerate() {
        let file = folder.path().join(format!("{number}.db"));
        change(&file, mark);
        let before = std::fs::read(&file).unwrap();

        let expected = format!("`{}` is the database of another application; name another file", file.display());
        assert_eq!(refusal(&file), expected, "{mark}");
        assert_eq!(std::fs::read(&file).unwrap(), before, "{mark}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside them");
}

/// Makes of a database what the version before there were users had made.
const BEFORE_USERS: &str = "
    DROP TABLE spent;
    DROP TABLE reservation;
    DROP TABLE knowledge;
    DROP TABLE knowledge_file;
    DROP TABLE knowledge_piece;
    DROP TABLE knowledge_words;
    DROP TABLE knowledge_sign;
    DROP TABLE knowledge_vector;
    DROP TABLE said;
    DROP TABLE said_until;
    DROP TABLE artifact;
    DROP TABLE origin;
    DROP TABLE artifact_piece;
    DROP TABLE artifact_use;
    DROP TABLE user;
    DROP TABLE credential;
    DROP INDEX conversation_by_owner;
    DROP INDEX conversation_by_beginning;
    ALTER TABLE conversation DROP COLUMN begins_as;
    ALTER TABLE conversation DROP COLUMN begins_through;
    ALTER TABLE conversation DROP COLUMN owner;
    CREATE INDEX conversation_by_update ON conversation (updated_at_ms);
    PRAGMA user_version = 2";

#[tokio::test]
async fn an_older_database_is_copied_before_it_is_brought_up_and_belongs_to_whoever_is_here() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    let version = |file: &Path| -> i64 {
        Connection::open(file).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let newest = version(&file);
    change(&file, BEFORE_USERS);

    let store = open(&file);

    let id = "a".parse().unwrap();
    assert_eq!(store.conversation(&id).await.unwrap().unwrap().owner, UserId::local());
    assert_eq!(store.entries(&id, Seq::FIRST, 9).await.unwrap().len(), 1);
    store.append(append("a", 2, "since then")).await.unwrap();
    let owner = UserId::local();
    let search = Search { owner: &owner, words: "hello", after: None, limit: 9 };
    assert_eq!(store.search(search).await.unwrap().len(), 1, "what was said before is found");
    store.close().await;
    let copy = folder.path().join(format!("ours.db.before-v{newest}"));
    assert_eq!((version(&file), version(&copy)), (newest, 2));
    let entries: i64 = Connection::open(&copy).unwrap().query_row("SELECT count(*) FROM entry", (), |row| row.get(0)).unwrap();
    assert_eq!(entries, 1);
    let left = std::fs::read_dir(folder.path())
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(left.count(), 0);
}

/// What a process of the first version had stored when it was killed: all of it is in the log, nothing in the file.
fn killed_first_version(folder: &Path) -> PathBuf {
    let file = folder.join("first.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").unwrap();
    connection.execute_batch(include_str!("../src/migrations/0001_journal.sql")).unwrap();
    connection.pragma_update(None, "application_id", 0x5475_726e).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let body = serde_json::to_string(&entry("from the log")).unwrap();
    let conversation = "INSERT INTO conversation VALUES (1, 'old', 2, 5, 5, 'Old', '{}')";
    connection.execute(conversation, ()).unwrap();
    connection.execute("INSERT INTO entry VALUES (?1, 1, 5, ?2)", ((1_i64 << 32) | 1, body)).unwrap();
    let killed = folder.join("killed.db");
    for (from, to) in [("first.db", "killed.db"), ("first.db-wal", "killed.db-wal")] {
        std::fs::copy(folder.join(from), folder.join(to)).unwrap();
    }
    killed
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_with_what_its_log_alone_holds_and_so_is_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    let file = killed_first_version(folder.path());
    let copy = folder.path().join("killed.db.before-v10");
    // An earlier attempt got as far as this.
    std::fs::write(&copy, "the copy of last year").unwrap();

    let store = open(&file);

    let id = "old".parse().unwrap();
    assert_eq!(store.conversation(&id).await.unwrap().unwrap().title.as_deref(), Some("Old"));
    let entries = store.entries(&id, Seq::FIRST, 9).await.unwrap();
    assert_eq!(entries.iter().map(|stored| (*stored.entry).clone()).collect::<Vec<_>>(), [entry("from the log")]);
    store.append(append("old", 2, "since then")).await.unwrap();
    store.close().await;
    let kept = Connection::open(&copy).unwrap();
    let number = |sql: &str| kept.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((number("SELECT count(*) FROM entry"), number("PRAGMA user_version")), (1, 1));
    let sound: String = kept.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[tokio::test]
async fn a_database_that_cannot_be_copied_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    change(&file, BEFORE_USERS);
    let newest = 11;
    for version in 3..newest {
        std::fs::create_dir_all(folder.path().join(format!("ours.db.before-v{version}.part/in the way"))).unwrap();
    }

    let said = refusal(&file);

    assert!(said.contains("ours.db.before-v"), "{said}");
    let found: i64 = Connection::open(&file).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(found, 2);
}

#[tokio::test]
async fn nothing_is_left_of_a_copy_that_was_broken_off() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    change(&file, BEFORE_USERS);
    change(
        &file,
        "CREATE TABLE large (x); INSERT INTO large
         WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 500) SELECT hex(zeroblob(500)) FROM n",
    );
    let mut bytes = std::fs::read(&file).unwrap();
    let damaged = bytes.len() - 8 * 4096;
    bytes[damaged..damaged + 4096].fill(0xff);
    std::fs::write(&file, bytes).unwrap();

    let said = refusal(&file);

    assert!(said.contains("malformed"), "{said}");
    let names = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains("before-v")).count(), 0);
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    change(&file, "PRAGMA user_version = 1000");
    let before = std::fs::read(&file).unwrap();

    let error = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap_err();

    assert!(matches!(error, StoreError::Newer { .. }));
    let expected = format!(
        "the database `{}` (schema 1000, this build reads up to 10) was written by a newer version of turnwright; \
         use that version or newer",
        file.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn a_database_with_a_broken_header_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    let whole = std::fs::read(&file).unwrap();
    // The magic, the page size, and the page that lists the tables.
    for (place, is_damaged) in [(0..16, false), (16..18, false), (100..400, true)] {
        let mut broken = whole.clone();
        broken[place.clone()].fill(0xff);
        std::fs::write(&file, &broken).unwrap();

        let error = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap_err();

        assert!(error.to_string().contains(&format!("`{}`", file.display())), "{error}");
        assert_eq!(matches!(error, StoreError::Damaged { .. }), is_damaged, "{place:?}: {error}");
        assert_eq!(std::fs::read(&file).unwrap(), broken);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_file_or_folder_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    let mend = "the database and its folder must be writable: `chmod u+w`, or name another place";
    let expected = |path: &Path| format!("`{}` is read-only; {mend}", path.display());

    allow(&file, 0o444);
    assert_eq!(refusal(&file), expected(&file));
    allow(&file, 0o644);
    allow(folder.path(), 0o555);
    assert_eq!(refusal(&file), expected(folder.path()));
    allow(folder.path(), 0o755);
    drop(open(&file));
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    change(&file, "UPDATE entry SET body = '{\"user\":{}}'");
    let store = open(&file);
    let id = "a".parse().unwrap();

    let damaged = store.entries(&id, Seq::FIRST, 9).await.unwrap_err();
    let StoreError::Damaged { what, reason } = damaged else { panic!("{damaged}") };
    assert_eq!(what, "entry 1 of conversation `a`");
    assert!(reason.contains("missing field `content`"), "{reason}");

    change(&file, "UPDATE entry SET version = 999");
    let newer = StoreError::Newer { what: "entry 1 of conversation `a`".to_owned() };
    assert_eq!(store.entries(&id, Seq::FIRST, 9).await, Err(newer));
    // What came before and after stays readable and the conversation goes on.
    store.append(append("a", 2, "more")).await.unwrap();
    assert_eq!(store.entries(&id, Seq::new(2).unwrap(), 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_lock_that_another_process_keeps_is_an_error_and_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    let store = SqliteStore::open(&SqliteOptions::at_file(&file).lock_wait(Duration::from_millis(20))).unwrap();
    let other = Connection::open(&file).unwrap();

    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = store.append(append("a", 2, "x")).await.unwrap_err();
    let read = store.entries(&"a".parse().unwrap(), Seq::FIRST, 9).await.unwrap();
    other.execute_batch("ROLLBACK").unwrap();

    let expected = format!("`{}` is locked by another process for too long; end that process or try again", file.display());
    assert_eq!(locked, StoreError::Unusable { reason: expected });
    assert_eq!(read.len(), 1, "readers do not wait for a writer");
    store.append(append("a", 2, "x")).await.unwrap();
}

#[tokio::test]
async fn a_request_that_the_database_cannot_do_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    // Stands for whatever makes SQLite fail in the middle and roll back by itself, such as a full disk.
    change(
        &file,
        "CREATE TRIGGER fails BEFORE INSERT ON entry WHEN new.body LIKE '%poison%'
         BEGIN SELECT RAISE(ROLLBACK, 'no room'); END",
    );
    let store = open(&file);
    for id in ["b", "c"] {
        store.create(record(id)).await.unwrap();
    }
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    // While the lock is held, they wait for the writer together.
    let (plug, a, b, c, ()) = tokio::join!(
        store.create(record("plug")),
        store.append(append("a", 2, "before")),
        store.append(append("b", 1, "poison")),
        store.append(append("c", 1, "after")),
        async { other.execute_batch("ROLLBACK").unwrap() },
    );

    assert_eq!((plug, a.map(|stored| stored.len()), c.map(|stored| stored.len())), (Ok(()), Ok(1), Ok(1)));
    let failure = StoreError::Unusable { reason: format!("`{}` cannot be used: no room", file.display()) };
    assert_eq!(b, Err(failure));
    assert_eq!(store.last_seq(&"b".parse().unwrap()).await, Ok(None));
    store.append(append("b", 1, "fine")).await.unwrap();
    store.append(append("a", 3, "fine")).await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_cannot_be_committed_is_acknowledged_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    // A reference to nothing is found out by the commit, after every statement went well.
    change(
        &file,
        "CREATE TABLE debt (conversation INTEGER REFERENCES conversation (key) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER fails AFTER INSERT ON entry WHEN new.body LIKE '%poison%'
         BEGIN INSERT INTO debt VALUES (-1); END",
    );
    let store = open(&file);
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let (_, sound, poison, ()) = tokio::join!(
        store.create(record("plug")),
        store.append(append("a", 2, "fine")),
        store.append(append("a", 3, "poison")),
        async { other.execute_batch("ROLLBACK").unwrap() },
    );

    let reason = format!("`{}` cannot be used: FOREIGN KEY constraint failed", file.display());
    // Whether the sound one was in the same group is a matter of threads; what it was told must be what happened.
    assert_eq!(poison, Err(StoreError::Unusable { reason: reason.clone() }));
    let stored = if sound == Err(StoreError::Unusable { reason }) { 1 } else { 2 };
    assert_eq!(store.last_seq(&"a".parse().unwrap()).await, Ok(Seq::new(stored)));
    store.append(append("a", stored + 1, "fine")).await.unwrap();
}

#[tokio::test]
async fn a_dropped_store_has_done_what_it_was_given_and_is_not_alive() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    let store = open(&file);
    let driver = store.driver().clone();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Given to the writer and then given up by its caller.
    let given = tokio::time::timeout(Duration::ZERO, store.append(append("a", 2, "x"))).await;
    assert!(given.is_err());
    other.execute_batch("ROLLBACK").unwrap();

    drop(store);

    let store = open(&file);
    assert_eq!(store.last_seq(&"a".parse().unwrap()).await, Ok(Seq::new(2)));
    assert_eq!(store.is_alive(&driver).await, Ok(false));
    assert_eq!(std::fs::read_dir(folder.path().join("ours.db.locks")).unwrap().count(), 1, "only its own lock file");
}

#[tokio::test]
async fn what_was_deleted_is_not_left_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    let store = open(&file);
    for id in ["a", "b"] {
        store.create(record(id)).await.unwrap();
        store.append(append(id, 1, &format!("the secret of {id}").repeat(500))).await.unwrap();
    }

    store.delete(&"b".parse().unwrap()).await.unwrap();
    store.close().await;

    let bytes = std::fs::read(&file).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert_eq!((holds("the secret of a"), holds("the secret of b")), (true, false));
}

#[tokio::test]
async fn a_store_says_that_it_cannot_store_while_somebody_holds_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path()).await;
    let store = SqliteStore::open(&SqliteOptions::at_file(&file).lock_wait(Duration::from_millis(5))).unwrap();
    let holder = Connection::open(&file).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.can_store().await.unwrap_err();
    assert!(refused.to_string().contains("is locked by another process for too long"), "{refused}");
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.can_store().await, Ok(()));
    // Nothing was changed by it.
    store.append(append("a", 2, "there")).await.unwrap();
    let version = holder.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(version, 10);
    store.close().await;
    assert!(store.can_store().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_does_not_grow_without_end_while_many_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ours.db");
    let store = std::sync::Arc::new(open(&file));
    let mut writers = tokio::task::JoinSet::new();
    for writer in ["a", "b", "c", "d"] {
        let store = store.clone();
        writers.spawn(async move {
            store.create(record(writer)).await.unwrap();
            for at in 1..=400 {
                store.append(append(writer, at, &"word ".repeat(12_000))).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let log = std::fs::metadata(file.with_extension("db-wal")).unwrap().len();
    assert!(log < 64 << 20, "of 96 MB that were written its log holds {log} bytes");
    store.close().await;
    assert!(!file.with_extension("db-wal").exists(), "the last to close puts the log back");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_stored_in_a_file_that_lost_its_name_until_it_has_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let (file, away) = (folder.path().join("ours.db"), folder.path().join("away.db"));
    let store = open(&file);
    store.create(record("a")).await.unwrap();
    std::fs::rename(&file, &away).unwrap();
    let says = async |expected: &str| {
        for refused in [store.append(append("a", 1, "lost")).await.map(drop), store.can_store().await] {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    };
    says("ours.db` was removed while it was open").await;
    std::fs::write(&file, "another").unwrap();
    says("ours.db` was replaced while it was open").await;
    std::fs::rename(&away, &file).unwrap();
    store.append(append("a", 1, "kept")).await.unwrap();
    store.can_store().await.unwrap();
    store.close().await;
}
