//! When a server that ended is started again.

use std::time::Duration;

/// How fast, and how often in a row, a server is started again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// The pause before the first restart; the second takes ten times as long, each later one twice the one before.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
    /// After so many failures in a row it is left alone for a while: calls fail at once. Then one call may try.
    pub attempts: u32,
    /// How long it is left alone the first time; each later time is twice the one before.
    pub open: Duration,
    /// The longest time that it is left alone.
    pub max_open: Duration,
    /// A server that lived so long has not failed in a row.
    pub stable_after: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            max: Duration::from_secs(30),
            attempts: 5,
            open: Duration::from_secs(30),
            max_open: Duration::from_mins(5),
            stable_after: Duration::from_secs(10),
        }
    }
}

impl RestartPolicy {
    /// How long it is left alone after this many failures in a row, where there is no pause after which it is started by itself.
    pub(crate) fn rest(&self, failures: u32) -> Duration {
        let before = failures.saturating_sub(self.attempts);
        self.open.saturating_mul(2_u32.saturating_pow(before)).min(self.max_open)
    }

    /// The pause after this many failures in a row, between 80 and 100 percent of the full one so that many servers that
    /// fell together do not rise together, as `luck` decides; `None` when it is not started again by itself.
    pub(crate) fn pause(&self, failures: u32, luck: u64) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let full = match failures {
            0 | 1 => self.first,
            more => self.first.saturating_mul(10).saturating_mul(2_u32.saturating_pow(more - 2)),
        };
        let percent = 80 + luck % 21;
        Some(full.min(self.max) * u32::try_from(percent).unwrap_or(100) / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_quick_to_the_ceiling_and_then_nobody_tries() {
        let policy = RestartPolicy { attempts: 9, ..RestartPolicy::default() };
        let full = [100, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
        for (failures, full) in (1..).zip(full) {
            assert_eq!(policy.pause(failures, 20), Some(Duration::from_millis(full)));
            assert_eq!(policy.pause(failures, 21), Some(Duration::from_millis(full) * 8 / 10));
        }
        assert_eq!(policy.pause(9, 0), None);
    }
}
