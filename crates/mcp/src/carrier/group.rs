//! The processes of one server: found by their group and by a mark in their environment, and ended.
//!
//! A process that left the group (`setsid`, a daemon) still carries the mark, since environments are inherited. Both are
//! read from `/proc`; where there is none only the group is signalled.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The variable that marks every process of a server with the server's own word.
pub const MARK: &str = "TURNWRIGHT_PROCESS";

/// How often the end of processes is looked for.
const POLL: Duration = Duration::from_millis(10);
/// How long a process may take to begin; one that was started without any environment looks as if it began for ever.
const BEGINNING: Duration = Duration::from_millis(200);
/// How often what appeared in between is killed again.
const KILL_ROUNDS: usize = 5;

/// How to recognise the processes of one server.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The value of [`MARK`], unique for each start.
    pub(crate) mark: String,
    /// The process group, where members without the mark belong to the server too.
    pub(crate) trusted: Option<Pid>,
}

/// What `/proc` says about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: Pid,
    pub(crate) group: Pid,
    /// In ticks since the system started.
    pub(crate) started: u64,
}

impl Group {
    /// Its living members; empty where nobody is left.
    pub(crate) fn members(&self) -> Vec<ProcessStat> {
        let Some(all) = processes() else { return Vec::new() };
        let wanted = format!("{MARK}={}", self.mark);
        all.filter(|process| self.trusted == Some(process.group) || has_variable(process.pid, wanted.as_bytes())).collect()
    }

    /// Whether nobody is left.
    pub(crate) fn is_gone(&self) -> bool {
        match (has_proc(), self.trusted) {
            (true, _) => self.members().is_empty(),
            (false, Some(group)) => killpg(group, None).is_err(),
            (false, None) => true,
        }
    }

    /// Sends a signal to everybody.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.trusted {
            // Gone in between is what was wanted.
            let _ = killpg(group, signal);
        }
        for member in self.members() {
            if self.trusted != Some(member.group) {
                let _ = kill(member.pid, signal);
            }
        }
    }

    /// Ends everybody: asks, waits at most `grace`, then kills, also those who are born meanwhile.
    pub(crate) async fn end(&self, grace: Duration) {
        if self.is_gone() {
            return;
        }
        self.signal(Signal::SIGTERM);
        if self.gone_within(grace).await {
            return;
        }
        for _ in 0..KILL_ROUNDS {
            self.signal(Signal::SIGKILL);
            if self.gone_within(Duration::from_millis(500)).await {
                return;
            }
        }
    }

    async fn gone_within(&self, limit: Duration) -> bool {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            // To look at those that are known is cheap, to look for others is not.
            let known = self.members();
            if known.is_empty() && self.is_gone() {
                return true;
            }
            loop {
                if tokio::time::Instant::now() >= deadline {
                    return false;
                }
                tokio::time::sleep(POLL).await;
                if !known.iter().any(|member| stat(member.pid).is_some_and(|now| now.started == member.started)) {
                    break;
                }
            }
        }
    }
}

fn has_proc() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// All living processes; `None` where the system does not say.
fn processes() -> Option<impl Iterator<Item = ProcessStat>> {
    let entries = fs::read_dir("/proc").ok()?;
    Some(entries.filter_map(|entry| stat(Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))))
}

/// What is known of a process that lives; `None` for one that is gone, or dead and only waits to be collected.
pub(crate) fn stat(pid: Pid) -> Option<ProcessStat> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state ppid pgrp …`; the name may hold anything, so the fields are counted from its last bracket
/// (proc(5): the state is field 3, the group 5, the start 22).
fn parse_stat(pid: Pid, text: &str) -> Option<ProcessStat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let group = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?;
    Some(ProcessStat { pid, group: Pid::from_raw(group), started })
}

/// Waits until every process that is just being started can be recognised, at most [`BEGINNING`].
///
/// Between the moment in which a process takes its program on and the one in which its environment stands, the latter
/// reads as empty (`environ_read` of the kernel gives nothing before `env_end` is set), and so it carries no mark yet.
pub(crate) async fn nobody_begins() {
    let deadline = tokio::time::Instant::now() + BEGINNING;
    while tokio::time::Instant::now() < deadline && processes().into_iter().flatten().any(|process| begins(process.pid)) {
        tokio::time::sleep(POLL).await;
    }
}

/// Whether a process has a program, which threads of the kernel have not, and no environment.
fn begins(pid: Pid) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| environment.is_empty())
        && fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

fn has_variable(pid: Pid, wanted: &[u8]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
}

/// Names this run of the system: start times of another one mean nothing.
pub(crate) fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_brackets_in_its_name_is_read() {
        let text = "42 (a) b (c) S 1 40 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 10";
        let pid = Pid::from_raw(42);
        assert_eq!(parse_stat(pid, text), Some(ProcessStat { pid, group: Pid::from_raw(40), started: 123_456 }));
    }

    #[test]
    fn a_process_without_an_environment_is_one_that_may_just_begin() {
        let start = |program: &mut std::process::Command| program.arg("1000").spawn().unwrap();
        let mut bare = start(std::process::Command::new("sleep").env_clear());
        let mut marked = start(std::process::Command::new("sleep").env_clear().env(MARK, "1"));
        let pid = |child: &std::process::Child| Pid::from_raw(child.id().try_into().unwrap());
        // Whether its environment stands when it was spawned is what this is about.
        while begins(pid(&marked)) {
            std::thread::yield_now();
        }
        let found = (begins(pid(&bare)), has_variable(pid(&marked), format!("{MARK}=1").as_bytes()));
        for child in [&mut bare, &mut marked] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, (true, true));
    }

    #[test]
    fn a_dead_process_that_was_not_collected_does_not_count() {
        assert_eq!(parse_stat(Pid::from_raw(42), "42 (x) Z 1 40 40 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0"), None);
    }
}
