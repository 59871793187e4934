//! Whether a path lies below a folder, by its text alone: links are the tool's affair.

use super::Match;

/// A folder, absolute and without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder(Vec<String>);

impl Folder {
    /// Reads a folder as a rule writes it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('/')?;
        let parts: Vec<String> = parts(rest).map(str::to_owned).collect();
        parts.iter().all(|part| part != "..").then_some(Self(parts))
    }

    /// Whether the path is the folder or lies in it. What climbs, begins elsewhere, or would be read in another way by
    /// another system, is not certain.
    pub(super) fn holds(&self, path: &str, start: Option<&str>) -> Match {
        let is_odd = path.is_empty() || path.chars().any(char::is_control) || path.starts_with('~') || path.contains("://");
        let is_file_address = path.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
        if is_odd || is_file_address || path.split(['/', '\\']).any(|part| part == "..") {
            return Match::Unknown;
        }
        let whole = match (path.strip_prefix('/'), start) {
            (Some(_), _) => path.to_owned(),
            (None, Some(start)) => format!("{start}/{path}"),
            (None, None) => return Match::Unknown,
        };
        if self.is_start_of(parts(&whole), |a, b| a == b) {
            return if whole.contains('\\') { Match::Unknown } else { Match::Yes };
        }
        // Many file systems take another case for the same name, and some tools a backslash for a slash.
        let lower = whole.replace('\\', "/").to_lowercase();
        let is_similar = self.is_start_of(parts(&lower), |a, b| a.to_lowercase() == *b);
        if is_similar { Match::Unknown } else { Match::No }
    }

    fn is_start_of<'a>(&self, mut path: impl Iterator<Item = &'a str>, is_same: impl Fn(&str, &str) -> bool) -> bool {
        self.0.iter().all(|part| path.next().is_some_and(|other| is_same(part, other)))
    }
}

/// A path without the parts that say nothing.
pub(super) fn plain(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    root.to_owned() + &parts(path).collect::<Vec<_>>().join("/")
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}
