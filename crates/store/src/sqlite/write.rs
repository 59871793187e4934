//! What a request to the writer does inside its transaction.
//!
//! A request looks before it writes: where it is refused it has written nothing, so the others of its group stand.

use rusqlite::{Connection, params};
use turnwright_core::{ConversationId, DecodeError, Entry, Seq};
use turnwright_engine::{CONVERSATION_DOCUMENTS, Chosen, ConversationRecord, Copied, Incarnation, SideRecord, StoreError};

use super::documents::Change;
use super::rates::Replace;
use super::search::Words;
use super::statements as sql;
use super::upkeep::{Removal, forget_requests};
use super::{accounts, artifacts, beginning, knowledge, ledger, search};
use crate::columns::{conflict, integer, kept_by_text};

/// One change to the database.
#[derive(Debug)]
pub(super) enum Write {
    Create(ConversationRecord),
    Update {
        id: ConversationId,
        meant: Incarnation,
        chosen: Chosen,
        /// What it must be before.
        of: Chosen,
    },
    Delete {
        id: ConversationId,
        meant: Incarnation,
        /// What must be chosen for it, where that matters.
        of: Option<Chosen>,
    },
    Copy(Copied),
    Append(EncodedAppend),
    Document(Change),
    Account(accounts::Change),
    Artifact(artifacts::Change),
    Words(Words),
    RemoveOld(Removal),
    ForgetRequests {
        before_ms: u64,
    },
    Knowledge(knowledge::Change),
    Rate(Replace),
    /// Writes the first page again as it is, so that somebody hears whether that can be done.
    Nothing,
}

/// An append whose entries were turned to text by whoever asked for it, so that the writer need not.
#[derive(Debug)]
pub(super) struct EncodedAppend {
    pub(super) conversation: ConversationId,
    pub(super) at: Seq,
    pub(super) bodies: Vec<Body>,
    pub(super) at_ms: u64,
    pub(super) side: Vec<SideRecord>,
}

/// The stored form of an entry, its version and its time.
#[derive(Debug)]
pub(super) struct Body {
    version: u8,
    at_ms: u64,
    text: String,
}

/// Whether a request was done, or why it was refused.
pub(super) type Verdict = Result<(), StoreError>;

/// The stored form of an entry of this time.
pub(super) fn encode(entry: &Entry, at_ms: u64) -> Result<Body, StoreError> {
    let text = entry.encode().map_err(|error: DecodeError| StoreError::Damaged {
        what: format!("an entry of kind `{}`", entry.kind()),
        reason: error.to_string(),
    })?;
    Ok(Body { version: entry.version(), at_ms, text })
}

impl Write {
    /// The conversation whose turn goes on with it, where it is such a write.
    pub(super) fn conversation(&self) -> Option<&ConversationId> {
        match self {
            Self::Append(append) => Some(&append.conversation),
            Self::Copy(copy) => Some(&copy.conversation.id),
            Self::Create(_)
            | Self::Update { .. }
            | Self::Delete { .. }
            | Self::Document(_)
            | Self::Account(_)
            | Self::Artifact(_)
            | Self::Words(_)
            | Self::RemoveOld(_)
            | Self::ForgetRequests { .. }
            | Self::Knowledge(_)
            | Self::Rate(_)
            | Self::Nothing => None,
        }
    }

