//! What the files of a SQLite database hold: no secret, and nothing of what was erased.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::task::JoinSet;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserId, UserMessage};
use turnwright_engine::accounts::{AccountSecret, Accounts, Credential, CredentialKind, Role, Scopes, SecretHash, User};
use turnwright_engine::artifacts::{Artifact, Artifacts};
use turnwright_engine::search::{Search, Texts};
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Append, ConversationRecord, Document, Documents, Idempotent, SideRecord, Store, StoreError};
use turnwright_store::{SqliteOptions, SqliteStore};
use turnwright_testkit::{copied, record};

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(&SqliteOptions::in_directory(folder)).unwrap()
}

fn titled(id: &str, settings: &str) -> ConversationRecord {
    ConversationRecord { title: Some(format!("title of {id}")), settings: settings.to_owned(), ..record(id) }
}

async fn say(store: &SqliteStore, id: &str, text: &str, at_ms: u64, side: Vec<SideRecord>) {
    say_at(store, (id, Seq::FIRST), text, at_ms, side).await;
}

async fn say_at(store: &SqliteStore, (id, at): (&str, Seq), text: &str, at_ms: u64, side: Vec<SideRecord>) {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entry = Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings });
    let conversation = id.parse().unwrap();
    store.append(Append { conversation, at, entries: vec![entry], at_ms, side }).await.unwrap();
}

/// The files of a database that hold a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let holds = |path: &std::path::PathBuf| {
        std::fs::read(path).unwrap().windows(text.len()).any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
    };
    files.filter(holds).map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn of_what_was_erased_no_file_of_the_database_holds_anything() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let owner = UserId::local();
    let long = "xylophone ".repeat(3_000);
    for id in ["kept", "gone"] {
        let mut new = titled(id, "{}");
        new.title = Some(format!("marimba {id}"));
        store.create(new).await.unwrap();
        let answer = Idempotent { fingerprint: "glockenspiel".to_owned(), answer: "glockenspiel".to_owned() };
        let side = if id == "gone" { vec![SideRecord::Idempotent { key: "k".to_owned(), record: answer }] } else { Vec::new() };
        let text = if id == "gone" { format!("vibraphone {long}") } else { "celesta".to_owned() };
        say(&store, id, &text, 5, side).await;
    }
    store.put_document("of_conversation", Document { key: "gone/x".to_owned(), body: "harpsichord".to_owned() }).await.unwrap();
    let draft = store.begin_artifact(1).await.unwrap();
    store.put_piece(draft, 0, b"clavichord".repeat(10_000)).await.unwrap();
    let artifact = Artifact {
        id: "art_1".to_owned(),
        owner: owner.clone(),
        name: "spinet.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: 100_000,
        created_at_ms: 1,
    };
    store.finish_artifact(draft, artifact).await.unwrap();
    store.use_artifact(&owner, "art_1", &"gone".parse().unwrap()).await.unwrap();
    let looked_for = Search { owner: &owner, words: "vibraphone", after: None, limit: 9 };
    assert_eq!(store.search(looked_for.clone()).await.unwrap().len(), 1);
    let secrets = ["vibraphone", "xylophone", "marimba gone", "glockenspiel", "harpsichord", "clavichord", "spinet"];
    for secret in secrets {
        assert!(!holding(folder.path(), secret).is_empty(), "{secret} is stored");
    }
    store.delete(&"gone".parse().unwrap()).await.unwrap();
    store.erase().await.unwrap();
    for secret in secrets {
        assert_eq!(holding(folder.path(), secret), Vec::<String>::new(), "{secret}");
    }
    assert!(!holding(folder.path(), "celesta").is_empty(), "what was not deleted is there");
    assert_eq!(store.search(Search { words: "celesta", ..looked_for }).await.unwrap().len(), 1);
    store.close().await;
}

