//! Where a database lies and what it must survive.

use std::path::{Path, PathBuf};
use std::time::Duration;

use turnwright_engine::StoreError;

/// What an acknowledged append survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// The process being killed at any instant (`synchronous = NORMAL`).
    #[default]
    Process,
    /// A power cut too (`synchronous = FULL`); each group of appends waits for the disk.
    Power,
}

/// How to open a [`SqliteStore`](super::SqliteStore).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    pub(super) location: Location,
    pub(super) durability: Durability,
    pub(super) lock_wait: Duration,
    pub(super) making: Making,
}

/// What is done where there is no database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Making {
    /// It is made.
    #[default]
    Made,
    /// That is an error, and nothing is made.
    Refused,
}

/// Where the database lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Location {
    /// A folder that is ours, created where it is missing.
    Directory(PathBuf),
    /// A file in somebody's folder, which must be there.
    File(PathBuf),
}

impl SqliteOptions {
    /// `turnwright.db` in a data directory, which is created where it is missing; its lock files are in `locks/`.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        Self::at(Location::Directory(path.into()))
    }

    /// A database file, created where it is missing; its folder must exist. Its lock files are in `FILE.locks/` beside it, where it is
    /// not that of a data directory.
    pub fn at_file(path: impl Into<PathBuf>) -> Self {
        Self::at(Location::File(path.into()))
    }

    /// Where something lies that belongs to this database and to no other: `DIR/name` for that of a data directory, else `FILE.name`.
    /// A link to a database counts as that to which it leads.
    pub fn beside(&self, name: &str) -> PathBuf {
        super::open::beside(&self.location.file(), name)
    }

    fn at(location: Location) -> Self {
        Self { location, durability: Durability::default(), lock_wait: Duration::from_secs(5), making: Making::default() }
    }

    /// Opens what is there, and makes nothing where there is no database.
    pub(crate) fn that_is_there(mut self) -> Self {
        self.making = Making::Refused;
        self
    }

    /// The one path of the database, by whatever name it is called here; also where it is not there yet.
    ///
    /// # Errors
    /// [`StoreError::Unusable`], where the working directory is gone.
    pub fn path(&self) -> Result<PathBuf, StoreError> {
        Ok(super::open::resolved(&super::open::absolute(&self.location.file())?))
    }

    /// What an acknowledged append survives; [`Durability::Process`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long to wait while another process writes, before that is an error; 5 seconds by default.
    pub fn lock_wait(mut self, lock_wait: Duration) -> Self {
        self.lock_wait = lock_wait;
        self
    }
}

pub(super) fn with_suffix(file: &Path, name: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    path.into()
}
