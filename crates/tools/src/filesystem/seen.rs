//! What each conversation has seen of files, so that none is overwritten as it never was seen.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use rustix::fs::Stat;

/// How many files are remembered, over all conversations.
const MOST_REMEMBERED: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A state of a file: another where its content was changed, even by something that sets its times back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i128,
    modified: (i128, i128),
    changed: (i128, i128),
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the types are the system's")]
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: i128::from(stat.st_size),
            modified: (i128::from(stat.st_mtime), i128::from(stat.st_mtime_nsec)),
            changed: (i128::from(stat.st_ctime), i128::from(stat.st_ctime_nsec)),
        }
    }
}

/// Whose memory it is, and of which file: its root and its path in it.
pub(super) type Key = (String, PathBuf, PathBuf);

/// The states in which files were last seen.
#[derive(Debug)]
pub(super) struct Seen(Mutex<LruCache<Key, Stamp>>);

impl Default for Seen {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST_REMEMBERED)))
    }
}

impl Seen {
    /// The file was read, or written, in this state.
    pub(super) fn note(&self, key: Key, stamp: Stamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, stamp);
    }

    /// Whether the file was seen in another state than this one.
    pub(super) fn is_stale(&self, key: &Key, stamp: Stamp) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).is_some_and(|seen| *seen != stamp)
    }
}
