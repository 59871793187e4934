//! Which files and folders are the program's own, of which more come to be known while it runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// Files and folders of the program itself, which are none of its tools'. Clones share those that are added.
#[derive(Debug, Clone, Default)]
pub struct OwnPaths {
    fixed: BTreeSet<PathBuf>,
    added: Arc<RwLock<BTreeSet<PathBuf>>>,
}

impl OwnPaths {
    /// One more, for all clones, from their next use on.
    pub fn add(&self, path: PathBuf) {
        self.added.write().unwrap_or_else(PoisonError::into_inner).insert(path);
    }

    /// A clone that has these too.
    #[must_use]
    pub fn and(&self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut more = self.clone();
        more.fixed.extend(paths);
        more
    }

    /// All that are known by now, sorted.
    pub fn known(&self) -> Vec<PathBuf> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.fixed.union(&added).cloned().collect()
    }

    /// How many were added. None is ever taken away, so what was made of as many as this is made of all of them.
    pub(crate) fn added(&self) -> usize {
        self.added.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<const N: usize> From<[PathBuf; N]> for OwnPaths {
    fn from(paths: [PathBuf; N]) -> Self {
        Self::default().and(paths)
    }
}

impl PartialEq for OwnPaths {
    fn eq(&self, other: &Self) -> bool {
        self.known() == other.known()
    }
}

impl Eq for OwnPaths {}
