//! Documents in the same database.

use async_trait::async_trait;
use tokio_postgres::Row;
use turnwright_engine::{Document, Documents, StoreError};

use super::{PostgresStore, clean, get};

const DOCUMENT: &str = "SELECT key, body FROM document WHERE kind = $1 AND key = $2";
const DOCUMENTS: &str = "SELECT key, body FROM document WHERE kind = $1 ORDER BY key";
const UPPER_DOCUMENTS: &str = "SELECT key, body FROM document WHERE kind = $1 AND key NOT LIKE '%/%/%' ORDER BY key";
const PUT: &str = "INSERT INTO document (kind, key, body) VALUES ($1, $2, $3)
    ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body";
const ADD: &str = "INSERT INTO document (kind, key, body) VALUES ($1, $2, $3) ON CONFLICT (kind, key) DO NOTHING";
const REMOVE: &str = "DELETE FROM document WHERE kind = $1 AND key = $2";

#[async_trait]
impl Documents for PostgresStore {
    async fn document(&self, kind: &str, key: &str) -> Result<Option<Document>, StoreError> {
        self.pool.ask(DOCUMENT, &[&clean(kind), &clean(key)]).await?.rows.first().map(document).transpose()
    }

    async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        self.pool.ask(DOCUMENTS, &[&clean(kind)]).await?.rows.iter().map(document).collect()
    }

    async fn upper_documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        self.pool.ask(UPPER_DOCUMENTS, &[&clean(kind)]).await?.rows.iter().map(document).collect()
    }

    async fn put_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.pool.ask(PUT, &[&clean(kind), &clean(&document.key), &clean(&document.body)]).await.map(drop)
    }

    async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.pool.ask(ADD, &[&clean(kind), &clean(&document.key), &clean(&document.body)]).await.map(drop)
    }

    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.pool.ask(REMOVE, &[&clean(kind), &clean(key)]).await.map(drop)
    }
}

fn document(row: &Row) -> Result<Document, StoreError> {
    Ok(Document { key: get(row, 0)?, body: get(row, 1)? })
}