    /// About how many bytes it holds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Create(record) => record_bytes(record),
            Self::Copy(copy) => {
                copy.holds.iter().map(String::len).fold(record_bytes(&copy.conversation), usize::saturating_add)
            }
            Self::Update { chosen, of, .. } => chosen_bytes(chosen) + chosen_bytes(of),
            Self::Delete { of, .. } => of.as_ref().map_or(0, chosen_bytes),
            Self::Account(_) | Self::RemoveOld(_) | Self::ForgetRequests { .. } | Self::Nothing => 0,
            Self::Document(change) => change.bytes(),
            Self::Artifact(change) => change.bytes(),
            Self::Words(words) => words.bytes(),
            Self::Knowledge(change) => change.bytes(),
            Self::Rate(replace) => replace.bytes(),
            Self::Append(append) => {
                let side = append.side.iter().map(|record| match record {
                    SideRecord::Idempotent { key, record } => key.len() + record.fingerprint.len() + record.answer.len(),
                    SideRecord::Create(record) => record_bytes(record),
                    SideRecord::Title(title) => title.as_ref().map_or(0, String::len),
                    SideRecord::Document { key, body, .. } => key.len() + body.as_ref().map_or(0, String::len),
                    SideRecord::Of(_)
                    | SideRecord::Times(_)
                    | SideRecord::TurnOpen { .. }
                    | SideRecord::TurnOver
                    | SideRecord::Holds { .. }
                    | SideRecord::HoldsAs { .. }
                    | SideRecord::RunningTurns { .. }
                    | SideRecord::Reserve(_)
                    | SideRecord::Settle { .. } => 0,
                });
                append.bodies.iter().map(|body| body.text.len()).chain(side).sum()
            }
        }
    }

    /// Does it, or refuses it without having written anything. May be done again after a rollback.
    ///
    /// # Errors
    /// Where the database fails; the transaction must be rolled back then.
    pub(super) fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        match self {
            Self::Create(record) => create(connection, record),
            Self::Update { id, meant, chosen, of } => update(connection, (id, meant), chosen, of),
            Self::Delete { id, meant, of: None } => match find_of(connection, id, Some(meant))? {
                Found::It(..) => delete(connection, id),
                Found::Another | Found::Nothing => Ok(Err(gone(id))),
            },
            Self::Delete { id, meant, of: Some(of) } => match update(connection, (id, meant), of, of)? {
                Ok(()) => delete(connection, id),
                refused => Ok(refused),
            },
            Self::Copy(copied) => copy(connection, copied),
            Self::Append(append) => append.carry_out(connection),
            Self::Document(change) => change.carry_out(connection),
            Self::Account(change) => change.carry_out(connection),
            Self::Artifact(change) => change.carry_out(connection),
            Self::Words(words) => words.carry_out(connection).map(Ok),
            Self::RemoveOld(removal) => removal.carry_out(connection),
            Self::ForgetRequests { before_ms } => forget_requests(connection, *before_ms).map(Ok),
            Self::Knowledge(change) => change.carry_out(connection).map(Ok),
            Self::Rate(replace) => replace.carry_out(connection),
            Self::Nothing => rewrite_first_page(connection).map(Ok),
        }
    }
}

/// The number is read in the transaction that writes it: a newer version may have brought the database up meanwhile.
fn rewrite_first_page(connection: &Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", version)
}

fn record_bytes(record: &ConversationRecord) -> usize {
    record.settings.len().saturating_add(record.title.as_ref().map_or(0, String::len))
}

fn chosen_bytes(chosen: &Chosen) -> usize {
    chosen.settings.len().saturating_add(chosen.title.as_ref().map_or(0, String::len))
}

fn create(connection: &Connection, record: &ConversationRecord) -> rusqlite::Result<Verdict> {
    let created = insert(connection, record, FIRST, integer(record.updated_at_ms))?;
    Ok(if created == 0 { Err(exists(&record.id)) } else { Ok(()) })
}

/// The key of no conversation.
const NO_KEY: i64 = -1;
/// The first place of a journal.
const FIRST: i64 = 1;
/// How many bits of an entry's primary key are its place in the journal; the conversation's key is above.
const PLACE_BITS: u32 = 32;
/// The places that there are, 0 included.
const PLACES: i64 = 1 << PLACE_BITS;

fn insert(connection: &Connection, record: &ConversationRecord, next: i64, updated_at_ms: i64) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql::CREATE)?.execute(params![
        record.id.as_str(),
        next,
        integer(record.created_at_ms),
        updated_at_ms,
        record.title,
        record.settings,
        record.owner.as_str()
    ])
}

fn update(
    connection: &Connection,
    (id, meant): (&ConversationId, &Incarnation),
    chosen: &Chosen,
    of: &Chosen,
) -> rusqlite::Result<Verdict> {
    match find_of(connection, id, Some(meant))? {
        Found::It(..) => {}
        Found::Another | Found::Nothing => return Ok(Err(gone(id))),
    }
    let row = params![id.as_str(), chosen.title, chosen.settings, of.title, of.settings];
    let count = connection.prepare_cached(sql::UPDATE)?.execute(row)?;
    Ok(if count > 0 { Ok(()) } else { Err(StoreError::Changed { conversation: id.clone() }) })
}

pub(super) fn delete(connection: &Connection, id: &ConversationId) -> rusqlite::Result<Verdict> {
    let Some((key, _)) = find(connection, id)? else { return Ok(Err(gone(id))) };
    artifacts::forget_conversation(connection, key)?;
    search::forget(connection, key)?;
    knowledge::forget_conversation(connection, id)?;
    ledger::forget_conversation(connection, key)?;
    let forgotten = beginning::forget(connection, key)?;
    for statement in [sql::CLOSE_TURN, sql::DELETE_IDEMPOTENT, sql::DELETE_CONVERSATION] {
        connection.prepare_cached(statement)?.execute((key,))?;
    }
    forgotten.release(connection)?;
    // From its name with a `/` to the sign after that.
    let (first, end) = (format!("{id}/"), format!("{id}0"));
    connection.prepare_cached(sql::DELETE_DOCUMENTS)?.execute((CONVERSATION_DOCUMENTS, first, end))?;
    Ok(Ok(()))
}

