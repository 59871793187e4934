//! Removing for good.

use async_trait::async_trait;
use turnwright_core::ConversationId;
use turnwright_engine::upkeep::{RESENT, TIME_AT, Upkeep, written_time};
use turnwright_engine::{CONVERSATION_DOCUMENTS, StoreError};

use super::link::Patience;
use super::pool::Pool;
use super::read::rows_at_most;
use super::{PostgresStore, get, said, word};
use crate::columns::integer;

/// Whether there was one that is meant. The row is locked in the order in which the function locks, and looked at then.
pub(super) const FORGET: &str = "WITH held AS MATERIALIZED (SELECT lock_ledger() AS ledger),
    same AS MATERIALIZED (SELECT conversation.id, held.ledger FROM held CROSS JOIN conversation
        WHERE conversation.id = $1 AND created_at_ms = $3 AND owner = $4 FOR UPDATE OF conversation)
    SELECT forget_conversation(id, $2) FROM same";
/// The same where its title and settings are these.
pub(super) const FORGET_UNCHANGED: &str = "WITH held AS MATERIALIZED (SELECT lock_ledger() AS ledger),
    same AS MATERIALIZED (SELECT conversation.id, held.ledger FROM held CROSS JOIN conversation
        WHERE conversation.id = $1 AND created_at_ms = $3 AND owner = $4
        AND title IS NOT DISTINCT FROM $5 AND settings = $6 FOR UPDATE OF conversation)
    SELECT forget_conversation(id, $2) FROM same";
/// Those that nobody needs any more: looks at every conversation, now and then. What was made after one that is young is young too,
/// whatever clock it was made by. Where the settings cannot be read, nobody knows that it is not pinned.
const OLD: &str = "SELECT id FROM conversation WHERE updated_at_ms < $1 AND created_at_ms < $1
    AND key < coalesce((SELECT min(key) FROM conversation WHERE created_at_ms BETWEEN $1 AND $3), 9223372036854775807)
    AND NOT is_pinned(settings)
    AND NOT EXISTS (SELECT 1 FROM open_turn WHERE open_turn.conversation = conversation.key)
    ORDER BY id LIMIT $2";
/// Each row is locked before it is looked at for the last time, so what was written to meanwhile stays.
const FORGET_OLD: &str = "WITH old AS MATERIALIZED (SELECT id FROM conversation WHERE id = ANY ($2)
        AND updated_at_ms < $1 AND created_at_ms < $1
        AND NOT is_pinned(settings)
        AND NOT EXISTS (SELECT 1 FROM open_turn WHERE open_turn.conversation = conversation.key)
        ORDER BY id FOR UPDATE SKIP LOCKED)
    SELECT id FROM old WHERE forget_conversation(id, $3)";
const GONE: &str = "SELECT id FROM unnest($1::text[]) AS wanted (id)
    WHERE NOT EXISTS (SELECT 1 FROM conversation WHERE conversation.id = wanted.id) ORDER BY id";
const FORGET_KEYS: &str =
    "DELETE FROM idempotency WHERE key >= $1 AND key < $2 AND substr(key, $3, length($4::text)) < $4::text";
/// Takes the room of what was deleted back, table by table. It is written over as it is used again.
const VACUUM: [&str; 8] = [
    "VACUUM conversation",
    "VACUUM entry",
    "VACUUM said",
    "VACUUM idempotency",
    "VACUUM document",
    "VACUUM artifact",
    "VACUUM artifact_piece",
    "VACUUM knowledge_piece",
];

/// It takes as long as the tables are large.
const WITHOUT_LIMIT: &str = "SET statement_timeout = 0";
/// Held while room is taken back: a second attempt would only wait for the first, with a connection of its own.
pub(super) type Room = tokio::sync::Mutex<()>;

/// Takes back what it can of each table; the first failure, where there was one.
async fn take_room_back(pool: &Pool) -> Result<(), StoreError> {
    // Apart: the others have their limit, and do not wait for this.
    let mut link = pool.take_apart(WITHOUT_LIMIT, &[]).await?;
    let mut first = None;
    for statement in VACUUM {
        if !link.is_fit() {
            link = pool.take_apart(WITHOUT_LIMIT, &[]).await?;
        }
        link.wait(Patience::Unlimited);
        if let Err(failed) = link.batch(statement).await {
            let error = said(pool.options(), failed);
            tracing::warn!(%error, statement, "the room of what was deleted could not be taken back");
            first.get_or_insert(error);
        }
    }
    first.map_or(Ok(()), Err)
}

#[async_trait]
impl Upkeep for PostgresStore {
    async fn has_old(&self, before_ms: u64, now_ms: u64) -> Result<bool, StoreError> {
        let old = self.pool.ask(OLD, &[&integer(before_ms), &rows_at_most(1), &integer(now_ms)]).await?;
        Ok(!old.rows.is_empty())
    }

    async fn remove_old(&self, before_ms: u64, now_ms: u64, limit: usize) -> Result<Vec<ConversationId>, StoreError> {
        let (before, now) = (integer(before_ms), integer(now_ms));
        let old = self.pool.ask(OLD, &[&before, &rows_at_most(limit), &now]).await?;
        let old = old.rows.iter().map(|row| get::<String>(row, 0)).collect::<Result<Vec<_>, _>>()?;
        if old.is_empty() {
            return Ok(Vec::new());
        }
        let mut answer = self.pool.ask(FORGET_OLD, &[&before, &old, &CONVERSATION_DOCUMENTS]).await?;
        if answer.is_resent {
            // The answer that named them may be lost.
            answer = self.pool.ask(GONE, &[&old]).await?;
        }
        answer.rows.iter().map(|row| word(row, 0, "a conversation's record")).collect()
    }

    async fn forget_requests(&self, before_ms: u64) -> Result<(), StoreError> {
        let [from, before] = RESENT;
        self.pool.ask(FORGET_KEYS, &[&from, &before, &TIME_AT, &written_time(before_ms)]).await.map(drop)
    }

    async fn erase(&self) -> Result<(), StoreError> {
        let _alone = self.room.lock().await;
        take_room_back(&self.pool).await
    }
}
