//! The search over what was said.
//!
//! An append writes no words: that would cost it more than all else that it does. They are taken in by whoever searches, before
//! it looks, and by servers now and then; how far each journal is in stands in the same transaction as the words.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension};
use turnwright_core::{Entry, MessageId, Seq};
use turnwright_engine::StoreError;
use turnwright_engine::search::{Excerpt, Found, Search, Texts, hides, said};

use super::SqliteStore;
use super::read::{entry_at, readable, record};
use super::readers::Unread;
use super::statements as sql;
use super::write::Write;
use crate::columns::integer;
use crate::skipped::listed;
use crate::words::{excerpt, is_called, query, unaccented, words_of};

/// How much is taken in at once: the writer has others to serve.
const MOST_BYTES: usize = 128 * 1024;
const MOST_ENTRIES: i64 = 500;
/// How many journals that are behind are looked up at once.
const MOST_BEHIND: i64 = 200;

/// The words of a part of a journal.
#[derive(Debug)]
pub(super) struct Words {
    /// The journal, and the place up to which it must be in.
    of: Behind,
    /// The place up to which it is then.
    next: i64,
    /// The words of each entry that has some; none for one that was hidden.
    rows: Vec<(i64, Option<String>)>,
}

impl Words {
    pub(super) fn bytes(&self) -> usize {
        self.rows.iter().map(|(_, text)| text.as_ref().map_or(0, String::len)).sum()
    }

    /// Takes them in, where nobody else was quicker and the journal is still there.
    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Behind { conversation, from, id, created_at_ms, .. } = &self.of;
        let until = (conversation, from, self.next, id, created_at_ms);
        if connection.prepare_cached(sql::SAID_UNTIL)?.execute(until)? == 0 {
            return Ok(());
        }
        for (place, text) in &self.rows {
            match text {
                Some(text) => connection.prepare_cached(sql::SAY)?.execute((place, text))?,
                None => connection.prepare_cached(sql::UNSAY)?.execute((place,))?,
            };
        }
        Ok(())
    }
}

/// A conversation is deleted: its words go.
pub(super) fn forget(connection: &Connection, conversation: i64) -> rusqlite::Result<()> {
    let next: Option<i64> =
        connection.prepare_cached(sql::SAID_UP_TO)?.query_row((conversation,), |row| row.get(0)).optional()?;
    if next.is_some() {
        connection.prepare_cached(sql::UNSAY_ALL)?.execute((conversation,))?;
        connection.prepare_cached(sql::FORGET_SAID)?.execute((conversation,))?;
    }
    Ok(())
}

/// A journal that is not wholly in.
#[derive(Debug, Clone)]
struct Behind {
    conversation: i64,
    /// The first place that is not in.
    from: i64,
    /// The place after the last that there was when it was looked.
    until: i64,
    /// With the time, what tells it from another that takes its key once it is deleted.
    id: String,
    created_at_ms: i64,
}

impl SqliteStore {
    async fn behind(&self) -> Result<Vec<Behind>, StoreError> {
        let read = |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql::BEHIND)?;
            let rows = statement
                .query_map((MOST_BEHIND,), |row| {
                    let (conversation, from, until) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    Ok(Behind { conversation, from, until, id: row.get(3)?, created_at_ms: row.get(4)? })
                })?
                .collect::<Result<_, _>>()?;
            Ok::<_, Unread>(rows)
        };
        self.readers.read(read).await
    }

    /// The words that come next of a journal.
    async fn next_words(&self, behind: Behind) -> Result<Words, StoreError> {
        let read = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql::SAID_NEXT)?;
            let mut rows = statement.query((behind.conversation, behind.from, MOST_ENTRIES))?;
            let mut words = Words { next: behind.from, of: behind, rows: Vec::new() };
            while let Some(row) = rows.next()? {
                let place: i64 = row.get(0)?;
                words.next = (place & 0xFFFF_FFFF).saturating_add(1);
                // What this version cannot read has no words that it could find.
                if let Ok(entry) = entry_at(row) {
                    words.take(place, &entry);
                }
                if words.bytes() >= MOST_BYTES {
                    break;
                }
            }
            Ok::<_, Unread>(words)
        };
        self.readers.read(read).await
    }
}

impl Words {
    fn take(&mut self, place: i64, entry: &Entry) {
        if let Some(message) = hides(entry) {
            let hidden = self.of.conversation << 32 | integer(message.0.get());
            self.rows.retain(|(known, _)| *known != hidden);
            self.rows.push((hidden, None));
            return;
        }
        let text = said(entry);
        if !text.trim().is_empty() {
            self.rows.push((place, Some(unaccented(&text))));
        }
    }
}

#[async_trait]
impl Texts for SqliteStore {
    async fn search(&self, search: Search<'_>) -> Result<Vec<Found>, StoreError> {
        self.take_in().await?;
        let (owner, after, limit) = (search.owner.clone(), search.after.cloned(), search.limit);
        let words = words_of(search.words);
        let skipped = Arc::clone(&self.skipped);
        let read = move |connection: &Connection| {
            let instant = connection.unchecked_transaction()?;
            let mut places: HashMap<i64, i64> = HashMap::new();
            if let Some(query) = query(&words) {
                let mut hits = instant.prepare_cached(sql::SAID_BY)?;
                let mut rows = hits.query((query, owner.as_str()))?;
                while let Some(row) = rows.next()? {
                    places.insert(row.get(0)?, row.get(1)?);
                }
            }
            let (before, id) = after.as_ref().map_or((i64::MAX, ""), |place| (integer(place.updated_at_ms), place.id.as_str()));
            let mut found = Vec::new();
            let mut all = instant.prepare_cached(sql::CONVERSATIONS_WITH_KEYS)?;
            let mut rows = all.query((owner.as_str(), before, id))?;
            while found.len() < limit
                && let Some(row) = rows.next()?
            {
                let place = places.get(&row.get(6)?);
                let listed = record(row).and_then(|record| Ok(listed(record)?));
                let Some(conversation) = readable(&skipped, listed)? else { continue };
                let has_words = || is_called(conversation.title.as_deref(), conversation.id.as_str(), &words);
                if place.is_some() || has_words() {
                    let excerpt = place.map(|place| excerpt_at(&instant, *place, &words)).transpose()?.flatten();
                    found.push(Found { conversation, excerpt });
                }
            }
            Ok::<_, Unread>(found)
        };
        self.readers.read(read).await
    }

    async fn take_in(&self) -> Result<(), StoreError> {
        loop {
            let behind = self.behind().await?;
            let is_all = i64::try_from(behind.len()).is_ok_and(|count| count < MOST_BEHIND);
            for mut journal in behind {
                while journal.from < journal.until {
                    let words = self.next_words(journal.clone()).await?;
                    if words.next <= journal.from {
                        break;
                    }
                    journal.from = words.next;
                    self.writer.write(Write::Words(words)).await?;
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }
}

fn excerpt_at(connection: &Connection, place: i64, words: &[String]) -> Result<Option<Excerpt>, Unread> {
    let mut statement = connection.prepare_cached(sql::ENTRY_AT)?;
    let mut rows = statement.query((place,))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let seq = u64::try_from(place & 0xFFFF_FFFF).ok().and_then(Seq::new);
    let (Ok(entry), Some(seq)) = (entry_at(row), seq) else { return Ok(None) };
    Ok(Some(Excerpt { message: MessageId(seq), text: excerpt(&said(&entry), words) }))
}
