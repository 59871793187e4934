//! The one writer: a thread that turns everything that waits into one transaction.
//!
//! It also looks, while somebody wants to know, whether another process wrote: the number that SQLite keeps for that does
//! not change by the writes of the connection that asks.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use turnwright_engine::{StoreError, let_others_run};

use super::company::Company;
use super::erasing::Patience;
use super::log::{Log, keep_apart, put_back};
use super::named::{Lost, Named};
use super::origin::has_log;
use super::queue::{Queue, Taken};
use super::statements as sql;
use super::write::{Verdict, Write};
use super::{erasing, failure, open};

/// How often other processes' writes are looked for. Notice takes at most 100 ms.
const LOOK_INTERVAL: Duration = Duration::from_millis(40);

/// How long the log grows before it is put back into the database, in pages of 4 KiB, about. Fewer, larger checkpoints:
/// each waits for the disk three times, and pages that changed often are copied once.
const CHECKPOINT_PAGES: u64 = 8000;
/// How many pages may be left to put back while nobody writes: little more than the waits for the disk.
const LAST_PAGES: u64 = 200;
/// How often the log is put back beside those who write, until so little is left.
const MOST_BESIDE: usize = 3;
/// The pages that a small transaction writes, about.
const PAGES_PER_WRITE: u64 = 5;
const PAGE_BYTES: u64 = 4096;
/// How often it is tried to empty the log, each time for as long as locks are waited for.
const ERASE_TRIES: usize = 3;
/// How often a small change that is not done yet looks for others to be done with at most.
const MOST_LOOKS: usize = 4;
/// The largest change that is done on its caller's thread.
const MAX_BYTES_HERE: usize = 64 * 1024;

/// The writer, as its store sees it.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once the thread has ended and the connection is closed.
    work: Arc<Mutex<Option<Work>>>,
    /// Taken before `work` by whoever takes both. `None` once the thread has ended.
    log: Arc<Mutex<Option<Log>>>,
    /// Taken before both by whoever writes the database anew.
    erasing: Arc<Mutex<()>>,
    writes_here: bool,
    /// Of the names of conversations.
    hashes: RandomState,
    /// Small changes that become one transaction.
    gathered: Mutex<Waiting>,
    queue: Arc<Queue<Request>>,
    foreign: watch::Sender<u64>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ended: watch::Receiver<bool>,
}

#[derive(Debug)]
struct Request {
    write: Write,
    reply: oneshot::Sender<Verdict>,
}

/// Small changes that wait for each other.
#[derive(Debug)]
struct Waiting {
    requests: Vec<Request>,
    company: Company,
}

/// The turn of one who gathered: once it ends, what was gathered is done.
struct Gathered<'a> {
    writer: &'a Writer,
}

impl Drop for Gathered<'_> {
    fn drop(&mut self) {
        self.writer.write_gathered();
    }
}

