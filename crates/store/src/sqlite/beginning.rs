//! What conversations begin with that others have too: stored once, and named by each that shows it.
//!
//! A copy names the conversation of which it is one, under whose key the entries lie, and up to which place they are its own too; what
//! it says itself lies under its own key, behind that place. Where the other is deleted, what copies show of it goes on under a
//! number below zero, which no conversation has; what none shows any more is removed with the last that did.

use rusqlite::{Connection, OptionalExtension, Row};

use super::statements as sql;

/// The entries that a conversation shows and does not have itself.
#[derive(Debug, Clone, Copy)]
struct BorrowedEntries {
    /// The key under which they lie.
    key: i64,
    /// The place of the last of them.
    through: i64,
}

impl BorrowedEntries {
    fn of(connection: &Connection, conversation: i64) -> rusqlite::Result<Option<Self>> {
        let read = |row: &Row<'_>| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?));
        let named = connection.prepare_cached(sql::BEGINNING)?.query_row((conversation,), read).optional()?.flatten();
        Ok(named.map(|(key, through)| Self { key, through }))
    }

    /// Removes what no conversation begins with, where it lies under a number of its own.
    fn release(self, connection: &Connection) -> rusqlite::Result<()> {
        if self.key < 0 {
            let shown = shared_through(connection, self.key)?.unwrap_or_default();
            connection.prepare_cached(sql::DELETE_ENTRIES_AFTER)?.execute((self.key, shown))?;
        }
        Ok(())
    }
}

/// Lets a conversation that has no entries begin with those of another through a place.
pub(super) fn share(connection: &Connection, source: i64, through: i64, conversation: i64) -> rusqlite::Result<()> {
    let own = BorrowedEntries::of(connection, source)?;
    let (key, shared) = match own {
        Some(own) => (own.key, own.through.min(through)),
        None => (source, through),
    };
    connection.prepare_cached(sql::BEGIN_AS)?.execute((conversation, key, shared))?;
    // The rest is the source's own, behind what that shares itself.
    if shared < through {
        connection.prepare_cached(sql::COPY_ENTRIES)?.execute((source, conversation, shared.saturating_add(1), through))?;
    }
    Ok(())
}

/// Removes the entries of a conversation whose row is removed, but for what others show of them.
pub(super) fn forget(connection: &Connection, conversation: i64) -> rusqlite::Result<Forgotten> {
    let beginning = BorrowedEntries::of(connection, conversation)?;
    if let Some(through) = shared_through(connection, conversation)? {
        let lowest: Option<i64> = connection.prepare_cached(sql::LOWEST_BEGINNING)?.query_row((), |row| row.get(0))?;
        let free = lowest.unwrap_or_default().min(0).saturating_sub(1);
        connection.prepare_cached(sql::KEEP_ENTRIES)?.execute((conversation, free, through))?;
        connection.prepare_cached(sql::BEGIN_OTHERWISE)?.execute((conversation, free))?;
    }
    connection.prepare_cached(sql::DELETE_ENTRIES)?.execute((conversation,))?;
    Ok(Forgotten(beginning))
}

/// What is to be released once the row of a conversation is gone.
#[must_use]
pub(super) struct Forgotten(Option<BorrowedEntries>);

impl Forgotten {
    pub(super) fn release(self, connection: &Connection) -> rusqlite::Result<()> {
        self.0.map_or(Ok(()), |beginning| beginning.release(connection))
    }
}

/// How far the entries of a key are what conversations begin with; nothing where none does.
fn shared_through(connection: &Connection, key: i64) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(sql::SHARED_THROUGH)?.query_row((key,), |row| row.get(0))
}
