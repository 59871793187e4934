//! The store on PostgreSQL does what every store must while its connections break.

#![cfg(test)]

#[macro_use]
mod conformance;
#[path = "server/proxy.rs"]
mod proxy;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use proxy::{Lost, Proxy};
use server::Schema;
use turnwright_engine::Store;
use turnwright_store::{PostgresOptions, PostgresStore, Storage};

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
impl conformance::Backend for Breaking {
    async fn open(&self) -> Arc<dyn Store> {
        self.store().await
    }
}

#[async_trait]
impl conformance::Full for Breaking {
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
