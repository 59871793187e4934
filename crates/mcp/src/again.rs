//! When a list that a server failed to give is asked for again.

use std::time::Duration;

/// The first pause; each later one is twice the one before, up to the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(5);

/// How an attempt to list something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// What the server has is known, as far as it is taken.
    Known,
    /// The server failed on the way: it may have more, or other, than was read.
    Failed,
}

impl Listed {
    /// Of two parts: known where both are.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known, Self::Known) => Self::Known,
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
        }
    }
}

/// Counts what failed in a row. Nobody says when a server that failed can list again, so it is asked.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pause: Option<Duration>,
}

impl Again {
    /// The last attempt ended so.
    pub(crate) fn after(&mut self, listed: Listed) {
        self.pause = match listed {
            Listed::Known => None,
            Listed::Failed => Some(self.pause.map_or(FIRST, |pause| pause.saturating_mul(2).min(LONGEST))),
        };
    }

    /// Comes when it is to be asked for again; never where the last attempt did not fail.
    pub(crate) async fn due(&self) {
        match self.pause {
            Some(pause) => tokio::time::sleep(pause).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_it_fails_and_begin_anew_after_it_worked() {
        let mut again = Again::default();
        let mut after = |listed| {
            again.after(listed);
            again.pause.map(|pause| pause.as_secs())
        };
        let failing = [(); 8].map(|()| after(Listed::Failed));
        assert_eq!(failing, [5, 10, 20, 40, 80, 160, 300, 300].map(Some));
        assert_eq!([after(Listed::Known), after(Listed::Failed)], [None, Some(5)]);
    }
}
