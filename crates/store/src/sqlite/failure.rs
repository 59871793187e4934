//! What SQLite's failures mean to the operator.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;
use turnwright_engine::StoreError;

/// Says which file it is about and what would be right.
pub(crate) fn of(path: &Path, error: &rusqlite::Error) -> StoreError {
    let denied = || denied(path);
    let file = path.display();
    if is_of_a_value(error) {
        return StoreError::Damaged { what: format!("a row of the database `{file}`"), reason: error.to_string() };
    }
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_database(&file),
        Some(ErrorCode::DatabaseCorrupt) => {
            return StoreError::Damaged {
                what: format!("the database `{file}`"),
                reason: format!("{error}; restore it from a backup{}", log_first(&file, error)),
            };
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            format!("`{file}` is locked by another process for too long; end that process or try again")
        }
        Some(ErrorCode::ReadOnly) => denied().unwrap_or_else(|| read_only(&file)),
        Some(ErrorCode::DiskFull) => full(&file),
        // What lies beside it cannot be made longer then.
        Some(ErrorCode::SystemIoFailure) if is_full(path) => full(&file),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => denied()
            .unwrap_or_else(|| format!("`{file}` cannot be opened ({error}); it and its folder must be readable and writable")),
        _ => format!("`{file}` cannot be used: {error}"),
    };
    StoreError::Unusable { reason }
}

/// Whether a column holds something else than what is always written there.
fn is_of_a_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// What is to be done first where the schema cannot be read: that is how it looks where the log of another database was put into it.
fn log_first(file: &impl std::fmt::Display, error: &rusqlite::Error) -> String {
    if !error.to_string().contains("malformed database schema") {
        return String::new();
    }
    format!(", and remove `{file}-wal` and `{file}-shm` first, where they are there: the log of another database may be in it")
}

fn full(file: &impl std::fmt::Display) -> String {
    format!("there is no space left to write `{file}`; free some")
}

/// Whether the file system of a database has no room for a page of it.
pub(super) fn is_full(file: &Path) -> bool {
    statvfs(file.parent().unwrap_or(file)).is_ok_and(|found| found.f_bavail == 0)
}

/// The text for a file of something else.
pub(super) fn not_a_database(path: &impl std::fmt::Display) -> String {
    format!("`{path}` is not a SQLite database; name another file or move this one away")
}

/// The text for a file or folder that must not be written.
pub(super) fn read_only(path: &impl std::fmt::Display) -> String {
    format!("`{path}` is read-only; the database and its folder must be writable: `chmod u+w`, or name another place")
}

/// The error of a file operation beside the database.
pub(super) fn of_file(path: &Path, doing: &str, error: &io::Error) -> StoreError {
    StoreError::Unusable { reason: format!("`{}` cannot be {doing}: {error}{}", path.display(), mend(error)) }
}

/// Why a database, or its folder, cannot be written, of which SQLite says no more than that.
pub(super) fn denied(file: &Path) -> Option<String> {
    let refusal = |path: &Path| access(path, Access::READ_OK | Access::WRITE_OK).err().filter(|error| *error != Errno::NOENT);
    let (path, error) = [Some(file), file.parent()].into_iter().flatten().find_map(|path| Some((path, refusal(path)?)))?;
    let error = io::Error::from(error);
    Some(format!("`{}` cannot be written: {error}{}", path.display(), mend(&error)))
}

/// What mends a failure of a file, to be said behind it; nothing where that is not known.
pub fn mend(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "; its file system is mounted read-only: mount it writable, or name another place",
        io::ErrorKind::PermissionDenied => "; it must be writable for the user who runs this, or name another place",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space there",
        _ => "",
    }
}
