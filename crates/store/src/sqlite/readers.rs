//! Connections that only read, beside the writer: opened when needed, kept for the next reader.
//!
//! Who asks may stop looking for a while, as a stream does whose client reads nothing. So whoever has to wait for a connection does so
//! in a task of its own: its place in the line keeps nobody else waiting.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use turnwright_engine::StoreError;

use super::named::{Damage, Name};
use super::{failure, open};

/// How many read at the same time; others wait.
const READERS: u32 = 4;

/// The connections that nobody uses, and the right to use one.
#[derive(Debug)]
pub(super) struct Readers {
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Shared {
    file: PathBuf,
    name: Name,
    damage: Arc<Damage>,
    lock_wait: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(file: PathBuf, lock_wait: Duration, damage: Arc<Damage>) -> Self {
        let name = Name::of(&file);
        let shared = Shared { file, name, damage, lock_wait, idle: Mutex::new(Vec::new()) };
        Self { shared: Arc::new(shared), room: Arc::new(Semaphore::new(READERS as usize)), tasks: TaskTracker::new() }
    }

    /// Runs `read` on a thread that may wait for the disk.
    pub(super) async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Unread> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let work = |permit: OwnedSemaphorePermit| {
            move || {
                let answer = shared.read(read);
                drop(permit);
                answer
            }
        };
        let room = Arc::clone(&self.room);
        let answer = match Arc::clone(&room).try_acquire_owned() {
            Ok(permit) => tokio::task::spawn_blocking(work(permit)).await,
            Err(TryAcquireError::Closed) => return Err(StoreError::Closed),
            Err(TryAcquireError::NoPermits) => {
                let waiting = self.tasks.spawn(async move {
                    let permit = room.acquire_owned().await.map_err(|_| StoreError::Closed)?;
                    tokio::task::spawn_blocking(work(permit)).await.unwrap_or_else(|_| Err(crate::broken_off()))
                });
                AbortOnDropHandle::new(waiting).await
            }
        };
        answer.unwrap_or_else(|_| Err(crate::broken_off()))
    }

    /// Runs `read`, which looks at a few rows and no more, on this thread: it takes less time than another thread needs to
    /// wake up. Where all connections are in use it goes to a thread that may wait, as [`Readers::read`] does.
    pub(super) async fn read_here<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Unread> + Send + 'static,
    {
        match self.room.try_acquire() {
            Ok(_permit) => self.shared.read(read),
            Err(TryAcquireError::Closed) => Err(StoreError::Closed),
            Err(TryAcquireError::NoPermits) => self.read(read).await,
        }
    }

    /// Waits for those who read and closes their connections.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.room.acquire_many(READERS).await {
            all.forget();
            self.room.close();
        }
        self.shared.idle().clear();
    }
}

/// Why a read did not answer.
#[derive(Debug)]
pub(crate) enum Unread {
    /// SQLite failed.
    Database(rusqlite::Error),
    /// It is not there, or not to be understood.
    Refused(StoreError),
}

impl From<rusqlite::Error> for Unread {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Shared {
    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Unread>) -> Result<T, StoreError> {
        let kept = self.idle().pop();
        let answer = match kept {
            Some(connection) => Ok(connection),
            None => self.open(),
        }
        .and_then(|connection| {
            let answer = read(&connection);
            self.idle().push(connection);
            answer
        });
        answer.map_err(|unread| match unread {
            Unread::Database(error) => {
                self.damage.see(&self.file, &error);
                failure::of(&self.file, &error)
            }
            Unread::Refused(error) => error,
        })
    }

    /// Another file under its name is another database, beside which lies the log of this one.
    fn open(&self) -> Result<Connection, Unread> {
        let found = std::fs::metadata(&self.file);
        if let Some(reason) = self.name.lost(&self.file, &found) {
            return Err(Unread::Refused(StoreError::Unusable { reason }));
        }
        // SQLite would remove the log beside it.
        if found.is_ok_and(|found| found.len() == 0) {
            let what = format!("the database `{}`", self.file.display());
            return Err(Unread::Refused(StoreError::Damaged {
                what,
                reason: "its file is empty; restore it from a backup".to_owned(),
            }));
        }
        Ok(open::for_reading(&self.file, self.lock_wait)?)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
