//! The questions to the database. Each is one statement, so that what it sees is of one instant.

use std::sync::Arc;

use tokio_postgres::Row;
use turnwright_core::{ConversationId, DecodeError, Entry, Seq, StoredEntry, TurnId};
use turnwright_engine::{Chosen, ConversationRecord, Idempotent, Incarnation, Newest, OpenTurn, Page, StoreError};

use super::pool::Pool;
use super::{clean, get, milliseconds, word};
use crate::columns::{before, integer, kept_by};
use crate::skipped::{Skipped, listed};

const CONVERSATION: &str = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner FROM conversation WHERE id = $1";
const NEWEST: &str = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner FROM conversation
    WHERE owner = $1 AND (NOT $3 OR is_pinned(settings))
    ORDER BY updated_at_ms DESC, id DESC LIMIT $2";
/// The first condition is the one that the index knows.
const AFTER: &str = "SELECT id, title, settings, created_at_ms, updated_at_ms, owner FROM conversation
    WHERE owner = $1 AND updated_at_ms <= $3 AND (updated_at_ms, id) < ($3, $4)
    AND (NOT $5 OR is_pinned(settings))
    ORDER BY updated_at_ms DESC, id DESC LIMIT $2";
/// No row where there is no conversation, one row of nulls where there is no entry.
const ENTRIES: &str = "SELECT page.place & 4294967295, page.version, page.at_ms, page.body
    FROM (SELECT key FROM conversation WHERE id = $1) AS found
    LEFT JOIN LATERAL (SELECT place, version, at_ms, body FROM entry
        WHERE place BETWEEN (found.key << 32) + $2 AND (found.key << 32) + 4294967295
        ORDER BY place LIMIT $3) AS page ON true
    ORDER BY page.place";
const LAST: &str = "SELECT next_seq FROM conversation WHERE id = $1";
const CHOSEN: &str = "SELECT next_seq, title, settings, created_at_ms, owner FROM conversation WHERE id = $1";
/// By how the bodies begin: no more of them is read.
const TAKES_BACK: &str = r#"SELECT EXISTS (SELECT 1 FROM conversation JOIN entry
    ON place BETWEEN conversation.key << 32 AND (conversation.key << 32) + 4294967295
    WHERE conversation.id = $1
    AND substr(entry.body, 1, 20) IN ('{"control":{"hidden"', '{"control":{"retried'))"#;
const OPEN_TURNS: &str = "SELECT conversation.id, open_turn.turn, open_turn.is_parked, open_turn.kept_by, conversation.owner,
    conversation.next_seq FROM open_turn JOIN conversation ON conversation.key = open_turn.conversation
    ORDER BY open_turn.conversation";
const IDEMPOTENT: &str = "SELECT fingerprint, answer FROM idempotency WHERE key = $1";
const LAST_KEY: &str = "SELECT key FROM idempotency WHERE key >= $1 AND key < $2 ORDER BY key DESC LIMIT 1";

pub(super) async fn conversation(pool: &Arc<Pool>, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
    pool.ask(CONVERSATION, &[&id.as_str()]).await?.rows.first().map(record).transpose()
}

pub(super) async fn conversations(
    pool: &Arc<Pool>,
    skipped: &Skipped,
    page: Page<'_>,
) -> Result<Vec<ConversationRecord>, StoreError> {
    let owner = page.owner.as_str();
    let mut most = page.limit;
    loop {
        let limit = rows_at_most(most);
        let answer = match page.after {
            None => pool.ask(NEWEST, &[&owner, &limit, &page.only_pinned]).await?,
            Some(after) => {
                pool.ask(AFTER, &[&owner, &limit, &integer(after.updated_at_ms), &after.id.as_str(), &page.only_pinned]).await?
            }
        };
        let read = |row| skipped.readable(record(row).and_then(listed)).transpose();
        let mut found = answer.rows.iter().filter_map(read).collect::<Result<Vec<_>, _>>()?;
        if answer.rows.len() < most || found.len() >= page.limit {
            found.truncate(page.limit);
            return Ok(found);
        }
        // A page that is not full would be the last: those that were left out are asked for beside it.
        most = page.limit.saturating_add(answer.rows.len().saturating_sub(found.len()));
    }
}

pub(super) async fn entries(
    pool: &Arc<Pool>,
    id: &ConversationId,
    from: Seq,
    limit: usize,
) -> Result<Vec<StoredEntry>, StoreError> {
    // Beyond the last place nothing is found; further on the next conversation would begin.
    let from = integer(from.get()).min(1 << 32);
    let rows = pool.ask(ENTRIES, &[&id.as_str(), &from, &rows_at_most(limit)]).await?.rows;
    if rows.is_empty() {
        return Err(StoreError::Gone { conversation: id.clone() });
    }
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(number) = get::<Option<i64>>(row, 0)? else { break };
        let seq = u64::try_from(number).ok().and_then(Seq::new);
        let seq = seq.ok_or_else(|| damaged(format!("entry {number} of conversation `{id}`"), "its place is not one"))?;
        found.push(entry(row, id, seq)?);
    }
    Ok(found)
}

