//! How long a write waits for those of other conversations, to be one transaction with them.
//!
//! A transaction costs about twenty system calls however much is in it. Where many conversations write at the same time, each of
//! them waits a moment for the next, as with PostgreSQL's `commit_delay` and `commit_siblings`; where few do, or one after the
//! other, nothing waits. Pure: times come in.

use std::time::Duration;

use tokio::time::Instant;

/// From how many conversations on it is worth waiting, and how many writes are enough for one transaction.
const ENOUGH: usize = 8;
/// How long ago a conversation that wrote counts.
const RECENT: Duration = Duration::from_millis(20);
/// The longest wait for others.
const PATIENCE: Duration = Duration::from_millis(1);
/// After how many transactions in a row that held one write nobody is waited for.
const LONELY: u8 = 4;

/// Who wrote a moment ago.
#[derive(Debug)]
pub(super) struct Company {
    /// As many as are enough, those that wrote last: hashes of their names, and when that was.
    recent: Vec<(u64, Instant)>,
    /// Transactions in a row that held one write.
    alone: u8,
    /// When the first of those that wait now came.
    since: Option<Instant>,
}

impl Company {
    pub(super) fn new() -> Self {
        Self { recent: Vec::new(), alone: LONELY, since: None }
    }

    /// A write of a conversation came.
    pub(super) fn came(&mut self, conversation: u64, now: Instant) {
        self.since.get_or_insert(now);
        if let Some((_, at)) = self.recent.iter_mut().find(|(known, _)| *known == conversation) {
            *at = now;
        } else if self.recent.len() < ENOUGH {
            self.recent.push((conversation, now));
        } else if let Some(oldest) = self.recent.iter_mut().min_by_key(|(_, at)| *at) {
            *oldest = (conversation, now);
        }
    }

    /// Until when one of `count` writes that wait now goes on waiting; `None` where they are to be written.
    pub(super) fn waits_until(&self, count: usize, now: Instant) -> Option<Instant> {
        if self.alone >= LONELY || count >= ENOUGH {
            return None;
        }
        let around = self.recent.iter().filter(|(_, at)| now.saturating_duration_since(*at) < RECENT).count();
        let until = self.since? + PATIENCE;
        (around >= ENOUGH && now < until).then_some(until)
    }

    /// `count` writes went into one transaction.
    pub(super) fn written(&mut self, count: usize) {
        self.since = None;
        self.alone = if count > 1 { 0 } else { self.alone.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After `conversations` wrote one after the other, a millisecond apart, `together` in a transaction.
    fn after(conversations: u64, together: usize, start: Instant) -> (Company, Instant) {
        let mut company = Company::new();
        let mut now = start;
        for conversation in 0..conversations {
            now += Duration::from_millis(1);
            company.came(conversation, now);
            company.written(together);
        }
        (company, now)
    }

    #[test]
    fn one_of_many_that_write_together_waits_for_the_others() {
        let (mut company, now) = after(12, 2, Instant::now());
        company.came(3, now);
        assert_eq!(company.waits_until(1, now), Some(now + PATIENCE));
        company.came(4, now + PATIENCE / 2);
        assert_eq!(company.waits_until(2, now + PATIENCE / 2), Some(now + PATIENCE), "as long as the first does");
        assert_eq!(company.waits_until(2, now + PATIENCE), None);
        assert_eq!(company.waits_until(ENOUGH, now), None, "enough are there");
    }

    #[test]
    fn nobody_waits_among_few_or_where_each_writes_after_the_other() {
        let (mut few, now) = after(7, 2, Instant::now());
        few.came(3, now);
        assert_eq!(few.waits_until(1, now), None);
        let (mut one_by_one, now) = after(1_000, 1, Instant::now());
        one_by_one.came(1_000, now);
        assert_eq!(one_by_one.waits_until(1, now), None);
    }

    #[test]
    fn who_wrote_long_ago_is_not_waited_for() {
        let (mut company, now) = after(12, 2, Instant::now());
        let later = now + RECENT;
        company.came(3, later);
        assert_eq!(company.waits_until(1, later), None);
    }

    #[test]
    fn waiting_in_vain_ends_it() {
        let (mut company, mut now) = after(20, 2, Instant::now());
        for _ in 0..LONELY {
            company.came(3, now);
            assert!(company.waits_until(1, now).is_some());
            now += PATIENCE;
            company.written(1);
        }
        company.came(3, now);
        assert_eq!(company.waits_until(1, now), None);
    }
}
