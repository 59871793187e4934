//! From a path that a model wrote to something open below a root.
//!
//! The path is first freed of its links, within the root; what that comes to is what is asked about (secrets, folders of
//! ours). Then it is walked name by name from the root's handle, and no step follows a link: what was asked about is what
//! is opened, or nothing is.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use cap_std::fs::{Dir, FileType, FileTypeExt};
use nix::fcntl::OFlag;
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use turnwright_engine::source::ToolError;

use super::Shared;
use crate::error::{denied, failed};
use crate::roots::Place;

/// How the end of a path is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtEnd {
    /// What a link there leads to is meant.
    Follow,
    /// The same, and folders on the way to it are made.
    Make,
    /// A link there is meant itself.
    Itself,
}

/// A name in an open folder.
#[derive(Debug)]
pub(super) struct Spot<'a> {
    pub(super) place: Place<'a>,
    /// The folder; the root itself where the root is meant.
    pub(super) folder: Dir,
    /// The name in the folder; `.` where the root is meant.
    pub(super) name: PathBuf,
    /// The path from the root, without links and dots; empty for the root.
    pub(super) real: PathBuf,
}

/// What a directory entry is, in one word: `file`, `folder`, `link`, `fifo`, `socket`, `device` or `other`.
pub(super) fn kind_of(kind: FileType) -> &'static str {
    if kind.is_file() {
        "file"
    } else if kind.is_dir() {
        "folder"
    } else if kind.is_symlink() {
        "link"
    } else if kind.is_fifo() {
        "fifo"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "device"
    } else {
        "other"
    }
}

/// The same of what the system says of an open one.
pub(super) fn kind_of_stat(stat: &Stat) -> &'static str {
    use rustix::fs::FileType as Kind;
    match Kind::from_raw_mode(stat.st_mode) {
        Kind::RegularFile => "file",
        Kind::Directory => "folder",
        Kind::Symlink => "link",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::CharacterDevice | Kind::BlockDevice => "device",
        Kind::Unknown => "other",
    }
}

/// Opening never waits, follows no link and makes no terminal ours.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the folder `name` of `folder`; no link is followed.
pub(super) fn open_folder(folder: &Dir, name: &Path) -> io::Result<Dir> {
    let fd: OwnedFd = rustix::fs::openat(folder, name, READ | OFlags::DIRECTORY, Mode::empty())?;
    Ok(Dir::from(fd))
}

/// Opens the file `name` of `folder` for reading; no link is followed, and a FIFO that was swapped in does not hang us.
pub(super) fn open_file(folder: &Dir, name: &Path) -> io::Result<std::fs::File> {
    let waits = OFlags::from_bits_retain((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits().cast_unsigned());
    let fd: OwnedFd = rustix::fs::openat(folder, name, READ | waits, Mode::empty())?;
    Ok(std::fs::File::from(fd))
}

/// What is at `name` of `folder`; a link is not followed.
pub(super) fn look(folder: &Dir, name: &Path) -> io::Result<Stat> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether an open file or folder belongs to the system's tree of processes, whose files tell of them and change them.
pub(super) fn is_of_processes(file: impl std::os::fd::AsFd) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        false
    }
}

