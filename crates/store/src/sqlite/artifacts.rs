//! Files in the same database, in pieces, by the same writer.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use turnwright_core::{ConversationId, UserId};
use turnwright_engine::StoreError;
use turnwright_engine::artifacts::{Artifact, Artifacts, Draft, Removal};

use super::SqliteStore;
use super::readers::Unread;
use super::statements as sql;
use super::write::{Verdict, Write};
use crate::columns::{integer, new_artifact_key};

/// One change to the artifacts.
#[derive(Debug)]
pub(super) enum Change {
    Begin { key: i64, at_ms: u64 },
    Piece { key: i64, index: u32, bytes: Vec<u8> },
    Finish { key: i64, artifact: Artifact },
    Drop { key: i64 },
    Use { owner: UserId, id: String, conversation: ConversationId },
    Remove { owner: UserId, id: String },
    Sweep { before_ms: u64 },
}

impl Change {
    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Piece { bytes, .. } => bytes.len(),
            Self::Begin { .. }
            | Self::Finish { .. }
            | Self::Drop { .. }
            | Self::Use { .. }
            | Self::Remove { .. }
            | Self::Sweep { .. } => 0,
        }
    }

    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        let exists = |id: &str| connection.prepare_cached(sql::ARTIFACT_KEY)?.exists((id,));
        match self {
            Self::Begin { key, at_ms } => {
                connection.prepare_cached(sql::BEGIN_ARTIFACT)?.execute((key, integer(*at_ms)))?;
            }
            Self::Piece { key, index, bytes } => {
                // One that took so long that it was swept is not begun again by its next piece.
                connection.prepare_cached(sql::PUT_PIECE)?.execute((key, index, bytes))?;
            }
            Self::Finish { key, artifact } if exists(&artifact.id)? => {
                connection.prepare_cached(sql::RENEW_ARTIFACT)?.execute((key, &artifact.id))?;
                remove(connection, *key)?;
            }
            Self::Finish { key, artifact } => {
                let row = params![
                    key,
                    artifact.id,
                    artifact.owner.as_str(),
                    artifact.name,
                    artifact.media_type,
                    integer(artifact.bytes),
                ];
                if connection.prepare_cached(sql::FINISH_ARTIFACT)?.execute(row)? == 0 {
                    return Ok(Err(StoreError::Missing { what: "upload any more: it took too long".to_owned() }));
                }
            }
            Self::Drop { key } => remove(connection, *key)?,
            Self::Use { owner, id, conversation } => {
                let row = (conversation.as_str(), id, owner.as_str());
                if connection.prepare_cached(sql::USE_ARTIFACT)?.execute(row)? == 0 {
                    return Ok(Err(StoreError::Gone { conversation: conversation.clone() }));
                }
            }
            Self::Remove { owner, id } => {
                let key = connection.prepare_cached(sql::UNUSED_ARTIFACT)?.query_row((id, owner.as_str()), |row| row.get(0));
                if let Some(key) = key.optional()? {
                    remove(connection, key)?;
                }
            }
            Self::Sweep { before_ms } => {
                let mut old = connection.prepare_cached(sql::OLD_ARTIFACTS)?;
                let keys: Vec<i64> = old.query_map((integer(*before_ms),), |row| row.get(0))?.collect::<Result<_, _>>()?;
                keys.into_iter().try_for_each(|key| remove(connection, key))?;
            }
        }
        Ok(Ok(()))
    }
}

/// Removes what a conversation alone holds, and that it held anything.
pub(super) fn forget_conversation(connection: &Connection, conversation: i64) -> rusqlite::Result<()> {
    let mut alone = connection.prepare_cached(sql::ARTIFACTS_OF_ONE)?;
    let keys: Vec<i64> = alone.query_map((conversation,), |row| row.get(0))?.collect::<Result<_, _>>()?;
    keys.into_iter().try_for_each(|key| remove(connection, key))?;
    connection.prepare_cached(sql::DELETE_USES)?.execute((conversation,))?;
    Ok(())
}

fn remove(connection: &Connection, key: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(sql::DELETE_PIECES)?.execute((key,))?;
    connection.prepare_cached(sql::DELETE_ARTIFACT)?.execute((key,))?;
    Ok(())
}

#[async_trait]
impl Artifacts for SqliteStore {
    async fn begin_artifact(&self, at_ms: u64) -> Result<Draft, StoreError> {
        let key = new_artifact_key()?;
        self.writer.write(Write::Artifact(Change::Begin { key, at_ms })).await?;
        Ok(Draft(key))
    }

    async fn put_piece(&self, draft: Draft, index: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.writer.write(Write::Artifact(Change::Piece { key: draft.0, index, bytes })).await
    }

    async fn finish_artifact(&self, draft: Draft, artifact: Artifact) -> Result<(), StoreError> {
        self.writer.write(Write::Artifact(Change::Finish { key: draft.0, artifact })).await
    }

    async fn drop_draft(&self, draft: Draft) -> Result<(), StoreError> {
        self.writer.write(Write::Artifact(Change::Drop { key: draft.0 })).await
    }

    async fn artifact(&self, owner: &UserId, id: &str) -> Result<Option<Artifact>, StoreError> {
        let (owner, id) = (owner.clone(), id.to_owned());
        let read = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql::ARTIFACT)?;
            let found = statement.query_row((&id, owner.as_str()), |row| artifact(row, &id, &owner));
            Ok::<_, Unread>(found.optional()?)
        };
        self.readers.read_here(read).await
    }

    async fn piece(&self, owner: &UserId, id: &str, index: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let (owner, id) = (owner.clone(), id.to_owned());
        let read = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql::PIECE)?;
            Ok::<_, Unread>(statement.query_row((id, owner.as_str(), index), |row| row.get(0)).optional()?)
        };
        self.readers.read(read).await
    }

    async fn use_artifact(&self, owner: &UserId, id: &str, conversation: &ConversationId) -> Result<(), StoreError> {
        let change = Change::Use { owner: owner.clone(), id: id.to_owned(), conversation: conversation.clone() };
        self.writer.write(Write::Artifact(change)).await
    }

    async fn remove_artifact(&self, owner: &UserId, id: &str) -> Result<Removal, StoreError> {
        if self.artifact(owner, id).await?.is_none() {
            return Ok(Removal::Missing);
        }
        self.writer.write(Write::Artifact(Change::Remove { owner: owner.clone(), id: id.to_owned() })).await?;
        Ok(if self.artifact(owner, id).await?.is_none() { Removal::Removed } else { Removal::InUse })
    }

    async fn sweep_artifacts(&self, before_ms: u64) -> Result<(), StoreError> {
        self.writer.write(Write::Artifact(Change::Sweep { before_ms })).await
    }
}

fn artifact(row: &Row<'_>, id: &str, owner: &UserId) -> rusqlite::Result<Artifact> {
    let number = |column| row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default());
    Ok(Artifact {
        id: id.to_owned(),
        owner: owner.clone(),
        name: row.get(0)?,
        media_type: row.get(1)?,
        bytes: number(2)?,
        created_at_ms: number(3)?,
    })
}
