//! Processes of tools whose parents have ended. They stay below this process instead of the system's first one: so a program that
//! leaves its ancestors is not taken for a person's, and ends with the server.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use turnwright_host::lineage;

/// How often it is looked for those that ended. What this process started itself is taken leave of long before it is seen twice.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// How often, and how long each time, those that are left at the end are waited for.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// Dropping it ends what came below this process.
#[derive(Debug)]
pub(crate) struct Orphans {
    /// What was below it at its start: whoever started them, and then became this process, did not mean them to end.
    others: BTreeSet<Pid>,
}

impl Orphans {
    /// From here on they come below this process, where the system can do that (Linux).
    pub(crate) fn adopt() -> Self {
        #[cfg(target_os = "linux")]
        if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
            tracing::debug!(%error, "what leaves its ancestors is not seen any more");
        }
        Self { others: children().collect() }
    }

    fn own(&self) -> impl Iterator<Item = Pid> {
        children().filter(|child| !self.others.contains(child))
    }

    /// Takes leave of those that ended, for good.
    pub(crate) async fn take_leave(&self) -> Infallible {
        let mut seen = BTreeSet::new();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let ended: BTreeSet<Pid> = self.own().filter(|child| has_ended(*child)).collect();
            for child in ended.intersection(&seen) {
                take_leave_of(*child);
            }
            seen = ended;
        }
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            let left: Vec<Pid> = self.own().collect();
            if left.is_empty() {
                return;
            }
            for child in left {
                // It may have ended meanwhile.
                let _ = kill(child, Signal::SIGKILL);
                take_leave_of(child);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn take_leave_of(child: Pid) {
    if let Err(error) = waitpid(child, Some(WaitPidFlag::WNOHANG)) {
        tracing::debug!(%error, %child, "somebody else took leave of it");
    }
}

/// All processes whose parent is this one, those that have ended among them.
fn children() -> impl Iterator<Item = Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_child = |process: &u32| lineage(*process).nth(1) == Some(std::process::id());
    processes.filter(is_child).filter_map(|process| i32::try_from(process).ok()).map(Pid::from_raw)
}

fn has_ended(process: Pid) -> bool {
    u32::try_from(process.as_raw()).is_ok_and(turnwright_host::has_ended)
}
