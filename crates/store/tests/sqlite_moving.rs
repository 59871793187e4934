//! Databases that are moved, backed up and looked at: which may be read, and what is left as it is.

#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserMessage};
use turnwright_engine::{Append, ConversationRecord, Store};
use turnwright_store::{Location, SqliteOptions, SqliteStore, backup, check, move_all};
use turnwright_testkit::{copied, record};

/// A database with one entry, closed.
async fn made(file: PathBuf) -> PathBuf {
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    let id = || "a".parse().unwrap();
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entries = vec![Entry::User(UserMessage { content: vec![ContentBlock::text("hello")], settings })];
    let record = ConversationRecord { id: id(), ..record("a") };
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
async fn a_copy_of_which_only_the_log_holds_anything_is_not_called_sound() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("open.db"), folder.path().join("copy.db"));
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    store.create(record("a")).await.unwrap();
    std::fs::copy(&file, &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let said = check(&at(&copy)).await.unwrap_err().to_string();
    assert!(said.contains("there is nothing in the database") && said.contains("copy.db-wal"), "{said}");
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    store.close().await;
}

#[tokio::test]
async fn what_conversations_share_is_whole_in_a_backup_and_looked_at_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path().join("shared.db")).await;
    let store = SqliteStore::open(&SqliteOptions::at_file(&file)).unwrap();
    let id = |name: &str| name.parse::<turnwright_core::ConversationId>().unwrap();
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let say = async |store: &SqliteStore, name: &str, at: u64, count: usize| {
        let message = UserMessage { content: vec![ContentBlock::text(format!("{name} {at}"))], settings: settings.clone() };
        let (conversation, at) = (id(name), Seq::new(at).unwrap());
        let entries = vec![Entry::User(message); count];
        store.append(Append { conversation, at, entries, at_ms: 5, side: Vec::new() }).await.unwrap();
    };
    // More than are read at once.
    say(&store, "a", 2, 449).await;
    for copy in ["b", "c", "d"] {
        store.copy(copied(record(copy), &record("a"), 430)).await.unwrap();
        say(&store, copy, 431, 7).await;
    }
    store.create(record("empty")).await.unwrap();
    store.delete(&id("a")).await.unwrap();
    let all = async |store: &SqliteStore| {
        let mut all = Vec::new();
        for name in ["b", "c", "d", "empty"] {
            all.push(store.entries(&id(name), Seq::FIRST, usize::MAX).await.unwrap());
        }
        all
    };
    let before = all(&store).await;
    store.close().await;
    drop(store);

    let (counted, wrong) = check(&at(&file)).await.unwrap();
    assert_eq!((wrong, counted.rows.contains(&("entry", 3 * 437))), (Vec::new(), true), "{counted:?}");
    let copy = folder.path().join("copy.db");
    let moved = backup(&at(&file), &copy).await.unwrap();
    assert!(moved.rows.contains(&("entry", 3 * 437)), "{moved:?}");
    let store = SqliteStore::open(&SqliteOptions::at_file(&copy)).unwrap();
    assert_eq!(all(&store).await, before);
    store.delete(&id("b")).await.unwrap();
    assert_eq!(lengths_of(&store, &["c", "d"]).await, [437, 437]);
    store.close().await;

    let damaged = Connection::open(&file).unwrap();
    damaged.execute("DELETE FROM entry WHERE place & 4294967295 = 400", ()).unwrap();
    damaged.execute("INSERT INTO entry VALUES ((77 << 32) + 1, 1, 1, '{}')", ()).unwrap();
    drop(damaged);
    let (_, wrong) = check(&at(&file)).await.unwrap();
    assert_eq!(
        wrong,
        [
            "1 entry belongs to no conversation (key 77)",
            "conversation `b` should have 437 entries and has 399 in a row",
            "conversation `c` should have 437 entries and has 399 in a row",
            "conversation `d` should have 437 entries and has 399 in a row",
        ]
    );
}

