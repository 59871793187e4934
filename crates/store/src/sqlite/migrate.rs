//! Brings a database to this build's schema, once, however many processes start together.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use turnwright_engine::StoreError;

use super::options::{Durability, Making, SqliteOptions, with_suffix};
use super::{failure, open, origin, upgrade};

/// The schema's history. A database's `user_version` counts how many of these it has seen; none is ever changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_journal.sql"),
    include_str!("../migrations/0002_documents.sql"),
    include_str!("../migrations/0003_owner.sql"),
    include_str!("../migrations/0004_accounts.sql"),
    include_str!("../migrations/0005_artifacts.sql"),
    include_str!("../migrations/0006_search.sql"),
    include_str!("../migrations/0007_knowledge.sql"),
    include_str!("../migrations/0008_ledger.sql"),
    include_str!("../migrations/0009_origin.sql"),
    include_str!("../migrations/0010_beginnings.sql"),
];

/// Marks a database as ours: `Turn` in ASCII.
const APPLICATION_ID: i64 = 0x5475_726e;

/// Checks that the database is ours, or new and empty, and migrates it; whoever else does is waited for while `may_wait` holds.
///
/// # Errors
/// Where it is another application's, of a newer version, damaged or not writable, and where `may_wait` holds no longer. It is
/// unchanged then.
pub(super) fn migrate(
    connection: &mut Connection,
    places: &open::Places,
    options: &SqliteOptions,
    may_wait: &Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let file = &places.database;
    ended_by(connection, may_wait).map_err(|error| failure::of(file, &error))?;
    bring_up(connection, places, options, may_wait)?;
    connection.progress_handler(0, None::<fn() -> bool>).map_err(|error| failure::of(file, &error))
}

/// How many steps of SQLite's machine pass between two looks whether anybody still waits: a few may copy a large row.
const STEPS: i32 = 100;

/// Has what this connection does broken off once `may_wait` holds no longer.
fn ended_by(connection: &mut Connection, may_wait: &Arc<AtomicBool>) -> rusqlite::Result<()> {
    let may_wait = Arc::clone(may_wait);
    connection.progress_handler(STEPS, Some(move || !may_wait.load(Ordering::Relaxed)))
}

fn bring_up(
    connection: &Connection,
    places: &open::Places,
    options: &SqliteOptions,
    may_wait: &Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let file = &places.database;
    let fails = |error: rusqlite::Error| failure::of(file, &error);
    let seen = {
        // All of it from one instant: another process may be migrating.
        let _instant = connection.unchecked_transaction().map_err(fails)?;
        Seen::of(connection, file)?
    };
    if seen.migrations == 0 && options.making == Making::Refused {
        let (log, _) = origin::log_and_index(file);
        let (file, log) = (file.display(), log.display());
        let reason = format!(
            "there is nothing in the database `{file}`; where it is a copy of one that was open, what that holds may be in its log \
             (`{log}`), which has to be copied with it: `turnwright db backup` makes a copy that is whole"
        );
        return Err(StoreError::Unusable { reason });
    }
    if connection.is_readonly("main").map_err(fails)? {
        return Err(StoreError::Unusable { reason: failure::read_only(&file.display()) });
    }
    let (making, kept) = match options.durability {
        // A new database holds nothing that a power cut could take, and waiting five times for the disk is slow.
        Durability::Process if seen.migrations == 0 => ("OFF", "NORMAL"),
        Durability::Process => ("NORMAL", "NORMAL"),
        Durability::Power => ("FULL", "FULL"),
    };
    connection.pragma_update(None, "synchronous", making).map_err(fails)?;
    write_ahead(connection, file, options.lock_wait)?;
    if seen.is_current() {
        return connection.pragma_update(None, "synchronous", kept).map_err(fails);
    }
    // A new one is made in no time.
    let alone = (seen.migrations > 0).then(|| upgrade::alone(&places.locks, file, may_wait)).transpose()?;
    run_missing(connection, file, options.lock_wait, may_wait)?;
    connection.pragma_update(None, "synchronous", kept).map_err(fails)?;
    if alone.is_some() {
        put_log_back(connection, file);
    }
    Ok(())
}

/// So that the file has its mark at once, and no copy of what it was before is taken for it. Where somebody still reads what it
/// was, the writer does it later.
fn put_log_back(connection: &Connection, file: &Path) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())) {
        tracing::debug!(file = %file.display(), %error, "the log was not put back after the database was brought up");
    }
}

