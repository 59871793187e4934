//! Appends: all that wait at one moment go to the database in one round trip and one transaction.
//!
//! An append whose answer was lost is sent again as it was. Its place and its mark tell the database what became of it: where
//! the entry at its place has the mark, it was stored.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_postgres::Row;
use tokio_util::task::TaskTracker;
use turnwright_core::{ConversationId, DecodeError, Entry, Seq};
use turnwright_engine::{ConversationRecord, SideRecord, StoreError};

use super::clean;
use super::ledger;
use super::pool::Pool;
use crate::columns::{conflict, integer, kept_by_text};

/// The most kibibytes that wait, what is under way included, and what an append takes besides its text.
const ROOM_KIB: u32 = 32 * 1024;
const ITEM_KIB: u32 = 4;
/// The most appends, and bytes, in one round trip.
const MOST_TOGETHER: usize = 64;
const MOST_BYTES: usize = 1024 * 1024;
/// How many groups are under way at once: while one waits for the disk, the next is sent.
const UNDER_WAY: usize = 2;

const APPEND: &str = "SELECT verdict, place, key
    FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
/// For one append alone; the last value is the other conversation.
const APPEND_HOLDING: &str = "SELECT verdict, place, key
    FROM append_holding($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";

/// An append whose entries are text already.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) conversation: ConversationId,
    pub(super) at: Seq,
    pub(super) bodies: Vec<Body>,
    pub(super) at_ms: u64,
    pub(super) side: Vec<SideRecord>,
    pub(super) mark: i64,
}

/// The stored form of an entry.
#[derive(Debug)]
pub(super) struct Body {
    version: i16,
    at_ms: i64,
    text: String,
}

/// The stored form of an entry of this time.
pub(super) fn encode(entry: &Entry, at_ms: u64) -> Result<Body, StoreError> {
    let text = entry.encode().map_err(|error: DecodeError| StoreError::Damaged {
        what: format!("an entry of kind `{}`", entry.kind()),
        reason: error.to_string(),
    })?;
    Ok(Body { version: i16::from(entry.version()), at_ms: integer(at_ms), text })
}

impl Encoded {
    /// The conversation that holds what this one is to hold.
    pub(super) fn holds_as(&self) -> Option<&ConversationId> {
        self.side.iter().find_map(|record| if let SideRecord::HoldsAs { other } = record { Some(other) } else { None })
    }