async fn lengths_of(store: &SqliteStore, names: &[&str]) -> Vec<usize> {
    let mut lengths = Vec::new();
    for name in names {
        lengths.push(store.entries(&name.parse().unwrap(), Seq::FIRST, usize::MAX).await.unwrap().len());
    }
    lengths
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

#[tokio::test]
async fn a_backup_never_takes_the_place_of_what_it_is_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    made(path("old.db.part")).await;
    symlink(path("old.db.part"), path("other.db")).unwrap();
    symlink(path("old.db.part"), path("second.db.part")).unwrap();
    for (source, file) in [("old.db.part", "old.db"), ("other.db", "old.db"), ("old.db.part", "second.db")] {
        let refused = backup(&at(path(source)), &path(file)).await.unwrap_err().to_string();

        let (part, file) = (path(&format!("{file}.part")), path(file));
        let expected =
            format!("`{}` is what is read, and `{}` would be written under that name", part.display(), file.display());
        assert!(refused.starts_with(&expected), "{refused}");
        assert!(!file.exists() && part.is_symlink() == (file == path("second.db")));
        assert!(is_whole(&path("old.db.part")).await);
    }
    let refused = backup(&at(path("other.db")), &path("old.db.part")).await.unwrap_err().to_string();
    assert!(refused.ends_with("is there already; name a file that is not"), "{refused}");
}

#[tokio::test]
async fn what_no_backup_left_under_its_names_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = made(path("first.db")).await;
    made(path("own.part")).await;
    std::fs::write(path("mine.part"), "mine").unwrap();
    std::fs::write(path("log.part-wal"), "mine").unwrap();
    symlink(path("mine.part"), path("link.part")).unwrap();
    symlink(path("nowhere.db"), path("dangling")).unwrap();
    let before = names(folder.path());
    for (file, found) in [("own", "own.part"), ("mine", "mine.part"), ("log", "log.part-wal"), ("link", "link.part")] {
        let refused = backup(&at(&source), &path(file)).await.unwrap_err().to_string();

        let (found, file) = (path(found), path(file));
        let expected = format!(
            "`{}` is in the way: `{}` would be written under that name; move it away or name another file",
            found.display(),
            file.display()
        );
        assert_eq!(refused, expected);
    }
    let refused = backup(&at(&source), &path("dangling")).await.unwrap_err().to_string();
    assert!(refused.ends_with("is there already; name a file that is not"), "{refused}");
    assert_eq!(names(folder.path()), before);
    assert_eq!(std::fs::read_to_string(path("mine.part")).unwrap(), "mine");
    assert!(is_whole(&path("own.part")).await && path("link.part").is_symlink());

    // What is not in the way any more hinders nobody.
    std::fs::remove_file(path("mine.part")).unwrap();
    backup(&at(&source), &path("mine")).await.unwrap();
    assert!(is_whole(&path("mine")).await && !path("mine.part.locks").exists());
}

#[tokio::test]
async fn a_move_that_broke_off_goes_on_by_whatever_name_its_source_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = made(path("src.db")).await;
    symlink(&source, path("alias.db")).unwrap();
    std::fs::create_dir(path("x")).unwrap();
    for (number, other) in ["alias.db", "x/../src.db"].into_iter().enumerate() {
        let target = path(&format!("to{number}.db"));
        SqliteStore::open(&SqliteOptions::at_file(&target)).unwrap().close().await;
        let change = |sql: &str| Connection::open(&target).unwrap().execute_batch(sql).unwrap();
        change("CREATE TRIGGER full BEFORE INSERT ON entry BEGIN SELECT RAISE(ABORT, 'full'); END");
        move_all(&at(&source), &at(&target)).await.unwrap_err();
        change("DROP TRIGGER full");

        let moved = move_all(&at(path(other)), &at(&target)).await.unwrap();

        assert!(moved.rows.contains(&("entry", 1)), "{moved:?}");
        // The end of it may have been told to nobody.
        assert_eq!(move_all(&at(&source), &at(&target)).await.unwrap(), moved);
        change("UPDATE entry SET at_ms = at_ms + 1");
        let refused = move_all(&at(&source), &at(&target)).await.unwrap_err().to_string();
        let full = format!("the database `{}` is not empty: it has rows in `conversation`; name one that is", target.display());
        assert_eq!(refused, full);
        let same = move_all(&at(&source), &at(path(other))).await.unwrap_err().to_string();
        let expected =
            format!("the database `{}` is both what is moved and where to; name another one to move to", source.display());
        assert_eq!(same, expected);
    }
}

