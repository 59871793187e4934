//! Which database a file is, apart from what is in the log beside it.
//!
//! SQLite takes any whole log `FILE-wal` for that of `FILE`. Where another database was put in the place of one whose process was
//! killed, it would write pages of the one into the other. So each file has a mark, and who has it open says which it is, in its
//! lock file, which stays where it is killed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use turnwright_engine::StoreError;

use super::drivers;
use super::open::{Places, resolved};

/// The schema's version from which on a database has a mark.
const MARKED_SINCE: i64 = 9;

/// How the mark of a backup begins. Whoever opens one to write gives it a mark of its own first: so a backup that is restored twice is
/// another database each time, and none that was open is taken for it.
const OF_A_BACKUP: &str = "backup-";

/// What the file itself says, without its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is this one.
    Marked(String),
    /// There is nothing in it, or what no version wrote that marks: its schema's version, 0 where it is no database of ours.
    Unmarked(i64),
    /// It cannot be read: a checkpoint was broken off or is under way, or it is damaged.
    Unknown,
}

impl Origin {
    /// Reads a file as it is on the disk, through SQLite alone: see [`Places::prepare`].
    pub(super) fn of(file: &Path) -> Self {
        match std::fs::metadata(file) {
            Ok(found) if found.len() == 0 => return Self::Unmarked(0),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::Unmarked(0),
            Ok(_) | Err(_) => {}
        }
        let read = unchanging(file).and_then(|connection| {
            let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if version < MARKED_SINCE {
                return Ok(Self::Unmarked(version));
            }
            // While a log is put back, or where that was broken off, some of its pages are there and others not.
            let mark = mark_of(&connection)?;
            let own = mark.strip_prefix(OF_A_BACKUP).unwrap_or(&mark);
            Ok(if drivers::is_name(own) { Self::Marked(mark) } else { Self::Unknown })
        });
        match read {
            Ok(origin) => origin,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Self::Unmarked(0),
            Err(_) => Self::Unknown,
        }
    }

    /// Whether it is a backup that nobody has opened to write.
    pub(super) fn is_of_a_backup(&self) -> bool {
        matches!(self, Self::Marked(mark) if mark.starts_with(OF_A_BACKUP))
    }
}

/// A connection that reads a file as one that does not change, without its log.
pub(super) fn unchanging(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(without_log(file), flags)
}

/// Makes the database that is open a backup, once everything is in it.
pub(super) fn become_backup(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE origin SET mark = ?1 || mark WHERE mark NOT LIKE ?1 || '%'", (OF_A_BACKUP,)).map(drop)
}

/// Gives a backup that is opened to be written a mark of its own, in the file itself: no lock file may name one that only its log has.
/// Another process may do the same at this moment.
pub(super) fn leave_backup(connection: &Connection) -> rusqlite::Result<()> {
    let renew = "UPDATE origin SET mark = lower(hex(randomblob(16))) WHERE mark LIKE ?1 || '%'";
    connection.execute(renew, (OF_A_BACKUP,))?;
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0))?;
    if is_busy { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)) } else { Ok(()) }
}

/// The mark of the database that is open, which may be in its log alone.
pub(super) fn mark_of(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT mark FROM origin", (), |row| row.get(0))
}

/// The name by which SQLite takes a file for one that does not change, and reads no log.
fn without_log(file: &Path) -> String {
    let mut name = "file:".to_owned();
    for byte in resolved(file).as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            name.push(char::from(*byte));
        } else {
            // Writing into a text does not fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name + "?immutable=1"
}

/// What a process that has a database open says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The database's.
    pub(super) mark: String,
    /// The schema's version in the file itself, where that does not have the mark yet: nothing but its log has.
    pub(super) still: Option<i64>,
}

impl Mark {
    /// Of a file that is open.
    pub(super) fn of(connection: &Connection, file: &Path) -> rusqlite::Result<Self> {
        let mark = mark_of(connection)?;
        let still = match Origin::of(file) {
            Origin::Unmarked(version) => Some(version),
            Origin::Marked(_) | Origin::Unknown => None,
        };
        Ok(Self { mark, still })
    }