/// `path` without links, relative to `folder`. What is replaced or moved meanwhile is looked at again: the system then gives a file's
/// new name, or its old one with a word behind it, for the name that was asked for.
fn canonicalize(folder: &Dir, path: &Path) -> io::Result<PathBuf> {
    use cap_std::fs::MetadataExt as _;
    for _ in 0..SWAPS {
        let real = folder.canonicalize(path)?;
        let identity = |found: cap_std::fs::Metadata| (found.dev(), found.ino());
        let (asked, found) = (folder.metadata(path).map(identity), folder.symlink_metadata(&real).map(identity));
        if asked.is_ok_and(|asked| found.is_ok_and(|found| asked == found)) {
            return Ok(real);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it was changed while it was looked at; try again"))
}

impl Shared {
    /// The spot that `path` names. What is not there has a spot where its folder is.
    ///
    /// # Errors
    /// Where the path leads out or to what is not to be touched, and where its folder is not there and is not made.
    pub(super) fn spot(&self, path: &str, at_end: AtEnd) -> Result<Spot<'_>, ToolError> {
        let place = self.roots.place(path)?;
        self.spot_at(place, at_end)
    }

    /// The same for a place.
    pub(super) fn spot_at<'a>(&'a self, place: Place<'a>, at_end: AtEnd) -> Result<Spot<'a>, ToolError> {
        let real = self.asked_real(&place, at_end)?;
        let Some(name) = real.file_name().map(PathBuf::from) else {
            let folder = place.dir().try_clone().map_err(|error| self.roots.explain(&place, &error))?;
            return Ok(Spot { place, folder, name: PathBuf::from("."), real });
        };
        let folder = self.walk(&place, real.parent().unwrap_or(Path::new("")), at_end)?;
        let spot = Spot { place, folder, name, real };
        if let Ok(stat) = look(&spot.folder, &spot.name)
            && self.ours().is(&stat)
        {
            return Err(self.is_denied(&spot.place));
        }
        Ok(spot)
    }

    /// Where a place really is, without links. What is not to be touched is refused.
    pub(super) fn absolute(&self, place: &Place<'_>, at_end: AtEnd) -> Result<PathBuf, ToolError> {
        Ok(place.root().join(self.asked_real(place, at_end)?))
    }

    /// The same relative to the root.
    fn asked_real(&self, place: &Place<'_>, at_end: AtEnd) -> Result<PathBuf, ToolError> {
        let refuse = |is_denied| if is_denied { Err(self.is_denied(place)) } else { Ok(()) };
        // What else lies behind a link to something of this program is reached by that link.
        refuse(self.guard.covers(place.root(), &place.path) || self.ours().is_named(place.root(), &place.path))?;
        self.ask_root(place)?;
        let real = self.real(place, at_end)?;
        refuse(self.guard.covers(place.root(), &real) || self.ours().is_place(place.root(), &real))?;
        Ok(real)
    }

    /// The path without links, relative to the root, and empty for the root.
    fn real(&self, place: &Place<'_>, at_end: AtEnd) -> Result<PathBuf, ToolError> {
        let explain = |error: io::Error| self.roots.explain(place, &error);
        let resolve = |path: &Path| canonicalize(place.dir(), if path.as_os_str().is_empty() { Path::new(".") } else { path });
        let plain = |path: PathBuf| -> PathBuf { path.components().filter(|part| *part != Component::CurDir).collect() };
        let parent_of = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
        let ends_in_name = place.path.file_name().is_some() && !place.shown.ends_with("/.");
        if at_end == AtEnd::Itself && ends_in_name {
            let parent = resolve(&parent_of(&place.path)).map_err(explain)?;
            return Ok(plain(parent.join(place.path.file_name().unwrap_or_default())));
        }
        let error = match resolve(&place.path) {
            Ok(real) => return Ok(plain(real)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => error,
            Err(error) => return Err(explain(error)),
        };
        if place.dir().symlink_metadata(&place.path).is_ok_and(|found| found.is_symlink()) {
            return Err(failed(format!("`{}` is a link that leads nowhere", place.shown)));
        }
        // Of what is not there, the deepest folder that is there counts; below it no link can be.
        let mut missing = Vec::new();
        let mut above = place.path.clone();
        loop {
            let Some(name) = above.file_name().map(PathBuf::from) else { return Err(explain(error)) };
            missing.push(name);
            above = parent_of(&above);
            match resolve(&above) {
                Ok(real) => return Ok(plain(missing.iter().rev().fold(real, |path, name| path.join(name)))),
                Err(deeper) if deeper.kind() == io::ErrorKind::NotFound && !above.as_os_str().is_empty() => {
                    // A folder is one that came meanwhile.
                    if place.dir().symlink_metadata(&above).is_ok_and(|found| found.is_symlink()) {
                        return Err(failed(format!("`{}` goes through a link that leads nowhere", place.shown)));
                    }
                }
                Err(deeper) => return Err(explain(deeper)),
            }
        }
    }

    /// Refuses all of a root that belongs to this program.
    fn ask_root(&self, place: &Place<'_>) -> Result<(), ToolError> {
        if rustix::fs::fstat(place.dir()).is_ok_and(|stat| self.ours().is(&stat)) { Err(self.is_denied(place)) } else { Ok(()) }
    }

    /// The refusal of what is not to be touched.
    #[expect(clippy::unused_self, reason = "reads like its neighbours")]
    pub(super) fn is_denied(&self, place: &Place<'_>) -> ToolError {
        denied(format!(
            "`{}` may not be touched: the operator keeps secrets, and what belongs to this program, from the tools; do without it, \
             or ask the user for what is needed of it",
            place.shown
        ))
    }

    /// Refuses to put a whole folder where something of this program would be in it.
    pub(super) fn ask_above(&self, spot: &Spot<'_>) -> Result<(), ToolError> {
        let path = spot.place.root().join(&spot.real);
        if self.ours().is_below(&path) { Err(self.is_denied(&spot.place)) } else { Ok(()) }
    }

    /// Opens the folder at `path`, which holds no links.
    fn walk(&self, place: &Place<'_>, path: &Path, at_end: AtEnd) -> Result<Dir, ToolError> {
        let explain = |error: io::Error| self.swapped(place, &error);
        let mut folder = place.dir().try_clone().map_err(explain)?;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let name = Path::new(name);
            folder = match open_folder(&folder, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && at_end == AtEnd::Make => {
                    match folder.create_dir(name) {
                        // Another change, of something else in it, made it meanwhile.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                        made => made.map_err(explain)?,
                    }
                    open_folder(&folder, name).map_err(explain)?
                }
                found => found.map_err(explain)?,
            };
            let stat = rustix::fs::fstat(&folder).map_err(|error| explain(error.into()))?;
            if self.ours().is(&stat) {
                return Err(self.is_denied(place));
            }
        }
        Ok(folder)
    }

    /// What a failure means where no link can be met: one was put there after the path was looked at.
    pub(super) fn swapped(&self, place: &Place<'_>, error: &io::Error) -> ToolError {
        match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::LOOP) => failed(format!("`{}` was changed while it was looked at; try again", place.shown)),
            _ => self.roots.explain(place, error),
        }
    }

    /// Opens a regular file for reading. FIFOs, sockets and devices are refused by what `stat` says, before they are opened.
    pub(super) fn open_regular(&self, spot: &Spot<'_>) -> Result<(std::fs::File, Stat), ToolError> {
        for _ in 0..SWAPS {
            let (file, stat) = self.open_once(spot)?;
            if !self.may_be_outside(&spot.folder, &spot.name, &stat) {
                return Ok((file, stat));
            }
        }
        Err(failed(format!("`{}` was changed while it was looked at; try again", spot.place.shown)))
    }

    fn open_once(&self, spot: &Spot<'_>) -> Result<(std::fs::File, Stat), ToolError> {
        let explain = |error: io::Error| self.swapped(&spot.place, &error);
        regular(&spot.place, &look(&spot.folder, &spot.name).map_err(explain)?)?;
        let file = open_file(&spot.folder, &spot.name).map_err(explain)?;
        let stat = rustix::fs::fstat(&file).map_err(|error| explain(error.into()))?;
        regular(&spot.place, &stat)?;
        if is_of_processes(&file) {
            let shown = &spot.place.shown;
            return Err(denied(format!("`{shown}` belongs to the system's tree of processes; it is not opened")));
        }
        self.one_name(&spot.place, &stat)?;
        Ok((file, stat))
    }

    /// Refuses a file that has other names, where the operator does not say that they are all inside.
    pub(super) fn one_name(&self, place: &Place<'_>, stat: &Stat) -> Result<(), ToolError> {
        if self.is_linked(stat) {
            return Err(denied(format!(
                "`{}` is a hard link: its {} names may be outside of what may be touched, and it is not opened; the operator can \
                 allow it with hard_links = true",
                place.shown, stat.st_nlink
            )));
        }
        Ok(())
    }

    /// Whether an open file has names that are not known to be inside. A name that was taken away since it was opened is not
    /// counted any more: so its name here must be there, and the only one. The system looks a name up and counts the names one after
    /// the other, and a name may go between; whoever wants to be taken for inside would have to take it away and bring it back
    /// between each two of these looks, which lie closer together than that takes.
    pub(super) fn may_be_outside(&self, folder: &Dir, name: &Path, opened: &Stat) -> bool {
        let is_only_here = |named: Stat| named.st_nlink == 1 && (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino);
        !self.config.hard_links && (0..LOOKS).any(|_| !look(folder, name).is_ok_and(is_only_here))
    }

    /// Whether a file has names that are not known to be inside.
    pub(super) fn is_linked(&self, stat: &Stat) -> bool {
        !self.config.hard_links && stat.st_nlink > 1
    }
}

