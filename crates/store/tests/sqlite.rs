//! The store on SQLite does what every store must.

#![cfg(test)]

#[macro_use]
mod conformance;

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_engine::Store;
use turnwright_store::{SqliteOptions, SqliteStore};

struct Directory(tempfile::TempDir);

#[async_trait]
impl conformance::Backend for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&SqliteOptions::in_directory(self.0.path())).unwrap())
    }
}

conformance!(Directory(tempfile::tempdir().unwrap()));
