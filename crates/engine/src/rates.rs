//! The port to what may happen only so often, counted over all processes that use a store. *Not here:* what there may be at once
//! ([`crate::Slots`]), and what is spent (`crate::budgets`).

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::StoreError;

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So often at most …
    pub most: u32,
    /// … in any time of this length.
    pub within: Duration,
}

/// Whether something may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may, and was counted.
    Counted,
    /// It happened as often as it may, and was not counted.
    NotFor {
        /// After how long it may again, where nobody else is quicker.
        wait: Duration,
    },
}

/// Counts what may happen only so often. Every method may be called from any number of tasks and processes at once.
#[async_trait]
pub trait Rates: Send + Sync + Debug {
    /// Counts what has this name once more, where it may happen once more. Each says itself how often it may: what was counted
    /// counts for all who name it.
    ///
    /// # Errors
    /// Where the store fails; then nobody knows whether it was counted.
    async fn admit(&self, name: &str, rate: Rate) -> Result<Admission, StoreError>;
}

/// When something happened of late, in milliseconds on the clock of whoever counts. As JSON a list, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counted(Vec<u64>);

impl Counted {
    /// Counts one more, where it may be; forgets what is too long ago to matter. Also what is as far ahead, as where a clock was
    /// set back.
    pub fn admit(&mut self, now_ms: u64, rate: Rate) -> Admission {
        let within_ms = u64::try_from(rate.within.as_millis()).unwrap_or(u64::MAX);
        self.0.retain(|at_ms| now_ms.abs_diff(*at_ms) < within_ms);
        let most = usize::try_from(rate.most).unwrap_or(usize::MAX);
        let Some(too_many) = self.0.len().checked_sub(most) else {
            self.0.push(now_ms);
            self.0.sort_unstable();
            return Admission::Counted;
        };
        // So many have to be over. Whoever may never do it is told to wait as long as can be.
        let wait = self.0.get(too_many).map_or(rate.within, |at_ms| {
            Duration::from_millis(at_ms.saturating_add(within_ms).saturating_sub(now_ms)).min(rate.within)
        });
        Admission::NotFor { wait }
    }
}

/// Counts for this process alone.
#[derive(Debug)]
pub struct RatesHere {
    begun: Instant,
    counted: Mutex<HashMap<String, Counted>>,
}

impl Default for RatesHere {
    fn default() -> Self {
        Self { begun: Instant::now(), counted: Mutex::default() }
    }
}

#[async_trait]
impl Rates for RatesHere {
    async fn admit(&self, name: &str, rate: Rate) -> Result<Admission, StoreError> {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(counted.entry(name.to_owned()).or_default().admit(now_ms, rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_A_MINUTE: Rate = Rate { most: 2, within: Duration::from_mins(1) };

    fn not_for(seconds: u64) -> Admission {
        Admission::NotFor { wait: Duration::from_secs(seconds) }
    }

    #[test]
    fn in_any_time_of_that_length_there_are_so_many() {
        let mut counted = Counted::default();
        let told = [0, 20, 45, 60, 79, 80].map(|second| counted.admit(second * 1_000, TWO_A_MINUTE));
        let expected =
            [Admission::Counted, Admission::Counted, not_for(15), Admission::Counted, not_for(1), Admission::Counted];
        assert_eq!(told, expected);
    }

    #[test]
    fn whoever_may_do_it_less_often_waits_until_enough_of_what_others_did_is_over() {
        let mut counted = Counted::default();
        for second in [0, 10, 20] {
            let rate = Rate { most: 3, ..TWO_A_MINUTE };
            assert_eq!(counted.admit(second * 1_000, rate), Admission::Counted);
        }
        assert_eq!(counted.admit(30_000, TWO_A_MINUTE), not_for(40));
        assert_eq!(counted.admit(30_000, Rate { most: 1, ..TWO_A_MINUTE }), not_for(50));
        assert_eq!(counted.admit(30_000, Rate { most: 0, ..TWO_A_MINUTE }), not_for(60));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_nothing_up_for_longer_than_the_time_that_counts() {
        let mut counted = Counted::default();
        let told = [100_000, 100_000, 70_000, 39_000].map(|now_ms| counted.admit(now_ms, TWO_A_MINUTE));
        assert_eq!(told, [Admission::Counted, Admission::Counted, not_for(60), Admission::Counted]);
    }
}