impl Writer {
    /// Starts the thread on a connection that is ours and migrated.
    pub(super) fn start(
        connection: Connection,
        file: PathBuf,
        named: Named,
        (may_wait, lock_wait): (Arc<AtomicBool>, Duration),
        writes_here: bool,
    ) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::new());
        let foreign = watch::Sender::new(0);
        let (end, ended) = watch::channel(false);
        // Read before anybody can ask, so that no write falls between the asking and the first look.
        let seen = data_version(&connection).map_err(|error| failure::of(&file, &error))?;
        let log = Arc::new(Mutex::new(Some(Log::open(&file).map_err(|error| failure::of(&file, &error))?)));
        let work =
            Work { connection, file, named, may_wait, lock_wait, foreign: foreign.clone(), seen, look_at: None, pages: 0 };
        let work = Arc::new(Mutex::new(Some(work)));
        let (shared, requests, putting_back) = (Arc::clone(&work), Arc::clone(&queue), Arc::clone(&log));
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                run(&shared, &requests, &putting_back);
                end.send_replace(true);
            })
            .map_err(|error| StoreError::Unusable { reason: format!("the writer's thread cannot be started: {error}") })?;
        Ok(Self {
            work,
            log,
            erasing: Arc::default(),
            writes_here,
            hashes: RandomState::new(),
            gathered: Mutex::new(Waiting { requests: Vec::new(), company: Company::new() }),
            queue,
            foreign,
            thread: Mutex::new(Some(thread)),
            ended,
        })
    }

    /// Does one change; it is durable when this returns.
    pub(super) async fn write(&self, write: Write) -> Verdict {
        let bytes = write.bytes();
        let (reply, mut verdict) = oneshot::channel();
        let request = Request { write, reply };
        if self.writes_here && bytes <= MAX_BYTES_HERE {
            // What the tasks that are ready now want to write, and those that the network makes ready meanwhile, becomes one
            // transaction, done by the first of them that is asked again. One that is dropped meanwhile does so too: nothing
            // is left lying. Looking at the network costs a system call, a transaction about twenty.
            // As long as a look brought more, there is another.
            let turn = Gathered { writer: self };
            let mut count = self.gather(request);
            for _ in 0..MOST_LOOKS {
                tokio::task::yield_now().await;
                let_others_run().await;
                let before = std::mem::replace(&mut count, self.gathered().requests.len());
                if count <= before {
                    break;
                }
            }
            if let Ok(verdict) = verdict.try_recv() {
                std::mem::forget(turn);
                return verdict;
            }
            // In a box: a timer within would make this future, and all that hold it, one of 128 bytes' alignment.
            if let Some(until) = self.waits_until()
                && let Ok(verdict) = Box::pin(tokio::time::timeout_at(until, &mut verdict)).await
            {
                std::mem::forget(turn);
                return verdict.unwrap_or_else(|_| self.unanswered());
            }
            drop(turn);
        } else {
            self.queue.push(request, bytes).await.map_err(|_| StoreError::Closed)?;
        }
        verdict.await.unwrap_or_else(|_| self.unanswered())
    }

    /// What is told of a change that was dropped: one that comes after the end is done by nobody.
    fn unanswered(&self) -> Verdict {
        Err(if self.queue.is_closed() { StoreError::Closed } else { crate::broken_off() })
    }

    /// Does what was gathered in one transaction on the caller's thread where nobody else is writing, which spares two
    /// switches of threads: it costs a few writes to the system's cache and waits for nothing. The writer's thread does it
    /// otherwise.
    fn write_gathered(&self) {
        let requests = {
            let mut gathered = self.gathered();
            let requests = std::mem::take(&mut gathered.requests);
            if requests.is_empty() {
                return;
            }
            gathered.company.written(requests.len());
            requests
        };
        let left = match self.work.try_lock() {
            Ok(mut work) if self.queue.is_idle() => match work.as_mut() {
                Some(work) => {
                    let left = work.without_waiting(requests);
                    if work.is_checkpoint_due() {
                        self.queue.nudge();
                    }
                    left
                }
                // Closed: who waits is told so when the requests are dropped.
                None => return,
            },
            Ok(_) | Err(_) => requests,
        };
        self.queue.push_beyond_room(left);
    }

    /// Takes a change in; how many there are now.
    fn gather(&self, request: Request) -> usize {
        let mut gathered = self.gathered();
        if let Some(conversation) = request.write.conversation() {
            gathered.company.came(self.hashes.hash_one(conversation), Instant::now());
        }
        gathered.requests.push(request);
        gathered.requests.len()
    }

    /// Until when what is gathered waits for more.
    fn waits_until(&self) -> Option<Instant> {
        let gathered = self.gathered();
        gathered.company.waits_until(gathered.requests.len(), Instant::now())
    }

    fn gathered(&self) -> MutexGuard<'_, Waiting> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Overwrites what was deleted: in the words of the search, in the pages, which are written anew, and in the log, which is put
    /// back into the database and emptied. Others wait to write until the whole database is written.
    pub(super) async fn erase(&self) -> Verdict {
        let (work, log) = (Arc::clone(&self.work), Arc::clone(&self.log));
        let (queue, erasing) = (Arc::clone(&self.queue), Arc::clone(&self.erasing));
        let erasing = tokio::task::spawn_blocking(move || {
            let locked = || work.lock().unwrap_or_else(PoisonError::into_inner);
            let _only = erasing.lock().unwrap_or_else(PoisonError::into_inner);
            let (file, lock_wait) = locked().as_mut().ok_or(StoreError::Closed)?.for_erasing()?;
            // While another process is waited for, others of this one write, and end.
            let _alone = erasing::alone(&file, lock_wait, || queue.is_closed())?;
            // Nobody else of this process puts it back meanwhile, for which SQLite does not wait.
            let _log = log.lock().unwrap_or_else(PoisonError::into_inner);
            locked().as_mut().ok_or(StoreError::Closed)?.erase()
        });
        erasing.await.unwrap_or_else(|_| Err(crate::broken_off()))
    }

    /// Rises when another process wrote.
    pub(super) fn foreign_writes(&self) -> watch::Receiver<u64> {
        let receiver = self.foreign.subscribe();
        self.queue.nudge();
        receiver
    }

    /// Takes nothing more, does what is in hand, and waits for the thread's end.
    pub(super) async fn close(&self) {
        self.queue.close();
        let mut ended = self.ended.clone();
        // An error says that the thread is gone, which is as good.
        let _ = ended.wait_for(|ended| *ended).await;
        self.join();
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's writer ended by a panic");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        self.join();
    }
}

