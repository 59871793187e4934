//! Nodes of two versions on one database: the newer one brings it up, once, below the statements of the older one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::server::Schema;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use turnwright_core::{ContentBlock, Entry, Seq, TurnSettings, UserId, UserMessage};
use turnwright_engine::{Append, ConversationRecord, SideRecord, Store, StoreError};
use turnwright_store::{Location, PostgresStore, SqliteOptions};
use turnwright_testkit::record;

fn entry(text: &str) -> Entry {
    let settings = TurnSettings::new("practice/words".parse().unwrap());
    Entry::User(UserMessage { content: vec![ContentBlock::text(text)], settings })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_bring_a_database_up_once() {
    let Some(schema) = Schema::new() else { return };
    let (name, client) = (&schema.name, schema.client().await);
    schema.make_first_version(&client).await;
    // What every change of the mark was.
    let watched = format!(
        "CREATE SCHEMA {name}_seen; CREATE TABLE {name}_seen.mark (version BIGINT);
         CREATE FUNCTION {name}_seen.note() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO {name}_seen.mark VALUES (NEW.version); RETURN NEW; END $$;
         CREATE TRIGGER note AFTER UPDATE ON {name}.installation FOR EACH ROW EXECUTE FUNCTION {name}_seen.note()"
    );
    client.batch_execute(&watched).await.unwrap();
    let opening = (0..6).map(|_| async { PostgresStore::open(&schema.options()).await.unwrap() });
    let stores = futures_util::future::join_all(opening).await;
    let noted = client.query(&format!("SELECT version FROM {name}_seen.mark"), &[]).await.unwrap();
    assert_eq!(noted.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>(), [8], "one of them did it, once");
    for (store, number) in stores.iter().zip(0..) {
        let id = format!("c{number}").parse().unwrap();
        let made = ConversationRecord { id, ..record("a") };
        store.create(made).await.unwrap();
    }
    for store in stores {
        store.close().await;
    }
}

fn begins(id: &str) -> Append {
    Append { conversation: id.parse().unwrap(), at: Seq::FIRST, entries: vec![entry("x")], at_ms: 5, side: Vec::new() }
}

/// The statements of the first version, as it sent them.
const APPEND: &str = "SELECT verdict, place, key
    FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
const ENTRIES: &str = "SELECT page.place & 4294967295, page.version, page.at_ms, page.body
    FROM (SELECT key FROM conversation WHERE id = $1) AS found
    LEFT JOIN LATERAL (SELECT place, version, at_ms, body FROM entry
        WHERE place BETWEEN (found.key << 32) + $2 AND (found.key << 32) + 4294967295
        ORDER BY place LIMIT $3) AS page ON true
    ORDER BY page.place";
const OPEN_TURNS: &str = "SELECT conversation.id, open_turn.turn, open_turn.is_parked, open_turn.kept_by, conversation.owner
    FROM open_turn JOIN conversation ON conversation.key = open_turn.conversation ORDER BY open_turn.conversation";
const RUNNING_TURNS: &str = "SELECT count(*) FROM open_turn JOIN conversation ON conversation.key = open_turn.conversation
    WHERE conversation.owner = $1 AND open_turn.is_parked = 0";

/// A connection of a node of the first version, with what it has prepared.
struct Older {
    client: Client,
    append: Statement,
    entries: Statement,
    open_turns: Statement,
    running_turns: Statement,
}

/// A side record as a row: its kind, its texts and its numbers.
type Side<'a> = (&'a str, [Option<&'a str>; 3], [Option<i64>; 2]);

/// What an append of the first version writes besides its entry.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    Opens,
    GoesOn,
    Ends,
}

impl Older {
    async fn connect(schema: &Schema) -> Self {
        let client = schema.client().await;
        client.batch_execute(&format!("SET search_path = \"{}\"", schema.name)).await.unwrap();
        let [append, entries, open_turns, running_turns] =
            futures_util::future::join_all([APPEND, ENTRIES, OPEN_TURNS, RUNNING_TURNS].map(|sql| client.prepare(sql)))
                .await
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
                .unwrap()
                .try_into()
                .unwrap_or_else(|_| panic!("four"));
        Self { client, append, entries, open_turns, running_turns }
    }

    /// Appends an entry; the first makes its conversation. Says what the database says to it.
    async fn append(&self, id: &str, at: i64, turn: Turn) -> i64 {
        let entry = entry(&format!("number {at}"));
        let (body, version) = (entry.encode().unwrap(), i16::from(entry.version()));
        let mut side: Vec<Side<'_>> = Vec::new();
        if at == 1 {
            side.push(("create", [Some("local"), None, Some("{}")], [Some(1), Some(1)]));
        }
        match turn {
            Turn::Opens => side.push(("open", [Some("servers"), None, None], [Some(at), Some(0)])),
            Turn::GoesOn => {}
            Turn::Ends => side.push(("over", [None; 3], [None; 2])),
        }
        let of = vec![1_i64; side.len()];
        let kinds: Vec<&str> = side.iter().map(|(kind, _, _)| *kind).collect();
        let text = |column: usize| side.iter().map(|(_, texts, _)| texts[column]).collect::<Vec<_>>();
        let number = |column: usize| side.iter().map(|(_, _, numbers)| numbers[column]).collect::<Vec<_>>();
        let (ids, ats, five, one, marks) = (vec![id], vec![at], vec![5_i64], vec![1_i64], vec![at * 7]);
        let (versions, bodies) = (vec![version], vec![body.as_str()]);
        let (texts, numbers) = ([0, 1, 2].map(text), [0, 1].map(number));
        let values: [&(dyn ToSql + Sync); 15] = [
            &ids,
            &ats,
            &five,
            &one,
            &marks,
            &versions,
            &five,
            &bodies,
            &of,
            &kinds,
            &texts[0],
            &texts[1],
            &texts[2],
            &numbers[0],
            &numbers[1],
        ];
        self.client.query_one(&self.append, &values).await.unwrap().get(0)
    }

    async fn count(&self, id: &str) -> usize {
        self.client.query(&self.entries, &[&id, &1_i64, &i64::MAX]).await.unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_node_has_prepared_goes_on_while_a_newer_one_brings_the_database_up() {
    let Some(schema) = Schema::new() else { return };
    let client = schema.client().await;
    schema.make_first_version(&client).await;
    let (older, second) = (Older::connect(&schema).await, Arc::new(Older::connect(&schema).await));
    // Each has run often enough to be planned for good.
    for at in 1..=10 {
        assert_eq!(older.append("before", at, if at == 1 { Turn::Opens } else { Turn::GoesOn }).await, 0);
        assert_eq!(older.count("before").await, usize::try_from(at).unwrap());
        assert_eq!(older.client.query(&older.open_turns, &[]).await.unwrap().len(), 1);
        assert_eq!(older.client.query_one(&older.running_turns, &[&"local"]).await.unwrap().get::<_, i64>(0), 1);
    }

    // Somebody reads the index of open turns and takes time, so that the newer node stands still in the middle.
    let mut reader = schema.client().await;
    let reading = reader.transaction().await.unwrap();
    reading.query(&format!("SELECT 1 FROM {}.open_turn", schema.name), &[]).await.unwrap();
    let options = schema.options();
    #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
    let opening = tokio::spawn(async move { PostgresStore::open(&options).await });
    let waits =
        "SELECT count(*) FROM pg_locks WHERE relation = $1::text::regclass AND mode = 'AccessExclusiveLock' AND NOT granted";
    let table = format!("{}.open_turn", schema.name);
    while client.query_one(waits, &[&table]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Meanwhile the older one appends: what does not touch that table passes, what does waits with the newer one.
    for at in 11..=20 {
        assert_eq!(older.append("before", at, Turn::GoesOn).await, 0);
    }
    let (is_over, shared) = (Arc::new(AtomicBool::new(false)), Arc::clone(&second));
    let told = Arc::clone(&is_over);
    #[expect(clippy::disallowed_methods, reason = "it is awaited below")]
    let appending = tokio::spawn(async move {
        let mut at = 1;
        // On and on, over the moment at which the function is another one.
        while !told.load(Ordering::SeqCst) || at < 50 {
            let turn = if at % 2 == 1 { Turn::Opens } else { Turn::Ends };
            assert_eq!(shared.append("during", at, turn).await, 0, "entry {at}");
            at += 1;
        }
        at - 1
    });
    reading.commit().await.unwrap();
    let newer = opening.await.unwrap().unwrap();
    is_over.store(true, Ordering::SeqCst);
    let during = appending.await.unwrap();

    // Both go on, on the connections that they had.
    assert_eq!(older.append("after", 1, Turn::Opens).await, 0);
    assert_eq!(older.append("before", 21, Turn::GoesOn).await, 0);
    let counts = [older.count("before").await, older.count("during").await, older.count("after").await];
    assert_eq!(counts, [21, usize::try_from(during).unwrap(), 1]);
    for (id, count) in ["before", "during", "after"].into_iter().zip(counts) {
        let read = newer.entries(&id.parse().unwrap(), Seq::FIRST, usize::MAX).await.unwrap();
        let said: Vec<String> = read.iter().map(|stored| stored.entry.encode().unwrap()).collect();
        let expected: Vec<String> = (1..=count).map(|at| entry(&format!("number {at}")).encode().unwrap()).collect();
        assert_eq!(said, expected, "{id}");
    }
    // What the older one opened counts for the newer one, and the other way round.
    let open = older.client.query(&older.open_turns, &[]).await.unwrap().len();
    assert_eq!(newer.open_turns().await.unwrap().len(), open);
    newer.create(ConversationRecord { id: "new".parse().unwrap(), ..record("a") }).await.unwrap();
    let begin = |most: usize| {
        let side = vec![SideRecord::RunningTurns { owner: UserId::local(), most }];
        newer.append(Append { side, ..begins("new") })
    };
    assert_eq!(begin(open).await, Err(StoreError::TooManyTurns));
    assert_eq!(begin(open + 1).await.map(|stored| stored.len()), Ok(1));
    assert_eq!(older.count("new").await, 1);
    newer.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_the_nodes_that_start_together_keeps_a_copy_of_what_was_before() {
    let Some(schema) = Schema::new() else { return };
    let client = schema.client().await;
    schema.make_first_version(&client).await;
    let older = Older::connect(&schema).await;
    for at in 1..=450 {
        assert_eq!(older.append("a", at, if at == 1 { Turn::Opens } else { Turn::GoesOn }).await, 0);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |node: i32| folder.path().join(format!("node-{node}"));
    let opening = (0..4).map(|node| {
        let options = schema.options().keeping_copies(path(node), u64::MAX);
        async move { PostgresStore::open(&options).await.unwrap() }
    });
    let stores = futures_util::future::join_all(opening).await;
    stores[0].append(Append { at: Seq::new(451).unwrap(), ..begins("a") }).await.unwrap();
    for store in stores {
        store.close().await;
    }
    let kept: Vec<_> = (0..4).filter_map(|node| std::fs::read_dir(path(node)).ok()).flatten().collect();
    let names: Vec<_> = kept.iter().map(|found| found.as_ref().unwrap().file_name()).collect();
    assert_eq!(names, ["before-v8.db"], "one, and nothing beside it");
    let copy = SqliteOptions::at_file(kept[0].as_ref().unwrap().path());
    assert_eq!(turnwright_store::check(&Location::Sqlite(copy.clone())).await.unwrap().1, Vec::<String>::new());
    // It is a database as any other, and becomes one on PostgreSQL again.
    let Some(restored) = Schema::new() else { return };
    let there = Location::Postgres(Box::new(restored.options()));
    let moved = turnwright_store::move_all(&Location::Sqlite(copy), &there).await.unwrap();
    assert!(moved.rows.contains(&("entry", 450)) && moved.rows.contains(&("open_turn", 1)), "{moved:?}");
}

#[tokio::test]
async fn a_database_that_is_too_large_for_a_copy_or_none_can_be_written_of_is_told() {
    let Some(schema) = Schema::new() else { return };
    let client = schema.client().await;
    schema.make_first_version(&client).await;
    let folder = tempfile::tempdir().unwrap();
    // Where a file is in the way nothing is brought up.
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let refused = PostgresStore::open(&schema.options().keeping_copies(&in_the_way, u64::MAX)).await.unwrap_err().to_string();
    assert!(refused.contains("file"), "{refused}");
    let version = async || {
        let query = format!("SELECT version FROM {}.installation", schema.name);
        client.query_one(&query, &[]).await.unwrap().get::<_, i64>(0)
    };
    assert_eq!(version().await, 1);
    let store = PostgresStore::open(&schema.options().keeping_copies(folder.path().join("data"), 8_192)).await.unwrap();
    assert_eq!((version().await, folder.path().join("data").exists()), (8, false));
    store.close().await;
}
