//! One look at what waits, and the tellings that are due to one channel.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use futures_util::StreamExt;
use turnwright_core::{ConversationId, Seq, TurnId, UserId};
use turnwright_engine::{EngineError, TurnWaits, Wait};

use super::channel::{Channel, NotTold};
use super::event::{Event, Telling, event};
use super::teller::Right;
use super::{LOOK_EVERY, Notifier, told};

/// How many are told at once by a channel.
const AT_ONCE: usize = 4;
/// How long is waited after the first telling that failed; twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait between two tellings. They go on for as long as the turn waits.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// What is known from the looks before. Nothing of it has to survive: it is read anew.
#[derive(Debug, Default)]
pub(super) struct Round {
    looked: HashMap<ConversationId, Option<Seq>>,
    /// The turns that wait for something.
    waiting: HashMap<ConversationId, TurnWaits>,
    /// How far the channel was told of them.
    progress: HashMap<ConversationId, Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The last entry that was told.
    until: u64,
    failures: u32,
    /// When it is tried again, in milliseconds since 1970 UTC.
    next_ms: u64,
}

impl Round {
    fn progress(&self, turn: &TurnWaits) -> Progress {
        self.progress.get(&turn.conversation).copied().unwrap_or_default()
    }
}

impl Progress {
    /// Whether this was not told yet.
    fn is_before(self, wait: &Wait) -> bool {
        wait.seq.get() > self.until
    }
}

/// Something to tell.
struct Due {
    conversation: ConversationId,
    turn: TurnId,
    owner: UserId,
    event: Event,
    until: u64,
}

impl Notifier {
    /// Looks for what waits, tells what is due by this channel, and says when the next telling is.
    pub(super) async fn tell(&self, round: &mut Round, channel: &Channel, right: Right) -> Duration {
        if let Err(error) = self.look(round, channel).await {
            tracing::warn!(%error, "cannot look for turns that wait for people");
            return LOOK_EVERY;
        }
        let due = self.due(round, self.engine.clock().now_ms());
        let tellings = futures_util::stream::iter(due).map(|due| self.tell_one(due, channel, right));
        let done: Vec<Option<(Due, Result<(), NotTold>)>> = tellings.buffer_unordered(AT_ONCE).collect().await;
        let now_ms = self.engine.clock().now_ms();
        for (due, done) in done.into_iter().flatten() {
            let progress = round.progress.entry(due.conversation.clone()).or_default();
            match done {
                Ok(()) => *progress = Progress { until: due.until, ..Progress::default() },
                Err(not_told) => {
                    let pause = pause(progress.failures, not_told.retry_after);
                    progress.failures = progress.failures.saturating_add(1);
                    progress.next_ms = now_ms.saturating_add(millis(pause));
                    let (channel, reason) = (channel.name(), not_told.reason);
                    tracing::warn!(conversation = %due.conversation, turn = %due.turn, channel, reason, again_in_s = pause.as_secs(), "nobody could be told that a turn waits");
                }
            }
        }
        self.next(round, now_ms)
    }

    /// Brings what is known up to date.
    async fn look(&self, round: &mut Round, channel: &Channel) -> Result<(), EngineError> {
        let changed = self.engine.changed_waits(&mut round.looked).await?;
        round.waiting.retain(|conversation, _| round.looked.contains_key(conversation));
        for turn in changed {
            if turn.waits.is_empty() {
                round.waiting.remove(&turn.conversation);
                continue;
            }
            round.waiting.insert(turn.conversation.clone(), turn);
        }
        let waiting = &round.waiting;
        round.progress.retain(|conversation, _| waiting.contains_key(conversation));
        for conversation in round.waiting.keys() {
            if let Entry::Vacant(place) = round.progress.entry(conversation.clone()) {
                let until = told::told(&*self.documents, conversation, channel.name()).await?;
                place.insert(Progress { until, ..Progress::default() });
            }
        }
        Ok(())
    }

    /// What is to be told at this moment.
    fn due(&self, round: &Round, now_ms: u64) -> Vec<Due> {
        let telling = Telling { base: &self.base, has_content: self.has_content };
        let due = round.waiting.values().filter_map(|turn| {
            let progress = round.progress(turn);
            let is_ripe = |wait: &&Wait| progress.is_before(wait) && self.ripe_at(wait) <= now_ms;
            let waits: Vec<&Wait> = turn.waits.iter().filter(is_ripe).collect();
            let event = event(turn, &waits, telling).filter(|_| progress.next_ms <= now_ms)?;
            let until = waits.iter().map(|wait| wait.seq.get()).max()?;
            let (conversation, owner) = (turn.conversation.clone(), turn.owner.clone());
            Some(Due { conversation, turn: turn.turn, owner, event, until })
        });
        due.collect()
    }

    /// How long until something else is due.
    fn next(&self, round: &Round, now_ms: u64) -> Duration {
        let next = round.waiting.values().flat_map(|turn| {
            let progress = round.progress(turn);
            let new = turn.waits.iter().filter(move |wait| progress.is_before(wait));
            new.map(move |wait| self.ripe_at(wait).max(progress.next_ms))
        });
        next.min().map_or(LOOK_EVERY, |next_ms| Duration::from_millis(next_ms.saturating_sub(now_ms).max(1)))
    }

    fn ripe_at(&self, wait: &Wait) -> u64 {
        wait.at_ms.saturating_add(millis(self.after))
    }

    /// Tells once; `None` where that is another's to do by now, after a look and the tellings before that took long.
    async fn tell_one(&self, due: Due, channel: &Channel, right: Right) -> Option<(Due, Result<(), NotTold>)> {
        if !self.teller.holds(right) {
            return None;
        }
        let told = channel.tell(&due.event, self.engine.clock().now_ms()).await;
        if told.is_ok() {
            let around = (&*self.documents, &self.engine);
            let kept = told::keep(around, (&due.conversation, &due.owner), channel.name(), due.until);
            if let Err(error) = kept.await {
                tracing::warn!(conversation = %due.conversation, turn = %due.turn, %error, "it is not kept that people were told; the next start tells again");
            }
        }
        Some((due, told))
    }
}

fn pause(failures: u32, retry_after: Option<Duration>) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(LONGEST_PAUSE);
    retry_after.map_or(doubled, |asked| asked.max(doubled))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes_and_are_no_shorter_than_asked_for() {
        let seconds = |failures, retry_after| pause(failures, retry_after).as_secs();
        assert_eq!([0, 1, 2, 9, 10, 40].map(|failures| seconds(failures, None)), [1, 2, 4, 512, 600, 600]);
        assert_eq!(seconds(0, Some(Duration::from_secs(30))), 30);
        assert_eq!(seconds(6, Some(Duration::from_secs(30))), 64);
    }
}
