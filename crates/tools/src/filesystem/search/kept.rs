//! The first matches in the order of paths, whatever order they are found in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One thing that was found in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Match {
    /// The path itself.
    Path { is_folder: bool },
    /// A line, or one around it.
    Line { number: u64, text: String, is_context: bool },
    /// Lines that are not shown.
    Gap,
}

#[derive(Debug, Default)]
struct Found {
    of_paths: BTreeMap<PathBuf, Vec<Match>>,
    /// How many matches they hold, without what is around them.
    count: usize,
}

/// At most so many matches: those of the first paths.
#[derive(Debug)]
pub(super) struct Kept {
    most: usize,
    found: Mutex<Found>,
    is_full: AtomicBool,
    is_cut: AtomicBool,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self { most, found: Mutex::default(), is_full: AtomicBool::new(false), is_cut: AtomicBool::new(false) }
    }

    /// How many matches of one path are of use.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Whether nothing of this path would be kept.
    pub(super) fn is_past(&self, path: &Path) -> bool {
        if !self.is_full.load(Ordering::Relaxed) {
            return false;
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_past = found.of_paths.last_key_value().is_some_and(|(last, _)| path > last);
        // Whether it holds something nobody looks any more.
        self.is_cut.fetch_or(is_past, Ordering::Relaxed);
        is_past
    }

    /// Keeps what was found in a path. One that gave as many as are kept may have more.
    pub(super) fn add(&self, path: PathBuf, matches: Vec<Match>) {
        let count = count_of(&matches);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.count += count;
        found.of_paths.insert(path, matches);
        while let Some(last) = found.of_paths.last_entry() {
            let of_last = count_of(last.get());
            let without = found.count - of_last;
            if without < self.most {
                break;
            }
            if let Some((_, _)) = found.of_paths.pop_last() {
                found.count = without;
                self.is_cut.store(true, Ordering::Relaxed);
            }
        }
        self.is_full.store(found.count >= self.most, Ordering::Relaxed);
    }

    /// Whether there may be more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed) || self.is_full.load(Ordering::Relaxed)
    }

    /// All that is kept, in the order of paths.
    pub(super) fn into_matches(self) -> Vec<(PathBuf, Match)> {
        let found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut left = self.most;
        let mut all = Vec::new();
        for (path, matches) in found.of_paths {
            for found in matches {
                let counts = count_of(std::slice::from_ref(&found));
                if counts > left {
                    return all;
                }
                left -= counts;
                all.push((path.clone(), found));
            }
        }
        all
    }
}

fn count_of(matches: &[Match]) -> usize {
    let counts = |found: &&Match| match found {
        Match::Path { .. } | Match::Line { is_context: false, .. } => true,
        Match::Line { is_context: true, .. } | Match::Gap => false,
    };
    matches.iter().filter(counts).count()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{Kept, Match};

    #[test]
    fn whatever_the_order_of_finding_the_first_paths_are_kept() {
        let line = |number| Match::Line { number, text: String::new(), is_context: false };
        let paths = ["c", "a", "d", "b"];
        for turned in 0..4 {
            let kept = Kept::new(3);
            for path in paths.iter().cycle().skip(turned).take(4) {
                kept.add(PathBuf::from(path), vec![line(1), line(2)]);
            }
            let names: Vec<String> = kept.into_matches().into_iter().map(|(path, _)| path.display().to_string()).collect();
            assert_eq!(names, ["a", "a", "b"]);
        }
    }

    #[test]
    fn what_comes_after_the_last_that_is_kept_is_past() {
        let kept = Kept::new(1);
        assert!(!kept.is_past(Path::new("z")));
        kept.add(PathBuf::from("b"), vec![Match::Path { is_folder: false }]);
        assert!(kept.is_past(Path::new("c")) && !kept.is_past(Path::new("a")));
    }
}