/// The thread's side.
#[derive(Debug)]
struct Work {
    connection: Connection,
    file: PathBuf,
    named: Named,
    /// Whether a transaction waits for another process's lock.
    may_wait: Arc<AtomicBool>,
    /// For how long.
    lock_wait: Duration,
    foreign: watch::Sender<u64>,
    /// SQLite's number at the last look.
    seen: i64,
    /// When to look next; `None` while nobody wants to know.
    look_at: Option<Instant>,
    /// Pages written since the last checkpoint, about.
    pages: u64,
}

/// What the writer's thread does until its queue is closed; then it closes the connection.
fn run(work: &Mutex<Option<Work>>, queue: &Queue<Request>, log: &Mutex<Option<Log>>) {
    let locked = || work.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if locked().as_ref().is_some_and(Work::is_checkpoint_due) {
            checkpoint(work, log);
        }
        let wait = locked().as_mut().and_then(Work::look);
        match queue.take(wait) {
            Taken::Items { items, weight } => {
                if let Some(work) = locked().as_mut() {
                    work.serve(items);
                }
                queue.release(weight);
            }
            Taken::Nothing => {}
            Taken::Closed => {
                // The last to close puts the log back and removes it, where the file is the one of which it is.
                if locked().as_mut().is_some_and(Work::ends_apart) {
                    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
                    log.iter().for_each(Log::keep_apart);
                }
                drop(log.lock().unwrap_or_else(PoisonError::into_inner).take());
                return drop(locked().take());
            }
        }
    }
}

/// Puts the log back into the database, as far as readers allow: most of it beside those who write, which waits for the disk for
/// as long as a hundred of their transactions take, and what they wrote meanwhile while they wait, so that the log begins anew.
fn checkpoint(work: &Mutex<Option<Work>>, log: &Mutex<Option<Log>>) {
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let locked = || work.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(work) = locked().as_mut()
        && work.lost().is_some()
    {
        work.pages = 0;
        return;
    }
    for _ in 0..MOST_BESIDE {
        match locked().as_mut() {
            Some(work) if work.pages > LAST_PAGES => work.pages = 0,
            Some(_) | None => break,
        }
        if let Some(Err(error)) = log.as_ref().map(Log::put_back) {
            tracing::warn!(%error, "the log could not be put back beside those who write");
            break;
        }
    }
    if let Some(work) = locked().as_mut() {
        work.pages = 0;
        if let Err(error) = put_back(&work.connection) {
            tracing::warn!(%error, "the log could not be put back into the database; it grows until it can");
        }
    }
}

impl Work {
    /// Does changes now, or not at all: gives them back where another process holds the lock.
    fn without_waiting(&mut self, requests: Vec<Request>) -> Vec<Request> {
        self.may_wait.store(false, Ordering::Relaxed);
        let done = self.verdicts(&requests);
        self.may_wait.store(true, Ordering::Relaxed);
        match done {
            Ok(verdicts) => {
                answer(requests, verdicts);
                Vec::new()
            }
            Err(error) if is_busy(&error) => requests,
            Err(error) => {
                let failure = self.failure(&error);
                let verdicts = requests.iter().map(|_| Err(failure.clone())).collect();
                answer(requests, verdicts);
                Vec::new()
            }
        }
    }

    fn is_checkpoint_due(&self) -> bool {
        self.pages >= CHECKPOINT_PAGES
    }

    /// Why nothing is to be stored now.
    fn lost(&mut self) -> Option<Lost> {
        let lost = self.named.lost(&self.file);
        // Whatever comes to be under its name must not find its log.
        if let Some(Lost::Name(_)) = &lost
            && has_log(&self.file)
            && let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        {
            tracing::warn!(%error, "the log could not be put back into the file that lost its name");
        }
        lost
    }

    /// Puts the log nowhere at the end, where the file is another's by now.
    fn ends_apart(&mut self) -> bool {
        let is_apart = matches!(self.lost(), Some(Lost::Content(_)));
        if is_apart {
            keep_apart(&self.connection);
        }
        is_apart
    }

    fn failure(&self, error: &rusqlite::Error) -> StoreError {
        self.named.see(&self.file, error);
        failure::of(&self.file, error)
    }

    /// Which file is to be written anew, and for how long another's lock is waited for.
    fn for_erasing(&mut self) -> Result<(PathBuf, Duration), StoreError> {
        match self.lost() {
            Some(lost) => Err(lost.refusal()),
            None => Ok((self.file.clone(), self.lock_wait)),
        }
    }

    /// Needs [`erasing::Alone`].
    fn erase(&mut self) -> Verdict {
        self.for_erasing()?;
        // Nobody else writes it anew now, so who holds another lock is waited for as ever.
        let bounded = self.connection.busy_timeout(self.lock_wait).map_err(|error| failure::of(&self.file, &error));
        let erased = bounded.and_then(|()| self.erase_alone());
        let patience = Patience::new(&self.file, self.lock_wait);
        open::wait_for_locks(&mut self.connection, patience, self.may_wait.clone())
            .map_err(|error| failure::of(&self.file, &error))?;
        erased
    }

