//! A database that is made under another name, `FILE.part`, and has its own only once it is whole.

use std::path::{Path, PathBuf};

use turnwright_engine::StoreError;

use super::drivers::Drivers;
use super::failure;
use super::open;
use super::options::{SqliteOptions, with_suffix};

/// What SQLite has beside a database while it is open.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The right to make a file, and what there is of it. What is not finished goes with it; what a process that was killed left, with
/// the next that makes the same file.
#[derive(Debug)]
pub(crate) struct Part {
    file: PathBuf,
    made_at: PathBuf,
    drivers: Drivers,
}

impl Part {
    /// Begins a file that is not there yet.
    ///
    /// # Errors
    /// Where the file is there, cannot be written, or another process makes it at this moment.
    pub(crate) fn begin(file: &Path) -> Result<Self, StoreError> {
        let file = open::absolute(file)?;
        must_not_be_there(&file)?;
        open::check_folder(file.parent().unwrap_or_else(|| Path::new("/")), &file)?;
        let part = with_suffix(&file, "part");
        let drivers = Drivers::enter(with_suffix(&part, "locks"))?;
        if drivers.has_company()? {
            let reason =
                format!("another process writes `{}` at this moment; wait for it or name another file", file.display());
            return Err(StoreError::Unusable { reason });
        }
        let begun = Self { file, made_at: part, drivers };
        begun.clear()?;
        Ok(begun)
    }

    /// Where it is made.
    pub(crate) fn options(&self) -> SqliteOptions {
        SqliteOptions::at_file(&self.made_at)
    }

    /// Gives it its own name, for good. Nobody may have it open any more.
    ///
    /// # Errors
    /// Where it is not on the disk whole, or somebody else made the file meanwhile.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let fails = |error: std::io::Error| failure::of_file(&self.file, "written", &error);
        // Whoever has it open last puts the log back into it, and says nothing where that cannot be.
        if beside(&self.made_at, "-wal").exists() {
            let reason = format!("`{}` cannot be written: what its log holds could not be put into it", self.file.display());
            return Err(StoreError::Unusable { reason });
        }
        std::fs::File::open(&self.made_at).and_then(|part| part.sync_all()).map_err(fails)?;
        must_not_be_there(&self.file)?;
        std::fs::rename(&self.made_at, &self.file).map_err(fails)?;
        #[cfg(unix)]
        if let Some(folder) = self.file.parent() {
            std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(fails)?;
        }
        Ok(())
    }

    /// Removes what there is of it.
    fn clear(&self) -> Result<(), StoreError> {
        for path in std::iter::once(self.made_at.clone()).chain(BESIDE.map(|name| beside(&self.made_at, name))) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failure::of_file(&path, "removed", &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            tracing::debug!(%error, "a part of a database is left behind");
        }
        self.drivers.leave();
        // Another process may begin the same file at this moment: its lock is in there then, and the folder stays.
        drop(std::fs::remove_dir(self.drivers.folder()));
    }
}

fn beside(part: &Path, name: &str) -> PathBuf {
    let mut path = part.as_os_str().to_owned();
    path.push(name);
    path.into()
}

fn must_not_be_there(file: &Path) -> Result<(), StoreError> {
    if file.exists() {
        return Err(StoreError::Unusable { reason: format!("`{}` is there already; name a file that is not", file.display()) });
    }
    Ok(())
}
