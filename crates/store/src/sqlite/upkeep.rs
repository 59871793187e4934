//! Removing for good.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rusqlite::Connection;
use turnwright_core::ConversationId;
use turnwright_engine::StoreError;
use turnwright_engine::upkeep::{RESENT, TIME_AT, Upkeep, written_time};

use super::SqliteStore;
use super::statements as sql;
use super::write::{Verdict, Write, delete};
use crate::columns::integer;

/// Conversations to remove, and, once it is done, those that were.
#[derive(Debug, Clone)]
pub(super) struct Removal {
    before_ms: u64,
    now_ms: u64,
    limit: usize,
    removed: Arc<Mutex<Vec<ConversationId>>>,
}

impl Removal {
    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        let mut old = connection.prepare_cached(sql::OLD_CONVERSATIONS)?;
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let names: Vec<String> = old
            .query_map((integer(self.before_ms), limit, integer(self.now_ms)), |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut removed = Vec::new();
        for id in names.into_iter().filter_map(|name| name.parse::<ConversationId>().ok()) {
            if delete(connection, &id)?.is_ok() {
                removed.push(id);
            }
        }
        *self.removed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = removed;
        Ok(Ok(()))
    }
}

pub(super) fn forget_requests(connection: &Connection, before_ms: u64) -> rusqlite::Result<()> {
    let [from, before] = RESENT;
    let forgets = (from, before, TIME_AT, written_time(before_ms));
    connection.prepare_cached(sql::FORGET_KEYS)?.execute(forgets).map(drop)
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn has_old(&self, before_ms: u64, now_ms: u64) -> Result<bool, StoreError> {
        let of = (integer(before_ms), i64::MAX, integer(now_ms));
        let has_old = move |connection: &Connection| {
            let mut old = connection.prepare_cached(sql::OLD_CONVERSATIONS)?;
            let mut rows = old.query(of)?;
            while let Some(row) = rows.next()? {
                if row.get::<_, String>(0)?.parse::<ConversationId>().is_ok() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        self.readers.read(has_old).await
    }

    async fn remove_old(&self, before_ms: u64, now_ms: u64, limit: usize) -> Result<Vec<ConversationId>, StoreError> {
        let removal = Removal { before_ms, now_ms, limit, removed: Arc::default() };
        self.writer.write(Write::RemoveOld(removal.clone())).await?;
        Ok(std::mem::take(&mut *removal.removed.lock().unwrap_or_else(std::sync::PoisonError::into_inner)))
    }

    async fn forget_requests(&self, before_ms: u64) -> Result<(), StoreError> {
        self.writer.write(Write::ForgetRequests { before_ms }).await
    }

    async fn erase(&self) -> Result<(), StoreError> {
        self.writer.erase().await
    }
}
