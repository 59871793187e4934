//! What is known of what waits, and the tellings that are due to one channel.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use turnwright_core::{ConversationId, Seq, TurnId, UserId};
use turnwright_engine::{EngineError, TurnWaits, Wait};

use super::channel::{Channel, NotTold};
use super::event::{Event, Telling, event};
use super::teller::Right;
use super::{LOOK_EVERY, Notifier, told};

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
    /// What is being told. Of one conversation the channel is told one after the other.
    under_way: HashSet<ConversationId>,
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
    /// The turns that wait for something and of which the channel is being told nothing.
    fn idle(&self) -> impl Iterator<Item = &TurnWaits> {
        self.waiting.values().filter(|turn| !self.under_way.contains(&turn.conversation))
    }

    fn failures(&self, conversation: &ConversationId) -> u32 {
        self.progress.get(conversation).map_or(0, |progress| progress.failures)
    }

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
#[derive(Debug)]
pub(super) struct Due {
    conversation: ConversationId,
    turn: TurnId,
    owner: UserId,
    event: Event,
    until: u64,
    /// Since when the first of it waits, in milliseconds since 1970 UTC.
    asked_ms: u64,
}

/// What came of a telling; nothing was told where that is another's to do by now.
pub(super) type Told = (Due, Option<Result<(), NotTold>>);

impl Notifier {
    /// Brings what is known up to date.
    pub(super) async fn look(&self, round: &mut Round, channel: &Channel) -> Result<(), EngineError> {
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

    /// What the channel is to be told at this moment besides what it is being told, as far as it takes that; and how long until
    /// something else is due.
    ///
    /// What failed before comes last: a receiver that does not answer for some holds up what it never heard of for as long as it has to.
    pub(super) fn begin(&self, round: &mut Round, channel: &Channel) -> (Vec<Due>, Duration) {
        let now_ms = self.engine.clock().now_ms();
        let free = channel.at_once().saturating_sub(round.under_way.len());
        let mut due = self.due(round, now_ms);
        due.sort_by_key(|due| (round.failures(&due.conversation), due.asked_ms));
        due.truncate(free);
        round.under_way.extend(due.iter().map(|due| due.conversation.clone()));
        // Where no more is taken, the end of one telling comes before anything else.
        let is_full = round.under_way.len() >= channel.at_once();
        let next = if is_full { LOOK_EVERY } else { self.next(round, now_ms) };
        (due, next)
    }

    /// What could be told at this moment.
    fn due(&self, round: &Round, now_ms: u64) -> Vec<Due> {
        let telling = Telling { base: &self.base, has_content: self.has_content };
        let due = round.idle().filter_map(|turn| {
            let progress = round.progress(turn);
            let is_ripe = |wait: &&Wait| progress.is_before(wait) && self.ripe_at(wait) <= now_ms;
            let waits: Vec<&Wait> = turn.waits.iter().filter(is_ripe).collect();
            let event = event(turn, &waits, telling).filter(|_| progress.next_ms <= now_ms)?;
            let until = waits.iter().map(|wait| wait.seq.get()).max()?;
            let asked_ms = waits.iter().map(|wait| wait.at_ms).min()?;
            let (conversation, owner) = (turn.conversation.clone(), turn.owner.clone());
            Some(Due { conversation, turn: turn.turn, owner, event, until, asked_ms })
        });
        due.collect()
    }

    /// How long until something else is due.
    fn next(&self, round: &Round, now_ms: u64) -> Duration {
        let next = round.idle().flat_map(|turn| {
            let progress = round.progress(turn);
            let new = turn.waits.iter().filter(move |wait| progress.is_before(wait));
            new.map(move |wait| self.ripe_at(wait).max(progress.next_ms))
        });
        next.min().map_or(LOOK_EVERY, |next_ms| Duration::from_millis(next_ms.saturating_sub(now_ms).max(1)))
    }

    /// Takes up what came of a telling.
    pub(super) fn end(&self, round: &mut Round, channel: &Channel, (due, told): Told) {
        round.under_way.remove(&due.conversation);
        // Where the turn waits no more, nothing is known of it any more; what was told is kept beside the conversation.
        let (Some(told), Some(progress)) = (told, round.progress.get_mut(&due.conversation)) else { return };
        match told {
            Ok(()) => *progress = Progress { until: due.until, ..Progress::default() },
            Err(not_told) => {
                let pause = pause(progress.failures, not_told.retry_after);
                progress.failures = progress.failures.saturating_add(1);
                progress.next_ms = self.engine.clock().now_ms().saturating_add(millis(pause));
                let (channel, reason) = (channel.name(), not_told.reason);
                tracing::warn!(conversation = %due.conversation, turn = %due.turn, channel, reason, again_in_s = pause.as_secs(), "nobody could be told that a turn waits");
            }
        }
    }

    fn ripe_at(&self, wait: &Wait) -> u64 {
        wait.at_ms.saturating_add(millis(self.after))
    }

    /// Tells once.
    pub(super) async fn tell_one(&self, due: Due, channel: &Channel, right: Right) -> Told {
        if !self.teller.holds(right) {
            return (due, None);
        }
        let told = channel.tell(&due.event, self.engine.clock().now_ms()).await;
        if told.is_ok() {
            let around = (&*self.documents, &self.engine);
            let kept = told::keep(around, (&due.conversation, &due.owner), channel.name(), due.until);
            if let Err(error) = kept.await {
                tracing::warn!(conversation = %due.conversation, turn = %due.turn, %error, "it is not kept that people were told; the next start tells again");
            }
        }
        (due, Some(told))
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
