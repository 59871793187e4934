//! Moving what a name stands for to another folder, over the borders of file systems too.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use rustix::fs::{RenameFlags, Stat, Timespec, Timestamps};
use rustix::io::Errno;
use turnwright_engine::source::ToolError;

use super::open::{Spot, kind_of_stat, look, open_file, open_folder};
use super::write::temporary_name;
use super::{Shared, attributes};
use crate::error::{failed, grouped};

/// The most files and folders that are looked at, or copied, below one folder.
const MOST_ENTRIES: usize = 100_000;
/// The deepest folder that is followed.
const DEEPEST: usize = 200;

/// Why something is not moved.
#[derive(Debug)]
pub(super) enum NotMoved {
    /// It is where it was, and nowhere else.
    AtAll(io::Error),
    /// All of it is at its new place, in another file system, and not all of it could be removed from the old one.
    Whole(io::Error),
}

/// Moves `name` of `from` to `new_name` of `to`, where nothing may be.
pub(super) fn carry(from: &Dir, name: &Path, to: &Dir, new_name: &Path) -> Result<(), NotMoved> {
    match rename_to_free(from, name, to, new_name) {
        Err(Errno::XDEV) => {}
        done => return done.map_err(|error| NotMoved::AtAll(error.into())),
    }
    let mut left = MOST_ENTRIES;
    // Under a name of its own until all of it is there: a copy that breaks off with the process is not taken for the whole.
    let part = temporary_name();
    let copied = copy(from, name, to, &part, &mut left, DEEPEST);
    copied.and_then(|()| Ok(rename_to_free(to, &part, to, new_name)?)).map_err(|error| {
        // What was copied in part is of no use; what is being moved is still where it was.
        let _ = remove(to, &part);
        NotMoved::AtAll(error)
    })?;
    // The copy is all that there is of what was removed already: it stays.
    remove(from, name).map_err(NotMoved::Whole)
}

/// Whether something is mounted at `name`: it would be emptied, and its place stay.
fn is_mounted(folder: &Dir, name: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
        let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
        found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (folder, name);
        false
    }
}

/// Gives something a name that nothing has.
pub(super) fn rename_to_free(from: &Dir, name: &Path, to: &Dir, new_name: &Path) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // Some file systems cannot promise it in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if look(to, new_name).is_err() => {
            rustix::fs::renameat(from, name, to, new_name)
        }
        done => done,
    }
}

/// Removes a file, a link or a whole folder.
pub(super) fn remove(folder: &Dir, name: &Path) -> io::Result<()> {
    match kind_of_stat(&look(folder, name)?) {
        "folder" => folder.remove_dir_all(name),
        _ => folder.remove_file(name),
    }
}

fn copy(from: &Dir, name: &Path, to: &Dir, new_name: &Path, left: &mut usize, depth: usize) -> io::Result<()> {
    let too_much = || io::Error::new(io::ErrorKind::FileTooLarge, "too many files to move to another file system");
    *left = left.checked_sub(1).ok_or_else(too_much)?;
    let stat = look(from, name)?;
    match kind_of_stat(&stat) {
        "file" => {
            let mut source = open_file(from, name)?;
            let mut target = to.open_with(new_name, cap_std::fs::OpenOptions::new().write(true).create_new(true))?;
            io::copy(&mut source, &mut target)?;
            attributes::copy(&source, &target);
            rustix::fs::fchmod(&target, rustix::fs::Mode::from_raw_mode(stat.st_mode & 0o7777))?;
            Ok(rustix::fs::futimens(&target, &times(&stat))?)
        }
        "link" => {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            rustix::fs::symlinkat(target.as_c_str(), to, new_name)?;
            Ok(rustix::fs::utimensat(to, new_name, &times(&stat), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
        }
        "folder" => {
            let depth = depth.checked_sub(1).ok_or_else(too_much)?;
            to.create_dir(new_name)?;
            let (source, target) = (open_folder(from, name)?, open_folder(to, new_name)?);
            for entry in source.entries()? {
                let inner = PathBuf::from(entry?.file_name());
                copy(&source, &inner, &target, &inner, left, depth)?;
            }
            attributes::copy(&source, &target);
            rustix::fs::fchmod(&target, rustix::fs::Mode::from_raw_mode(stat.st_mode & 0o7777))?;
            // Last: each thing that is put in changes it.
            Ok(rustix::fs::futimens(&target, &times(&stat))?)
        }
        kind => Err(io::Error::other(format!("a {kind} cannot be moved to another file system"))),
    }
}

/// When something was read and changed last.
fn times(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: i64::try_from(stat.st_atime_nsec).unwrap_or_default() },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or_default() },
    }
}

