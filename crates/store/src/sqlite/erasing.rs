//! One process at a time writes the whole database anew, and the others wait to write for as long as it goes on.
//!
//! That takes as long as the database is large: longer than anybody waits for another's small transaction. Who does it says all the
//! time that it goes on, since the files show nothing for long: one that was stopped is waited for no longer than that is seen.

use std::convert::Infallible;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use turnwright_engine::StoreError;

use super::failure;
use super::open::{beside, create_folder};

/// In the folder of the drivers' lock files; who writes the database anew holds its lock, and writes it for as long as it goes on.
const FILE: &str = "erase";
/// How long a step of waiting for another process's lock is: it holds it for one small transaction at a time.
const STEP: Duration = Duration::from_millis(1);
/// After how many steps it is told for what is waited.
const TOLD_AT: i32 = 100;
/// How often who writes the database anew says so, and how often it is looked whether it is done.
const BEAT: Duration = Duration::from_millis(100);
const LOOKS_APART: Duration = Duration::from_millis(10);
/// For how many times the wait for a small transaction it may say nothing: a minute.
const MOST_QUIET: u32 = 12;

fn file_of(database: &Path) -> PathBuf {
    beside(database, "locks").join(FILE)
}

/// Nobody else writes the database anew for as long as this lives.
#[derive(Debug)]
pub(super) struct Alone {
    _file: File,
    /// Without it the thread ends that says that it goes on.
    ends: Option<Sender<Infallible>>,
    beating: Option<JoinHandle<()>>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.ends = None;
        if self.beating.take().is_some_and(|beating| beating.join().is_err()) {
            tracing::error!("who says that the database is written anew ended by a panic");
        }
    }
}

/// Waits for whoever writes the database anew at this moment, for as long as it goes on and nobody closes the store.
///
/// # Errors
/// Where the file cannot be made, where another process holds it and does not go on, and [`StoreError::Closed`].
pub(super) fn alone(database: &Path, lock_wait: Duration, is_closed: impl Fn() -> bool) -> Result<Alone, StoreError> {
    create_folder(&beside(database, "locks"))?;
    let path = file_of(database);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| failure::of_file(&path, "opened", &error))?;
    let mut watched: Option<(SystemTime, Instant)> = None;
    loop {
        let locked = file.try_lock();
        if is_closed() {
            return Err(StoreError::Closed);
        }
        match locked {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(failure::of_file(&path, "locked", &error)),
        }
        if watched.is_none() {
            tell(database);
        }
        let written = written_at(&file);
        match &watched {
            Some((seen, since)) if *seen == written => {
                if since.elapsed() >= lock_wait.saturating_mul(MOST_QUIET) {
                    return Err(stands_still(database));
                }
            }
            Some(_) | None => watched = Some((written, Instant::now())),
        }
        std::thread::sleep(LOOKS_APART);
    }
    let (ends, ended) = mpsc::channel();
    let beaten = file.try_clone().map_err(|error| failure::of_file(&path, "opened", &error))?;
    let beating = std::thread::Builder::new().name("store-erasing".to_owned()).spawn(move || beat(beaten, &ended));
    let beating = beating.map_err(|error| failure::of_file(&path, "written", &error))?;
    Ok(Alone { _file: file, ends: Some(ends), beating: Some(beating) })
}

/// Says that it goes on until it ends. Where that cannot be written, others stop waiting.
fn beat(mut file: File, ended: &Receiver<Infallible>) {
    loop {
        drop(file.rewind().and_then(|()| file.write_all(b".")));
        match ended.recv_timeout(BEAT) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn written_at(file: &File) -> SystemTime {
    // Where nobody can say, it was never written, and is not waited for as if it went on.
    file.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn tell(database: &Path) {
    tracing::warn!("another process writes the database `{}` anew; waits for it", database.display());
}

fn stands_still(database: &Path) -> StoreError {
    let reason = format!(
        "another process began to write the database `{}` anew and does not go on; end that process or try again",
        database.display()
    );
    StoreError::Unusable { reason }
}

/// Waits for another process's lock, for so long after nobody writes the database anew.
#[derive(Debug)]
pub(super) struct Patience {
    steps: u128,
    database: PathBuf,
    file: PathBuf,
    /// The step from which on it is counted.
    from: i32,
    quiet: Quiet,
}

/// When who writes the database anew said so last, and how often it was looked without another word.
#[derive(Debug, Default)]
struct Quiet {
    seen: Option<SystemTime>,
    looks: u32,
}

impl Patience {
    pub(super) fn new(database: &Path, lock_wait: Duration) -> Self {
        Self {
            steps: lock_wait.as_millis() / STEP.as_millis(),
            database: database.to_owned(),
            file: file_of(database),
            from: 0,
            quiet: Quiet::default(),
        }
    }

    /// Waits for a step, of which SQLite counts those of one lock from 0 on; says whether to ask for the lock again.
    pub(super) fn wait(&mut self, step: i32, may_wait: &AtomicBool) -> bool {
        if step == 0 {
            self.from = 0;
            self.quiet = Quiet::default();
        }
        let waited = step.saturating_sub(self.from);
        let mut goes_on = may_wait.load(Ordering::Relaxed);
        if goes_on && step == TOLD_AT && self.is_written_anew().is_some() {
            tell(&self.database);
        }
        if goes_on && !u128::try_from(waited).is_ok_and(|waited| waited < self.steps) {
            goes_on = match self.is_written_anew() {
                Some(written) => self.quiet.goes_on(written),
                None => false,
            };
            self.from = step;
        }
        if goes_on {
            std::thread::sleep(STEP);
        }
        goes_on
    }

    /// Whether somebody does, and when that was said.
    fn is_written_anew(&self) -> Option<SystemTime> {
        let file = File::open(&self.file).ok()?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| written_at(&file))
    }
}

impl Quiet {
    /// Whether it was said since the look before, or not long ago.
    fn goes_on(&mut self, written: SystemTime) -> bool {
        if self.seen != Some(written) {
            *self = Self { seen: Some(written), looks: 0 };
        }
        self.looks = self.looks.saturating_add(1);
        self.looks <= MOST_QUIET
    }
}
