//! Files and connections: prepares the folder, refuses what is not ours, configures what is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use turnwright_engine::StoreError;

use super::erasing::Patience;
use super::options::{Location, Making, SqliteOptions, with_suffix};
use super::{failure, origin};

/// Where everything of one database lies, as absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// The database.
    pub(super) database: PathBuf,
    /// The folder of the drivers' lock files.
    pub(super) locks: PathBuf,
}

impl Places {
    /// Finds the places and checks what can be checked without opening the database.
    ///
    /// The database is looked at but never opened by hand: closing a second handle of this process would drop the locks
    /// that SQLite holds on it.
    pub(super) fn prepare(options: &SqliteOptions) -> Result<Self, StoreError> {
        let places = Self::prepare_to_read(options)?;
        places.check_writable()?;
        Ok(places)
    }

    /// The same where nothing will be written, so that it may be read-only.
    pub(super) fn prepare_to_read(options: &SqliteOptions) -> Result<Self, StoreError> {
        if options.making == Making::Refused {
            let file = absolute(&options.location.file())?;
            origin::must_not_be_lost(&file)?;
            must_be_there(&file)?;
        } else if let Location::Directory(path) = &options.location {
            create_folder(&absolute(path)?)?;
        }
        let places = Self::of(&options.location)?;
        places.check()?;
        Ok(places)
    }

    fn of(location: &Location) -> Result<Self, StoreError> {
        let database = absolute(&location.file())?;
        let locks = beside(&database, "locks");
        Ok(Self { database, locks })
    }

    fn check(&self) -> Result<(), StoreError> {
        check_folder(&self.folder(), &self.database)?;
        check_file(&self.database)
    }

    /// SQLite follows a link, and what lies beside a database lies beside that to which it leads.
    fn folder(&self) -> PathBuf {
        let file = if self.database.is_symlink() { resolved(&self.database) } else { self.database.clone() };
        file.parent().unwrap_or_else(|| Path::new("/")).to_owned()
    }

    /// Refuses a file, or a folder, that must not be written or cannot be.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        let folder = self.folder();
        for path in [&folder, &self.database] {
            // Whoever took the right to write away meant it, also where the system would let us.
            if std::fs::metadata(path).is_ok_and(|found| found.permissions().readonly()) {
                return Err(StoreError::Unusable { reason: failure::read_only(&path.display()) });
            }
        }
        let denied = failure::denied(&self.database).filter(|_| self.database.exists());
        denied.map_or(Ok(()), |reason| Err(StoreError::Unusable { reason }))
    }
}

impl SqliteOptions {
    /// Looks whether a database can be where this says, and makes nothing; a data directory that is not there will be made.
    ///
    /// # Errors
    /// [`StoreError::Unusable`], as opening it would say.
    pub fn look(&self) -> Result<(), StoreError> {
        match &self.location {
            Location::Directory(path) if !path.exists() => Ok(()),
            Location::Directory(_) | Location::File(_) => {
                let places = Places::of(&self.location)?;
                places.check().and_then(|()| places.check_writable())
            }
        }
    }
}

/// What the database of a data directory is called.
const FILE_NAME: &str = "turnwright.db";

impl Location {
    /// The database's file, as it is called.
    pub(super) fn file(&self) -> PathBuf {
        match self {
            Self::Directory(path) => path.join(FILE_NAME),
            Self::File(path) => path.clone(),
        }
    }
}

/// How many links are followed, as the system does.
const MOST_LINKS: usize = 40;

/// The one path of a file, by whatever name it is called. Where it is not there yet, that at which it will be made: a link may lead
/// to it already. Where there is no such folder, the name as it is: there is no database either.
pub(super) fn resolved(file: &Path) -> PathBuf {
    let mut file = file.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(there) = std::fs::canonicalize(&file) {
            return there;
        }
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return file };
        let Ok(folder) = std::fs::canonicalize(folder) else { return file };
        match std::fs::read_link(folder.join(name)) {
            // An absolute target takes the folder's place.
            Ok(target) => file = folder.join(target),
            Err(_no_link) => return folder.join(name),
        }
    }
    file
}