impl Shared {
    /// Refuses to move what holds something that is not to be touched: under another name it would be open.
    pub(super) fn ask_within(&self, spot: &Spot<'_>) -> Result<(), ToolError> {
        let shown = &spot.place.shown;
        let explain = |error: io::Error| self.swapped(&spot.place, &error);
        if spot.real.as_os_str().is_empty() {
            return Err(crate::error::denied(format!("`{shown}` is a root; it stays")));
        }
        let stat = look(&spot.folder, &spot.name).map_err(explain)?;
        let mounted = |what: &str| {
            failed(format!(
                "{what} something is mounted: it is not moved or deleted as a whole; take what it holds one by one, or ask the user"
            ))
        };
        if is_mounted(&spot.folder, &spot.name) {
            return Err(mounted(&format!("`{shown}` is where")));
        }
        match kind_of_stat(&stat) {
            "file" | "link" => return Ok(()),
            "folder" => {}
            kind => return Err(failed(format!("`{shown}` is a {kind}; it is not touched"))),
        }
        if let Some(root) = self.roots.held_by(&spot.place.root().join(&spot.real)) {
            return Err(crate::error::denied(format!("`{shown}` holds the root `{}`; it stays", root.display())));
        }
        let mut folders = vec![(open_folder(&spot.folder, &spot.name).map_err(explain)?, spot.real.clone())];
        let mut looked_at = 0;
        while let Some((folder, path)) = folders.pop() {
            for entry in folder.entries().map_err(explain)? {
                let entry = entry.map_err(explain)?;
                let name = PathBuf::from(entry.file_name());
                looked_at += 1;
                if looked_at > MOST_ENTRIES {
                    let most = grouped(MOST_ENTRIES as u64);
                    return Err(failed(format!("`{shown}` holds more than {most} files; take its parts one by one")));
                }
                let inner = path.join(&name);
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let stat = look(&folder, &name).map_err(explain)?;
                let is_ours = self.ours().is(&stat) || self.ours().is_place(spot.place.root(), &inner);
                if is_ours || self.guard.covers_entry(spot.place.root(), &inner, is_folder) {
                    let mut error = self.is_denied(&spot.place);
                    error.model_text = format!("{} (it holds `{}`)", error.model_text, inner.display());
                    return Err(error);
                }
                if is_mounted(&folder, &name) {
                    return Err(mounted(&format!("`{shown}` holds `{}`, where", inner.display())));
                }
                if is_folder {
                    folders.push((open_folder(&folder, &name).map_err(explain)?, inner));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn a_copy_has_the_times_of_what_it_is_a_copy_of() {
        let world = tempfile::tempdir().unwrap();
        let at = |path: &str| world.path().join(path);
        std::fs::create_dir_all(at("from/item/inner")).unwrap();
        std::fs::create_dir(at("to")).unwrap();
        std::fs::write(at("from/item/inner/file"), "text").unwrap();
        std::os::unix::fs::symlink("nowhere", at("from/item/link")).unwrap();
        let entries = ["item/inner/file", "item/inner", "item/link", "item"];
        let dir = |path: &str| Dir::open_ambient_dir(at(path), ambient_authority()).unwrap();
        let (from, to) = (dir("from"), dir("to"));
        for (index, entry) in entries.iter().enumerate() {
            let time = Timespec { tv_sec: 1_000_000_000 + i64::try_from(index).unwrap(), tv_nsec: 500 };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(&from, *entry, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
        }
        copy(&from, Path::new("item"), &to, Path::new("item"), &mut 100, 10).unwrap();
        for (index, entry) in entries.iter().enumerate() {
            let copied = std::fs::symlink_metadata(at("to").join(entry)).unwrap();
            assert_eq!((copied.mtime(), copied.mtime_nsec()), (1_000_000_000 + i64::try_from(index).unwrap(), 500), "{entry}");
        }
    }
}
