//! The search over what was said: as on SQLite, words are taken in by whoever searches, and no append writes them.

use std::collections::HashMap;

use async_trait::async_trait;
use turnwright_core::{Entry, MessageId, Seq};
use turnwright_engine::StoreError;
use turnwright_engine::search::{Excerpt, Found, Search, Texts, hides, said};

use super::read::{readable, record};
use super::words::{all_of, vector, words};
use super::{PostgresStore, get};
use crate::columns::integer;
use crate::skipped::listed;
use crate::words::{excerpt, is_called, phrases, words_of};

/// How much is taken in at once, in bytes and entries.
const MOST_BYTES: usize = 256 * 1024;
const MOST_ENTRIES: i64 = 500;
/// How many journals that are behind, and conversations, are looked up at once.
const MOST_BEHIND: i64 = 200;
const PAGE: i64 = 500;

/// The journals that are not wholly in: looks at every conversation, which no append does.
const BEHIND: &str = "SELECT conversation.key, coalesce(said_until.next_seq, 1), conversation.next_seq, conversation.id,
    conversation.created_at_ms FROM conversation
    LEFT JOIN said_until ON said_until.conversation = conversation.key
    WHERE conversation.next_seq > coalesce(said_until.next_seq, 1) ORDER BY conversation.key LIMIT $1";
const NEXT: &str = "SELECT place, version, body FROM entry
    WHERE place BETWEEN ($1::bigint << 32) + $2 AND ($1::bigint << 32) + 4294967295 ORDER BY place LIMIT $3";
const TAKE: &str = "SELECT take_words($1, $2, $3, $4, $5, $6, $7)";
/// The conversations with the words, each with the newest place that has them.
const SAID_BY: &str = "SELECT said.conversation, max(said.place) FROM said
    JOIN conversation ON conversation.key = said.conversation
    WHERE said.words @@ $1::text::tsquery AND conversation.owner = $2 GROUP BY said.conversation";
const OF_OWNER: &str = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner, key FROM conversation
    WHERE owner = $1 AND updated_at_ms <= $2 AND (updated_at_ms, id) < ($2, $3) ORDER BY updated_at_ms DESC, id DESC LIMIT $4";
const ENTRY_AT: &str = "SELECT version, body FROM entry WHERE place = $1";

/// A journal that is not wholly in.
#[derive(Debug)]
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

/// What a part of a journal says: the place up to which it goes, and the words of each entry, none where it was hidden.
#[derive(Debug, Default)]
struct Part {
    next: i64,
    bytes: usize,
    places: Vec<i64>,
    vectors: Vec<Option<String>>,
}

impl Part {
    fn take(&mut self, conversation: i64, place: i64, entry: &Entry) {
        let (place, vector) = if let Some(message) = hides(entry) {
            (conversation << 32 | integer(message.0.get()), None)
        } else {
            let text = said(entry);
            let words = words(&text);
            if words.is_empty() {
                return;
            }
            self.bytes = self.bytes.saturating_add(text.len());
            (place, Some(vector(&words)))
        };
        self.places.push(place);
        self.vectors.push(vector);
    }
}

impl PostgresStore {
    async fn behind(&self) -> Result<Vec<Behind>, StoreError> {
        let answer = self.pool.ask(BEHIND, &[&MOST_BEHIND]).await?;
        let read = |row: &tokio_postgres::Row| {
            let (conversation, from, until) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            Ok(Behind { conversation, from, until, id: get(row, 3)?, created_at_ms: get(row, 4)? })
        };
        answer.rows.iter().map(read).collect()
    }

    async fn next_part(&self, journal: &Behind) -> Result<Part, StoreError> {
        let rows = self.pool.ask(NEXT, &[&journal.conversation, &journal.from, &MOST_ENTRIES]).await?.rows;
        let mut part = Part { next: journal.from, ..Part::default() };
        for row in &rows {
            let place: i64 = get(row, 0)?;
            part.next = (place & 0xFFFF_FFFF).saturating_add(1);
            // What this version cannot read has no words that it could find.
            if let Some(entry) = readable(row, 1)? {
                part.take(journal.conversation, place, &entry);
            }
            if part.bytes >= MOST_BYTES {
                break;
            }
        }
        Ok(part)
    }

    async fn excerpt_at(&self, place: i64, words: &[String]) -> Result<Option<Excerpt>, StoreError> {
        let rows = self.pool.ask(ENTRY_AT, &[&place]).await?.rows;
        let entry = rows.first().map(|row| readable(row, 0)).transpose()?.flatten();
        let seq = u64::try_from(place & 0xFFFF_FFFF).ok().and_then(Seq::new);
        Ok(entry.zip(seq).map(|(entry, seq)| Excerpt { message: MessageId(seq), text: excerpt(&said(&entry), words) }))
    }

    /// The newest place of each conversation that has the words.
    async fn said_by(&self, owner: &str, words: &[String]) -> Result<HashMap<i64, i64>, StoreError> {
        let Some(query) = all_of(&phrases(words)) else { return Ok(HashMap::new()) };
        let rows = self.pool.ask(SAID_BY, &[&query, &owner]).await?.rows;
        rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect()
    }
}

#[async_trait]
impl Texts for PostgresStore {
    async fn search(&self, search: Search<'_>) -> Result<Vec<Found>, StoreError> {
        self.take_in().await?;
        let owner = search.owner.as_str();
        let wanted = words_of(search.words);
        let places = self.said_by(owner, &wanted).await?;
        let (mut before, mut id) =
            search.after.map_or((i64::MAX, String::new()), |place| (integer(place.updated_at_ms), place.id.to_string()));
        let mut found = Vec::new();
        loop {
            let rows = self.pool.ask(OF_OWNER, &[&owner, &before, &id, &PAGE]).await?.rows;
            for row in &rows {
                if found.len() >= search.limit {
                    return Ok(found);
                }
                (before, id) = (get(row, 4)?, get(row, 0)?);
                let Some(conversation) = self.skipped.readable(record(row).and_then(listed))? else { continue };
                let place = places.get(&get(row, 6)?);
                let has_words = || is_called(conversation.title.as_deref(), conversation.id.as_str(), &wanted);
                if place.is_some() || has_words() {
                    let excerpt = match place {
                        Some(place) => self.excerpt_at(*place, &wanted).await?,
                        None => None,
                    };
                    found.push(Found { conversation, excerpt });
                }
            }
            if i64::try_from(rows.len()).is_ok_and(|count| count < PAGE) {
                return Ok(found);
            }
        }
    }

    async fn take_in(&self) -> Result<(), StoreError> {
        loop {
            let behind = self.behind().await?;
            let is_all = i64::try_from(behind.len()).is_ok_and(|count| count < MOST_BEHIND);
            for mut journal in behind {
                while journal.from < journal.until {
                    let part = self.next_part(&journal).await?;
                    if part.next <= journal.from {
                        break;
                    }
                    let Behind { conversation, from, id, created_at_ms, .. } = &journal;
                    self.pool
                        .ask(TAKE, &[conversation, from, &part.next, id, created_at_ms, &part.places, &part.vectors])
                        .await?;
                    journal.from = part.next;
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }
}
