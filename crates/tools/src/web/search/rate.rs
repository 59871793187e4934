//! How often is searched.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use turnwright_engine::source::ToolError;

use crate::error::failed;

/// In which time searches are counted.
const WINDOW: Duration = Duration::from_mins(1);

/// Lets so many searches through in any minute.
#[derive(Debug)]
pub(super) struct Rate {
    per_minute: u32,
    begun: Mutex<VecDeque<Instant>>,
}

impl Rate {
    pub(super) fn new(per_minute: u32) -> Self {
        Self { per_minute, begun: Mutex::default() }
    }

    /// Counts a search, or says when the next one may be.
    pub(super) fn admit(&self, now: Instant) -> Result<(), ToolError> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        while begun.front().is_some_and(|first| now.duration_since(*first) >= WINDOW) {
            begun.pop_front();
        }
        if begun.len() < usize::try_from(self.per_minute).unwrap_or(usize::MAX) {
            begun.push_back(now);
            return Ok(());
        }
        let wait = begun.front().map_or(WINDOW, |first| WINDOW.saturating_sub(now.duration_since(*first)));
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Err(failed(format!(
            "searches are limited to {} a minute; the next one may be in {seconds} s. Go on with what is known until then",
            self.per_minute
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn in_any_minute_there_are_so_many_searches() {
        let (rate, begun) = (Rate::new(2), Instant::now());
        let at = |seconds| rate.admit(begun + Duration::from_secs(seconds)).map_err(|error| error.model_text);
        assert_eq!([at(0), at(20)], [Ok(()), Ok(())]);
        let text = "searches are limited to 2 a minute; the next one may be in 15 s. Go on with what is known until then";
        assert_eq!(at(45), Err(text.to_owned()));
        assert_eq!(at(60), Ok(()));
        assert!(at(79).is_err());
        assert_eq!(at(80), Ok(()));
    }
}
