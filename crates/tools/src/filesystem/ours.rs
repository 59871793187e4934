//! What belongs to this program among the files: what it is, where it is, and what leads there.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;

use super::FilesystemConfig;
use crate::links;

/// The files and folders of this program, as they were when they were looked at.
#[derive(Debug)]
pub(super) struct Ours {
    /// How many of them had been added by then.
    pub(super) added: usize,
    /// Their devices and numbers.
    numbers: HashSet<(u64, u64)>,
    /// Where they are: one may be made anew, or for the first time.
    places: Vec<PathBuf>,
    /// The links that lead there: in the place of one another could be made.
    links: Vec<PathBuf>,
}

impl Ours {
    pub(super) fn of(config: &FilesystemConfig) -> Self {
        // One that comes meanwhile is looked at the next time.
        let added = config.ours.added();
        let paths = config.ours.known();
        let there = paths.iter().chain(&config.trash).filter_map(|path| std::fs::metadata(path).ok());
        Self {
            added,
            numbers: there.map(|found| (found.dev(), found.ino())).collect(),
            places: paths.iter().flat_map(|path| real_places(path)).collect(),
            links: paths.iter().flat_map(|path| links::passed(path)).collect(),
        }
    }

    /// Whether this file or folder is one of them.
    pub(super) fn is(&self, stat: &Stat) -> bool {
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types are the system's")]
        self.numbers.contains(&(stat.st_dev as u64, stat.st_ino as u64))
    }

    /// Whether a path as it was written, relative to a root, names one of them. What else lies behind a link to one is reached by it.
    pub(super) fn is_named(&self, root: &Path, path: &Path) -> bool {
        is_within(&self.places, root, path)
    }

    /// Whether one of them, or a link to it, is, or would be, at this path without links, relative to a root.
    pub(super) fn is_place(&self, root: &Path, path: &Path) -> bool {
        is_within(&self.places, root, path) || is_within(&self.links, root, path)
    }

    /// Whether one of them, or a link to it, is, or would be, at or below this path without links.
    pub(super) fn is_below(&self, path: &Path) -> bool {
        self.places.iter().chain(&self.links).any(|place| place.starts_with(path))
    }
}

/// Whether a path, relative to a root, is one of these or lies within it. A root that lies in one of them was given all the same.
fn is_within(places: &[PathBuf], root: &Path, path: &Path) -> bool {
    let mut inner = places.iter().filter_map(|place| place.strip_prefix(root).ok());
    inner.any(|place| !place.as_os_str().is_empty() && path.starts_with(place))
}

/// Where a path leads, and the path itself, its folder without links; each as far as it is there.
fn real_places(path: &Path) -> Vec<PathBuf> {
    let real = |path: &Path| -> Option<PathBuf> {
        let (above, real) = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)))?;
        let rest = path.strip_prefix(above).ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    };
    let itself = path.parent().and_then(real).zip(path.file_name()).map(|(folder, name)| folder.join(name));
    real(path).into_iter().chain(itself).collect()
}
