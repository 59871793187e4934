//! Whether the wall clock is one by which things may be removed.
//!
//! A machine may start with a clock that is wrong by months, and then all that is stored looks old. So it is stored when a server
//! last ran here, and a clock that is far from that is believed once servers have run for a day by it, with somebody there to see what
//! the log says. An installation that was really off for long removes what is old a day later. Where no server is known to have run,
//! the first clock is believed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use turnwright_engine::{Document, StoreError};

use crate::Host;

/// The kind and the key of the document that says it.
const KIND: &str = "seen";
const KEY: &str = "server";
/// How far from it a clock is believed at once: two days. Who is off for a weekend need not wait.
const FAR_MS: u64 = 2 * 24 * 3_600_000;
/// For how long servers run before a clock that is farther is believed: a day.
const RUNS_MS: u64 = 24 * 3_600_000;
/// How often it is stored while nothing is far: an hour.
const STORED_EVERY_MS: u64 = 3_600_000;

/// When a server last ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// In milliseconds since 1970 UTC; 0 where that is not known.
    at_ms: u64,
    /// For how long servers have run by a clock that is far from that, in milliseconds.
    #[serde(default)]
    ran_ms: u64,
}

/// What is thought of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belief {
    Believed,
    /// What it says to be old may be young.
    Doubted,
}

impl Seen {
    /// What is thought of a clock that says `now_ms`, and what is known then; `ran_ms` is how long this server ran since it was asked
    /// last.
    fn by(self, now_ms: u64, ran_ms: u64) -> (Belief, Self) {
        if self.at_ms == 0 || now_ms.abs_diff(self.at_ms) <= FAR_MS {
            return (Belief::Believed, Self { at_ms: now_ms.max(self.at_ms), ran_ms: 0 });
        }
        let ran_ms = self.ran_ms.saturating_add(ran_ms);
        if ran_ms >= RUNS_MS {
            return (Belief::Believed, Self { at_ms: now_ms, ran_ms: 0 });
        }
        // By a clock that is behind nothing is older than it is.
        let belief = if now_ms < self.at_ms { Belief::Believed } else { Belief::Doubted };
        (belief, Self { ran_ms, ..self })
    }
}

/// What a server remembers of its rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    last: Option<Instant>,
    is_told: bool,
}

impl Host {
    /// Whether what is old by the clock may be removed in this round.
    pub(super) async fn believes_its_clock(&self) -> Result<bool, StoreError> {
        let now_ms = self.engine().clock().now_ms();
        let ran = {
            let mut rounds = self.rounds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            rounds.last.replace(Instant::now()).map_or(Duration::ZERO, |last| last.elapsed())
        };
        let document = self.documents().document(KIND, KEY).await?;
        let known = document.and_then(|document| serde_json::from_str::<Seen>(&document.body).ok());
        let seen = known.unwrap_or_default();
        let (belief, next) = seen.by(now_ms, u64::try_from(ran.as_millis()).unwrap_or(u64::MAX));
        let is_due = next.ran_ms != seen.ran_ms || next.at_ms.abs_diff(seen.at_ms) >= STORED_EVERY_MS;
        if is_due || known.is_none() {
            let body = serde_json::to_value(next).unwrap_or(Value::Null).to_string();
            self.documents().put_document(KIND, Document { key: KEY.to_owned(), body }).await?;
        }
        self.tell_of(belief, seen, now_ms);
        Ok(belief == Belief::Believed)
    }

    fn tell_of(&self, belief: Belief, seen: Seen, now_ms: u64) {
        let mut rounds = self.rounds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match belief {
            Belief::Believed => rounds.is_told = false,
            Belief::Doubted if std::mem::replace(&mut rounds.is_told, true) => {}
            Belief::Doubted => tracing::warn!(
                days = now_ms.abs_diff(seen.at_ms) / (24 * 3_600_000),
                "the clock is days ahead of when a server last ran here; nothing is removed for its age before servers have run for a \
                 day by it. Mend the clock where it is wrong"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;
    const NOW_MS: u64 = 20_000 * DAY_MS;

    /// What is thought in each of so many rounds, a minute apart, until it is believed; and what is known then.
    fn rounds(mut seen: Seen, mut now_ms: u64) -> (u64, Seen) {
        for round in 0.. {
            let (belief, next) = seen.by(now_ms, if round == 0 { 0 } else { 60_000 });
            seen = next;
            if belief == Belief::Believed {
                return (round, seen);
            }
            now_ms += 60_000;
        }
        unreachable!("it is believed some time")
    }

    #[test]
    fn a_clock_that_is_far_ahead_is_believed_after_a_day_also_over_restarts() {
        let seen = Seen { at_ms: NOW_MS, ran_ms: 0 };
        assert_eq!(rounds(seen, NOW_MS + FAR_MS), (0, Seen { at_ms: NOW_MS + FAR_MS, ran_ms: 0 }));
        let ahead = NOW_MS + 95 * DAY_MS;
        assert_eq!(rounds(seen, ahead), (24 * 60, Seen { at_ms: ahead + DAY_MS, ran_ms: 0 }));
        // It was ended after half a day, and goes on later.
        let half = Seen { at_ms: NOW_MS, ran_ms: DAY_MS / 2 };
        assert_eq!(rounds(half, ahead + 5 * DAY_MS).0, 12 * 60);
        // Mended meanwhile, or another server has a better one.
        assert_eq!(half.by(NOW_MS + 1, 60_000), (Belief::Believed, Seen { at_ms: NOW_MS + 1, ran_ms: 0 }));
        assert_eq!(rounds(Seen::default(), NOW_MS), (0, Seen { at_ms: NOW_MS, ran_ms: 0 }), "where nothing is known");
    }

    #[test]
    fn a_clock_that_is_far_behind_removes_nothing_too_early_and_is_what_counts_after_a_day() {
        let (mut seen, behind) = (Seen { at_ms: NOW_MS, ran_ms: 0 }, NOW_MS - 400 * DAY_MS);
        for minute in 0..24 * 60 {
            let (belief, next) = seen.by(behind, 60_000);
            assert_eq!(belief, Belief::Believed);
            assert_eq!(next.at_ms, if minute + 1 == 24 * 60 { behind } else { NOW_MS });
            seen = next;
        }
        assert_eq!(seen.by(NOW_MS, 60_000).0, Belief::Doubted, "mended after that");
    }
}