/// Where something lies that belongs to this database and to no other: one is the same by whatever name it is opened, or those that
/// have it open would take one another for dead. In a data directory that is `DIR/name`, else `FILE.name`.
pub(super) fn beside(database: &Path, name: &str) -> PathBuf {
    let database = resolved(database);
    match database.parent() {
        Some(folder) if database.file_name().is_some_and(|file| file == FILE_NAME) => folder.join(name),
        Some(_) | None => with_suffix(&database, name),
    }
}

/// Absolute, since SQLite reads some relative names as something else than files.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| failure::of_file(path, "found", &error))
}

/// Creates a folder that only its owner can look into.
pub(super) fn create_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| failure::of_file(folder, "created as a folder", &error))
}

pub(super) fn check_folder(folder: &Path, database: &Path) -> Result<(), StoreError> {
    let unusable = |reason| Err(StoreError::Unusable { reason });
    match std::fs::metadata(folder) {
        Ok(found) if !found.is_dir() => unusable(format!("`{}` is not a folder", folder.display())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => unusable(format!(
            "the folder of the database `{}` does not exist; create `{}` or name another file",
            database.display(),
            folder.display()
        )),
        Err(error) => Err(failure::of_file(folder, "looked into", &error)),
    }
}

/// SQLite takes a file with nothing in it for a database in which there is nothing yet.
fn must_be_there(database: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(database) {
        Ok(found) if !found.is_file() || found.len() > 0 => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failure::of_file(database, "looked at", &error)),
        Ok(_) | Err(_) => Err(StoreError::Unusable {
            reason: format!("there is no database `{}`; name one that is there", database.display()),
        }),
    }
}

/// In bytes: one page of the smallest size.
const SMALLEST_DATABASE: u64 = 512;

fn check_file(database: &Path) -> Result<(), StoreError> {
    let unusable = |reason| Err(StoreError::Unusable { reason });
    match std::fs::metadata(database) {
        Ok(found) if found.is_dir() => unusable(format!(
            "`{}` is a folder; name the database file in it, such as `{}`",
            database.display(),
            database.join(FILE_NAME).display()
        )),
        Ok(found) if !found.is_file() => unusable(format!("`{}` is not a file; name the database file", database.display())),
        // SQLite takes a file that is shorter than its smallest page for an empty one, and would write over it.
        Ok(found) if (1..SMALLEST_DATABASE).contains(&found.len()) => unusable(failure::not_a_database(&database.display())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failure::of_file(database, "looked at", &error)),
    }
}

/// How many statements a connection keeps prepared; more than there are.
const PREPARED_STATEMENTS: usize = 128;

/// A connection that may write. Not yet checked to be ours: see [`super::migrate`].
///
/// It waits for another process's lock only while `may_wait` holds, and never checkpoints by itself: the writer does.
pub(super) fn for_writing(
    database: &Path,
    options: &SqliteOptions,
    may_wait: &Arc<AtomicBool>,
) -> rusqlite::Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if options.making == Making::Made {
        create_private(&resolved(database));
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let patience = Patience::new(database, options.lock_wait);
    let connection = configured(Connection::open_with_flags(database, flags)?, patience, may_wait.clone())?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // What is deleted is overwritten, not only forgotten.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn for_reading(database: &Path, lock_wait: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let patience = Patience::new(database, lock_wait);
    configured(Connection::open_with_flags(database, flags)?, patience, Arc::new(AtomicBool::new(true)))
}

/// Makes the file where there is none, empty and for its owner alone; SQLite gives what lies beside it the same rights. One that
/// is there is left as it is and not opened: see [`Places::prepare`]. What stands in the way SQLite says.
pub(super) fn create_private(file: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(file));
}

fn configured(mut connection: Connection, patience: Patience, may_wait: Arc<AtomicBool>) -> rusqlite::Result<Connection> {
    connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
    // One plan for all values: otherwise SQLite prepares a statement anew whenever a bound limit or range changes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    wait_for_locks(&mut connection, patience, may_wait)?;
    Ok(connection)
}

/// Waits for another process's lock so patiently.
pub(super) fn wait_for_locks(
    connection: &mut Connection,
    mut patience: Patience,
    may_wait: Arc<AtomicBool>,
) -> rusqlite::Result<()> {
    connection.busy_handler(Some(move |step: i32| patience.wait(step, &may_wait)))
}
