//! The questions to the database, each answered from one instant of it.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Rows};
use turnwright_core::{ConversationId, DecodeError, Entry, Seq, StoredEntry, TurnId, UserId};
use turnwright_engine::{Chosen, ConversationRecord, Idempotent, Incarnation, Newest, OpenTurn, Place, StoreError};

use super::readers::Unread;
use super::statements as sql;
use super::write::gone;
use crate::columns::{before, integer, kept_by};
use crate::skipped::{Skipped, listed};

pub(super) fn conversation(connection: &Connection, id: &ConversationId) -> Result<Option<ConversationRecord>, Unread> {
    let mut statement = connection.prepare_cached(sql::CONVERSATION)?;
    let mut rows = statement.query((id.as_str(),))?;
    rows.next()?.map(record).transpose()
}

pub(super) fn conversations(
    connection: &Connection,
    skipped: &Skipped,
    (owner, only_pinned, after, limit): (&UserId, bool, Option<&Place>, usize),
) -> Result<Vec<ConversationRecord>, Unread> {
    let instant = connection.unchecked_transaction()?;
    let mut found = Vec::new();
    let mut before = i64::MAX;
    if let Some(Place { updated_at_ms, id }) = after {
        before = integer(*updated_at_ms);
        let mut of_time = instant.prepare_cached(sql::CONVERSATIONS_OF_TIME)?;
        collect(of_time.query((before, id.as_str(), owner.as_str(), only_pinned))?, skipped, limit, &mut found)?;
    }
    if found.len() < limit {
        let mut older = instant.prepare_cached(sql::CONVERSATIONS_BEFORE)?;
        collect(older.query((before, owner.as_str(), only_pinned))?, skipped, limit, &mut found)?;
    }
    Ok(found)
}

/// Looks at as many rows as it takes: a page that is not full would be the last.
fn collect(mut rows: Rows<'_>, skipped: &Skipped, limit: usize, into: &mut Vec<ConversationRecord>) -> Result<(), Unread> {
    while into.len() < limit
        && let Some(row) = rows.next()?
    {
        into.extend(readable(skipped, record(row).and_then(|record| Ok(listed(record)?)))?);
    }
    Ok(())
}

/// What was read; nothing where what is stored cannot be. Where the database itself fails, that is an error.
pub(super) fn readable<T>(skipped: &Skipped, read: Result<T, Unread>) -> Result<Option<T>, Unread> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Unread::Refused(error)) => Ok(skipped.readable(Err(error))?),
        Err(failed @ Unread::Database(_)) => Err(failed),
    }
}

pub(super) fn entries(
    connection: &Connection,
    id: &ConversationId,
    from: Seq,
    limit: usize,
) -> Result<Vec<StoredEntry>, Unread> {
    let mut statement = connection.prepare_cached(sql::ENTRIES)?;
    // At least one row is asked for, since no row says that there is no conversation.
    let mut rows = statement.query((id.as_str(), from_place(from), rows_at_most(limit.max(1))))?;
    let mut row = rows.next()?.ok_or_else(|| gone(id))?;
    let mut found = Vec::new();
    while found.len() < limit {
        let Some(number) = row.get::<_, Option<i64>>(0)? else { break };
        let seq = u64::try_from(number).ok().and_then(Seq::new);
        let seq = seq.ok_or_else(|| damaged(format!("entry {number} of conversation `{id}`"), "its place is not one"))?;
        found.push(entry(row, id, seq)?);
        match rows.next()? {
            Some(next) => row = next,
            None => break,
        }
    }
    Ok(found)
}

pub(super) fn last_seq(connection: &Connection, id: &ConversationId) -> Result<Option<Seq>, Unread> {
    let mut statement = connection.prepare_cached(sql::FIND)?;
    let next = statement.query_row((id.as_str(),), |row| row.get::<_, i64>(1)).optional()?;
    Ok(next.and_then(before))
}

pub(super) fn newest(connection: &Connection, id: &ConversationId, known: &Chosen) -> Result<Newest, Unread> {
    let mut statement = connection.prepare_cached(sql::NEWEST)?;
    let mut rows = statement.query((id.as_str(),))?;
    let Some(row) = rows.next()? else { return Ok(Newest::default()) };
    let title = match row.get_ref(1)? {
        ValueRef::Null => None,
        title => Some(text(title).map_err(|reason| damaged(of("title", id), reason))?),
    };
    let settings = text(row.get_ref(2)?).map_err(|reason| damaged(of("settings", id), reason))?;
    let chosen = Chosen::unless_known(title, settings, known);
    let incarnation = Incarnation::new(milliseconds(row.get(3)?), owner(row, 4, id)?);
    Ok(Newest { last: before(row.get(0)?), chosen, incarnation: Some(incarnation) })
}

pub(super) fn takes_back(connection: &Connection, id: &ConversationId) -> Result<bool, Unread> {
    let mut statement = connection.prepare_cached(sql::TAKES_BACK)?;
    Ok(statement.exists((id.as_str(),))?)
}

pub(super) fn open_turns(connection: &Connection, skipped: &Skipped) -> Result<Vec<OpenTurn>, Unread> {
    let mut statement = connection.prepare_cached(sql::OPEN_TURNS)?;
    let mut rows = statement.query(())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(readable(skipped, open_turn(row))?);
    }
    Ok(found)
}

