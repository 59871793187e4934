//! Wishes to stop from outside: Ctrl-C, a terminal that is closed, and the end of the process.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use turnwright_terminal::{Interrupt, Interrupts};

/// SIGINT, SIGTERM and SIGHUP. From its creation on none of them ends the process by itself.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where it means something else, or nothing.
    hangup: Option<Signal>,
    /// How many there were.
    heard: usize,
}

impl Signals {
    /// SIGHUP is heard too, but where whoever started the process wants it to be ignored, as `nohup` does.
    pub(crate) fn new() -> io::Result<Self> {
        let hangup = if ignores_hangups() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { hangup, ..Self::without_hangups()? })
    }

    /// SIGINT and SIGTERM alone, for a process to which SIGHUP is no wish to stop.
    pub(crate) fn without_hangups() -> io::Result<Self> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup: None, heard: 0 })
    }

    /// Whoever asked twice waits for nothing any more: the second one, at once where it was heard before.
    pub(crate) async fn hurry(&mut self) {
        if self.heard < 2 {
            self.next().await;
        }
    }
}

impl Interrupts for Signals {
    async fn next(&mut self) -> Interrupt {
        let Self { interrupt, terminate, hangup, heard } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => None,
            }
        };
        let next = tokio::select! {
            Some(()) = interrupt.recv() => Interrupt::Interrupt,
            Some(()) = terminate.recv() => Interrupt::Terminate,
            Some(()) = hung_up => Interrupt::Terminate,
            else => std::future::pending().await,
        };
        *heard = heard.saturating_add(1);
        next
    }
}

/// By which systemd tells the process that it starts as a service which one that is.
pub(crate) const SERVICE_VARIABLE: &str = "SYSTEMD_EXEC_PID";

/// Whether this process is a service of systemd itself, by what the variable says; what a service starts inherits it.
pub(crate) fn is_service(told: Option<&str>, own: u32) -> bool {
    told.is_some_and(|told| told == own.to_string())
}

/// Whether SIGHUP was ignored as the process began. Linux alone tells it.
fn ignores_hangups() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored(&status) & 1 != 0)
}

/// The signals that a process ignores, by what `/proc/self/status` says: the lowest bit is SIGHUP, whose number is 1.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_the_process_that_systemd_started_and_none_that_it_started_in_turn() {
        assert_eq!([Some("7"), Some("8"), Some(""), None].map(|told| is_service(told, 7)), [true, false, false, false]);
    }

    #[test]
    fn what_is_ignored_is_read_from_the_status_of_the_process() {
        let status =
            |mask: &str| format!("Name:\tturnwright\nSigBlk:\t0000000000000000\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert_eq!(
            [ignored(&status("0000000000001001")), ignored(&status("0000000000001000")), ignored("")],
            [0x1001, 0x1000, 0]
        );
    }
}
