//! The store on PostgreSQL does what every store must.

use std::sync::Arc;

use crate::server::Schema;
use async_trait::async_trait;
use turnwright_engine::Store;
use turnwright_store::{PostgresStore, Storage};

#[async_trait]
impl crate::conformance::Backend for Schema {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(PostgresStore::open(&self.options()).await.unwrap())
    }
}

#[async_trait]
impl crate::conformance::Full for Schema {
    async fn open_all(&self) -> Arc<dyn Storage> {
        Arc::new(PostgresStore::open(&self.options()).await.unwrap())
    }
}

conformance!(Schema::new());
full_conformance!(Schema::new());