    fn bytes(&self) -> usize {
        let side = self.side.iter().map(|record| match record {
            SideRecord::Idempotent { key, record } => key.len() + record.fingerprint.len() + record.answer.len(),
            SideRecord::Create(record) => record.settings.len() + record.title.as_ref().map_or(0, String::len),
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
        self.bodies.iter().map(|body| body.text.len()).chain(side).sum()
    }
}

#[derive(Debug)]
struct Request {
    append: Encoded,
    bytes: usize,
    reply: oneshot::Sender<Result<(), StoreError>>,
    _room: OwnedSemaphorePermit,
}

/// The way to the database for appends. What was put in is stored also where its caller is gone.
#[derive(Debug)]
pub(super) struct Appender {
    queue: std::sync::Mutex<Option<mpsc::UnboundedSender<Request>>>,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Appender {
    pub(super) fn start(pool: &Arc<Pool>) -> Self {
        // Bounded by the room that each request takes.
        let (queue, requests) = mpsc::unbounded_channel();
        let requests = Arc::new(Mutex::new(requests));
        let tasks = TaskTracker::new();
        for _ in 0..UNDER_WAY {
            tasks.spawn(run(Arc::clone(pool), Arc::clone(&requests)));
        }
        let room = Arc::new(Semaphore::new(ROOM_KIB as usize));
        Self { queue: std::sync::Mutex::new(Some(queue)), room, tasks }
    }

    pub(super) async fn append(&self, append: Encoded) -> Result<(), StoreError> {
        let bytes = append.bytes();
        let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX).saturating_add(ITEM_KIB).min(ROOM_KIB);
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| StoreError::Closed)?;
        let (reply, verdict) = oneshot::channel();
        let request = Request { append, bytes, reply, _room: room };
        let queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        queue.and_then(|queue| queue.send(request).ok()).ok_or(StoreError::Closed)?;
        verdict.await.unwrap_or_else(|_| Err(crate::broken_off()))
    }

    /// Takes nothing more in and waits for what is in hand.
    pub(super) async fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        self.room.close();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn run(pool: Arc<Pool>, requests: Arc<Mutex<mpsc::UnboundedReceiver<Request>>>) {
    loop {
        let group = next_group(&mut *requests.lock().await).await;
        if group.is_empty() {
            return;
        }
        serve(&pool, group).await;
    }
}

/// What waits, at least one; nothing where nothing comes any more.
async fn next_group(requests: &mut mpsc::UnboundedReceiver<Request>) -> Vec<Request> {
    let mut group: Vec<Request> = requests.recv().await.into_iter().collect();
    let mut bytes = group.first().map_or(0, |request| request.bytes);
    while group.len() < MOST_TOGETHER
        && bytes < MOST_BYTES
        && let Ok(request) = requests.try_recv()
    {
        bytes = bytes.saturating_add(request.bytes);
        group.push(request);
    }
    // All groups of all nodes lock conversations in one order, so none waits for another that waits for it. Those of one
    // conversation keep theirs.
    group.sort_by(|a, b| a.append.conversation.as_str().cmp(b.append.conversation.as_str()));
    group
}

async fn serve(pool: &Arc<Pool>, group: Vec<Request>) {
    let appends: Vec<&Encoded> = group.iter().map(|request| &request.append).collect();
    let verdicts = match together(pool, &appends).await {
        // One that the database cannot do takes no other with it.
        Err(_) if appends.len() > 1 => {
            let mut verdicts = Vec::new();
            for append in &appends {
                verdicts.push(apart(pool, append).await);
            }
            verdicts
        }
        Err(error) => vec![Err(error)],
        Ok(verdicts) => verdicts,
    };
    for (request, verdict) in group.into_iter().zip(verdicts) {
        // Nobody waits any more where the caller was cancelled; it is done all the same.
        let _ = request.reply.send(verdict);
    }
}

/// One alone, as it must be where it is to hold what another holds.
pub(super) async fn apart(pool: &Arc<Pool>, append: &Encoded) -> Result<(), StoreError> {
    together(pool, &[append]).await.and_then(|mut one| one.pop().unwrap_or(Ok(())))
}

/// The values of the side records of a group.
#[derive(Default)]
struct Sides<'a> {
    of: Vec<i64>,
    kinds: Vec<&'static str>,
    a: Vec<Option<Cow<'a, str>>>,
    b: Vec<Option<Cow<'a, str>>>,
    c: Vec<Option<Cow<'a, str>>>,
    n: Vec<Option<i64>>,
    m: Vec<Option<i64>>,
}

impl<'a> Sides<'a> {
    fn push(&mut self, of: i64, kind: &'static str, texts: [Option<&'a str>; 3], numbers: [Option<i64>; 2]) {
        self.push_made(of, kind, texts.map(|text| text.map(clean)), numbers);
    }

    fn push_made(&mut self, of: i64, kind: &'static str, texts: [Option<Cow<'a, str>>; 3], numbers: [Option<i64>; 2]) {
        self.of.push(of);
        self.kinds.push(kind);
        for (column, text) in [&mut self.a, &mut self.b, &mut self.c].into_iter().zip(texts) {
            column.push(text);
        }
        for (column, number) in [&mut self.n, &mut self.m].into_iter().zip(numbers) {
            column.push(number);
        }
    }

    fn take(&mut self, of: i64, record: &'a SideRecord) {
        match record {
            SideRecord::Create(record) => {
                let texts = [Some(record.owner.as_str()), record.title.as_deref(), Some(record.settings.as_str())];
                let times = [Some(integer(record.created_at_ms)), Some(integer(record.updated_at_ms))];
                self.push(of, "create", texts, times);
            }
            SideRecord::Of(meant) => {
                self.push(of, "of", [Some(meant.owner().as_str()), None, None], [Some(integer(meant.created_at_ms())), None]);
            }
            // They are with the entries; what another holds is a value of the statement.
            SideRecord::Times(_) | SideRecord::HoldsAs { .. } => {}
            SideRecord::Title(title) => self.push(of, "title", [title.as_deref(), None, None], [None; 2]),
            SideRecord::TurnOpen { turn, parked, kept_by } => {
                let numbers = [Some(integer(turn.0.get())), Some(i64::from(*parked))];
                self.push(of, "open", [Some(kept_by_text(*kept_by)), None, None], numbers);
            }
            SideRecord::TurnOver => self.push(of, "over", [None; 3], [None; 2]),
            SideRecord::RunningTurns { owner, most } => {
                let most = i64::try_from(*most).unwrap_or(i64::MAX);
                self.push(of, "running", [Some(owner.as_str()), None, None], [Some(most), None]);
            }
            SideRecord::Document { kind, key, body } => {
                self.push(of, "document", [Some(kind), Some(key), body.as_deref()], [None; 2]);
            }
            SideRecord::Holds { artifact } => self.push(of, "holds", [Some(artifact), None, None], [None; 2]),
            SideRecord::Reserve(reservation) => {
                let texts = [
                    Some(clean(&reservation.purpose)),
                    Some(Cow::Borrowed(reservation.owner.as_str())),
                    Some(Cow::Owned(ledger::terms(reservation))),
                ];
                self.push_made(of, "reserve", texts, ledger::numbers(reservation.amount));
            }
            SideRecord::Settle { purpose, amount } => {
                self.push(of, "settle", [Some(purpose), None, None], ledger::numbers(*amount));
            }
            SideRecord::Idempotent { key, record } => {
                self.push(of, "answer", [Some(key), Some(&record.fingerprint), Some(&record.answer)], [None; 2]);
            }
        }
    }
}