/// How often a file is opened anew that another took the place of meanwhile.
const SWAPS: usize = 4;
/// How often it is looked at whether a file's name is the only one that it has.
const LOOKS: usize = 8;

/// Refuses what is not a regular file.
pub(super) fn regular(place: &Place<'_>, stat: &Stat) -> Result<(), ToolError> {
    match kind_of_stat(stat) {
        "file" => Ok(()),
        "folder" => Err(failed(format!("`{}` is a folder, not a file", place.shown))),
        kind => Err(failed(format!("`{}` is a {kind}, not a regular file; it is not opened", place.shown))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use cap_std::ambient_authority;
    use cap_std::fs::Dir;

    use super::canonicalize;

    #[test]
    fn a_file_that_is_replaced_again_and_again_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        dir.write("a", "").unwrap();
        dir.write("a (deleted)", "").unwrap();
        dir.symlink("a", "link").unwrap();
        let (is_over, (new, name)) = (AtomicBool::new(false), (folder.path().join("new"), folder.path().join("a")));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::fs::write(&new, "").unwrap();
                    std::fs::rename(&new, &name).unwrap();
                }
            });
            // Refused is right too.
            let wrong =
                (0..2_000).find_map(|_| canonicalize(&dir, Path::new("link")).ok().filter(|real| real != Path::new("a")));
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(wrong, None);
        });
    }
}