#[tokio::test]
async fn a_file_of_two_names_is_not_moved_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path().join("ours.db")).await;
    let hard = folder.path().join("hard.db");
    std::fs::hard_link(&file, &hard).unwrap();
    let before = names(folder.path());
    let refused = move_all(&at(&file), &at(&hard)).await.unwrap_err().to_string();
    let (from, to) = (file.canonicalize().unwrap(), hard.canonicalize().unwrap());
    let expected =
        format!("`{}` is another name of the database `{}`; name another one to move to", to.display(), from.display());
    assert_eq!((refused, names(folder.path())), (expected, before));
}

#[tokio::test]
async fn what_is_read_only_is_read_and_a_backup_that_is_read_stays_one() {
    use std::os::unix::fs::PermissionsExt;
    let allow = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = made(folder.path().join("ours.db")).await;
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let backed_up = kept.join("backup.db");
    backup(&at(&file), &backed_up).await.unwrap();
    let before = std::fs::read(&backed_up).unwrap();
    for (of_file, of_folder) in [(0o644, 0o755), (0o444, 0o755), (0o644, 0o555), (0o444, 0o555)] {
        allow(&backed_up, of_file);
        allow(&kept, of_folder);
        let copy = folder.path().join(format!("{of_file}-{of_folder}.db"));
        assert!(is_whole(&backed_up).await, "{of_file:o} {of_folder:o}");
        backup(&at(&backed_up), &copy).await.unwrap();
        assert!(is_whole(&copy).await, "{of_file:o} {of_folder:o}");
        move_all(&at(&backed_up), &at(folder.path().join(format!("moved-{of_file}-{of_folder}.db")))).await.unwrap();
        assert_eq!((std::fs::read(&backed_up).unwrap() == before, names(&kept)), (true, vec!["backup.db".to_owned()]));
    }
    // What its log holds would be missing.
    allow(&kept, 0o755);
    std::fs::write(kept.join("backup.db-wal"), "x").unwrap();
    let said = check(&at(&backed_up)).await.unwrap_err().to_string();
    assert!(said.contains("backup.db` is read-only"), "{said}");
}

/// Puts a byte that is no UTF-8 into a text.
fn spoiled(file: &Path, table: &str, column: &str) {
    let sql = format!("UPDATE {table} SET {column} = cast(cast({column} AS blob) || x'ff' AS text)");
    assert!(Connection::open(file).unwrap().execute(&sql, ()).unwrap() > 0);
}

#[tokio::test]
async fn what_cannot_be_read_as_it_is_stored_is_told_and_never_moved_as_something_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let entry = "its `body` is not UTF-8 text";
    for (table, column, checked, moved) in [
        (
            "entry",
            "body",
            format!("entry 1 of conversation `a` cannot be read: {entry}"),
            format!("entry 1 of the conversation with the key 1 cannot be read: {entry}"),
        ),
        ("conversation", "title", "conversation `a` cannot be read: its `title` is not UTF-8 text".to_owned(), String::new()),
        (
            "document",
            "body",
            "the row of `document` with the key `kind`, `one` cannot be read: its `body` is not UTF-8 text".to_owned(),
            String::new(),
        ),
    ] {
        let moved = if moved.is_empty() { &checked } else { &moved };
        let file = made(path(&format!("{table}.db"))).await;
        let change = |sql: &str| Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        change(
            "UPDATE conversation SET title = 'Grüße' || char(0); INSERT INTO document VALUES ('kind', 'one', '1'), ('kind', 'two', '2')",
        );
        assert!(is_whole(&file).await, "{table}");
        spoiled(&file, table, column);

        let (_, wrong) = check(&at(&file)).await.unwrap();

        let other = checked.replace("`one`", "`two`");
        let expected = if other == checked { vec![checked.clone()] } else { vec![checked.clone(), other] };
        assert_eq!(wrong, expected);
        assert_eq!(backup(&at(&file), &path(&format!("{table}.backup"))).await.unwrap_err().to_string(), *moved);
        assert!(!path(&format!("{table}.backup")).exists());
        assert_eq!(move_all(&at(&file), &at(path(&format!("{table}.moved")))).await.unwrap_err().to_string(), *moved);
    }
}
