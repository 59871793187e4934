//! Calls that a client asked for before and was never told the result of, as the store has them: its process ended in the
//! middle, or a person was asked meanwhile. So no restart makes the same call run twice unnoticed.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use turnwright_core::{
    ContentBlock, Control, ConversationId, DriverId, Entry, Journal, QuestionReason, StoredEntry, TurnId, TurnStatus,
};

use super::caller;

/// How many conversations are known to have no such call.
const MAX_QUIET: NonZeroUsize = NonZeroUsize::new(1_024).unwrap();

/// A call whose client may not know its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Earlier {
    pub(super) turn: TurnId,
    /// The message that asked for it.
    pub(super) message: String,
    /// When it came, in milliseconds since 1970 UTC.
    pub(super) at_ms: u64,
    pub(super) state: State,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody knows whether it happened, and a person is asked.
    Unknown,
    /// It runs or waits, and this driver had it last.
    Open(Option<DriverId>),
    /// It has its result, and a person was asked about it or more than one process had it.
    Ended,
    /// It has its result, by this process from its beginning to its end: told at once, unless that was killed then.
    EndedAlone(DriverId),
}

/// The calls of a conversation whose clients may not know their results, the newest first.
pub(super) fn earlier(journal: &Journal) -> Vec<Earlier> {
    journal.turns().iter().rev().filter_map(|turn| found(journal, *turn)).collect()
}

fn found(journal: &Journal, turn: TurnId) -> Option<Earlier> {
    let (at_ms, message) = asked(journal, turn)?;
    let state = match journal.open_turn().filter(|open| open.id() == turn) {
        Some(open) if open.waiting().any(|(_, question)| question.reason == QuestionReason::UnknownOutcome) => State::Unknown,
        Some(open) => State::Open(open.claim().map(|claim| claim.driver.clone())),
        None => ended(journal, turn)?,
    };
    Some(Earlier { turn, message: message.to_owned(), at_ms, state })
}

/// When a client asked for the call of a turn, and with which message.
fn asked(journal: &Journal, turn: TurnId) -> Option<(u64, &str)> {
    let opening = journal.entry(turn.0)?;
    let Entry::User(said) = &*opening.entry else { return None };
    let [ContentBlock::Text { text }] = said.content.as_slice() else { return None };
    (said.settings.model == caller::model()).then_some((opening.at_ms, text))
}

/// The calls of a conversation that were asked for after this time, with when that was and the message, whatever became of them.
pub(super) fn since(journal: &Journal, at_ms: u64) -> Vec<(TurnId, u64, String)> {
    let turns = journal.turns().iter().rev().filter_map(|turn| asked(journal, *turn).map(|(at_ms, text)| (*turn, at_ms, text)));
    turns.take_while(|(_, asked_ms, _)| *asked_ms >= at_ms).map(|(turn, at_ms, text)| (turn, at_ms, text.to_owned())).collect()
}

/// How a turn ended that may have a result which nobody told: whoever stopped it wants none.
fn ended(journal: &Journal, turn: TurnId) -> Option<State> {
    let mut drivers: Vec<&DriverId> = Vec::new();
    let mut was_asked = false;
    for StoredEntry { entry, .. } in journal.turn_entries(turn) {
        match &**entry {
            Entry::Question(_) => was_asked = true,
            Entry::Control(Control::Claimed(claim)) if !drivers.contains(&&claim.driver) => drivers.push(&claim.driver),
            Entry::Control(Control::Ended { status: TurnStatus::Cancelled, .. }) => return None,
            _ => {}
        }
    }
    match drivers.as_slice() {
        // A conversation takes no further call before the one before it was told.
        [_] if !was_asked && journal.turns().last() != Some(&turn) => None,
        [driver] if !was_asked => Some(State::EndedAlone((*driver).clone())),
        _ => Some(State::Ended),
    }
}

/// Whether more than the process that ran it alone may tell the result of a turn.
pub(super) fn is_looked_for(journal: &Journal, turn: TurnId) -> bool {
    journal.open_turn().is_some() || ended(journal, turn) == Some(State::Ended)
}

/// The number of the newest question about a turn's call, from 1: whoever answers an earlier one answers nothing else.
pub(super) fn questions(journal: &Journal, turn: TurnId) -> usize {
    journal.turn_entries(turn).filter(|stored| matches!(*stored.entry, Entry::Question(_))).count()
}

/// Conversations in which there was no such call when they last changed, by when that was.
#[derive(Debug)]
pub(super) struct Quiet(Mutex<LruCache<ConversationId, u64>>);

impl Default for Quiet {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_QUIET)))
    }
}

impl Quiet {
    pub(super) fn is(&self, conversation: &ConversationId, updated_at_ms: u64) -> bool {
        self.lock().get(conversation) == Some(&updated_at_ms)
    }

    pub(super) fn note(&self, conversation: ConversationId, updated_at_ms: u64) {
        self.lock().put(conversation, updated_at_ms);
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<ConversationId, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
