//! What calls write, so that those that write the same run one after the other, in call order. Pure.

use std::path::PathBuf;

use turnwright_core::CallId;

/// What a call of a tool that is declared serial writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writes {
    /// Whatever its source has.
    All,
    /// These, and what is below them: absolute paths without `.` and `..`.
    Paths(Vec<PathBuf>),
}

impl Writes {
    /// Whether something is written by both: one path is the other, or lies below it.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Paths(ours), Self::Paths(theirs)) => {
                ours.iter().any(|our| theirs.iter().any(|their| our.starts_with(their) || their.starts_with(our)))
            }
        }
    }
}

/// The calls that write, each with its source and what it writes there.
#[derive(Debug, Default)]
pub(crate) struct Writing(Vec<(CallId, String, Writes)>);

impl Writing {
    /// From here on `call` writes this.
    pub(crate) fn begin(&mut self, call: CallId, source: &str, writes: Writes) {
        self.0.retain(|(known, _, _)| *known != call);
        self.0.push((call, source.to_owned(), writes));
    }

    /// Whether one of these calls writes what `call` would.
    pub(crate) fn blocks(&self, call: CallId, source: &str, writes: &Writes) -> bool {
        self.0.iter().any(|(other, of, theirs)| *other != call && of == source && theirs.overlaps(writes))
    }

    /// Whether one of these that stands before `call` in its step writes what it would.
    pub(crate) fn stands_before(&self, call: CallId, source: &str, writes: &Writes) -> bool {
        self.0.iter().any(|(other, of, theirs)| *other < call && of == source && theirs.overlaps(writes))
    }

    /// Keeps those calls alone.
    pub(crate) fn retain(&mut self, keep: impl Fn(CallId) -> bool) {
        self.0.retain(|(call, _, _)| keep(*call));
    }
}

#[cfg(test)]
mod tests {
    use super::Writes;

    fn paths(paths: &[&str]) -> Writes {
        Writes::Paths(paths.iter().map(Into::into).collect())
    }

    #[test]
    fn what_is_the_same_or_lies_below_overlaps_and_names_that_begin_alike_do_not() {
        let overlapping = [
            (paths(&["/a/b"]), paths(&["/a/b"])),
            (paths(&["/a"]), paths(&["/a/b/c"])),
            (paths(&["/x", "/a/b"]), paths(&["/y", "/a"])),
            (Writes::All, paths(&["/a"])),
            (Writes::All, paths(&[])),
            (Writes::All, Writes::All),
        ];
        let apart = [
            (paths(&["/a/b"]), paths(&["/a/c"])),
            (paths(&["/a/b"]), paths(&["/a/bc"])),
            (paths(&["/a", "/b"]), paths(&["/c", "/d/a"])),
            (paths(&[]), paths(&["/"])),
        ];
        for (one, other) in overlapping {
            assert!(one.overlaps(&other) && other.overlaps(&one), "{one:?} {other:?}");
        }
        for (one, other) in apart {
            assert!(!one.overlaps(&other) && !other.overlaps(&one), "{one:?} {other:?}");
        }
    }
}
