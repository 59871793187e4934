//! The one writer: a thread that turns everything that waits into one transaction.
//!
//! It also looks, while somebody wants to know, whether another process wrote: the number that SQLite keeps for that does
//! not change by the writes of the connection that asks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use turnwright_engine::StoreError;

use super::failure;
use super::queue::{Queue, Taken};
use super::write::{Verdict, Write};

/// How often other processes' writes are looked for. Notice takes at most 100 ms.
const LOOK_INTERVAL: Duration = Duration::from_millis(40);

/// The writer, as its store sees it.
#[derive(Debug)]
pub(super) struct Writer {
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

impl Writer {
    /// Starts the thread on a connection that is ours and migrated.
    pub(super) fn start(connection: Connection, file: PathBuf) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::new());
        let foreign = watch::Sender::new(0);
        let (end, ended) = watch::channel(false);
        // Read before anybody can ask, so that no write falls between the asking and the first look.
        let seen = data_version(&connection).map_err(|error| failure::of(&file, &error))?;
        let work = Work { connection, file, queue: Arc::clone(&queue), foreign: foreign.clone(), seen, look_at: None };
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                work.run();
                end.send_replace(true);
            })
            .map_err(|error| StoreError::Unusable { reason: format!("the writer's thread cannot be started: {error}") })?;
        Ok(Self { queue, foreign, thread: Mutex::new(Some(thread)), ended })
    }

    /// Does one change; it is durable when this returns.
    pub(super) async fn write(&self, write: Write) -> Verdict {
        let (reply, verdict) = oneshot::channel();
        let bytes = write.bytes();
        self.queue.push(Request { write, reply }, bytes).await.map_err(|_| failure::closed())?;
        verdict.await.unwrap_or_else(|_| Err(failure::closed()))
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
struct Work {
    connection: Connection,
    file: PathBuf,
    queue: Arc<Queue<Request>>,
    foreign: watch::Sender<u64>,
    /// SQLite's number at the last look.
    seen: i64,
    /// When to look next; `None` while nobody wants to know.
    look_at: Option<Instant>,
}

impl Work {
    fn run(mut self) {
        loop {
            let wait = self.look();
            match self.queue.take(wait) {
                Taken::Items { items, weight } => {
                    self.serve(items);
                    self.queue.release(weight);
                }
                Taken::Nothing => {}
                Taken::Closed => return,
            }
        }
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

    fn serve(&self, requests: Vec<Request>) {
        let verdicts = self.verdicts(&requests);
        for (request, verdict) in requests.into_iter().zip(verdicts) {
            // Nobody waits any more where the caller was cancelled; it is done all the same.
            let _ = request.reply.send(verdict);
        }
    }

    /// One transaction for all. Where one request makes the database fail, each has its own.
    fn verdicts(&self, requests: &[Request]) -> Vec<Verdict> {
        match self.transaction(requests) {
            Ok(verdicts) => verdicts,
            Err(Failed::Request(_)) if requests.len() > 1 => requests
                .iter()
                .map(|request| match self.transaction(std::slice::from_ref(request)) {
                    Ok(mut verdicts) => verdicts.pop().unwrap_or(Ok(())),
                    Err(Failed::Request(error) | Failed::Transaction(error)) => Err(failure::of(&self.file, &error)),
                })
                .collect(),
            Err(Failed::Request(error) | Failed::Transaction(error)) => {
                let failure = failure::of(&self.file, &error);
                requests.iter().map(|_| Err(failure.clone())).collect()
            }
        }
    }

    /// Nothing of the group is stored where this fails.
    fn transaction(&self, requests: &[Request]) -> Result<Vec<Verdict>, Failed> {
        let done = self.begin_to_commit(requests);
        if done.is_err()
            && !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a failed transaction could not be rolled back");
        }
        done
    }

    fn begin_to_commit(&self, requests: &[Request]) -> Result<Vec<Verdict>, Failed> {
        self.run_cached("BEGIN IMMEDIATE").map_err(Failed::Transaction)?;
        let verdicts = requests.iter().map(|request| request.write.carry_out(&self.connection)).collect::<Result<_, _>>();
        let verdicts = verdicts.map_err(Failed::Request)?;
        self.run_cached("COMMIT").map_err(Failed::Transaction)?;
        Ok(verdicts)
    }

    fn run_cached(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute(()).map(|_| ())
    }
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
