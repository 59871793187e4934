//! Locks by name: files beside those that say which drivers are alive.

use std::fs::{OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use turnwright_engine::knowledge::version_of;
use turnwright_engine::{Lock, Locks, StoreError};

use super::open::create_folder;
use super::{SqliteStore, failure};

/// How long a lock is waited for, and how often it is looked.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);

#[async_trait]
impl Locks for SqliteStore {
    async fn lock(&self, name: &str) -> Result<Lock, StoreError> {
        let folder = self.drivers.folder().join("named");
        create_folder(&folder)?;
        wait(&folder.join(version_of(name.as_bytes()))).await
    }
}

/// The file stays when it is let go: who waits for it holds this very file open.
async fn wait(path: &Path) -> Result<Lock, StoreError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| failure::of_file(path, "opened", &error))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            Err(TryLockError::WouldBlock) => {
                return Err(failure::of_file(path, "locked", &std::io::ErrorKind::TimedOut.into()));
            }
            Err(TryLockError::Error(error)) => return Err(failure::of_file(path, "locked", &error)),
        }
    }
}