    fn erase_alone(&mut self) -> Verdict {
        let fails = |error: rusqlite::Error| failure::of(&self.file, &error);
        for statement in [sql::FORGET_WORDS, sql::FORGET_PIECES] {
            self.connection.prepare_cached(statement).and_then(|mut words| words.execute(())).map_err(fails)?;
        }
        // Where a page was full SQLite moved rows to another, and what they said is still behind those that stayed: nothing but a
        // file that is written anew is without it.
        self.connection.execute_batch("VACUUM").map_err(fails)?;
        for _ in 0..ERASE_TRIES {
            let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0));
            if emptied.map_err(fails)? == 0 {
                self.pages = 0;
                return Ok(());
            }
        }
        let reason = "it is deleted, and somebody reads just now what holds it still; erase again in a moment".to_owned();
        Err(StoreError::Unusable { reason })
    }

    /// Looks whether somebody else wrote, if it is time; how long until the next look, or `None` for never.
    fn look(&mut self) -> Option<Duration> {
        if self.foreign.receiver_count() == 0 {
            self.look_at = None;
            return None;
        }
        let now = Instant::now();
        if let Some(left) = self.look_at.and_then(|at| at.checked_duration_since(now)).filter(|left| !left.is_zero()) {
            return Some(left);
        }
        self.look_at = Some(now + LOOK_INTERVAL);
        match data_version(&self.connection) {
            Ok(number) if number == self.seen => {}
            Ok(number) => {
                self.seen = number;
                self.foreign.send_modify(|count| *count = count.wrapping_add(1));
            }
            Err(error) => tracing::warn!(%error, "cannot see whether other processes wrote"),
        }
        Some(LOOK_INTERVAL)
    }

    fn serve(&mut self, requests: Vec<Request>) {
        let verdicts = self.verdicts(&requests).unwrap_or_else(|error| {
            let failure = self.failure(&error);
            requests.iter().map(|_| Err(failure.clone())).collect()
        });
        answer(requests, verdicts);
    }

    /// One transaction for all. Where one request makes the database fail, each has its own.
    fn verdicts(&mut self, requests: &[Request]) -> rusqlite::Result<Vec<Verdict>> {
        let writes: Vec<&Write> = requests.iter().map(|request| &request.write).collect();
        if let Some(refusal) = self.lost().map(|lost| lost.refusal()) {
            return Ok(writes.iter().map(|_| Err(refusal.clone())).collect());
        }
        match self.transaction(&writes) {
            Ok(verdicts) => Ok(verdicts),
            Err(Failed::Request(_)) if writes.len() > 1 => Ok(writes
                .iter()
                .map(|write| match self.transaction(&[write]) {
                    Ok(mut verdicts) => verdicts.pop().unwrap_or(Ok(())),
                    Err(Failed::Request(error) | Failed::Transaction(error)) => Err(self.failure(&error)),
                })
                .collect()),
            Err(Failed::Request(error) | Failed::Transaction(error)) => Err(error),
        }
    }

    /// Nothing of the group is stored where this fails.
    fn transaction(&mut self, writes: &[&Write]) -> Result<Vec<Verdict>, Failed> {
        let done = self.begin_to_commit(writes);
        if done.is_err()
            && !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a failed transaction could not be rolled back");
        }
        let bytes: usize = writes.iter().map(|write| write.bytes()).sum();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.pages = self.pages.saturating_add(PAGES_PER_WRITE).saturating_add(bytes / PAGE_BYTES);
        done
    }

    fn begin_to_commit(&self, writes: &[&Write]) -> Result<Vec<Verdict>, Failed> {
        self.run_cached("BEGIN IMMEDIATE").map_err(Failed::Transaction)?;
        let verdicts = writes.iter().map(|write| write.carry_out(&self.connection)).collect::<Result<_, _>>();
        let verdicts = verdicts.map_err(Failed::Request)?;
        self.run_cached("COMMIT").map_err(Failed::Transaction)?;
        Ok(verdicts)
    }

    fn run_cached(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute(()).map(|_| ())
    }
}

/// Tells each who asked. Nobody waits any more where the caller was cancelled; it is done all the same.
fn answer(requests: Vec<Request>, verdicts: Vec<Verdict>) {
    for (request, verdict) in requests.into_iter().zip(verdicts) {
        let _ = request.reply.send(verdict);
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// Changes when another connection than this one wrote.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))
}

/// Where a transaction failed.
enum Failed {
    /// In one request.
    Request(rusqlite::Error),
    /// At its beginning or its end.
    Transaction(rusqlite::Error),
}
