//! One process at a time writes the whole database anew, and the others wait to write for as long as it does.
//!
//! That takes as long as the database is large: longer than anybody waits for another's small transaction.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use turnwright_engine::StoreError;

use super::failure;
use super::open::{beside, create_folder};

/// In the folder of the drivers' lock files; who writes the database anew holds its lock.
const FILE: &str = "erase";
/// How long a step of waiting for another process's lock is: it holds it for one small transaction at a time.
const STEP: Duration = Duration::from_millis(1);

fn file_of(database: &Path) -> PathBuf {
    beside(database, "locks").join(FILE)
}

/// Waits for whoever writes the database anew at this moment. Nobody else does for as long as the file is open.
///
/// # Errors
/// Where the file cannot be made.
pub(super) fn alone(database: &Path) -> Result<File, StoreError> {
    create_folder(&beside(database, "locks"))?;
    let path = file_of(database);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| failure::of_file(&path, "opened", &error))?;
    file.lock().map_err(|error| failure::of_file(&path, "locked", &error))?;
    Ok(file)
}

/// Waits for another process's lock, for so long after nobody writes the database anew.
#[derive(Debug)]
pub(super) struct Patience {
    steps: u128,
    file: PathBuf,
    /// The step from which on it is counted.
    from: AtomicI32,
}

impl Patience {
    pub(super) fn new(database: &Path, lock_wait: Duration) -> Self {
        Self { steps: lock_wait.as_millis() / STEP.as_millis(), file: file_of(database), from: AtomicI32::new(0) }
    }

    /// Waits for a step, of which SQLite counts those of one lock from 0 on; says whether to ask for the lock again.
    pub(super) fn wait(&self, step: i32, may_wait: &AtomicBool) -> bool {
        if step == 0 {
            self.from.store(0, Ordering::Relaxed);
        }
        let waited = step.saturating_sub(self.from.load(Ordering::Relaxed));
        let mut goes_on = may_wait.load(Ordering::Relaxed);
        if goes_on && !u128::try_from(waited).is_ok_and(|waited| waited < self.steps) {
            goes_on = self.is_written_anew();
            self.from.store(step, Ordering::Relaxed);
        }
        if goes_on {
            std::thread::sleep(STEP);
        }
        goes_on
    }

    fn is_written_anew(&self) -> bool {
        File::open(&self.file).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}
