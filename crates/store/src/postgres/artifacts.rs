//! Files in the same database, in pieces.

use async_trait::async_trait;
use turnwright_core::{ConversationId, UserId};
use turnwright_engine::StoreError;
use turnwright_engine::artifacts::{Artifact, Artifacts, Draft, Removal};

use super::{PostgresStore, clean, get, milliseconds};
use crate::columns::{integer, new_artifact_key};

const BEGIN: &str = "INSERT INTO artifact (key, owner, name, media_type, bytes, created_at_ms) VALUES ($1, '', '', '', 0, $2)
    ON CONFLICT (key) DO NOTHING";
/// Nothing, where the draft was swept meanwhile.
const PUT_PIECE: &str = "INSERT INTO artifact_piece (place, body) SELECT (key << 32) + $2, $3 FROM artifact
    WHERE key = $1 AND id IS NULL FOR SHARE ON CONFLICT (place) DO UPDATE SET body = excluded.body";
/// What became of it: whether the draft is the artifact now, and whether there is one. Of two who finish the same at once the
/// second waits at the index and finds it there.
const FINISH: &str = "UPDATE artifact SET id = $2, owner = $3, name = $4, media_type = $5, bytes = $6
    WHERE key = $1 AND (id IS NULL OR id = $2)
    AND NOT EXISTS (SELECT 1 FROM artifact AS other WHERE other.id = $2 AND other.key <> $1)";
const RENEW: &str = "UPDATE artifact SET created_at_ms =
    greatest(created_at_ms, (SELECT draft.created_at_ms FROM artifact AS draft WHERE draft.key = $1)) WHERE id = $2 AND key <> $1";
const DROP_DRAFT: &str = "WITH pieces AS (DELETE FROM artifact_piece
        WHERE place BETWEEN $1::bigint << 32 AND ($1::bigint << 32) + 4294967295)
    DELETE FROM artifact WHERE key = $1 AND id IS NULL";
const ARTIFACT: &str = "SELECT name, media_type, bytes, created_at_ms FROM artifact WHERE id = $1 AND owner = $2";
const PIECE: &str = "SELECT artifact_piece.body FROM artifact JOIN artifact_piece
    ON artifact_piece.place = (artifact.key << 32) + $3 WHERE artifact.id = $1 AND artifact.owner = $2";
const USE: &str = "INSERT INTO artifact_use (conversation, artifact)
    SELECT conversation.key, artifact.key FROM conversation CROSS JOIN artifact
    WHERE conversation.id = $1 AND artifact.id = $2 AND artifact.owner = $3 AND conversation.owner = $3
    FOR KEY SHARE OF conversation, artifact
    ON CONFLICT (conversation, artifact) DO UPDATE SET artifact = excluded.artifact";
/// The rows are locked before it is looked who holds them.
const REMOVE_UNUSED: &str = "WITH old AS MATERIALIZED (SELECT key FROM artifact WHERE id = $1 AND owner = $2
        AND NOT EXISTS (SELECT 1 FROM artifact_use WHERE artifact_use.artifact = artifact.key) FOR UPDATE),
    pieces AS (DELETE FROM artifact_piece USING old WHERE place BETWEEN old.key << 32 AND (old.key << 32) + 4294967295)
    DELETE FROM artifact USING old WHERE artifact.key = old.key";
const SWEEP: &str = "WITH old AS MATERIALIZED (SELECT key FROM artifact WHERE created_at_ms < $1
        AND NOT EXISTS (SELECT 1 FROM artifact_use WHERE artifact_use.artifact = artifact.key) FOR UPDATE SKIP LOCKED),
    pieces AS (DELETE FROM artifact_piece USING old WHERE place BETWEEN old.key << 32 AND (old.key << 32) + 4294967295)
    DELETE FROM artifact USING old WHERE artifact.key = old.key";

#[async_trait]
impl Artifacts for PostgresStore {
    async fn begin_artifact(&self, at_ms: u64) -> Result<Draft, StoreError> {
        // One that is taken is one that was sent twice, or one of two thousand million.
        let key = new_artifact_key()?;
        let answer = self.pool.ask(BEGIN, &[&key, &integer(at_ms)]).await?;
        if answer.count == 0 && !answer.is_resent {
            return Err(StoreError::Unusable { reason: "an upload cannot begin just now; try again".to_owned() });
        }
        Ok(Draft(key))
    }

    async fn put_piece(&self, draft: Draft, index: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.pool.ask(PUT_PIECE, &[&draft.0, &i64::from(index), &bytes]).await.map(drop)
    }

    async fn finish_artifact(&self, draft: Draft, artifact: Artifact) -> Result<(), StoreError> {
        let (name, media_type) = (clean(&artifact.name), clean(&artifact.media_type));
        let bytes = integer(artifact.bytes);
        let answer =
            self.pool.ask(FINISH, &[&draft.0, &artifact.id, &artifact.owner.as_str(), &name, &media_type, &bytes]).await?;
        if answer.count > 0 {
            return Ok(());
        }
        // It is there already: it waits for a message as long as one that came just now.
        if self.pool.ask(RENEW, &[&draft.0, &artifact.id]).await?.count == 0 {
            return Err(StoreError::Missing { what: "upload any more: it took too long".to_owned() });
        }
        self.drop_draft(draft).await
    }

    async fn drop_draft(&self, draft: Draft) -> Result<(), StoreError> {
        self.pool.ask(DROP_DRAFT, &[&draft.0]).await.map(drop)
    }

    async fn artifact(&self, owner: &UserId, id: &str) -> Result<Option<Artifact>, StoreError> {
        let answer = self.pool.ask(ARTIFACT, &[&clean(id), &owner.as_str()]).await?;
        let found = |row| {
            Ok(Artifact {
                id: id.to_owned(),
                owner: owner.clone(),
                name: get(row, 0)?,
                media_type: get(row, 1)?,
                bytes: milliseconds(get(row, 2)?),
                created_at_ms: milliseconds(get(row, 3)?),
            })
        };
        answer.rows.first().map(found).transpose()
    }

    async fn piece(&self, owner: &UserId, id: &str, index: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let answer = self.pool.ask(PIECE, &[&clean(id), &owner.as_str(), &i64::from(index)]).await?;
        answer.rows.first().map(|row| get(row, 0)).transpose()
    }

    async fn use_artifact(&self, owner: &UserId, id: &str, conversation: &ConversationId) -> Result<(), StoreError> {
        let answer = self.pool.ask(USE, &[&conversation.as_str(), &clean(id), &owner.as_str()]).await?;
        if answer.count == 0 { Err(StoreError::Gone { conversation: conversation.clone() }) } else { Ok(()) }
    }

    async fn remove_artifact(&self, owner: &UserId, id: &str) -> Result<Removal, StoreError> {
        if self.artifact(owner, id).await?.is_none() {
            return Ok(Removal::Missing);
        }
        self.pool.ask(REMOVE_UNUSED, &[&clean(id), &owner.as_str()]).await?;
        Ok(if self.artifact(owner, id).await?.is_none() { Removal::Removed } else { Removal::InUse })
    }

    async fn sweep_artifacts(&self, before_ms: u64) -> Result<(), StoreError> {
        self.pool.ask(SWEEP, &[&integer(before_ms)]).await.map(drop)
    }
}