#[tokio::test]
async fn what_several_conversations_begin_with_is_stored_once_and_erased_with_the_last_that_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let id = |name: &str| name.parse::<turnwright_core::ConversationId>().unwrap();
    let at = |place| Seq::new(place).unwrap();
    let long = "filler ".repeat(1_000);
    store.create(record("first")).await.unwrap();
    for (place, word) in [(1, "celesta"), (2, "vibraphone"), (3, "xylophone"), (4, "marimba")] {
        say_at(&store, ("first", at(place)), &format!("{word} {long}"), 5, Vec::new()).await;
    }
    let size = async || {
        store.erase().await.unwrap();
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let alone = size().await;
    for (copy, through) in [("two", 2), ("three", 3), ("three-again", 3)] {
        store.copy(copied(record(copy), &record("first"), through)).await.unwrap();
    }
    assert!(size().await < alone + 16 * 1024, "{} bytes, {alone} before the copies", size().await);
    // Who is gone, and what nobody shows any more after that.
    let steps =
        [("first", "marimba", "xylophone"), ("three", "marimba", "xylophone"), ("three-again", "xylophone", "vibraphone")];
    for (gone, erased, kept) in steps {
        store.delete(&id(gone)).await.unwrap();
        store.erase().await.unwrap();
        assert_eq!(holding(folder.path(), erased), Vec::<String>::new(), "{erased} once {gone} is gone");
        assert!(!holding(folder.path(), kept).is_empty(), "{kept} once {gone} is gone");
    }
    store.delete(&id("two")).await.unwrap();
    store.erase().await.unwrap();
    for word in ["celesta", "vibraphone", "filler"] {
        assert_eq!(holding(folder.path(), word), Vec::<String>::new(), "{word}");
    }
    store.close().await;
}

#[tokio::test]
async fn nothing_of_what_was_erased_is_behind_rows_that_were_moved_where_a_page_was_full() {
    for seed in 0..8_usize {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let name = |number: usize| format!("c{number}");
        for number in 0..12 {
            store.create(titled(&name(number), "{}")).await.unwrap();
        }
        // Interleaved, of lengths that fill pages at other places each time.
        for turn in 0..72_usize {
            let (number, words) = ((turn * 7 + seed) % 12, (turn * 31 + seed * 17) % 61);
            let erased = if number % 2 == 0 { "vibraphone" } else { "celesta" };
            let at = Seq::new(1 + turn as u64 / 12).unwrap();
            say_at(&store, (&name(number), at), &format!("{erased} {}", "filler ".repeat(words)), 5, Vec::new()).await;
        }
        for number in (0..12).step_by(2) {
            store.delete(&name(number).parse().unwrap()).await.unwrap();
        }
        store.erase().await.unwrap();
        assert_eq!(holding(folder.path(), "vibraphone"), Vec::<String>::new(), "{seed}");
        assert!(!holding(folder.path(), "celesta").is_empty());
        store.close().await;
    }
}

