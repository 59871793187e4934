//! A database that is made under another name, `FILE.part`, and has its own only once it is whole.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use turnwright_engine::StoreError;

use super::drivers::Drivers;
use super::options::{SqliteOptions, with_suffix};
use super::{failure, open, origin};

/// What SQLite has beside a database while it is open.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// By which it is known, in the folder of its locks, that what lies under the part's names was made here.
const MARK: &str = "made-as-part";

/// The right to make a file, and what there is of it. What is not finished goes with it; what a process that was killed left, with
/// the next that makes the same file. What somebody else left under its names stays.
#[derive(Debug)]
pub(crate) struct Part {
    file: PathBuf,
    made_at: PathBuf,
    mark: PathBuf,
    /// Let go last.
    _alone: Alone,
}

impl Part {
    /// Begins a file that is not there yet, with what is in the database at `source`, where that is a file.
    ///
    /// # Errors
    /// Where the file is there, cannot be written, or another process makes it at this moment; where `source` or something that
    /// was not made here has one of the part's names.
    pub(crate) fn begin(file: &Path, source: Option<&Path>) -> Result<Self, StoreError> {
        let unusable = |reason| Err(StoreError::Unusable { reason });
        let file = open::absolute(file)?;
        must_not_be_there(&file)?;
        open::check_folder(file.parent().unwrap_or_else(|| Path::new("/")), &file)?;
        let part = with_suffix(&file, "part");
        if source.is_some_and(|source| names(&part).any(|name| open::resolved(&name) == open::resolved(source))) {
            let (part, file) = (part.display(), file.display());
            return unusable(format!(
                "`{part}` is what is read, and `{file}` would be written under that name; name another file"
            ));
        }
        let locks = with_suffix(&part, "locks");
        let mark = locks.join(MARK);
        let is_ours = mark.exists();
        if !is_ours && let Some(found) = names(&part).find(|name| name.symlink_metadata().is_ok()) {
            let (found, file) = (found.display(), file.display());
            return unusable(format!(
                "`{found}` is in the way: `{file}` would be written under that name; move it away or name another file"
            ));
        }
        let alone = Alone::enter(locks)?;
        if alone.0.has_company()? {
            let file = file.display();
            return unusable(format!("another process writes `{file}` at this moment; wait for it or name another file"));
        }
        if !is_ours {
            std::fs::File::create_new(&mark).map_err(|error| failure::of_file(&mark, "created", &error))?;
        }
        let begun = Self { file, made_at: part, mark, _alone: alone };
        begun.clear()?;
        Ok(begun)
    }

    /// Where it is made.
    pub(crate) fn options(&self) -> SqliteOptions {
        SqliteOptions::at_file(&self.made_at)
    }

    /// Gives it its own name, for good, as a backup. Nobody may have it open any more.
    ///
    /// # Errors
    /// Where it is not on the disk whole, or somebody else made the file meanwhile.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let fails = |error: std::io::Error| failure::of_file(&self.file, "written", &error);
        let marked = Connection::open(&self.made_at).and_then(|part| origin::become_backup(&part));
        marked.map_err(|error| failure::of(&self.made_at, &error))?;
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
        for path in names(&self.made_at) {
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
        match self.clear() {
            // The mark stays with what it speaks of.
            Err(error) => tracing::debug!(%error, "a part of a database is left behind"),
            Ok(()) => drop(std::fs::remove_file(&self.mark)),
        }
    }
}

/// Who may make a file, among all processes.
#[derive(Debug)]
struct Alone(Drivers);

impl Alone {
    fn enter(folder: PathBuf) -> Result<Self, StoreError> {
        Drivers::enter(folder, None).map(Self)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.leave();
        // Another process may begin the same file at this moment: its lock is in there then, and the folder stays.
        drop(std::fs::remove_dir(self.0.folder()));
    }
}

/// All names of a database that is open.
fn names(part: &Path) -> impl Iterator<Item = PathBuf> {
    std::iter::once(part.to_owned()).chain(BESIDE.map(|name| beside(part, name)))
}

fn beside(part: &Path, name: &str) -> PathBuf {
    let mut path = part.as_os_str().to_owned();
    path.push(name);
    path.into()
}

fn must_not_be_there(file: &Path) -> Result<(), StoreError> {
    // A link that leads nowhere is there too.
    if file.symlink_metadata().is_ok() {
        return Err(StoreError::Unusable { reason: format!("`{}` is there already; name a file that is not", file.display()) });
    }
    Ok(())
}
