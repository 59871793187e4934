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
const CHANGE: &str = "UPDATE document SET body = $4 WHERE kind = $1 AND key = $2 AND body = $3";
const REMOVE_SAME: &str = "DELETE FROM document WHERE kind = $1 AND key = $2 AND body = $3";
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

    async fn change_document(&self, kind: &str, of: &Document, body: Option<String>) -> Result<(), StoreError> {
        let (own, key, before) = (clean(kind), clean(&of.key), clean(&of.body));
        let answer = match &body {
            Some(body) => self.pool.ask(CHANGE, &[&own, &key, &before, &clean(body)]).await?,
            None => self.pool.ask(REMOVE_SAME, &[&own, &key, &before]).await?,
        };
        if answer.count > 0 {
            return Ok(());
        }
        // Where it was asked twice, the first may have done it.
        let now = self.document(kind, &of.key).await?.map(|now| now.body);
        let is_done = answer.is_resent && now.as_deref() == body.as_deref().map(clean).as_deref();
        if is_done { Ok(()) } else { Err(of.altered()) }
    }

    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.pool.ask(REMOVE, &[&clean(kind), &clean(key)]).await.map(drop)
    }
}

fn document(row: &Row) -> Result<Document, StoreError> {
    Ok(Document { key: get(row, 0)?, body: get(row, 1)? })
}
