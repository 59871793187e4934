//! Whether a store on PostgreSQL says the truth of what it can do, and that it does what every store must while its connections
//! break.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::proxy::{Lost, Proxy};
use crate::server::Schema;
use async_trait::async_trait;
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{Store, StoreError};
use turnwright_store::{PostgresOptions, PostgresStore, Storage};

use crate::conformance::fixtures::{append, record, said};

/// Stores each of which reaches the database by a way of its own that breaks again and again.
struct Breaking {
    schema: Schema,
    lost: Lost,
    opened: AtomicU64,
}

impl Breaking {
    fn new(lost: Lost) -> Option<Self> {
        Some(Self { schema: Schema::new()?, lost, opened: AtomicU64::new(0) })
    }

    async fn store(&self) -> Arc<PostgresStore> {
        let proxy = Proxy::start(&self.schema, self.lost).await;
        let store = PostgresStore::open(&PostgresOptions::parse(&proxy.address).unwrap()).await.unwrap();
        // More requests than a new connection and its first statement take, and a number that has nothing in common with any
        // rhythm of theirs.
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        proxy.again.store(EVERY - 1, Ordering::SeqCst);
        proxy.left.store(i64::try_from(number * 5).unwrap() % EVERY, Ordering::SeqCst);
        Arc::new(store)
    }
}

const EVERY: i64 = 13;

#[async_trait]
impl crate::conformance::Backend for Breaking {
    async fn open(&self) -> Arc<dyn Store> {
        self.store().await
    }
}

#[async_trait]
impl crate::conformance::Full for Breaking {
    async fn open_all(&self) -> Arc<dyn Storage> {
        self.store().await
    }

    fn loses_answers(&self) -> bool {
        self.lost == Lost::Answer
    }
}

mod while_statements_are_lost {
    use super::{Breaking, Lost};

    conformance!(Breaking::new(Lost::Statement));
    full_conformance!(Breaking::new(Lost::Statement));
}

mod while_answers_are_lost {
    use super::{Breaking, Lost};

    conformance!(Breaking::new(Lost::Answer));
    full_conformance!(Breaking::new(Lost::Answer));
}

/// Waits until a store says of itself what is expected.
async fn until(store: &PostgresStore, expected: impl Fn(&Result<(), StoreError>) -> bool) -> Result<(), StoreError> {
    let waiting = async {
        loop {
            let said = store.can_store().await;
            if expected(&said) {
                return said;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.expect("the store to say so")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_says_that_it_cannot_store_while_its_database_is_full_only_reads_or_is_gone() {
    let Some(mut schema) = Schema::new() else { return };
    let client = schema.client().await;
    // A database of its own, whose settings are nobody else's.
    let database = format!("own_{}", schema.name);
    client.batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
    schema.server = schema.server.replace("/postgres", &format!("/{database}"));
    let proxy = Proxy::start(&schema, Lost::Statement).await;
    let store = PostgresStore::open(&PostgresOptions::parse(&proxy.address).unwrap()).await.unwrap();
    store.create(record("a", 1)).await.unwrap();
    assert_eq!(store.can_store().await, Ok(()));

    let (own, name) = (schema.client().await, &schema.name);
    let full = format!(
        "CREATE FUNCTION {name}.no_room() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER no_room BEFORE INSERT ON {name}.entry EXECUTE FUNCTION {name}.no_room();
         CREATE TRIGGER no_room BEFORE INSERT ON {name}.document EXECUTE FUNCTION {name}.no_room()"
    );
    own.batch_execute(&full).await.unwrap();
    let refused = store.append(append("a", 1, vec![said("one")])).await.unwrap_err();
    assert!(refused.to_string().contains("has no space left"), "{refused}");
    assert_eq!(store.can_store().await, Err(refused.clone()));
    // Each second it is looked again.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(store.can_store().await, Err(refused));
    own.batch_execute(&format!("DROP FUNCTION {name}.no_room CASCADE")).await.unwrap();
    until(&store, Result::is_ok).await.unwrap();
    store.append(append("a", 1, vec![said("one")])).await.unwrap();
    drop(own);

    let set = async |value: &str| {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname =";
        let sql = format!("ALTER DATABASE {database} SET default_transaction_read_only = {value}; {end} '{database}'");
        client.batch_execute(&sql).await.unwrap();
    };
    set("on").await;
    let only_reads = until(&store, Result::is_err).await.unwrap_err().to_string();
    assert!(only_reads.contains("read-only"), "{only_reads}");
    set("off").await;
    until(&store, Result::is_ok).await.unwrap();

    // Nobody answers any more.
    let left = Arc::clone(&proxy.left);
    proxy.again.store(0, Ordering::SeqCst);
    left.store(0, Ordering::SeqCst);
    let gone = until(&store, Result::is_err).await.unwrap_err().to_string();
    assert!(gone.contains("cannot be reached") && !gone.contains("tw-test-password"), "{gone}");
    left.store(-1, Ordering::SeqCst);
    until(&store, Result::is_ok).await.unwrap();
    store.append(append("a", 2, vec![said("two")])).await.unwrap();
    store.close().await;
    assert!(store.can_store().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn room_is_taken_back_for_longer_than_statements_may_take_and_from_the_tables_behind_one_that_fails() {
    let Some(schema) = Schema::new() else { return };
    let (client, name, limit) = (schema.client().await, &schema.name, Duration::from_secs(1));
    let store = PostgresStore::open(&schema.options().statement_limit(limit)).await.unwrap();
    client.batch_execute(&format!("BEGIN; LOCK TABLE {name}.said IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    // Within one transaction what others do is seen as it was at the first look.
    let looks = schema.client().await;
    let holds = async {
        let waits = "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE query = 'VACUUM said' AND wait_event_type = 'Lock')";
        let waiting = async {
            while !looks.query_one(waits, &[]).await.unwrap().get::<_, bool>(0) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waits = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        tokio::time::sleep(limit * 3).await;
        client.batch_execute("COMMIT").await.unwrap();
        waits.expect("it waits for the table");
    };
    let (taken, ()) = tokio::join!(store.erase(), holds);
    taken.unwrap();

    client.batch_execute(&format!("DROP TABLE {name}.said CASCADE")).await.unwrap();
    let failed = store.erase().await.unwrap_err();
    assert!(failed.to_string().contains("said"), "{failed}");
    let last = format!(
        "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = '{name}' AND relname = 'knowledge_piece' AND vacuum_count = 2"
    );
    let done = async {
        while client.query_one(&last, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done).await.expect("the last table's room is taken back too");
    store.close().await;
}
