//! What other processes are told about the servers of this one: states and last lines.

use std::collections::HashSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use turnwright_engine::SourceState;

use crate::LogLine;
use crate::kept::digest;

/// The most notices that are left of one server by processes that are gone.
const MAX_NOTICES: usize = 4;
/// The most bytes that are read of a notice.
const MAX_BYTES: u64 = 8 << 20;

/// Takes what other processes may know of the servers of this one.
pub trait Board: Send + Sync + Debug {
    /// The server is in this state now, and these are its last lines.
    fn post(&self, server: &str, state: &SourceState, lines: &[LogLine]);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBoard;

impl Board for NoBoard {
    fn post(&self, _server: &str, _state: &SourceState, _lines: &[LogLine]) {}
}

/// A file for each server of each process.
#[derive(Debug)]
pub struct FileBoard {
    folder: PathBuf,
    driver: String,
    posted: Mutex<HashSet<String>>,
}

/// What a process said of one of its servers the last time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The process, as it claims turns.
    pub driver: String,
    /// The state in one word; true for as long as the process lives.
    pub state: String,
    /// Why, where it is failing or wants a sign-in.
    pub reason: Option<String>,
    /// The last lines, oldest first.
    pub lines: Vec<LogLine>,
}

impl FileBoard {
    /// The board of this process, in a folder that all share; it is made when something is posted.
    pub fn new(folder: impl Into<PathBuf>, driver: impl Into<String>) -> Self {
        Self { folder: folder.into(), driver: driver.into(), posted: Mutex::default() }
    }

    /// What all processes said of a server, the newest first.
    pub fn notices(folder: &Path, server: &str) -> Vec<Notice> {
        let read = |file: PathBuf| {
            let is_small = fs::metadata(&file).is_ok_and(|found| found.len() <= MAX_BYTES);
            serde_json::from_slice(&fs::read(file).ok().filter(|_| is_small)?).ok()
        };
        files(folder, server).into_iter().filter_map(|(_, file)| read(file)).collect()
    }

    /// Forgets what all processes said of a server that is there no more.
    pub fn forget(folder: &Path, server: &str) {
        for (_, file) in files(folder, server) {
            if let Err(error) = fs::remove_file(file) {
                tracing::debug!(server, %error, "the last words of an MCP server could not be forgotten");
            }
        }
    }

    fn write(&self, server: &str, notice: &Notice) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        if self.posted.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned()) {
            for (_, file) in files(&self.folder, server).into_iter().skip(MAX_NOTICES) {
                fs::remove_file(file)?;
            }
        }
        let file = self.folder.join(format!("{}.{}.json", digest(server), self.driver));
        // Whole or not at all, whoever reads.
        let draft = file.with_extension("new");
        fs::write(&draft, serde_json::to_vec(notice)?)?;
        fs::rename(draft, file)
    }
}

impl Board for FileBoard {
    fn post(&self, server: &str, state: &SourceState, lines: &[LogLine]) {
        let reason = match state {
            SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } => Some(reason.clone()),
            SourceState::Starting | SourceState::Ready | SourceState::Stopped | SourceState::Disabled => None,
        };
        let notice = Notice { driver: self.driver.clone(), state: state.as_str().to_owned(), reason, lines: lines.to_vec() };
        if let Err(error) = self.write(server, &notice) {
            tracing::debug!(server, %error, "other processes cannot be told how an MCP server is");
        }
    }
}

/// The notices about a server, the newest first.
fn files(folder: &Path, server: &str) -> Vec<(SystemTime, PathBuf)> {
    let digest = digest(server);
    let is_of = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&digest) && path.extension().is_some_and(|end| end == "json")
    };
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let dated = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let mut files: Vec<_> = entries.filter(|path| is_of(path)).filter_map(dated).collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogOrigin;

    #[test]
    fn each_process_says_its_own_of_a_server_and_the_newest_word_of_each_counts() {
        let folder = tempfile::tempdir().unwrap();
        let line = LogLine { at_ms: 7, origin: LogOrigin::Stderr, text: "hello".into() };
        let boards = ["a1", "b2"].map(|driver| FileBoard::new(folder.path().join("board"), driver));
        boards[0].post("one", &SourceState::Starting, &[]);
        boards[0].post("one", &SourceState::Ready, std::slice::from_ref(&line));
        boards[1].post("one", &SourceState::Failing { reason: "no".into() }, &[]);
        boards[1].post("other", &SourceState::Ready, &[]);
        let mut notices = FileBoard::notices(&folder.path().join("board"), "one");
        notices.sort_by(|a, b| a.driver.cmp(&b.driver));
        let notice = |driver: &str, state: &str, reason: Option<&str>, lines| Notice {
            driver: driver.into(),
            state: state.into(),
            reason: reason.map(str::to_owned),
            lines,
        };
        assert_eq!(notices, [notice("a1", "ready", None, vec![line]), notice("b2", "failing", Some("no"), Vec::new())]);
    }

    #[test]
    fn processes_that_are_gone_do_not_fill_the_board() {
        let folder = tempfile::tempdir().unwrap();
        for driver in 0..20 {
            FileBoard::new(folder.path(), driver.to_string()).post("one", &SourceState::Ready, &[]);
        }
        assert_eq!(FileBoard::notices(folder.path(), "one").len(), MAX_NOTICES + 1);
    }
}
