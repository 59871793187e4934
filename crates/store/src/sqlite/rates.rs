//! What may happen only so often, in the same database, by the same writer.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension};
use turnwright_engine::rates::{Admission, Rate, Rates};
use turnwright_engine::{Clock, StoreError, SystemClock};

use super::SqliteStore;
use super::readers::Unread;
use super::statements as sql;
use super::write::{Verdict, Write};
use crate::rates::{counted, text};

/// Takes the place of what was counted, where nobody else counted meanwhile.
#[derive(Debug)]
pub(super) struct Replace {
    name: String,
    before: Option<String>,
    after: String,
}

impl Replace {
    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        self.before.as_ref().map_or(0, String::len).saturating_add(self.after.len())
    }

    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        let Self { name, before, after } = self;
        let replaced = connection.prepare_cached(sql::REPLACE_RATE)?.execute((name, after, before))?;
        Ok(if replaced == 0 { Err(StoreError::Taken { what: name.clone() }) } else { Ok(()) })
    }
}

#[async_trait]
impl Rates for SqliteStore {
    async fn admit(&self, name: &str, rate: Rate) -> Result<Admission, StoreError> {
        // Whoever is too late finds one more counted: that ends with the rate.
        loop {
            let read = name.to_owned();
            let before: Option<String> = self
                .readers
                .read_here(move |connection| {
                    let mut statement = connection.prepare_cached(sql::RATE)?;
                    Ok::<_, Unread>(statement.query_row((read,), |row| row.get(0)).optional()?)
                })
                .await?;
            let mut counted = counted(before.as_deref());
            // All who use the file are on one machine.
            let admission = counted.admit(SystemClock.now_ms(), rate);
            if admission != Admission::Counted {
                return Ok(admission);
            }
            let replace = Replace { name: name.to_owned(), before, after: text(&counted)? };
            match self.writer.write(Write::Rate(replace)).await {
                Ok(()) => return Ok(admission),
                Err(StoreError::Taken { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
