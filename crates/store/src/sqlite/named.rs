//! Whether the file that is open still has its name and is what it was: what is written into one that was removed, replaced or
//! written over is lost with the process.

use std::fs::Metadata;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use turnwright_engine::StoreError;

use super::origin::{Mark, Origin, log_and_index};

/// How often it is looked into a file that changes all the time, since a log is put back into it.
const LOOKS_APART: Duration = Duration::from_millis(100);
/// How long a file may be unreadable, while another process writes it anew: a large one takes seconds.
const UNREADABLE_FOR: Duration = Duration::from_secs(10);

/// The file of a database, as the system knows it and as it was opened.
#[derive(Debug)]
pub(super) struct Named {
    name: Name,
    mark: Mark,
    damage: Arc<Damage>,
    /// Its length and when it was written, at the last look into it.
    seen: Option<(u64, SystemTime)>,
    looked_at: Option<Instant>,
    unreadable_since: Option<Instant>,
    /// Whether the log was told why nothing is stored.
    is_told: bool,
}

/// Why nothing is stored in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// The file that is open has another name, or none. What its log holds belongs into it all the same.
    Name(String),
    /// Another is in its place under its own name: what its log holds belongs to nothing that is there.
    Content(String),
    /// Parts of it cannot be read.
    Parts(String),
}

impl Lost {
    pub(super) fn refusal(&self) -> StoreError {
        let (Self::Name(reason) | Self::Content(reason) | Self::Parts(reason)) = self;
        StoreError::Unusable { reason: reason.clone() }
    }
}

/// What was found out about the file by whoever read it.
#[derive(Debug, Default)]
pub(super) struct Damage(OnceLock<String>);

impl Damage {
    /// Takes notice of a failure, where it says that the file is damaged.
    pub(super) fn see(&self, file: &Path, error: &rusqlite::Error) {
        let rusqlite::Error::SqliteFailure(failure, _) = error else { return };
        let is_damaged = match failure.code {
            // The words of the search are made from what is in the file.
            rusqlite::ErrorCode::DatabaseCorrupt => failure.extended_code != rusqlite::ffi::SQLITE_CORRUPT_VTAB,
            rusqlite::ErrorCode::NotADatabase => true,
            _ => false,
        };
        if is_damaged {
            self.0.get_or_init(|| {
                format!(
                    "`{}` is damaged ({error}), and what is stored now could be lost; end this process, restore the file from a \
                     backup, or look with `turnwright db check` what is damaged",
                    file.display()
                )
            });
        }
    }
}

impl Named {
    /// The one that was opened by this name just now.
    pub(super) fn of(file: &Path, mark: Mark, damage: Arc<Damage>) -> Self {
        let seen = std::fs::metadata(file).ok().and_then(|found| state(&found));
        Self { name: Name::of(file), mark, damage, seen, looked_at: None, unreadable_since: None, is_told: false }
    }

    /// See [`Damage::see`].
    pub(super) fn see(&self, file: &Path, error: &rusqlite::Error) {
        self.damage.see(file, error);
    }

    /// Why nothing is to be stored in it now. This is a system call, where a transaction is tens of them.
    pub(super) fn lost(&mut self, file: &Path) -> Option<Lost> {
        let lost = self.find(file);
        match &lost {
            None => self.is_told = false,
            Some(Lost::Name(reason) | Lost::Content(reason) | Lost::Parts(reason)) => {
                if !std::mem::replace(&mut self.is_told, true) {
                    tracing::error!("{reason}");
                }
            }
        }
        lost
    }

    fn find(&mut self, file: &Path) -> Option<Lost> {
        let found = std::fs::metadata(file);
        if let Some(reason) = self.name.lost(file, &found) {
            return Some(Lost::Name(reason));
        }
        if let Some(reason) = found.ok().and_then(|found| self.content(file, &found)) {
            return Some(Lost::Content(reason));
        }
        self.damage.0.get().cloned().map(Lost::Parts)
    }

    /// Looks into it where it was written since the last look. Whoever puts a log back into it writes it too.
    fn content(&mut self, file: &Path, found: &Metadata) -> Option<String> {
        let state = state(found)?;
        if self.seen == Some(state) {
            return None;
        }
        let is_emptied = state.0 == 0 && self.seen.is_some_and(|(length, _)| length > 0);
        let now = Instant::now();
        if !is_emptied && self.looked_at.is_some_and(|at| now.duration_since(at) < LOOKS_APART) {
            return None;
        }
        let origin = Origin::of(file);
        let unreadable_since = match &origin {
            Origin::Unknown => Some(self.unreadable_since.unwrap_or(now)),
            Origin::Marked(_) | Origin::Unmarked(_) => None,
        };
        self.unreadable_since = unreadable_since;
        let is_unreadable = unreadable_since.is_some_and(|since| now.duration_since(since) >= UNREADABLE_FOR);
        if is_emptied || is_unreadable || !self.mark.may_be(&origin) {
            let (log, index) = log_and_index(file);
            let (file, log, index) = (file.display(), log.display(), index.display());
            return Some(format!(
                "`{file}` was written over or cut off while it was open, and what is stored now would be lost; end this process, \
                 remove `{log}` and `{index}`, restore `{file}` from a backup and start again"
            ));
        }
        self.looked_at = Some(now);
        if unreadable_since.is_none() {
            self.seen = Some(state);
            if matches!(origin, Origin::Marked(_)) {
                self.mark.still = None;
            }
        }
        None
    }
}

fn state(found: &Metadata) -> Option<(u64, SystemTime)> {
    Some((found.len(), found.modified().ok()?))
}

/// A file by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// `None` where it could not be looked at.
    is: Option<Identity>,
}

/// Its device and its number there.
type Identity = (u64, u64);

impl Name {
    pub(super) fn of(file: &Path) -> Self {
        Self { is: std::fs::metadata(file).ok().map(|found| identity(&found)) }
    }

    /// What happened, where the name is another's by now or nobody's.
    pub(super) fn lost(self, file: &Path, found: &std::io::Result<Metadata>) -> Option<String> {
        let is = self.is?;
        let happened = match found {
            Ok(found) if identity(found) != is => "was replaced",
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "was removed",
            Ok(_) | Err(_) => return None,
        };
        let (log, index) = log_and_index(file);
        let (file, log, index) = (file.display(), log.display(), index.display());
        Some(format!(
            "`{file}` {happened} while it was open, and what is stored now would be lost; put it back, or end this process, remove \
             `{log}` and `{index}` where they are left, and start it again"
        ))
    }
}

/// Whether two names are of one file, where that can be told.
pub(crate) fn is_one_file(one: &Path, other: &Path) -> bool {
    let is = |file| std::fs::metadata(file).ok().map(|found| identity(&found)).filter(|is| *is != (0, 0));
    is(one).is_some_and(|one| is(other) == Some(one))
}

#[cfg(unix)]
fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

/// An open file cannot be removed: it is always the same.
#[cfg(not(unix))]
fn identity(_found: &Metadata) -> Identity {
    (0, 0)
}
