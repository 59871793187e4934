//! What SQLite's failures mean to the operator.

use std::path::Path;

use rusqlite::ErrorCode;
use turnwright_engine::StoreError;

/// Says which file it is about and what would be right.
pub(crate) fn of(file: &Path, error: &rusqlite::Error) -> StoreError {
    let file = file.display();
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_database(&file),
        Some(ErrorCode::DatabaseCorrupt) => {
            return StoreError::Damaged {
                what: format!("the database `{file}`"),
                reason: format!("{error}; restore it from a backup"),
            };
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            format!("`{file}` is locked by another process for too long; end that process or try again")
        }
        Some(ErrorCode::ReadOnly) => read_only(&file),
        Some(ErrorCode::DiskFull) => format!("there is no space left to write `{file}`; free some"),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            format!("`{file}` cannot be opened ({error}); it and its folder must be readable and writable")
        }
        _ => format!("`{file}` cannot be used: {error}"),
    };
    StoreError::Unusable { reason }
}

/// The text for a file of something else.
pub(super) fn not_a_database(path: &impl std::fmt::Display) -> String {
    format!("`{path}` is not a SQLite database; name another file or move this one away")
}

/// The text for a file or folder that must not be written.
pub(super) fn read_only(path: &impl std::fmt::Display) -> String {
    format!("`{path}` is read-only; the database and its folder must be writable")
}

/// The error of a file operation beside the database.
pub(super) fn of_file(path: &Path, doing: &str, error: &std::io::Error) -> StoreError {
    StoreError::Unusable { reason: format!("`{}` cannot be {doing}: {error}", path.display()) }
}
