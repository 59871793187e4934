//! Several nodes on one database: starting together, connections that break, leases that run out; what cannot be used; and
//! everything moved from one kind of database to the other and back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::proxy::{Lost, Proxy};
use crate::server::Schema;
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserId, UserMessage};
use turnwright_engine::artifacts::Artifact;
use turnwright_engine::knowledge::{IndexedFile, Piece};
use turnwright_engine::search::{Search, Texts};
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Append, ConversationRecord, Document, Idempotent, Page, SideRecord, Store, StoreError};
use turnwright_store::{Location, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Storage};
use turnwright_testkit::record;

fn append(id: &str, at: u64, text: &str) -> Append {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    let entry = Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings });
    Append { conversation: id.parse().unwrap(), at: Seq::new(at).unwrap(), entries: vec![entry], at_ms: 5, side: Vec::new() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_at_any_statement_loses_and_doubles_nothing() {
    for lost in [Lost::Statement, Lost::Answer] {
        let Some(schema) = Schema::new() else { return };
        let direct = PostgresStore::open(&schema.options()).await.unwrap();
        direct.create(record("a")).await.unwrap();
        let proxy = Proxy::start(&schema, lost).await;
        let store = PostgresStore::open(&PostgresOptions::parse(&proxy.address).unwrap()).await.unwrap();
        for break_at in 0..12 {
            let number = break_at + 1;
            proxy.left.store(i64::try_from(break_at % 4).unwrap(), Ordering::SeqCst);
            let answer = Idempotent { fingerprint: "f".to_owned(), answer: format!("{number}") };
            let mut append = append("a", number, &format!("number {number}"));
            append.side = vec![SideRecord::Idempotent { key: format!("k{number}"), record: answer.clone() }];
            let stored = store.append(append).await.unwrap();
            proxy.left.store(-1, Ordering::SeqCst);
            assert_eq!(stored.first().unwrap().seq.get(), number);
            assert_eq!(direct.idempotent(&format!("k{number}")).await.unwrap(), Some(answer));
            proxy.left.store(1, Ordering::SeqCst);
            store.create(record(&format!("c{number}"))).await.unwrap();
            proxy.left.store(-1, Ordering::SeqCst);
        }
        let read = direct.entries(&"a".parse().unwrap(), Seq::FIRST, 99).await.unwrap();
        let texts: Vec<String> = read.iter().map(|entry| format!("{:?}", entry.entry)).collect();
        assert_eq!(texts.len(), 12);
        for (text, number) in texts.iter().zip(1..) {
            assert!(text.contains(&format!("\"number {number}\"")), "{text}");
        }
        store.close().await;
        direct.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_make_one_schema() {
    let Some(schema) = Schema::new() else { return };
    let starting: Vec<_> = (0..6)
        .map(|_| {
            let options = schema.options();
            async move { PostgresStore::open(&options).await.unwrap() }
        })
        .collect();
    let stores = futures_util::future::join_all(starting).await;
    for (number, store) in stores.iter().enumerate() {
        store.create(record(&format!("c{number}"))).await.unwrap();
        assert_eq!(store.lease(), Some(1));
    }
    let page = Page { owner: &UserId::local(), after: None, limit: 100, only_pinned: false };
    assert_eq!(stores[0].conversations(page).await.unwrap().len(), 6);
    for store in &stores {
        store.close().await;
        assert_eq!(store.lease(), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_waits_for_another_that_brings_the_schema_up_for_longer_than_statements_may_take() {
    let Some(schema) = Schema::new() else { return };
    let (client, limit) = (schema.client().await, Duration::from_secs(1));
    let right = format!("SELECT pg_advisory_xact_lock(hashtextextended('turnwright {}', 0))", schema.name);
    client.batch_execute(&format!("BEGIN; {right}")).await.unwrap();
    let options = schema.options().statement_limit(limit);
    let done_at_last = async {
        let waits =
            "SELECT EXISTS (SELECT 1 FROM pg_locks AS own JOIN pg_locks AS other USING (locktype, classid, objid, objsubid)
             WHERE own.locktype = 'advisory' AND own.pid = pg_backend_pid() AND NOT other.granted)";
        while !client.query_one(waits, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Longer than the server lets statements take, and than is waited here for its word.
        tokio::time::sleep(limit + Duration::from_secs(6)).await;
        client.batch_execute("COMMIT").await.unwrap();
    };
    let mut opening = std::pin::pin!(PostgresStore::open(&options));
    let opened = tokio::select! {
        // It did not wait: what it says of that is to be seen.
        opened = &mut opening => opened,
        () = done_at_last => opening.await,
    };
    let store = opened.unwrap();
    store.create(record("a")).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_nobody_renews_runs_out_for_its_holder_and_then_for_others_who_hear_of_it() {
    let Some(schema) = Schema::new() else { return };
    let other = PostgresStore::open(&schema.options()).await.unwrap();
    let proxy = Proxy::start(&schema, Lost::Statement).await;
    let cut_off = PostgresStore::open(&PostgresOptions::parse(&proxy.address).unwrap()).await.unwrap();
    let name = cut_off.driver().clone();
    assert_eq!((cut_off.lease(), other.is_alive(&name).await), (Some(1), Ok(true)));
    // One renewal, so that the other has seen it.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let (mut writes, mut departures) = (other.foreign_writes(), other.departures());
    writes.mark_unchanged();
    // Every connection breaks with its next statement, and no other comes to be.
    let left = Arc::clone(&proxy.left);
    #[expect(clippy::disallowed_methods, reason = "it is aborted below")]
    let breaking = tokio::spawn(async move {
        loop {
            left.store(0, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    while other.is_alive(&name).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(cut_off.lease(), None, "who counts as dead does nothing any more");
    tokio::time::timeout(Duration::from_secs(30), writes.changed()).await.expect("a rise").unwrap();
    tokio::time::timeout(Duration::from_secs(30), departures.changed()).await.expect("a departure is told").unwrap();
    breaking.abort();
    proxy.left.store(-1, Ordering::SeqCst);
    while cut_off.lease().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(cut_off.lease(), Some(2), "it is another lease");
    assert_eq!(other.is_alive(&name).await, Ok(true));
    cut_off.close().await;
    other.close().await;
}

#[tokio::test]
async fn a_store_that_stood_still_says_so_until_it_holds_a_lease_again() {
    let Some(schema) = Schema::new() else { return };
    let store = PostgresStore::open(&schema.options()).await.unwrap();
    assert_eq!((store.lease(), store.can_store().await), (Some(1), Ok(())));
    // The one thread of this test: nothing is renewed while it stands still.
    std::thread::sleep(Duration::from_secs(5));
    let said = store.can_store().await.unwrap_err().to_string();
    assert!(said.contains("stood still") && !said.contains("cannot be reached"), "{said}");
    assert_eq!(store.lease(), None);
    store.lease_over(1).await;
    while store.can_store().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(store.lease(), Some(2), "what was begun with the first is not gone on with");
    store.close().await;
}

/// Does to a schema what a newer version may do while this one runs: more columns, tables and functions, none in place.
async fn bring_up_to_a_newer_version(schema: &Schema) {
    let client = schema.client().await;
    let query = "SELECT table_name FROM information_schema.tables WHERE table_schema = $1 AND table_type = 'BASE TABLE'";
    let tables = client.query(query, &[&schema.name]).await.unwrap();
    assert!(tables.len() > 5);
    let name = &schema.name;
    for table in tables.iter().map(|row| row.get::<_, String>(0)) {
        client.batch_execute(&format!("ALTER TABLE {name}.\"{table}\" ADD COLUMN newer TEXT DEFAULT 'x'")).await.unwrap();
    }
    let more = format!(
        "CREATE TABLE {name}.newer (key BIGINT PRIMARY KEY); CREATE FUNCTION {name}.newer(BIGINT) RETURNS BIGINT LANGUAGE sql AS 'SELECT $1';
         UPDATE {name}.installation SET version = version + 1"
    );
    client.batch_execute(&more).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_this_version_go_on_and_start_where_a_newer_one_only_added_to_the_schema() {
    let Some(schema) = Schema::new() else { return };
    let running = PostgresStore::open(&schema.options()).await.unwrap();
    fill(&running).await;
    let version = async || {
        let query = format!("SELECT version FROM {}.installation", schema.name);
        schema.client().await.query_one(&query, &[]).await.unwrap().get::<_, i64>(0)
    };
    let before = version().await;
    bring_up_to_a_newer_version(&schema).await;
    // What is prepared on its connections goes on, and so does a process that starts only then.
    is_whole(&running).await;
    running.create(record("later")).await.unwrap();
    running.append(append("later", 1, "one")).await.unwrap();
    let started = PostgresStore::open(&schema.options()).await.unwrap();
    is_whole(&started).await;
    started.append(append("later", 2, "two")).await.unwrap();
    assert_eq!(running.last_seq(&"later".parse().unwrap()).await.unwrap(), Seq::new(2));
    assert_eq!(version().await, before + 1, "the older one leaves the newer schema as it is");
    for store in [running, started] {
        store.close().await;
    }
}

#[tokio::test]
async fn a_database_whose_mark_says_nothing_of_older_versions_is_used() {
    let Some(schema) = Schema::new() else { return };
    let made = PostgresStore::open(&schema.options()).await.unwrap();
    fill(&made).await;
    made.close().await;
    schema.client().await.batch_execute(&format!("ALTER TABLE {}.installation DROP COLUMN oldest", schema.name)).await.unwrap();
    let opened = PostgresStore::open(&schema.options()).await.unwrap();
    is_whole(&opened).await;
    opened.close().await;
}

#[tokio::test]
async fn the_turns_that_run_are_their_users_in_a_database_of_before() {
    let Some(schema) = Schema::new() else { return };
    let client = schema.client().await;
    schema.make_first_version(&client).await;
    let open = "INSERT INTO conversation (id, next_seq, created_at_ms, updated_at_ms, settings) VALUES ('a', 1, 1, 1, '{}');
         INSERT INTO open_turn SELECT key, 1, 0, 'servers' FROM conversation";
    client.batch_execute(open).await.unwrap();
    let store = PostgresStore::open(&schema.options()).await.unwrap();
    store.create(record("b")).await.unwrap();
    let limit = SideRecord::RunningTurns { owner: UserId::local(), most: 1 };
    let begun = store.append(Append { side: vec![limit], ..append("b", 1, "one more") }).await;
    assert_eq!(begun, Err(StoreError::TooManyTurns));
    store.close().await;
}

#[tokio::test]
async fn what_cannot_be_used_is_named_without_its_password() {
    let Some(schema) = Schema::new() else { return };
    PostgresStore::open(&schema.options()).await.unwrap().close().await;
    let refusal = async |address: &str| {
        let options = PostgresOptions::parse(address).unwrap();
        PostgresStore::open(&options).await.unwrap_err().to_string()
    };
    let secret = "tw-test-password";
    let with = |from: &str, to: &str| schema.address().replace(from, to);
    let table = [
        (with(secret, "wrong-secret"), "refused the credentials of `turnwright`"),
        (with("/postgres?", "/nowhere?"), "there is no database `nowhere`"),
        (with("?schema", "?options=-cdefault_transaction_read_only%3Don&schema"), "is read-only"),
        (with("?schema", "?sslmode=verify-full&schema"), "TLS"),
    ];
    for (address, expected) in table {
        let said = refusal(&address).await;
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains(secret) && !said.contains("wrong-secret"), "{said}");
    }
    let client = schema.client().await;
    let latin = format!("latin_{}", schema.name);
    let made = format!("CREATE DATABASE {latin} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
    client.batch_execute(&made).await.unwrap();
    let said = refusal(&with("/postgres?", &format!("/{latin}?"))).await;
    assert!(said.contains("has the encoding LATIN1; it must be UTF8: `createdb --encoding=UTF8"), "{said}");
    // There is no such server here: this one says so of itself.
    let number: i64 = client.query_one("SELECT current_setting('server_version_num')::bigint", &[]).await.unwrap().get(0);
    let old = Proxy::start_saying(&schema, number.to_be_bytes().into(), 130_022_i64.to_be_bytes().into()).await;
    let said = refusal(&old.address).await;
    assert!(said.contains("the server of `postgres://turnwright:***@") && said.contains("it must be 14 or newer"), "{said}");
    // The encoding, then whether it recovers: a column of one byte.
    let recovers = |is: u8| [b"UTF8".as_slice(), &[0, 0, 0, 1, is]].concat();
    let standby = Proxy::start_saying(&schema, recovers(0), recovers(1)).await;
    let said = refusal(&standby.address).await;
    assert!(said.contains("is a standby, which only reads; name the primary"), "{said}");
    assert!(!said.contains(secret), "{said}");
    client.batch_execute(&format!("UPDATE {}.installation SET version = 1000, oldest = 1000", schema.name)).await.unwrap();
    let newer = PostgresStore::open(&schema.options()).await.unwrap_err();
    assert!(matches!(&newer, StoreError::Newer { what } if what.contains("version 1000, this build reads up to 8")), "{newer}");
    let other = format!("{}x", schema.name);
    client.batch_execute(&format!("CREATE SCHEMA {other}; CREATE TABLE {other}.mine ()")).await.unwrap();
    let said = refusal(&schema.address().replace(&schema.name, &other)).await;
    assert!(said.contains("is another application's; name another with `?schema=NAME`"), "{said}");
}

/// One of everything.
async fn fill(store: &dyn Storage) {
    for id in ["a", "b"] {
        store.create(ConversationRecord { title: Some(format!("About {id}")), ..record(id) }).await.unwrap();
        for at in 1..=5 {
            let mut append = append(id, at, &format!("the {at}th word of {id}"));
            let answer = Idempotent { fingerprint: "f".to_owned(), answer: "{}".to_owned() };
            append.side = vec![SideRecord::Idempotent { key: format!("{id}{at}"), record: answer }];
            store.append(append).await.unwrap();
        }
    }
    store.delete(&"b".parse().unwrap()).await.unwrap();
    store.put_document("server", Document { key: "k".to_owned(), body: "{}".to_owned() }).await.unwrap();
    let draft = store.begin_artifact(1).await.unwrap();
    store.put_piece(draft, 0, b"first".to_vec()).await.unwrap();
    let artifact = Artifact {
        id: "art_1".to_owned(),
        owner: UserId::local(),
        name: "a.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: 5,
        created_at_ms: 1,
    };
    store.finish_artifact(draft, artifact).await.unwrap();
    store.use_artifact(&UserId::local(), "art_1", &"a".parse().unwrap()).await.unwrap();
    assert!(store.claim("docs", "here", 0, 1_000).await.unwrap());
    let place = turnwright_core::ContextPlace::Lines { first: 1, last: 2 };
    let piece = Piece { place, heading: "Guide".to_owned(), text: "Rotating keys".to_owned() };
    let file = IndexedFile { path: "x.md".to_owned(), bytes: 9, modified_ns: -1, hash: "1".to_owned(), skipped: None };
    store.put("docs", file, vec![piece]).await.unwrap();
    let lacking = store.without_vector("docs", "p/m", 9).await.unwrap();
    store.put_vectors("docs", "p/m", vec![(lacking[0].id, vec![1.0, -2.0, 3.0])]).await.unwrap();
}

async fn is_whole(store: &dyn Storage) {
    let id = "a".parse().unwrap();
    assert_eq!(store.entries(&id, Seq::FIRST, 99).await.unwrap().len(), 5);
    let owner = UserId::local();
    let found = store.search(Search { owner: &owner, words: "3th word", after: None, limit: 9 }).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(store.documents("moving").await.unwrap(), []);
    assert_eq!(store.piece(&owner, "art_1", 0).await.unwrap().as_deref(), Some(b"first".as_slice()));
    let names = ["docs".to_owned()];
    assert_eq!(store.by_words(&names, "how to rotate a key", 5).await.unwrap().len(), 1);
    assert_eq!(store.by_vector(&names, "p/m", &[1.0, -2.0, 3.0], 5).await.unwrap().len(), 1);
    // What is made from here on takes no number that is taken.
    store.create(record("new")).await.unwrap();
    store.append(append("new", 1, "x")).await.unwrap();
    store.delete(&"new".parse().unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_moved_either_way_backed_up_and_found_sound() {
    let Some(schema) = Schema::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| SqliteOptions::at_file(folder.path().join(name));
    let (first, postgres, back) =
        (Location::Sqlite(at("first.db")), Location::Postgres(Box::new(schema.options())), Location::Sqlite(at("back.db")));
    let store = SqliteStore::open(&at("first.db")).unwrap();
    fill(&store).await;
    let refused = turnwright_store::move_all(&first, &postgres).await.unwrap_err().to_string();
    assert!(refused.contains("is in use; end every turnwright"), "{refused}");
    store.close().await;

    let moved = turnwright_store::move_all(&first, &postgres).await.unwrap();
    assert!(moved.rows.contains(&("entry", 5)) && moved.rows.contains(&("knowledge_vector", 1)), "{moved:?}");
    // The end of it may have been told to nobody.
    assert_eq!(turnwright_store::move_all(&first, &postgres).await.unwrap(), moved);
    let store = PostgresStore::open(&schema.options()).await.unwrap();
    is_whole(&store).await;
    // While it is in use.
    turnwright_store::backup(&postgres, &folder.path().join("backup.db")).await.unwrap();
    store.close().await;
    is_whole(&SqliteStore::open(&at("backup.db")).unwrap()).await;

    turnwright_store::move_all(&postgres, &back).await.unwrap();
    is_whole(&SqliteStore::open(&at("back.db")).unwrap()).await;
    let client = schema.client().await;
    let nothing =
        Location::Postgres(Box::new(PostgresOptions::parse(&schema.address().replace(&schema.name, "nosuch")).unwrap()));
    for refused in [
        turnwright_store::check(&nothing).await.unwrap_err(),
        turnwright_store::backup(&nothing, &folder.path().join("nothing.db")).await.unwrap_err(),
        turnwright_store::move_all(&nothing, &Location::Sqlite(at("nothing.db"))).await.unwrap_err(),
    ] {
        assert!(refused.to_string().starts_with("there is nothing in the schema `nosuch` of the database `"), "{refused}");
    }
    let made = client.query_one("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'nosuch')", &[]).await.unwrap();
    assert!(!made.get::<_, bool>(0) && !folder.path().join("nothing.db").exists());
    for location in [&first, &postgres, &back] {
        assert_eq!(turnwright_store::check(location).await.unwrap().1, Vec::<String>::new());
    }
    client.batch_execute(&format!("DELETE FROM {}.entry WHERE place & 4294967295 = 3", schema.name)).await.unwrap();
    let wrong = turnwright_store::check(&postgres).await.unwrap().1;
    assert_eq!(wrong, ["conversation `a` should have 5 entries and has 2 in a row"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_cannot_be_read_is_found_by_a_check_and_hides_no_other() {
    let Some(schema) = Schema::new() else { return };
    let store = PostgresStore::open(&schema.options()).await.unwrap();
    for name in ["a", "b", "c"] {
        store.create(record(name)).await.unwrap();
    }
    let damage = format!(
        "SET search_path TO {}; UPDATE conversation SET settings = '{{broken' WHERE id = 'c';
        INSERT INTO open_turn (conversation, turn, is_parked, kept_by) SELECT key, 1, 0,
            CASE WHEN id = 'a' THEN 'xx' ELSE 'servers' END FROM conversation WHERE id <> 'c'",
        schema.name
    );
    schema.client().await.batch_execute(&damage).await.unwrap();

    let owner = UserId::local();
    for limit in [1, 2, 9] {
        let page = Page { owner: &owner, after: None, limit, only_pinned: false };
        let listed: Vec<_> = store.conversations(page).await.unwrap().into_iter().map(|record| record.id.to_string()).collect();
        assert_eq!(listed, ["b", "a"][..limit.min(2)]);
        let page = Page { only_pinned: true, ..page };
        assert_eq!(store.conversations(page).await.unwrap(), Vec::new());
    }
    // Those with an open turn stay anyhow, and what may be pinned.
    assert_eq!(store.remove_old(u64::MAX / 4, u64::MAX / 4, 9).await.unwrap(), Vec::new());
    let found = store.search(Search { owner: &owner, words: "a", after: None, limit: 9 }).await.unwrap();
    let open = store.open_turns().await.unwrap();
    store.close().await;
    assert_eq!(found.into_iter().map(|found| found.conversation.id.to_string()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(open.into_iter().map(|open| open.conversation.to_string()).collect::<Vec<_>>(), ["b"]);
    let (_, wrong) = turnwright_store::check(&Location::Postgres(Box::new(schema.options()))).await.unwrap();
    let expected = [
        "the settings of conversation `c` cannot be read: key must be a string at line 1 column 2",
        "the open turn of conversation `a` cannot be read: `xx` takes no turn up",
    ];
    assert_eq!(wrong, expected);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_has_its_name_once_it_is_whole_and_takes_the_place_of_one_that_broke_off() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let store = SqliteStore::open(&SqliteOptions::at_file(path("first.db"))).unwrap();
    fill(&store).await;
    let first = Location::Sqlite(SqliteOptions::at_file(path("first.db")));
    // One that was killed: half a file, its log, and a lock that nobody holds.
    std::fs::write(path("backup.db.part"), "half").unwrap();
    std::fs::write(path("backup.db.part-wal"), "the rest").unwrap();
    std::fs::create_dir(path("backup.db.part.locks")).unwrap();
    std::fs::write(path("backup.db.part.locks").join(format!("{}.lock", "0a".repeat(16))), "").unwrap();
    std::fs::write(path("backup.db.part.locks").join("made-as-part"), "").unwrap();
    turnwright_store::backup(&first, &path("backup.db")).await.unwrap();
    let mode = std::fs::metadata(path("backup.db")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let names = || std::fs::read_dir(folder.path()).unwrap().map(|found| found.unwrap().file_name().into_string().unwrap());
    assert_eq!(names().filter(|name| name.starts_with("backup.db")).collect::<Vec<_>>(), ["backup.db"], "nothing beside it");
    is_whole(&SqliteStore::open(&SqliteOptions::at_file(path("backup.db"))).unwrap()).await;

    // While one is written the same is not begun a second time, and nothing has its name.
    let at_work = SqliteStore::open(&SqliteOptions::at_file(path("second.db.part"))).unwrap();
    std::fs::write(path("second.db.part.locks").join("made-as-part"), "").unwrap();
    let refused = turnwright_store::backup(&first, &path("second.db")).await.unwrap_err().to_string();
    assert!(refused.contains("another process writes"), "{refused}");
    assert!(path("second.db.part").exists() && !path("second.db").exists());
    at_work.close().await;
    // One that fails leaves nothing.
    let nothing = Location::Sqlite(SqliteOptions::at_file(path("missing/first.db")));
    turnwright_store::backup(&nothing, &path("third.db")).await.unwrap_err();
    assert_eq!(names().filter(|name| name.starts_with("third.db")).count(), 0);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_breaks_off_goes_on_when_it_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteOptions::at_file(folder.path().join("first.db"));
    let store = SqliteStore::open(&file).unwrap();
    fill(&store).await;
    store.close().await;
    let first = Location::Sqlite(file);
    let mut broken_off = 0;
    for pieces in [8, 40, 64, 96] {
        let Some(schema) = Schema::new() else { return };
        let proxy = Proxy::start(&schema, Lost::Answer).await;
        proxy.left.store(pieces, Ordering::SeqCst);
        let far = Location::Postgres(Box::new(PostgresOptions::parse(&proxy.address).unwrap()));
        let broken = async {
            while proxy.left.load(Ordering::SeqCst) >= 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        // Whoever moves is gone in the middle.
        let is_broken = tokio::select! {
            biased;
            () = broken => true,
            moved = turnwright_store::move_all(&first, &far) => moved.is_err(),
        };
        if !is_broken {
            break;
        }
        broken_off += 1;
        let near = Location::Postgres(Box::new(schema.options()));
        // The lease of whoever is gone has not run out.
        let moved = turnwright_store::move_all(&first, &near).await.unwrap();
        assert!(moved.rows.contains(&("entry", 5)), "{moved:?}");
        let store = PostgresStore::open(&schema.options()).await.unwrap();
        is_whole(&store).await;
        store.close().await;
    }
    assert!(broken_off >= 3, "{broken_off}");
}