#[tokio::test]
async fn no_secret_is_in_the_database_or_in_what_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let secret = AccountSecret::new("tw_").unwrap();
    assert_eq!((secret.expose().len(), secret.expose().starts_with("tw_")), (67, true));
    let anna = User {
        id: "user_anna".parse().unwrap(),
        name: "anna".to_owned(),
        role: Role::Member,
        is_enabled: true,
        created_at_ms: 5,
        identity: None,
    };
    let known = Credential {
        id: "t".to_owned(),
        hash: secret.hash(),
        user: anna.id.clone(),
        kind: CredentialKind::Token,
        name: "for t".to_owned(),
        scopes: Scopes::own(),
        parent: None,
        created_at_ms: 7,
        expires_at_ms: Some(9),
        used_at_ms: None,
    };
    store.add_user(anna).await.unwrap();
    store.add_credential(known.clone()).await.unwrap();
    assert!(!format!("{secret:?} {known:?}").contains(secret.expose()));
    assert_eq!(store.credential(&SecretHash::of(secret.expose())).await.unwrap().unwrap().0, known);
    store.close().await;
    for file in std::fs::read_dir(folder.path()).unwrap().filter_map(|file| std::fs::read(file.unwrap().path()).ok()) {
        let needle = secret.expose().as_bytes();
        assert!(!file.windows(needle.len()).any(|window| window == needle));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_can_be_erased_while_so_much_is_written_that_the_log_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let mut writing = JoinSet::new();
    let writer = store.clone();
    writing.spawn(async move {
        for number in 0..300 {
            let id = format!("c{number}");
            writer.create(titled(&id, "{}")).await.unwrap();
            say(&writer, &id, &"word ".repeat(12_000), 5, Vec::new()).await;
        }
    });
    loop {
        store.erase().await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        if let Some(written) = writing.try_join_next() {
            break written.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_waits_for_another_process_that_writes_the_whole_database_anew_for_as_long_as_that_takes() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::in_directory(folder.path()).lock_wait(Duration::from_millis(20));
    let store = SqliteStore::open(&options).unwrap();
    store.create(titled("a", "{}")).await.unwrap();
    // What an erasing process holds, for longer than anybody waits for a small transaction.
    let erasing = File::create(folder.path().join("locks/erase")).unwrap();
    erasing.lock().unwrap();
    let other = Connection::open(folder.path().join("turnwright.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let erased = async {
        // It says all the time that it goes on.
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            (&erasing).write_all(b".").unwrap();
        }
        other.execute_batch("COMMIT").unwrap();
        drop(erasing);
    };
    tokio::join!(say(&store, "a", "waits", 5, Vec::new()), erased);
    // Where it does not erase it is waited for as ever, and it erases itself once nobody else does.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(store.create(titled("b", "{}")).await.is_err());
    other.execute_batch("COMMIT").unwrap();
    store.erase().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_ever_for_a_process_that_was_stopped_while_it_writes_the_database_anew_or_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::in_directory(folder.path()).lock_wait(Duration::from_millis(20));
    let store = SqliteStore::open(&options).unwrap();
    let database = folder.path().join("turnwright.db");
    let locked = format!("`{}` is locked by another process for too long; end that process or try again", database.display());
    let erasing = File::create(folder.path().join("locks/erase")).unwrap();
    erasing.lock().unwrap();
    let other = Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let written = store.create(titled("a", "{}")).await.unwrap_err().to_string();
    let erased = store.erase().await.unwrap_err().to_string();
    drop(erasing);
    let alone = store.erase().await.unwrap_err().to_string();
    other.execute_batch("COMMIT").unwrap();

    assert_eq!((written, alone), (locked.clone(), locked));
    let expected = format!(
        "another process began to write the database `{}` anew and does not go on; end that process or try again",
        database.display()
    );
    assert_eq!(erased, expected);
    store.create(titled("a", "{}")).await.unwrap();
    store.erase().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_to_write_the_database_anew_keeps_nobody_from_writing_nor_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let mut another = File::create(folder.path().join("locks/erase")).unwrap();
    another.lock().unwrap();
    let goes_on = Arc::new(AtomicBool::new(true));
    let beats = Arc::clone(&goes_on);
    let beating = std::thread::spawn(move || {
        while beats.load(Ordering::Relaxed) {
            another.write_all(b".").unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut erasing = JoinSet::new();
    let erased = Arc::clone(&store);
    erasing.spawn(async move { erased.erase().await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let soon = Duration::from_secs(5);
    tokio::time::timeout(soon, store.create(titled("a", "{}"))).await.unwrap().unwrap();
    assert!(erasing.try_join_next().is_none());
    tokio::time::timeout(soon, store.close()).await.unwrap();
    let erased = tokio::time::timeout(soon, erasing.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(erased, Err(StoreError::Closed));
    goes_on.store(false, Ordering::Relaxed);
    beating.join().unwrap();
}
