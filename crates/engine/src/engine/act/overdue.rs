//! Calls about which nobody decided in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use turnwright_core::{CallId, ConversationId, DecidedBy, Decision, Entry, QuestionReason, Seq, TurnId, Verdict};

use super::{Act, act, still_open};
use crate::engine::Engine;
use crate::engine::resuming::SWEEP_EVERY;
use crate::inner::Inner;
use crate::live::{Live, State};
use crate::{EngineError, OpenTurn};

/// When it is looked again at a turn of a conversation that could not be read: after a minute.
const AGAIN_AFTER_MS: u64 = 60_000;

/// However short the time is that people have.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(20);

/// When the oldest question of each turn that waits is overdue: so that a journal is read once, and nothing of a parked turn is
/// kept in memory but this.
pub(in crate::engine) type Deadlines = HashMap<(ConversationId, TurnId), Deadline>;

/// When the oldest question of a turn is overdue.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Deadline {
    /// As of which entry: a turn that went on and parked again waits for something else.
    seen: Option<Seq>,
    /// In milliseconds since 1970 UTC; nothing, where it waits for nothing of this kind.
    at_ms: Option<u64>,
}

impl Engine {
    /// How long people are waited for before a call is denied in their place; for ever where nothing is said. Looked after by
    /// every process that [`Engine::keep_resuming`] runs in.
    pub fn limit_approvals(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.inner.approval_limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    /// Denies what nobody decided about in time, in all conversations; when it has to be looked again. What comes to wait right
    /// after a look is seen by the next one before its own time is over, and looked at again in that instant.
    ///
    /// # Errors
    /// Where the index of open turns cannot be read. A conversation that cannot is left out for a while.
    pub(in crate::engine) async fn deny_overdue(&self, deadlines: &mut Deadlines) -> Result<Duration, EngineError> {
        let limit_ms = self.inner.approval_limit_ms.load(Ordering::Relaxed);
        if limit_ms == 0 {
            return Ok(SWEEP_EVERY);
        }
        let now = self.inner.clock.now_ms();
        let open = self.inner.store.open_turns().await?;
        // Where another call still runs, or asks over a held connection, the turn is not parked, and its process looks after it.
        let is_looked_after = |open: &OpenTurn| open.parked || self.inner.registry.peek(&open.conversation).is_some();
        let waiting: Vec<_> = open.into_iter().filter(is_looked_after).collect();
        deadlines.retain(|(conversation, turn), _| {
            waiting.iter().any(|open| open.conversation == *conversation && open.turn == *turn)
        });
        for open in waiting {
            let key = (open.conversation.clone(), open.turn);
            let last = self.inner.store.last_seq(&open.conversation).await?;
            let known = deadlines.get(&key).filter(|known| known.seen == last);
            if known.is_some_and(|known| known.at_ms.is_none_or(|at_ms| now < at_ms)) {
                continue;
            }
            let deadline = match self.deny_overdue_in(&open, limit_ms).await {
                Ok(deadline) => deadline,
                Err(EngineError::NotFound { .. }) => continue,
                Err(error) => {
                    tracing::warn!(conversation = %open.conversation, turn = %open.turn, %error, "cannot look for calls that nobody decided about in time");
                    Deadline { seen: last, at_ms: Some(now.saturating_add(AGAIN_AFTER_MS)) }
                }
            };
            deadlines.insert(key, deadline);
        }
        let now = self.inner.clock.now_ms();
        let next = deadlines.values().filter_map(|deadline| deadline.at_ms).min();
        let wait_ms = next.map_or(limit_ms, |at_ms| at_ms.saturating_sub(now).min(limit_ms));
        Ok(Duration::from_millis(wait_ms).clamp(LOOK_AT_MOST_EVERY, SWEEP_EVERY))
    }

    /// Denies what nobody decided about in time in this conversation, so that no answer counts that comes later: not in the instant before
    /// it is looked, and not where no server ran.
    pub(super) async fn deny_overdue_before(&self, live: &Arc<Live>) -> Result<(), EngineError> {
        match self.inner.approval_limit_ms.load(Ordering::Relaxed) {
            0 => Ok(()),
            limit_ms => act(&self.inner, live, |state| Ok(overdue(&self.inner, state, limit_ms))).await,
        }
    }

    /// Denies what nobody decided about in time in this one; when the next is overdue.
    async fn deny_overdue_in(&self, open: &OpenTurn, limit_ms: u64) -> Result<Deadline, EngineError> {
        let live = self.load_open(open).await?;
        act(&self.inner, &live, |state| Ok(overdue(&self.inner, state, limit_ms))).await?;
        let state = live.lock();
        let oldest = asked_at(&state).map(|(_, _, at_ms)| at_ms).min();
        let at_ms = oldest.map(|at_ms| at_ms.saturating_add(limit_ms));
        Ok(Deadline { seen: state.journal.last_seq(), at_ms })
    }
}

/// The calls that wait, why, and since when.
fn asked_at(state: &State) -> impl Iterator<Item = (CallId, QuestionReason, u64)> {
    let turn = state.journal.open_turn();
    turn.into_iter().flat_map(turnwright_core::Turn::waiting).filter_map(|(call, question)| {
        let asked = state.journal.entries().iter().rev().find(|stored| match &*stored.entry {
            Entry::Question(other) => other.call == call.id,
            _ => false,
        })?;
        Some((call.id, question.reason, asked.at_ms))
    })
}

fn overdue(inner: &Arc<Inner>, state: &State, limit_ms: u64) -> Act<()> {
    let now = inner.clock.now_ms();
    let late = asked_at(state).filter(|(_, _, at_ms)| at_ms.saturating_add(limit_ms) <= now);
    let decision = |(call, reason, _)| {
        let verdict = match reason {
            QuestionReason::Approval
            | QuestionReason::DefinitionChanged
            | QuestionReason::ClientTool
            | QuestionReason::Loop => Verdict::Deny,
            QuestionReason::UnknownOutcome => Verdict::Skip,
        };
        let rule = format!("the approval timeout: nobody decided within {}", in_words(limit_ms));
        let by = DecidedBy::Policy { rule };
        Entry::Decision(Decision { call, verdict, by, definition_hash: None, arguments: None, reason: None, remembered: None })
    };
    let entries: Vec<Entry> = late.map(decision).collect();
    let turn = state.journal.open_turn().map(turnwright_core::Turn::id).filter(|_| !entries.is_empty());
    Act::of(entries, turn.map(|turn| still_open(inner, state, turn)).into_iter().collect(), ())
}

fn in_words(limit_ms: u64) -> String {
    let seconds = limit_ms / 1_000;
    let (count, unit) = match seconds {
        0 => (limit_ms, "millisecond"),
        seconds if seconds % 86_400 == 0 => (seconds / 86_400, "day"),
        seconds if seconds % 3_600 == 0 => (seconds / 3_600, "hour"),
        seconds if seconds % 60 == 0 => (seconds / 60, "minute"),
        seconds => (seconds, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}
