//! The lease of this process, as it knows it by itself: decided by values, looked at without asking anybody.
//!
//! A row in the database is renewed by a statement whose answer may come late: others took over meanwhile, and the answer still
//! says that it is the same row. So leases have numbers of our own, and what comes after one was over has the next.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// How long a node's row counts without being renewed, and so a node that was killed may look alive: with what noticing and taking
/// over take, a turn goes on within 5 seconds.
pub const LEASE: Duration = Duration::from_secs(4);
/// How much earlier its holder stops: between looking and doing something may pass.
const MARGIN: Duration = Duration::from_millis(300);

/// A moment of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// It stands still where the machine is suspended, and with the clock of a test.
    at: Instant,
    /// Since the machine was started, with the time for which it was suspended.
    since_boot: Duration,
}

impl Moment {
    pub(super) fn now() -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let clock = ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let clock = ClockId::Monotonic;
        Self { at: Instant::now(), since_boot: clock_gettime(clock).try_into().unwrap_or_default() }
    }

    fn after(self, passed: Duration) -> Self {
        Self { at: self.at + passed, since_boot: self.since_boot.saturating_add(passed) }
    }

    /// Whether it is before another on either clock.
    fn is_before(self, other: Self) -> bool {
        self.at < other.at && self.since_boot < other.since_boot
    }
}

/// The lease, as its holder knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    /// Another for each that was taken after one was over.
    pub(super) number: u64,
    /// Its number in the database.
    pub(super) term: i64,
    until: Moment,
}

impl Lease {
    /// The one that the database says since `now`, which was asked for it at `asked_at`. It goes on with the one before where that
    /// is the same row and is not over yet.
    pub(super) fn renewed(before: Option<Self>, term: i64, asked_at: Moment, now: Moment) -> Self {
        let number = match before {
            None => 1,
            Some(before) if before.term == term && before.is_held(now) => before.number,
            Some(before) => before.number.saturating_add(1),
        };
        Self { number, term, until: asked_at.after(LEASE.saturating_sub(MARGIN)) }
    }

    /// Whether it is not over at this moment.
    pub(super) fn is_held(&self, now: Moment) -> bool {
        now.is_before(self.until)
    }

    /// When it is over, unless the machine is suspended before.
    pub(super) fn over_at(&self) -> Instant {
        self.until.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_lease_that_was_over_before_its_renewal_was_answered_is_another_though_its_row_is_the_same() {
        let start = Moment::now();
        let first = Lease::renewed(None, 7, start, start);
        let numbers = |asked_after: Duration, answered_after: Duration, term: i64| {
            Lease::renewed(Some(first), term, start.after(asked_after), start.after(answered_after)).number
        };
        assert_eq!(numbers(SECOND, SECOND * 3, 7), 1, "held without a break");
        assert_eq!(numbers(SECOND * 3, LEASE, 7), 2, "its answer came when it was over");
        assert_eq!(numbers(SECOND, SECOND * 2, 8), 2, "the row had run out");
    }

    #[test]
    fn a_lease_is_over_by_the_time_for_which_the_machine_was_suspended() {
        let start = Moment::now();
        let lease = Lease::renewed(None, 1, start, start);
        let suspended = |passed: Duration| Moment { since_boot: start.since_boot + passed, ..start };
        assert!(lease.is_held(start) && lease.is_held(suspended(SECOND * 3)));
        assert!(!lease.is_held(suspended(LEASE)), "nothing of it is left though no time passed for the process");
        assert!(!lease.is_held(Moment { at: start.at + LEASE, ..start }), "nor by the clock of a test");
        let next = Lease::renewed(Some(lease), 1, suspended(LEASE), suspended(LEASE));
        assert_eq!(next.number, 2);
    }

    #[test]
    fn a_moment_comes_after_one_before_it() {
        let first = Moment::now();
        std::thread::sleep(Duration::from_millis(2));
        let second = Moment::now();
        assert!(first.since_boot > Duration::ZERO && first.is_before(second));
    }
}
