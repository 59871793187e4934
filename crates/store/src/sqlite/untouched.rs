//! Databases that are only read and must stay as they are, byte for byte: what an older version wrote, so that it can go on with it; a
//! backup, which is one until somebody opens it to write; and what cannot be written. The first are read as a copy that is brought up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode};
use turnwright_engine::StoreError;

use super::log::keep_apart;
use super::migrate::{Seen, bring_copy_up};
use super::open::{self, Places};
use super::options::SqliteOptions;
use super::{drivers, failure, origin};

/// A database that is read without a change to it. Where an older version wrote it, a copy in a file without a name among the system's
/// temporary ones, which goes with its connection.
#[derive(Debug)]
pub(crate) struct Untouched {
    pub(crate) connection: Connection,
    /// That which is read, or of which this is a copy.
    pub(crate) file: PathBuf,
    pub(crate) locks: UntouchedLocks,
}

/// Where those that have it open say so.
#[derive(Debug)]
pub(crate) struct UntouchedLocks(PathBuf);

impl UntouchedLocks {
    /// Whether anybody does.
    pub(crate) fn is_in_use(&self) -> Result<bool, StoreError> {
        drivers::is_anybody_alive(&self.0)
    }
}

impl Untouched {
    /// The database that is there, as it is at this moment; `None` where it is one that may be opened as a server does.
    ///
    /// # Errors
    /// As [`SqliteStore::open`](super::SqliteStore::open), but not where it is read-only and nothing is in a log beside it; and where
    /// there is no room for the copy.
    pub(crate) fn of(options: &SqliteOptions) -> Result<Option<Self>, StoreError> {
        let places = Places::prepare_to_read(options)?;
        let origin = origin::check(&places)?;
        let (file, locks) = (places.database.clone(), UntouchedLocks(places.locks.clone()));
        let fails = |error: rusqlite::Error| failure::of(&file, &error);
        let has_log = origin::has_log(&file);
        let source = match places.check_writable() {
            Ok(()) => open::for_writing(&file, options, &Arc::new(AtomicBool::new(true))),
            // What a log holds cannot be read then.
            Err(read_only) if has_log || locks.is_in_use()? => return Err(read_only),
            Err(_) => origin::unchanging(&file),
        };
        let source = source.map_err(fails)?;
        let is_read_only = source.is_readonly("main").map_err(fails)?;
        if has_log {
            // It belongs to whoever was killed or has it open: what is in it is read, and stays in it.
            keep_apart(&source);
        }
        let seen = Seen::of(&source, &file)?;
        if seen.migrations == 0 || (seen.is_current() && !is_read_only && !origin.is_of_a_backup()) {
            return Ok(None);
        }
        let connection = if seen.is_current() { source } else { brought_up(&source, &file, seen, options.lock_wait)? };
        Ok(Some(Self { connection, file, locks }))
    }
}

impl Untouched {
    /// The same where there is no room beside it, neither for a lock file nor for the index of its log; `None` where there is, and where
    /// an older version wrote it.
    ///
    /// # Errors
    /// As [`Untouched::of`].
    pub(crate) fn without_room(options: &SqliteOptions) -> Result<Option<Self>, StoreError> {
        let places = Places::prepare_to_read(options)?;
        let (file, locks) = (places.database.clone(), UntouchedLocks(places.locks.clone()));
        if !failure::is_full(&file) {
            return Ok(None);
        }
        origin::check(&places)?;
        let fails = |error: rusqlite::Error| failure::of(&file, &error);
        let connection = if locks.is_in_use()? || origin::has_log(&file) {
            // A log that nobody has put back is read beside the file too, as long as its index is there.
            let beside_others = open::for_reading(&file, options.lock_wait).map_err(fails)?;
            keep_apart(&beside_others);
            beside_others
        } else {
            // Nobody begins to write it either while there is no room.
            origin::unchanging(&file).map_err(fails)?
        };
        let is_current = Seen::of(&connection, &file)?.is_current();
        Ok(is_current.then_some(Self { connection, file, locks }))
    }
}

fn brought_up(source: &Connection, file: &Path, seen: Seen, lock_wait: Duration) -> Result<Connection, StoreError> {
    let copy = copy_of(source, lock_wait).and_then(|copy| bring_copy_up(&copy, seen).map(|()| copy));
    copy.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => failure::of(file, &error),
        _ => StoreError::Unusable {
            reason: format!(
                "an older version wrote `{}`, and it cannot be copied among the temporary files to be read ({error}); \
                 `SQLITE_TMPDIR` names another folder for them",
                file.display()
            ),
        },
    })
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
