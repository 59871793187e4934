//! The store on SQLite does what every store must.

#![cfg(test)]

#[macro_use]
mod conformance;

use std::sync::Arc;

use async_trait::async_trait;
use turnwright_engine::Store;
use turnwright_store::{SqliteOptions, SqliteStore, Storage};

struct Directory(tempfile::TempDir);

#[async_trait]
impl conformance::Backend for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&SqliteOptions::in_directory(self.0.path())).unwrap())
    }
}

#[async_trait]
impl conformance::Full for Directory {
    async fn open_all(&self) -> Arc<dyn Storage> {
        Arc::new(SqliteStore::open(&SqliteOptions::in_directory(self.0.path())).unwrap())
    }
}

conformance!(Some(Directory(tempfile::tempdir().unwrap())));
full_conformance!(Some(Directory(tempfile::tempdir().unwrap())));
