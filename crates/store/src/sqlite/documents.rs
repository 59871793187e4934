//! Documents in the same database, by the same writer.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row};
use turnwright_engine::{Document, Documents, StoreError};

use super::SqliteStore;
use super::readers::Unread;
use super::statements as sql;
use super::write::{Verdict, Write};

/// One change to the documents.
#[derive(Debug)]
pub(super) enum Change {
    Put { kind: String, document: Document },
    Add { kind: String, document: Document },
    Replace { kind: String, of: Document, body: Option<String> },
    Remove { kind: String, key: String },
}

impl Change {
    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Put { document, .. } | Self::Add { document, .. } => document.body.len(),
            Self::Replace { of, body, .. } => of.body.len().saturating_add(body.as_ref().map_or(0, String::len)),
            Self::Remove { .. } => 0,
        }
    }

    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        match self {
            Self::Put { kind, document } => {
                connection.prepare_cached(sql::PUT_DOCUMENT)?.execute((kind, &document.key, &document.body))
            }
            Self::Add { kind, document } => {
                connection.prepare_cached(sql::ADD_DOCUMENT)?.execute((kind, &document.key, &document.body))
            }
            Self::Replace { kind, of, body } => {
                let changed = match body {
                    Some(body) => connection.prepare_cached(sql::CHANGE_DOCUMENT)?.execute((kind, &of.key, &of.body, body))?,
                    None => connection.prepare_cached(sql::REMOVE_DOCUMENT)?.execute((kind, &of.key, &of.body))?,
                };
                return Ok(if changed == 0 { Err(of.altered()) } else { Ok(()) });
            }
            Self::Remove { kind, key } => connection.prepare_cached(sql::DELETE_DOCUMENT)?.execute((kind, key)),
        }
        .map(|_| Ok(()))
    }
}

#[async_trait]
impl Documents for SqliteStore {
    async fn document(&self, kind: &str, key: &str) -> Result<Option<Document>, StoreError> {
        let (kind, key) = (kind.to_owned(), key.to_owned());
        self.readers
            .read_here(move |connection| {
                let mut statement = connection.prepare_cached(sql::DOCUMENT)?;
                Ok::<_, Unread>(statement.query_row((kind, key), document).optional()?)
            })
            .await
    }

    async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        let kind = kind.to_owned();
        self.readers.read(move |connection| list(connection, sql::DOCUMENTS, &kind)).await
    }

    async fn upper_documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        let kind = kind.to_owned();
        self.readers.read(move |connection| list(connection, sql::UPPER_DOCUMENTS, &kind)).await
    }

    async fn put_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.writer.write(Write::Document(Change::Put { kind: kind.to_owned(), document })).await
    }

    async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.writer.write(Write::Document(Change::Add { kind: kind.to_owned(), document })).await
    }

    async fn change_document(&self, kind: &str, of: &Document, body: Option<String>) -> Result<(), StoreError> {
        self.writer.write(Write::Document(Change::Replace { kind: kind.to_owned(), of: of.clone(), body })).await
    }

    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.writer.write(Write::Document(Change::Remove { kind: kind.to_owned(), key: key.to_owned() })).await
    }
}

fn list(connection: &Connection, sql: &str, kind: &str) -> Result<Vec<Document>, Unread> {
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map((kind,), document)?.collect::<Result<_, _>>()?;
    Ok(found)
}

fn document(row: &Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document { key: row.get(0)?, body: row.get(1)? })
}
