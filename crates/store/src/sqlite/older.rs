//! What an older version wrote, for those that only read it. They read a copy that is brought up: the file stays as it is, byte for
//! byte, and the older version can go on with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode};
use turnwright_engine::StoreError;

use super::log::keep_apart;
use super::migrate::{Seen, bring_copy_up};
use super::options::SqliteOptions;
use super::{drivers, failure, open, origin};

/// A copy of a database, in a file without a name among the system's temporary ones, which goes with its connection.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) connection: Connection,
    /// That of which it is a copy.
    pub(crate) file: PathBuf,
    pub(crate) locks: OlderLocks,
}

/// Where those that have that open of which it is a copy say so.
#[derive(Debug)]
pub(crate) struct OlderLocks(PathBuf);

impl OlderLocks {
    /// Whether anybody does.
    pub(crate) fn is_in_use(&self) -> Result<bool, StoreError> {
        drivers::is_anybody_alive(&self.0)
    }
}

impl Older {
    /// The database that is there, as it is at this moment; `None` where no older version wrote it.
    ///
    /// # Errors
    /// As [`SqliteStore::open`](super::SqliteStore::open), and where there is no room for the copy.
    pub(crate) fn of(options: &SqliteOptions) -> Result<Option<Self>, StoreError> {
        let places = open::Places::prepare(options)?;
        origin::check(&places)?;
        let file = places.database;
        let fails = |error: rusqlite::Error| failure::of(&file, &error);
        let may_wait = Arc::new(AtomicBool::new(true));
        let source = open::for_writing(&file, options, &may_wait).map_err(fails)?;
        if origin::has_log(&file) {
            // It belongs to whoever was killed or has it open: what is in it is read, and stays in it.
            keep_apart(&source);
        }
        let seen = Seen::of(&source, &file)?;
        if seen.migrations == 0 || seen.is_current() {
            return Ok(None);
        }
        let connection = copy_of(&source, options.lock_wait).and_then(|copy| bring_copy_up(&copy, seen).map(|()| copy));
        let connection = connection.map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                failure::of(&file, &error)
            }
            _ => StoreError::Unusable {
                reason: format!(
                    "an older version wrote `{}`, and it cannot be copied among the temporary files to be read ({error}); \
                     `SQLITE_TMPDIR` names another folder for them",
                    file.display()
                ),
            },
        })?;
        drop(source);
        Ok(Some(Self { connection, file, locks: OlderLocks(places.locks) }))
    }
}

const LOOKS_APART: Duration = Duration::from_millis(10);

/// Page by page, as it is, also where some of it is damaged.
fn copy_of(source: &Connection, lock_wait: Duration) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open("")?;
    // It lasts no longer than this process.
    copy.pragma_update(None, "synchronous", "OFF")?;
    let mut left = lock_wait;
    loop {
        let step = Backup::new(source, &mut copy)?.step(-1)?;
        match step {
            StepResult::Done => return Ok(copy),
            _ if left.is_zero() => {
                let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
                return Err(rusqlite::Error::SqliteFailure(busy, None));
            }
            _ => {
                left = left.saturating_sub(LOOKS_APART);
                std::thread::sleep(LOOKS_APART);
            }
        }
    }
}
