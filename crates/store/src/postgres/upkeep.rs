//! Removing for good.

use async_trait::async_trait;
use turnwright_core::ConversationId;
use turnwright_engine::upkeep::Upkeep;
use turnwright_engine::{CONVERSATION_DOCUMENTS, StoreError};

use super::read::rows_at_most;
use super::{PostgresStore, word};
use crate::columns::integer;

/// Whether there was one.
pub(super) const FORGET: &str = "SELECT forget_conversation($1, $2)";
/// Those that nobody needs any more: looks at every conversation, now and then. Each row is locked before it is looked at for
/// the last time, so what was written to meanwhile stays.
const FORGET_OLD: &str = "WITH old AS MATERIALIZED (SELECT id FROM conversation WHERE updated_at_ms < $1
        AND (settings::json ->> 'pinned') IS DISTINCT FROM 'true'
        AND NOT EXISTS (SELECT 1 FROM open_turn WHERE open_turn.conversation = conversation.key)
        ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
    SELECT id FROM old WHERE forget_conversation(id, $3)";
/// Takes the room of what was deleted back. It is written over as it is used again.
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

#[async_trait]
impl Upkeep for PostgresStore {
    async fn remove_old(&self, before_ms: u64, limit: usize) -> Result<Vec<ConversationId>, StoreError> {
        let answer = self.pool.ask(FORGET_OLD, &[&integer(before_ms), &rows_at_most(limit), &CONVERSATION_DOCUMENTS]).await?;
        answer.rows.iter().map(|row| word(row, 0, "a conversation's record")).collect()
    }

    async fn erase(&self) -> Result<(), StoreError> {
        for statement in VACUUM {
            self.pool.ask(statement, &[]).await?;
        }
        Ok(())
    }
}