    /// Whether that is what it had open, as far as can be known.
    pub(super) fn may_be(&self, origin: &Origin) -> bool {
        match origin {
            Origin::Marked(found) => *found == self.mark,
            Origin::Unmarked(version) => self.still == Some(*version),
            Origin::Unknown => true,
        }
    }
}

/// What SQLite has beside a file while it is open.
pub(super) fn log_and_index(file: &Path) -> (PathBuf, PathBuf) {
    let file = resolved(file);
    let with = |end: &str| {
        let mut name = file.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    (with("-wal"), with("-shm"))
}

/// Whether there is a log beside it with something in it.
pub(super) fn has_log(file: &Path) -> bool {
    std::fs::metadata(log_and_index(file).0).is_ok_and(|found| found.len() > 0)
}

/// Refuses to begin anew where only the log of a database is left. SQLite would throw it away, and may have put nothing of it back: a
/// file has its first page before there is a log.
pub(super) fn must_not_be_lost(file: &Path) -> Result<(), StoreError> {
    // The log first: between the two looks another process may make the database, and begin its log.
    let has_log = has_log(file);
    let is_empty = match std::fs::metadata(file) {
        Ok(found) => found.is_file() && found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !is_empty || !has_log {
        return Ok(());
    }
    let (log, index) = log_and_index(file);
    let (file, log, index) = (file.display(), log.display(), index.display());
    let reason = format!(
        "`{file}` is not there or is empty, and its log `{log}` is: what was stored last is in that alone. Put the file back that \
         belongs to it; to use a backup in its place, or to begin anew, move `{log}` and `{index}` away"
    );
    Err(StoreError::Unusable { reason })
}

/// What the file says; refuses one beside which lies the log of another, or of which nothing else is left.
pub(super) fn check(places: &Places) -> Result<Origin, StoreError> {
    let file = &places.database;
    // Before the file: who is new here says so once it is.
    let others = drivers::marks(&places.locks);
    let origin = Origin::of(file);
    let mut strange: Vec<_> = others.iter().filter(|(mark, _)| !mark.may_be(&origin)).collect();
    strange.sort_by_key(|(_, is_alive)| !is_alive);
    let (log, index) = log_and_index(file);
    let (file, log, index) = (file.display(), log.display(), index.display());
    for (mark, is_alive) in strange {
        tracing::debug!(mark = mark.mark, ?origin, "another database was open here");
        if *is_alive {
            let reason = format!(
                "`{file}` was replaced or written over while another process had it open; end that process, remove `{log}` and \
                 `{index}` where they are left, and start again"
            );
            return Err(StoreError::Unusable { reason });
        }
        must_not_be_lost(&places.database)?;
        if has_log(&places.database) {
            let locks = places.locks.display();
            let reason = format!(
                "`{log}` is the log of another database than `{file}`: of the one that was here before and was not closed. With it \
                 `{file}` would be corrupt; remove `{log}` and `{index}` to use `{file}` as it is. Where both were put here \
                 together, remove `{locks}` instead"
            );
            return Err(StoreError::Unusable { reason });
        }
    }
    must_not_be_lost(&places.database)?;
    Ok(origin)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_database_that_another_process_makes_meanwhile_is_not_taken_for_a_lost_one() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..2_000 {
            let file = folder.path().join(format!("{round}.db"));
            let (log, _) = log_and_index(&file);
            let start = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    std::fs::write(&file, "its first page").unwrap();
                    std::fs::write(&log, "its log").unwrap();
                });
                start.wait();
                while !has_log(&file) {
                    must_not_be_lost(&file).unwrap();
                }
            });
        }

        let file = folder.path().join("lost.db");
        std::fs::write(log_and_index(&file).0, "its log").unwrap();
        must_not_be_lost(&file).unwrap_err();
    }
}
