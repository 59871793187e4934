//! The turns that wait for people, for whoever tells those who are away. Whose they are does not matter here: it is for the
//! installation, not for a caller.

use std::collections::{HashMap, HashSet};

use tokio::sync::watch;
use turnwright_core::policy::Policy;
use turnwright_core::{CallId, ConversationId, ElicitationId, Entry, Journal, QuestionReason, Seq, TurnId, UserId};

use super::waiting::waiting_in;
use super::{Engine, WaitingCall, WaitingQuestion, questions_in};
use crate::EngineError;

/// An open turn with all that it waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnWaits {
    /// Its conversation.
    pub conversation: ConversationId,
    /// To whom that belongs.
    pub owner: UserId,
    /// The conversation's title, where it has one.
    pub title: Option<String>,
    /// Which turn.
    pub turn: TurnId,
    /// What it waits for, the oldest first; nothing where it goes on by itself.
    pub waits: Vec<Wait>,
}

/// One thing that a turn waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// The entry that asks. No other wait of the conversation has it, but for questions that were asked together.
    pub seq: Seq,
    /// When it was asked, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// What is waited for.
    pub what: Awaited,
}

/// What a person is waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Awaited {
    /// A decision about a call.
    Call(WaitingCall),
    /// An answer to what a call asks.
    Question(WaitingQuestion),
}

impl Engine {
    /// Rises where a turn of this process begins to wait for people.
    pub fn begins_to_wait(&self) -> watch::Receiver<u64> {
        self.inner.begins_to_wait.subscribe()
    }

    /// The open turns, of all users, whose conversations changed since `looked`, which holds the last entry that was seen of
    /// each and is brought up to date: a conversation that is not in it any more has no open turn. A call whose result a
    /// client brings waits for no person, and is left out.
    ///
    /// # Errors
    /// Where the index of open turns cannot be read. A conversation that cannot is left out until it changes.
    pub async fn changed_waits(
        &self,
        looked: &mut HashMap<ConversationId, Option<Seq>>,
    ) -> Result<Vec<TurnWaits>, EngineError> {
        let open = self.inner.store.open_turns().await?;
        let names: HashSet<&ConversationId> = open.iter().map(|open| &open.conversation).collect();
        looked.retain(|conversation, _| names.contains(conversation));
        let mut changed = Vec::new();
        for open in &open {
            let last = self.inner.store.last_seq(&open.conversation).await?;
            if looked.get(&open.conversation) == Some(&last) {
                continue;
            }
            let live = match self.load_open(open).await {
                Ok(live) => live,
                Err(EngineError::NotFound { .. }) => continue,
                Err(error) => {
                    tracing::warn!(conversation = %open.conversation, turn = %open.turn, %error, "cannot look for what a turn waits for");
                    looked.insert(open.conversation.clone(), last);
                    continue;
                }
            };
            let state = live.lock();
            looked.insert(open.conversation.clone(), state.journal.last_seq());
            changed.push(TurnWaits {
                conversation: open.conversation.clone(),
                owner: open.owner.clone(),
                title: state.chosen.title.clone(),
                turn: open.turn,
                waits: waits_in(&open.conversation, &state.journal, &self.inner.policy),
            });
        }
        Ok(changed)
    }
}

fn waits_in(id: &ConversationId, journal: &Journal, policy: &Policy) -> Vec<Wait> {
    let calls = waiting_in(id, journal, policy).into_iter().filter(|call| call.reason != QuestionReason::ClientTool);
    let calls = calls.filter_map(|call| {
        let (seq, at_ms) = asked_at(journal, |entry| matches!(entry, Entry::Question(question) if question.call == call.call))?;
        Some(Wait { seq, at_ms, what: Awaited::Call(call) })
    });
    let questions = questions_in(id, journal).into_iter().filter_map(|question| {
        let (seq, at_ms) = elicited_at(journal, question.id)?;
        Some(Wait { seq, at_ms, what: Awaited::Question(question) })
    });
    let mut waits: Vec<Wait> = calls.chain(questions).collect();
    waits.sort_by_key(|wait| wait.seq);
    waits
}

/// The newest entry of this kind, and when it was stored.
fn asked_at(journal: &Journal, is_it: impl Fn(&Entry) -> bool) -> Option<(Seq, u64)> {
    let found = journal.entries().iter().rev().find(|stored| is_it(&stored.entry))?;
    Some((found.seq, found.at_ms))
}

/// The entry that asks this question: those of a call are numbered over all that it asks.
fn elicited_at(journal: &Journal, id: ElicitationId) -> Option<(Seq, u64)> {
    let of_call = |call: CallId| {
        journal.entries().iter().filter_map(move |stored| match &*stored.entry {
            Entry::Elicited(elicited) if elicited.call == call => Some((stored, elicited.asks.len())),
            _ => None,
        })
    };
    let index = usize::try_from(id.index).ok()?;
    let mut before = 0_usize;
    for (stored, count) in of_call(id.call) {
        before = before.saturating_add(count);
        if index < before {
            return Some((stored.seq, stored.at_ms));
        }
    }
    None
}
