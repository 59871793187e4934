//! One process at a time brings a database up to this build's schema, and the others wait for as long as it does.
//!
//! With a large database that takes minutes, most of them for the copy that is kept: longer than anybody waits for another's write.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use turnwright_engine::StoreError;

use super::failure;
use super::open::create_folder;

/// In the folder of the drivers' lock files; who brings the database up holds its lock.
const FILE: &str = "upgrade";

const LOOKS_APART: Duration = Duration::from_millis(10);

/// Waits for whoever brings the database up at this moment. Nobody else does for as long as the file is open.
///
/// # Errors
/// Where the file cannot be made, and where `may_wait` holds no longer.
pub(super) fn alone(folder: &Path, database: &Path, may_wait: &AtomicBool) -> Result<File, StoreError> {
    create_folder(folder)?;
    let path = folder.join(FILE);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| failure::of_file(&path, "opened", &error))?;
    let mut is_told = false;
    loop {
        let locked = file.try_lock();
        if !may_wait.load(Ordering::Relaxed) {
            return Err(ended());
        }
        match locked {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(failure::of_file(&path, "locked", &error)),
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::info!("another process brings the database `{}` up; waits for it", database.display());
        }
        std::thread::sleep(LOOKS_APART);
    }
}

/// Of a start that nobody waits for any more.
fn ended() -> StoreError {
    StoreError::Unusable { reason: "the start was ended before the database was brought up; it is as it was".to_owned() }
}