/// One statement for all of them: stored, or refused, each for itself.
async fn together(pool: &Arc<Pool>, appends: &[&Encoded]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    let ids: Vec<&str> = appends.iter().map(|append| append.conversation.as_str()).collect();
    let ats: Vec<i64> = appends.iter().map(|append| integer(append.at.get())).collect();
    let times: Vec<i64> = appends.iter().map(|append| integer(append.at_ms)).collect();
    let counts: Vec<i64> = appends.iter().map(|append| i64::try_from(append.bodies.len()).unwrap_or(i64::MAX)).collect();
    let marks: Vec<i64> = appends.iter().map(|append| append.mark).collect();
    let bodies = || appends.iter().flat_map(|append| &append.bodies);
    let versions: Vec<i16> = bodies().map(|body| body.version).collect();
    let entry_times: Vec<i64> = bodies().map(|body| body.at_ms).collect();
    let texts: Vec<&str> = bodies().map(|body| body.text.as_str()).collect();
    let mut side = Sides::default();
    for (append, of) in appends.iter().zip(1..) {
        append.side.iter().for_each(|record| side.take(of, record));
    }
    let mut values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
        &ids,
        &ats,
        &times,
        &counts,
        &marks,
        &versions,
        &entry_times,
        &texts,
        &side.of,
        &side.kinds,
        &side.a,
        &side.b,
        &side.c,
        &side.n,
        &side.m,
    ];
    let other = appends.first().and_then(|append| append.holds_as()).map(ConversationId::as_str);
    let statement = if let Some(other) = &other {
        values.push(other);
        APPEND_HOLDING
    } else {
        APPEND
    };
    let answer = pool.ask(statement, &values).await?;
    if answer.rows.len() != appends.len() {
        let reason = format!("{} answers to {} appends", answer.rows.len(), appends.len());
        return Err(StoreError::Damaged { what: format!("the database `{}`", pool.options().shown()), reason });
    }
    Ok(appends.iter().zip(&answer.rows).map(|(append, row)| verdict(append, row)).collect())
}

fn verdict(append: &Encoded, row: &Row) -> Result<(), StoreError> {
    let conversation = || append.conversation.clone();
    let place: i64 = row.try_get(1).unwrap_or_default();
    match row.try_get::<_, i64>(0) {
        Ok(0) => Ok(()),
        Ok(1) => Err(conflict(place)),
        Ok(2) => Err(StoreError::Gone { conversation: conversation() }),
        Ok(3) => Err(StoreError::Exists { conversation: conversation() }),
        Ok(4) => Err(StoreError::Repeated { key: repeated(append, row.try_get(2).unwrap_or_default()) }),
        Ok(5) => Err(StoreError::Unusable {
            reason: format!("conversation `{}` has {place} entries and no place for more; fork it", append.conversation),
        }),
        Ok(6) => Err(StoreError::OverBudget),
        Ok(7) => Err(StoreError::TooManyTurns),
        Ok(8) => Err(StoreError::Gone { conversation: append.holds_as().unwrap_or(&append.conversation).clone() }),
        Ok(other) => Err(StoreError::Damaged { what: "the answer to an append".to_owned(), reason: format!("`{other}`") }),
        Err(error) => Err(StoreError::Damaged { what: "the answer to an append".to_owned(), reason: error.to_string() }),
    }
}

/// The key as its caller wrote it.
fn repeated(append: &Encoded, stored: String) -> String {
    let own = append.side.iter().find_map(|record| match record {
        SideRecord::Idempotent { key, .. } if clean(key) == stored => Some(key.clone()),
        _ => None,
    });
    own.unwrap_or(stored)
}

/// The row of a conversation in the order of its columns, for those who make one without entries.
pub(super) fn creation(record: ConversationRecord, mark: i64) -> Encoded {
    Encoded {
        conversation: record.id.clone(),
        at: Seq::FIRST,
        bodies: Vec::new(),
        at_ms: record.updated_at_ms,
        side: vec![SideRecord::Create(record)],
        mark,
    }
}