fn run_missing(
    connection: &Connection,
    file: &Path,
    lock_wait: Duration,
    may_wait: &Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let fails = |error: rusqlite::Error| failure::of(file, &error);
    connection.execute_batch("BEGIN IMMEDIATE").map_err(fails)?;
    let done = missing(connection, file, lock_wait, may_wait);
    if done.is_err() {
        // The first error tells what happened; the transaction is over either way when the connection closes.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

/// What a database says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) migrations: usize,
}

impl Seen {
    pub(super) fn of(connection: &Connection, file: &Path) -> Result<Self, StoreError> {
        let fails = |error: rusqlite::Error| failure::of(file, &error);
        let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let application = number("application_id").map_err(fails)?;
        let version = number("user_version").map_err(fails)?;
        if application != APPLICATION_ID {
            let tables = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)";
            let is_used: bool = connection.query_row(tables, (), |row| row.get(0)).map_err(fails)?;
            if is_used || application != 0 || version != 0 {
                let reason = format!("`{}` is the database of another application; name another file", file.display());
                return Err(StoreError::Unusable { reason });
            }
            return Ok(Self { migrations: 0 });
        }
        match usize::try_from(version) {
            Ok(migrations) if migrations <= MIGRATIONS.len() => Ok(Self { migrations }),
            Ok(_) => Err(StoreError::Newer {
                what: format!(
                    "the database `{}` (schema {version}, this build reads up to {})",
                    file.display(),
                    MIGRATIONS.len()
                ),
            }),
            Err(_) => Err(StoreError::Damaged {
                what: format!("the database `{}`", file.display()),
                reason: format!("its schema version is {version}; restore it from a backup"),
            }),
        }
    }

    pub(super) fn is_current(self) -> bool {
        self.migrations == MIGRATIONS.len()
    }
}

/// Turns the write-ahead log on, which lasts. Two processes that both begin cannot wait for one another inside SQLite, so
/// the loser is told at once that the database is busy, and asks again.
fn write_ahead(connection: &Connection, file: &Path, lock_wait: Duration) -> Result<(), StoreError> {
    let mut left = lock_wait.as_millis();
    loop {
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let reason = format!(
                    "`{}` lies where SQLite cannot keep a write-ahead log (it says `{mode}`); name a file on a local disk",
                    file.display()
                );
                return Err(StoreError::Unusable { reason });
            }
            Err(error) if left > 0 && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                left -= 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(failure::of(file, &error)),
        }
    }
}

/// Runs what is missing. Looks again first: another process may have been quicker.
fn missing(connection: &Connection, file: &Path, lock_wait: Duration, may_wait: &Arc<AtomicBool>) -> Result<(), StoreError> {
    let seen = Seen::of(connection, file)?;
    let is_older = seen.migrations > 0 && !seen.is_current();
    let (name, from, to) = (file.display(), seen.migrations, MIGRATIONS.len());
    if is_older {
        let copy = with_suffix(file, &format!("before-v{to}"));
        tracing::info!(
            "brings the database `{name}` from schema {from} to {to}; keeps what it was as `{}` first",
            copy.display()
        );
        keep_copy(file, &copy, lock_wait, may_wait)?;
    }
    let run = run_scripts(connection, seen).and_then(|()| connection.execute_batch("COMMIT"));
    run.map_err(|error| failure::of(file, &error))?;
    if is_older {
        tracing::info!("the database `{name}` is of schema {to} now");
    }
    Ok(())
}

fn run_scripts(connection: &Connection, seen: Seen) -> rusqlite::Result<()> {
    for script in MIGRATIONS.iter().skip(seen.migrations) {
        connection.execute_batch(script)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))
}

/// Brings a copy up that nobody else has, and of which none has to be kept.
pub(super) fn bring_copy_up(connection: &Connection, seen: Seen) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN")?;
    run_scripts(connection, seen)?;
    connection.execute_batch("COMMIT")
}

/// Keeps the database as it is beside itself, one copy for each version that it is brought to: `turnwright.db.before-v3`. The
/// caller holds the right to write and has not written yet, so nothing is missing in it, also not what is in the log alone. A
/// copy that is there already is of an earlier attempt; since then an older version may have stored more, so this one takes its
/// place.
fn keep_copy(file: &Path, copy: &Path, lock_wait: Duration, may_wait: &Arc<AtomicBool>) -> Result<(), StoreError> {
    // Under its own name only once it is whole.
    let part = with_suffix(copy, "part");
    let written = write_copy(file, copy, &part, lock_wait, may_wait);
    if written.is_err() {
        // The first error tells what happened.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn write_copy(
    file: &Path,
    copy: &Path,
    part: &Path,
    lock_wait: Duration,
    may_wait: &Arc<AtomicBool>,
) -> Result<(), StoreError> {
    let fails = |error: std::io::Error| failure::of_file(copy, "written", &error);
    match std::fs::remove_file(part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fails(error)),
        Ok(()) | Err(_) => {}
    }
    let target = part.to_str().ok_or_else(|| StoreError::Unusable {
        reason: format!("the copy `{}` cannot be made: its path is not UTF-8", copy.display()),
    })?;
    // Nobody else may read it while it is written, nor what is left of it where that is broken off.
    open::create_private(part);
    let mut reader = open::for_reading(file, lock_wait).map_err(|error| failure::of(file, &error))?;
    ended_by(&mut reader, may_wait).map_err(|error| failure::of(file, &error))?;
    reader.execute("VACUUM INTO ?1", (target,)).map_err(|error| failure::of(copy, &error))?;
    let permissions = std::fs::metadata(file).map_err(fails)?.permissions();
    std::fs::set_permissions(part, permissions).map_err(fails)?;
    std::fs::rename(part, copy).map_err(fails)
}