/// The entries are not looked at.
fn copy(connection: &Connection, copied: &Copied) -> rusqlite::Result<Verdict> {
    let Copied { conversation: record, of, meant, through, holds } = copied;
    let through = integer(through.get());
    let source = match find_of(connection, of, Some(meant))? {
        Found::It(key, next) if through < next => key,
        Found::It(..) | Found::Another | Found::Nothing => return Ok(Err(gone(of))),
    };
    if insert(connection, record, through.saturating_add(1), integer(record.updated_at_ms))? == 0 {
        return Ok(Err(exists(&record.id)));
    }
    let key = connection.last_insert_rowid();
    beginning::share(connection, source, through, key)?;
    for artifact in holds {
        connection.prepare_cached(sql::HOLD_ARTIFACT)?.execute((key, artifact))?;
    }
    Ok(Ok(()))
}

impl EncodedAppend {
    fn carry_out(&self, connection: &Connection) -> rusqlite::Result<Verdict> {
        let found = match find_of(connection, &self.conversation, self.means())? {
            Found::Another => return Ok(Err(gone(&self.conversation))),
            Found::It(key, next) => Some((key, next)),
            Found::Nothing => None,
        };
        let (known, next) = match (found, self.creates()) {
            (Some(_), Some(_)) => return Ok(Err(exists(&self.conversation))),
            (None, None) => return Ok(Err(gone(&self.conversation))),
            (Some((key, next)), None) => (Ok(key), next),
            (None, Some(record)) => (Err(record), FIRST),
        };
        if integer(self.at.get()) != next {
            return Ok(Err(conflict(next)));
        }
        if let Some(repeated) = self.repeated_key(connection)? {
            return Ok(Err(repeated));
        }
        if let Some(refusal) = self.beyond_its_limits(connection, known.ok())? {
            return Ok(Err(refusal));
        }
        let count = i64::try_from(self.bodies.len()).unwrap_or(i64::MAX);
        let (after, at_ms) = (next.saturating_add(count), integer(self.at_ms));
        if after > PLACES {
            let reason = format!("conversation `{}` has {next} entries and no place for more; fork it", self.conversation);
            return Ok(Err(StoreError::Unusable { reason }));
        }
        let key = match known {
            Err(record) => {
                insert(connection, record, after, if count == 0 { integer(record.updated_at_ms) } else { at_ms })?;
                connection.last_insert_rowid()
            }
            Ok(key) => {
                if count > 0 {
                    connection.prepare_cached(sql::ADVANCE)?.execute((key, after, at_ms))?;
                }
                key
            }
        };
        if count > 0 {
            let mut insert = connection.prepare_cached(sql::INSERT_ENTRY)?;
            for (seq, body) in (next..after).zip(&self.bodies) {
                insert.execute((key << PLACE_BITS | seq, body.version, integer(body.at_ms), &body.text))?;
            }
        }
        self.side.iter().try_for_each(|record| write_beside(connection, key, record))?;
        Ok(Ok(()))
    }

    /// Which conversation of the name is meant, where that was said.
    fn means(&self) -> Option<&Incarnation> {
        self.side.iter().find_map(|record| if let SideRecord::Of(meant) = record { Some(meant) } else { None })
    }

    /// The record of the conversation that begins with this append.
    fn creates(&self) -> Option<&ConversationRecord> {
        self.side.iter().find_map(|record| match record {
            SideRecord::Create(record) => Some(record),
            SideRecord::Of(_)
            | SideRecord::Times(_)
            | SideRecord::Title(_)
            | SideRecord::TurnOpen { .. }
            | SideRecord::TurnOver
            | SideRecord::Document { .. }
            | SideRecord::Holds { .. }
            | SideRecord::HoldsAs { .. }
            | SideRecord::RunningTurns { .. }
            | SideRecord::Reserve(_)
            | SideRecord::Settle { .. }
            | SideRecord::Idempotent { .. } => None,
        })
    }

    /// The refusal of a request that was answered before: whoever was first with its key has done it.
    fn repeated_key(&self, connection: &Connection) -> rusqlite::Result<Option<StoreError>> {
        for record in &self.side {
            if let SideRecord::Idempotent { key, .. } = record
                && connection.prepare_cached(sql::IDEMPOTENT)?.exists((key,))?
            {
                return Ok(Some(StoreError::Repeated { key: key.clone() }));
            }
        }
        Ok(None)
    }

