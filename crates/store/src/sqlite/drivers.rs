//! Which drivers are alive: each holds the lock of a file that carries its name, for as long as its process lives.
//!
//! The system releases the lock however the process ends, so nothing has to be written, timed out or believed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use turnwright_core::DriverId;
use turnwright_engine::StoreError;

use super::failure;
use super::open::create_folder;
use super::origin::{self, Mark, Origin};

/// This store as a driver, and its view of the others.
#[derive(Debug)]
pub(super) struct Drivers {
    folder: PathBuf,
    own: DriverId,
    /// Held while the store is open; dropping it releases the lock.
    lock: Mutex<Option<File>>,
    /// The database that is open, and what is said of it.
    opened: Option<Opened>,
}

/// A database that is open.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: PathBuf,
    pub(super) mark: Mark,
}

impl Drivers {
    /// Takes a name that nobody had before, and removes the lock files of the dead.
    pub(super) fn enter(folder: PathBuf, opened: Option<Opened>) -> Result<Self, StoreError> {
        create_folder(&folder)?;
        sweep(&folder);
        // Whoever sweeps at this moment may take a new file for a stale one, between its creation and its lock.
        for _ in 0..16 {
            let own = new_name()?;
            let path = lock_path(&folder, &own);
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(|error| failure::of_file(&path, "created", &error))?;
            match file.try_lock() {
                // Names do not come again, so a file of this name is ours; sweepers remove before they release.
                Ok(()) if path.exists() => {
                    if let Some(Opened { mark: Mark { mark, still }, .. }) = &opened {
                        let still = still.map(|version| version.to_string()).unwrap_or_default();
                        let said = format!("{mark} {still}");
                        file.write_all(said.as_bytes()).map_err(|error| failure::of_file(&path, "written", &error))?;
                    }
                    return Ok(Self { folder, own, lock: Mutex::new(Some(file)), opened });
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failure::of_file(&path, "locked", &error)),
            }
        }
        Err(StoreError::Unusable {
            reason: format!("no lock file in `{}` can be kept; something removes them", folder.display()),
        })
    }

    /// Where the files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// This store's name.
    pub(super) fn own(&self) -> &DriverId {
        &self.own
    }

    /// Whether this store's lock is held.
    pub(super) fn is_held(&self) -> bool {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether anybody else's store is open.
    pub(super) fn has_company(&self) -> Result<bool, StoreError> {
        is_any_alive(&self.folder, |name| name != self.own.0)
    }

    /// Whether a driver's process has its store open.
    pub(super) fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError> {
        if *driver == self.own {
            return Ok(self.is_held());
        }
        is_alive(&self.folder, driver)
    }

    /// Stops being alive.
    pub(super) fn leave(&self) {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        // What its log holds belongs to nothing that is there: the next start has to know.
        let leaves_log = |opened: &Opened| origin::has_log(&opened.file) && !opened.mark.may_be(&Origin::of(&opened.file));
        if held.is_some() && !self.opened.as_ref().is_some_and(leaves_log) {
            let path = lock_path(&self.folder, &self.own);
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!(path = %path.display(), %error, "lock file not removed; the next start removes it");
            }
        }
    }
}

impl Drop for Drivers {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Whether a store is open whose lock files are in this folder, which may not be there.
pub(super) fn is_anybody_alive(folder: &Path) -> Result<bool, StoreError> {
    if folder.exists() { is_any_alive(folder, |_| true) } else { Ok(false) }
}

fn is_any_alive(folder: &Path, counts: impl Fn(&str) -> bool) -> Result<bool, StoreError> {
    let files = std::fs::read_dir(folder).map_err(|error| failure::of_file(folder, "read", &error))?;
    for path in files.filter_map(|file| Some(file.ok()?.path())) {
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if counts(name) && is_alive(folder, &DriverId(name.to_owned()))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether another driver's process has its store open.
fn is_alive(folder: &Path, driver: &DriverId) -> Result<bool, StoreError> {
    // Names come from journals, which may have been imported: only ours become part of a path.
    if !is_name(&driver.0) {
        return Ok(false);
    }
    let path = lock_path(folder, driver);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failure::of_file(&path, "opened", &error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(failure::of_file(&path, "locked", &error)),
    }
}

/// What those say who have a database open or were killed meanwhile, and whether they are alive.
pub(super) fn marks(folder: &Path) -> Vec<(Mark, bool)> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let marks = files.filter_map(|found| {
        let path = found.ok()?.path();
        let said =
            path.extension().is_some_and(|extension| extension == "lock").then(|| std::fs::read_to_string(&path))?.ok()?;
        let (mark, still) = said.split_once(' ')?;
        let mark = Mark { mark: is_name(mark).then(|| mark.to_owned())?, still: still.parse().ok() };
        let is_alive = matches!(File::open(&path).ok()?.try_lock_shared(), Err(TryLockError::WouldBlock));
        Some((mark, is_alive))
    });
    marks.collect()
}

/// Removes the files whose lock nobody holds. What cannot be removed is left to the next start.
fn sweep(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for path in files.filter_map(|file| Some(file.ok()?.path())) {
        let is_ours = path.extension().is_some_and(|extension| extension == "lock")
            && path.file_stem().and_then(|stem| stem.to_str()).is_some_and(is_name);
        if !is_ours {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok()
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::debug!(path = %path.display(), %error, "stale lock file not removed");
        }
    }
}

fn lock_path(folder: &Path, driver: &DriverId) -> PathBuf {
    folder.join(format!("{driver}.lock"))
}

const NAME_BYTES: usize = 16;

fn new_name() -> Result<DriverId, StoreError> {
    let mut bytes = [0_u8; NAME_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unusable { reason: format!("the system gives no random numbers: {error}") })?;
    Ok(DriverId(format!("{:032x}", u128::from_ne_bytes(bytes))))
}

pub(super) fn is_name(text: &str) -> bool {
    text.len() == 2 * NAME_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