pub(super) fn idempotent(connection: &Connection, key: &str) -> Result<Option<Idempotent>, Unread> {
    let mut statement = connection.prepare_cached(sql::IDEMPOTENT)?;
    let record = |row: &Row<'_>| Ok(Idempotent { fingerprint: row.get(0)?, answer: row.get(1)? });
    Ok(statement.query_row((key,), record).optional()?)
}

pub(super) fn last_key(connection: &Connection, from: &str, before: &str) -> Result<Option<String>, Unread> {
    let mut statement = connection.prepare_cached(sql::LAST_KEY)?;
    Ok(statement.query_row((from, before), |row| row.get(0)).optional()?)
}

/// The entry of a row of place, version and body.
pub(super) fn entry_at(row: &Row<'_>) -> Result<Entry, Unread> {
    let version = u8::try_from(row.get::<_, i64>(1)?).unwrap_or(u8::MAX);
    let place: i64 = row.get(0)?;
    let body = text(row.get_ref(2)?).map_err(|reason| damaged(format!("entry {place}"), reason))?;
    Ok(Entry::decode(version, body).map_err(|error| damaged(format!("entry {place}"), error.to_string()))?)
}

fn entry(row: &Row<'_>, id: &ConversationId, seq: Seq) -> Result<StoredEntry, Unread> {
    let what = || format!("entry {seq} of conversation `{id}`");
    // A version that does not fit our number is newer than all of ours.
    let version = u8::try_from(row.get::<_, i64>(1)?).unwrap_or(u8::MAX);
    let at_ms: i64 = row.get(2)?;
    let body = text(row.get_ref(3)?).map_err(|reason| damaged(what(), reason))?;
    let entry = Entry::decode(version, body).map_err(|error| match error {
        DecodeError::Newer { .. } => StoreError::Newer { what: what() },
        DecodeError::Unreadable { reason } => StoreError::Damaged { what: what(), reason },
    })?;
    Ok(StoredEntry { seq, at_ms: milliseconds(at_ms), entry: Arc::new(entry) })
}

fn text(value: ValueRef<'_>) -> Result<&str, &'static str> {
    value.as_str().map_err(|_| "it is not UTF-8 text")
}

/// What is damaged of a conversation, in words.
fn of(what: &str, id: &ConversationId) -> String {
    format!("the {what} of conversation `{id}`")
}

/// A conversation of a row of id, title, settings, both times and owner.
pub(super) fn record(row: &Row<'_>) -> Result<ConversationRecord, Unread> {
    let id = conversation_id(row, 0)?;
    let title = match row.get_ref(1)? {
        ValueRef::Null => None,
        title => Some(text(title).map_err(|reason| damaged(of("title", &id), reason))?.to_owned()),
    };
    let settings = text(row.get_ref(2)?).map_err(|reason| damaged(of("settings", &id), reason))?.to_owned();
    let owner = owner(row, 5, &id)?;
    let (created_at_ms, updated_at_ms) = (milliseconds(row.get(3)?), milliseconds(row.get(4)?));
    Ok(ConversationRecord { id, owner, title, settings, created_at_ms, updated_at_ms })
}

fn open_turn(row: &Row<'_>) -> Result<OpenTurn, Unread> {
    let conversation = conversation_id(row, 0)?;
    let what = || of("open turn", &conversation);
    let number: i64 = row.get(1)?;
    let seq = u64::try_from(number).ok().and_then(Seq::new);
    let seq = seq.ok_or_else(|| damaged(what(), format!("`{number}` names no entry")))?;
    let keeper = text(row.get_ref(3)?).map_err(|reason| damaged(what(), reason))?;
    let kept_by = kept_by(keeper).ok_or_else(|| damaged(what(), format!("`{keeper}` takes no turn up")))?;
    let (owner, last) = (owner(row, 4, &conversation)?, before(row.get(5)?));
    Ok(OpenTurn { turn: TurnId(seq), parked: row.get(2)?, kept_by, owner, last, conversation })
}

fn conversation_id(row: &Row<'_>, column: usize) -> Result<ConversationId, Unread> {
    let id = text(row.get_ref(column)?).map_err(|reason| damaged("a conversation's record", reason))?;
    Ok(id.parse().map_err(|error: turnwright_core::IdError| damaged("a conversation's record", error.to_string()))?)
}

fn owner(row: &Row<'_>, column: usize, of_id: &ConversationId) -> Result<UserId, Unread> {
    let id = text(row.get_ref(column)?).map_err(|reason| damaged(of("owner", of_id), reason))?;
    Ok(id.parse().map_err(|error: turnwright_core::IdError| damaged(of("owner", of_id), error.to_string()))?)
}

fn damaged(what: impl Into<String>, reason: impl Into<String>) -> StoreError {
    StoreError::Damaged { what: what.into(), reason: reason.into() }
}

fn milliseconds(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}

/// Beyond the last place nothing is found; further on the next conversation would begin.
fn from_place(from: Seq) -> i64 {
    integer(from.get()).min(1 << 32)
}

fn rows_at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
