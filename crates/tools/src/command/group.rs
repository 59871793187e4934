//! The processes of one command, which end with their owner: its group, and what left the group.
//!
//! A process that left it on purpose (`setsid`, a daemon) still carries the command's mark, since environments are
//! inherited. It is looked for in `/proc`; where there is none only the group is reached.

use std::hash::{BuildHasher, RandomState};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::Leader;

/// The variable that marks every process of a command with the command's own word.
pub(crate) const MARK: &str = "TURNWRIGHT_PROCESS_CALL";

/// How often what appeared while others were killed is looked for.
const KILL_ROUNDS: usize = 3;

/// A word for one command.
pub(crate) fn new_mark() -> String {
    let word = || RandomState::new().hash_one(MARK);
    format!("{:016x}{:016x}", word(), word())
}

/// Where processes that left the group are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Among those with a higher number than the command's: cheap, and all of them as long as numbers are not used again.
    Later,
    /// Among all.
    All,
}

/// The processes of a command whose first one leads a group. Killed when dropped.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    leader: Option<Pid>,
    is: Leader,
    /// `MARK=word`.
    variable: String,
}

impl ProcessGroup {
    /// The group that the child `pid` leads; it was started with `mark` in its environment.
    pub(crate) fn led_by(pid: Option<u32>, is: Leader, mark: &str) -> Self {
        let leader = pid.and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        Self { leader, is, variable: format!("{MARK}={mark}") }
    }

    /// Asks every process to end.
    pub(crate) fn terminate(&self) {
        match self.is {
            Leader::Command => {
                self.send(Signal::SIGTERM);
                // A stopped process sees the request only once it goes on.
                self.send(Signal::SIGCONT);
            }
            // All that is in it carries the mark.
            Leader::Enclosure => {}
        }
        for pid in self.escaped(Reach::All) {
            let _ = kill(pid, Signal::SIGTERM);
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// Kills every process. Nothing is sent afterwards: its number may then be another's.
    pub(crate) fn kill(&mut self, reach: Reach) {
        if self.leader.is_none() {
            return;
        }
        self.send(Signal::SIGKILL);
        for _ in 0..KILL_ROUNDS {
            let escaped = self.escaped(reach);
            if escaped.is_empty() {
                break;
            }
            for pid in escaped {
                // Gone in between is what was wanted.
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        self.leader = None;
    }

    fn send(&self, signal: Signal) {
        // No such group is no failure: all of it has ended.
        if let Some(group) = self.leader
            && let Err(error) = killpg(group, signal)
            && error != nix::errno::Errno::ESRCH
        {
            tracing::warn!(group = group.as_raw(), %signal, %error, "a process group could not be signalled");
        }
    }

    /// Those that carry the mark. What is dead and only waits to be collected has no environment any more.
    fn escaped(&self, reach: Reach) -> Vec<Pid> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let least = match (reach, self.leader) {
            (Reach::Later, Some(leader)) => leader.as_raw(),
            (Reach::All, _) | (_, None) => 0,
        };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| *pid > least && Some(*pid) != self.leader.map(Pid::as_raw) && self.has_mark(*pid))
            .map(Pid::from_raw)
            .collect()
    }

    fn has_mark(&self, pid: i32) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
        environment.split(|byte| *byte == 0).any(|variable| variable == self.variable.as_bytes())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill(Reach::All);
    }
}