pub(super) async fn last_seq(pool: &Arc<Pool>, id: &ConversationId) -> Result<Option<Seq>, StoreError> {
    let next = pool.ask(LAST, &[&id.as_str()]).await?.rows.first().map(|row| get::<i64>(row, 0)).transpose()?;
    Ok(next.and_then(before))
}

pub(super) async fn newest(pool: &Arc<Pool>, id: &ConversationId, known: &Chosen) -> Result<Newest, StoreError> {
    let answer = pool.ask(CHOSEN, &[&id.as_str()]).await?;
    let Some(row) = answer.rows.first() else { return Ok(Newest::default()) };
    let incarnation = Incarnation::new(milliseconds(get(row, 3)?), word(row, 4, "a conversation's record")?);
    let chosen = Chosen::unless_known(get(row, 1)?, get(row, 2)?, known);
    Ok(Newest { last: before(get(row, 0)?), chosen, incarnation: Some(incarnation) })
}

pub(super) async fn takes_back(pool: &Arc<Pool>, id: &ConversationId) -> Result<bool, StoreError> {
    pool.ask(TAKES_BACK, &[&id.as_str()]).await?.rows.first().map_or(Ok(false), |row| get(row, 0))
}

pub(super) async fn open_turns(pool: &Arc<Pool>, skipped: &Skipped) -> Result<Vec<OpenTurn>, StoreError> {
    let rows = pool.ask(OPEN_TURNS, &[]).await?.rows;
    rows.iter().filter_map(|row| skipped.readable(open_turn(row)).transpose()).collect()
}

pub(super) async fn idempotent(pool: &Arc<Pool>, key: &str) -> Result<Option<Idempotent>, StoreError> {
    let answer = pool.ask(IDEMPOTENT, &[&clean(key)]).await?;
    let record = |row: &Row| Ok(Idempotent { fingerprint: get(row, 0)?, answer: get(row, 1)? });
    answer.rows.first().map(record).transpose()
}

pub(super) async fn last_key(pool: &Arc<Pool>, from: &str, before: &str) -> Result<Option<String>, StoreError> {
    let answer = pool.ask(LAST_KEY, &[&clean(from), &clean(before)]).await?;
    answer.rows.first().map(|row| get(row, 0)).transpose()
}

/// The entry of a row of version and body, from a column on; `None` where this version cannot read it.
pub(super) fn readable(row: &Row, column: usize) -> Result<Option<Entry>, StoreError> {
    let (version, body): (i16, &str) = (get(row, column)?, get(row, column.saturating_add(1))?);
    Ok(Entry::decode(u8::try_from(version).unwrap_or(u8::MAX), body).ok())
}

fn entry(row: &Row, id: &ConversationId, seq: Seq) -> Result<StoredEntry, StoreError> {
    let what = || format!("entry {seq} of conversation `{id}`");
    // A version that does not fit our number is newer than all of ours.
    let version = u8::try_from(get::<i16>(row, 1)?).unwrap_or(u8::MAX);
    let entry = Entry::decode(version, get(row, 3)?).map_err(|error| match error {
        DecodeError::Newer { .. } => StoreError::Newer { what: what() },
        DecodeError::Unreadable { reason } => StoreError::Damaged { what: what(), reason },
    })?;
    Ok(StoredEntry { seq, at_ms: milliseconds(get(row, 2)?), entry: Arc::new(entry) })
}

/// A conversation of a row of id, title, settings, both times and owner.
pub(super) fn record(row: &Row) -> Result<ConversationRecord, StoreError> {
    Ok(ConversationRecord {
        id: word(row, 0, "a conversation's record")?,
        title: get(row, 1)?,
        settings: get(row, 2)?,
        created_at_ms: milliseconds(get(row, 3)?),
        updated_at_ms: milliseconds(get(row, 4)?),
        owner: word(row, 5, "a conversation's record")?,
    })
}

fn open_turn(row: &Row) -> Result<OpenTurn, StoreError> {
    let conversation: ConversationId = word(row, 0, "a conversation's record")?;
    let what = || format!("the open turn of conversation `{conversation}`");
    let number: i64 = get(row, 1)?;
    let seq = u64::try_from(number).ok().and_then(Seq::new);
    let seq = seq.ok_or_else(|| damaged(what(), format!("`{number}` names no entry")))?;
    let keeper: &str = get(row, 3)?;
    let kept_by = kept_by(keeper).ok_or_else(|| damaged(what(), format!("`{keeper}` takes no turn up")))?;
    let parked = get::<i64>(row, 2)? != 0;
    let (owner, last) = (word(row, 4, "a conversation's record")?, before(get(row, 5)?));
    Ok(OpenTurn { turn: TurnId(seq), parked, kept_by, owner, last, conversation })
}

fn damaged(what: impl Into<String>, reason: impl Into<String>) -> StoreError {
    StoreError::Damaged { what: what.into(), reason: reason.into() }
}

pub(super) fn rows_at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
