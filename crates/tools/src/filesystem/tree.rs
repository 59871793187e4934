//! The files below a folder, for whoever reads them without a model asking: the same roots, rules and denials as the tools'.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use rustix::fs::{FileType, Stat};

use super::open::{AtEnd, is_of_processes, kind_of_stat, look, open_file, open_folder};
use super::search::{Rules, rules_of};
use super::{FilesystemConfig, Shared};
use crate::RootsError;

/// The deepest folder that is looked into.
const DEEPEST: usize = 64;

/// A folder whose files are read. It is held open: whatever is changed below, nothing outside is reached.
#[derive(Debug)]
pub(crate) struct Tree(Shared);

/// A file as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    /// Below the root.
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// In nanoseconds since 1970 UTC.
    pub(crate) modified_ns: i64,
}

/// What a walk saw.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<TreeFile>,
    /// What has such a name and is none of them: links, files with several names.
    pub(crate) others: Vec<PathBuf>,
    /// Whether there was more than is looked at, or a folder could not be read: what is missing may be there.
    pub(crate) is_cut: bool,
}

impl Tree {
    /// Opens the first root of `config`.
    pub(crate) fn open(config: FilesystemConfig) -> Result<Self, RootsError> {
        Shared::open(config).map(Self)
    }

    /// The regular files that are not denied nor left out by `.gitignore`, of which `is_wanted` says so; at most `most` files
    /// and folders are looked at.
    pub(crate) fn files(&self, is_wanted: &dyn Fn(&Path) -> bool, most: usize) -> Listing {
        let mut listing = Listing::default();
        let (Ok(place), Some(root)) = (self.0.roots.place("."), self.root()) else {
            return Listing { is_cut: true, ..listing };
        };
        let mut seen = 0;
        let mut folders: Vec<(Dir, PathBuf, Option<Arc<Rules>>, usize)> = vec![(root, PathBuf::new(), None, 0)];
        while let Some((folder, below, above, depth)) = folders.pop() {
            if is_of_processes(&folder) || rustix::fs::fstat(&folder).is_ok_and(|stat| self.0.ours().is(&stat)) {
                continue;
            }
            let rules = rules_of(&folder, &below, above);
            let Ok(entries) = rustix::fs::Dir::read_from(&folder) else {
                listing.is_cut = true;
                continue;
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    listing.is_cut = true;
                    break;
                };
                let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
                if name == Path::new(".") || name == Path::new("..") || name == Path::new(".git") {
                    continue;
                }
                seen += 1;
                if seen > most {
                    listing.is_cut = true;
                    return listing;
                }
                let path = below.join(name);
                let Ok(stat) = look(&folder, name) else { continue };
                let kind = FileType::from_raw_mode(stat.st_mode);
                let is_folder = kind == FileType::Directory;
                if !is_folder && kind != FileType::RegularFile && kind != FileType::Symlink {
                    continue;
                }
                let is_left_out = rules.as_ref().is_some_and(|rules| rules.leave_out(&path, is_folder));
                if is_left_out || self.0.guard.covers_entry(place.root(), &path, is_folder) {
                    continue;
                }
                if is_folder && depth < DEEPEST {
                    match open_folder(&folder, name) {
                        Ok(opened) => folders.push((opened, path, rules.clone(), depth + 1)),
                        Err(_) => listing.is_cut = true,
                    }
                } else if is_folder {
                    listing.is_cut = true;
                } else if is_wanted(&path) {
                    if kind == FileType::RegularFile && self.may_read(&stat) {
                        listing.files.push(TreeFile { bytes: bytes_of(&stat), modified_ns: modified_ns(&stat), path });
                    } else {
                        listing.others.push(path);
                    }
                }
            }
        }
        listing.files.sort_by(|a, b| a.path.cmp(&b.path));
        listing
    }

    /// What a file holds, as it stands; `None` where it is larger than `max_bytes`.
    ///
    /// # Errors
    /// Where it cannot be read, and where something else took its place.
    pub(crate) fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let mut folder = self.root().ok_or_else(gone)?;
        for part in path.parent().into_iter().flat_map(Path::components) {
            folder = open_folder(&folder, Path::new(part.as_os_str()))?;
        }
        if self.is_denied(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let name = Path::new(path.file_name().ok_or_else(gone)?);
        let file = open_file(&folder, name)?;
        let stat = rustix::fs::fstat(&file)?;
        if kind_of_stat(&stat) != "file" || self.0.may_be_outside(&folder, name, &stat) || !self.may_read(&stat) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if bytes_of(&stat) > max_bytes {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        // One that grows while it is read is no longer than it may be.
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(u64::try_from(bytes.len()).is_ok_and(|read| read <= max_bytes).then_some(bytes))
    }

    /// Where a path leads: itself, or what a link there leads to inside the root, as the tools follow it. `None` where nothing is there, or what
    /// is there is denied.
    ///
    /// # Errors
    /// Where it leads out, nowhere, or to what is denied, in words.
    pub(crate) fn follow(&self, path: &Path) -> Result<Option<PathBuf>, String> {
        let Some(root) = self.root() else { return Ok(None) };
        if self.is_denied(path) || root.symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let Some(text) = path.to_str() else { return Ok(None) };
        self.0.spot(text, AtEnd::Follow).map(|spot| Some(spot.real)).map_err(|error| error.model_text)
    }

    fn root(&self) -> Option<Dir> {
        // A root's own handle may only be walked from; what is listed is opened for reading.
        open_folder(self.0.roots.place(".").ok()?.dir(), Path::new(".")).ok()
    }

    fn is_denied(&self, path: &Path) -> bool {
        match self.0.roots.place(".") {
            Ok(place) => self.0.guard.covers(place.root(), path),
            Err(_) => true,
        }
    }

    fn may_read(&self, stat: &Stat) -> bool {
        !self.0.is_linked(stat) && !self.0.ours().is(stat)
    }
}