    /// The refusal of what may not be spent, of a turn too many, and of what is to be held as one holds it that is not there.
    fn beyond_its_limits(&self, connection: &Connection, conversation: Option<i64>) -> rusqlite::Result<Option<StoreError>> {
        for record in &self.side {
            let refusal = match record {
                SideRecord::Reserve(reservation) => ledger::refusal(connection, conversation, reservation)?,
                SideRecord::RunningTurns { owner, most } => {
                    let mut count = connection.prepare_cached(sql::RUNNING_TURNS)?;
                    let running: i64 = count.query_row((owner.as_str(), conversation.unwrap_or(NO_KEY)), |row| row.get(0))?;
                    (i64::try_from(*most).unwrap_or(i64::MAX) <= running).then_some(StoreError::TooManyTurns)
                }
                SideRecord::HoldsAs { other } => find(connection, other)?.is_none().then(|| gone(other)),
                _ => None,
            };
            if refusal.is_some() {
                return Ok(refusal);
            }
        }
        Ok(None)
    }
}

fn write_beside(connection: &Connection, conversation: i64, record: &SideRecord) -> rusqlite::Result<()> {
    match record {
        // The conversation's row was written before its entries, and they have their times.
        // Turns were counted, and it was looked which conversation it is, before anything was written.
        SideRecord::Create(_) | SideRecord::Of(_) | SideRecord::Times(_) | SideRecord::RunningTurns { .. } => Ok(0),
        SideRecord::Title(title) => connection.prepare_cached(sql::TITLE)?.execute((conversation, title)),
        SideRecord::TurnOpen { turn, parked, kept_by } => {
            let row = (conversation, integer(turn.0.get()), *parked, kept_by_text(*kept_by));
            connection.prepare_cached(sql::OPEN_TURN)?.execute(row)
        }
        SideRecord::TurnOver => connection.prepare_cached(sql::CLOSE_TURN)?.execute((conversation,)),
        SideRecord::Document { kind, key, body: Some(body) } => {
            connection.prepare_cached(sql::PUT_DOCUMENT)?.execute((kind, key, body))
        }
        SideRecord::Document { kind, key, body: None } => connection.prepare_cached(sql::DELETE_DOCUMENT)?.execute((kind, key)),
        SideRecord::Holds { artifact } => connection.prepare_cached(sql::HOLD_ARTIFACT)?.execute((conversation, artifact)),
        SideRecord::HoldsAs { other } => match find(connection, other)? {
            Some((source, _)) => {
                knowledge::copy_beside(connection, other, conversation)?;
                connection.prepare_cached(sql::COPY_USES)?.execute((source, conversation))
            }
            None => Ok(0),
        },
        SideRecord::Reserve(reservation) => ledger::reserve(connection, conversation, reservation),
        SideRecord::Settle { purpose, amount } => ledger::settle(connection, conversation, purpose, *amount),
        SideRecord::Idempotent { key, record } => {
            let row = (key, conversation, &record.fingerprint, &record.answer);
            connection.prepare_cached(sql::INSERT_IDEMPOTENT)?.execute(row)
        }
    }
    .map(|_| ())
}

/// A conversation's key and the next place of its journal.
fn find(connection: &Connection, id: &ConversationId) -> rusqlite::Result<Option<(i64, i64)>> {
    match find_of(connection, id, None)? {
        Found::It(key, next) => Ok(Some((key, next))),
        Found::Another | Found::Nothing => Ok(None),
    }
}

/// What has a name.
enum Found {
    Nothing,
    /// Its key and the next place of its journal.
    It(i64, i64),
    /// Another conversation than the one that is meant.
    Another,
}

fn find_of(connection: &Connection, id: &ConversationId, meant: Option<&Incarnation>) -> rusqlite::Result<Found> {
    let mut find = connection.prepare_cached(sql::FIND)?;
    let mut rows = find.query((id.as_str(),))?;
    let Some(row) = rows.next()? else { return Ok(Found::Nothing) };
    if let Some(meant) = meant {
        let is_it =
            row.get::<_, i64>(2)? == integer(meant.created_at_ms()) && row.get_ref(3)?.as_str()? == meant.owner().as_str();
        if !is_it {
            return Ok(Found::Another);
        }
    }
    Ok(Found::It(row.get(0)?, row.get(1)?))
}

fn exists(conversation: &ConversationId) -> StoreError {
    StoreError::Exists { conversation: conversation.clone() }
}

pub(super) fn gone(conversation: &ConversationId) -> StoreError {
    StoreError::Gone { conversation: conversation.clone() }
}
