//! Where a process of this machine comes from: whether a tool of ours has started it.
//!
//! Every process of a tool is started with a mark in its environment, and so is what it starts. What the system tells of
//! processes is read from `/proc`; where there is none, nothing is told.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use turnwright_engine::Door;
use turnwright_mcp::MARK;

/// The door of a whole process: it is closed where a tool has started it.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    /// Where those that share the data tell what their tools start.
    pub(crate) processes: PathBuf,
}

#[async_trait]
impl Door for OwnProcess {
    async fn open(&self) -> Result<(), String> {
        if is_started_by_a_tool(&self.processes) { Err("a tool has started this program".to_owned()) } else { Ok(()) }
    }
}

/// The furthest that ancestors are followed.
const MAX_ANCESTORS: usize = 64;

/// A process and its ancestors, the nearest first, up to the system's first one.
pub fn lineage(process: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(process), |process| parent(*process).filter(|parent| *parent > 1)).take(MAX_ANCESTORS)
}

/// The mark of the tool by which a process was started, where one did.
pub fn mark_of(process: u32) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{process}/environ")).ok()?;
    let start = format!("{MARK}=");
    let found = environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(start.as_bytes()))?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// Whether this process, or one that it descends from, was started by a tool of a process that remembers its tools there; or descends
/// from such a process, whatever became of the mark: the processes of tools stay below it.
pub(crate) fn is_started_by_a_tool(processes: &Path) -> bool {
    has_mark_of(processes) || lineage(std::process::id()).skip(1).any(|ancestor| remembers_in(ancestor, processes))
}

/// Whether a process holds a folder open that lies there, as those do that remember their tools.
fn remembers_in(process: u32, processes: &Path) -> bool {
    let Ok(processes) = processes.canonicalize() else { return false };
    let held = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    held.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file.starts_with(&processes))
}

fn has_mark_of(processes: &Path) -> bool {
    let is_word = |mark: &String| !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let marks: Vec<String> = lineage(std::process::id()).filter_map(mark_of).filter(is_word).collect();
    if marks.is_empty() {
        return false;
    }
    let mut drivers = std::fs::read_dir(processes).into_iter().flatten().flatten().map(|driver| driver.path());
    drivers.any(|driver| marks.iter().any(|mark| driver.join(format!("{mark}.json")).exists()))
}

/// Whether a process has ended and nobody has taken leave of it yet.
pub fn has_ended(process: u32) -> bool {
    state_and_parent(process).is_some_and(|(state, _)| state == "Z")
}

fn parent(process: u32) -> Option<u32> {
    state_and_parent(process)?.1.parse().ok()
}

fn state_and_parent(process: u32) -> Option<(String, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold anything, also brackets.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().map(str::to_owned);
    Some((fields.next()?, fields.next()?))
}