fn bytes_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types are the system's")]
fn modified_ns(stat: &Stat) -> i64 {
    let part = i64::try_from(stat.st_mtime_nsec).unwrap_or_default();
    (stat.st_mtime as i64).saturating_mul(1_000_000_000).saturating_add(part)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_listed_is_what_may_be_read_and_nothing_outside() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        for path in ["in/a/b", "in/.git", "in/kept", "out"] {
            std::fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let files = [
            "in/top.md",
            "in/a/b/deep.md",
            "in/.git/config",
            "in/.env",
            "in/a/id_rsa",
            "in/kept/x.log",
            "in/other.txt",
            "out/secret.md",
        ];
        for path in files {
            std::fs::write(folder.path().join(path), path).unwrap();
        }
        std::fs::write(inside.join(".gitignore"), "*.log\n").unwrap();
        symlink(outside.join("secret.md"), inside.join("link.md")).unwrap();
        symlink(&outside, inside.join("linked")).unwrap();
        std::fs::hard_link(outside.join("secret.md"), inside.join("hard.md")).unwrap();
        let tree = Tree::open(FilesystemConfig::new(vec![inside])).unwrap();
        let listed = |most| {
            let listing = tree.files(&|path| path.extension().is_some_and(|extension| extension == "md"), most);
            (listing.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(), listing.is_cut)
        };
        assert_eq!(listed(100), (vec!["a/b/deep.md".to_owned(), "top.md".to_owned()], false));
        let others = tree.files(&|path| path.extension().is_some_and(|extension| extension == "md"), 100).others;
        assert_eq!(others.len(), 2, "a link and a file with several names: {others:?}");
        symlink("a/b/deep.md", folder.path().join("in/to-deep.md")).unwrap();
        assert_eq!(tree.follow(Path::new("to-deep.md")), Ok(Some(PathBuf::from("a/b/deep.md"))));
        assert_eq!(
            (tree.follow(Path::new("top.md")), tree.follow(Path::new("missing"))),
            (Ok(Some(PathBuf::from("top.md"))), Ok(None))
        );
        assert_eq!(tree.follow(Path::new(".env")), Ok(None));
        symlink(".env", folder.path().join("in/to-secret.md")).unwrap();
        for path in ["link.md", "to-secret.md"] {
            assert!(tree.follow(Path::new(path)).is_err(), "{path}");
        }
        assert!(listed(2).1);
        assert_eq!(tree.read(Path::new("a/b/deep.md"), 100).unwrap().unwrap(), b"in/a/b/deep.md");
        assert_eq!(tree.read(Path::new("top.md"), 3).unwrap(), None);
        for path in ["link.md", "linked/secret.md", "hard.md", ".env", "a/id_rsa", "../out/secret.md", "a", "missing", ""] {
            assert!(tree.read(Path::new(path), 100).is_err(), "{path}");
        }
    }
}
