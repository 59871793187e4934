//! A process group that ends with its owner.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The process group of a child that leads it. Killed when dropped.
#[derive(Debug)]
pub(super) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The group that the child `pid` leads.
    pub(super) fn led_by(pid: Option<u32>) -> Self {
        Self(pid.and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw))
    }

    /// Asks every process in it to end.
    pub(super) fn terminate(&self) {
        self.send(Signal::SIGTERM);
        // A stopped process sees the request only once it goes on.
        self.send(Signal::SIGCONT);
    }

    /// Kills every process in it. Nothing is sent afterwards: its number may then be another's.
    pub(super) fn kill(&mut self) {
        self.send(Signal::SIGKILL);
        self.0 = None;
    }

    fn send(&self, signal: Signal) {
        // No such group is no failure: all of it has ended.
        if let Some(group) = self.0
            && let Err(error) = killpg(group, signal)
            && error != nix::errno::Errno::ESRCH
        {
            tracing::warn!(group = group.as_raw(), %signal, %error, "a process group could not be signalled");
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
