//! What of a folder must be read anew. Pure.

use std::collections::HashMap;

use turnwright_engine::knowledge::IndexedFile;

use crate::filesystem::tree::{Listing, TreeFile};

/// A file that is so new that it may be written again within the same tick of its file system's clock, in nanoseconds.
const RACY_NS: i64 = 2_000_000_000;

/// What the index lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Files that are new or look changed.
    pub(super) to_read: Vec<TreeFile>,
    /// Paths that are there no more.
    pub(super) gone: Vec<String>,
}

/// What must be done so that `known` is what `listing` saw.
pub(super) fn changes(known: &[IndexedFile], listing: &Listing) -> Changes {
    let mut left: HashMap<&str, &IndexedFile> = known.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut changes = Changes::default();
    for file in &listing.files {
        let Some(path) = file.path.to_str() else { continue };
        let is_same =
            |known: &IndexedFile| !known.hash.is_empty() && known.bytes == file.bytes && known.modified_ns == file.modified_ns;
        if !left.remove(path).is_some_and(is_same) {
            changes.to_read.push(file.clone());
        }
    }
    // Where not all was looked at, what was not seen may be there.
    if !listing.is_cut {
        changes.gone = left.into_keys().map(str::to_owned).collect();
        changes.gone.sort_unstable();
    }
    changes
}

/// The time to remember of a file: one that may have changed after it was read, in the same tick, is looked at once more.
pub(super) fn settled_ns(file: &TreeFile, now_ms: u64) -> i64 {
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    if now.saturating_sub(file.modified_ns) < RACY_NS { -1 } else { file.modified_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(path: &str, bytes: u64, modified_ns: i64, hash: &str) -> IndexedFile {
        IndexedFile { path: path.to_owned(), bytes, modified_ns, hash: hash.to_owned(), skipped: None }
    }

    fn file(path: &str, bytes: u64, modified_ns: i64) -> TreeFile {
        TreeFile { path: path.into(), bytes, modified_ns }
    }

    #[test]
    fn what_has_another_size_or_time_or_was_not_finished_is_read() {
        let index =
            [known("a", 1, 5, "h"), known("b", 1, 5, "h"), known("c", 1, 5, "h"), known("d", 1, 5, ""), known("e", 1, 5, "h")];
        let files = vec![file("a", 1, 5), file("b", 2, 5), file("c", 1, 6), file("d", 1, 5), file("f", 1, 5)];
        let found = changes(&index, &Listing { files, ..Listing::default() });
        assert_eq!(found.to_read, [file("b", 2, 5), file("c", 1, 6), file("d", 1, 5), file("f", 1, 5)]);
        assert_eq!(found.gone, ["e"]);
    }

    #[test]
    fn nothing_is_gone_where_not_all_was_looked_at() {
        let found = changes(&[known("a", 1, 5, "h")], &Listing { is_cut: true, ..Listing::default() });
        assert_eq!(found, Changes::default());
    }

    #[test]
    fn what_was_changed_just_now_is_looked_at_again() {
        assert_eq!(settled_ns(&file("a", 1, 1_000_000_000), 1_500), -1);
        assert_eq!(settled_ns(&file("a", 1, 1_000_000_000), 9_000), 1_000_000_000);
    }
}
