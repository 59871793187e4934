//! Answers to calls that stand before a later item of the same answer. Clients that keep a result beside its call, or a decision beside
//! its question, say all that an answer holds in its order (the AI SDK over Responses does): what is new is not at the end then.

use std::sync::Arc;

use turnwright_core::{CallId, ConversationId, Entry, Journal, Seq};

use super::begin::{Ask, where_there};
use super::decided::decision;
use super::history::{History, Item, Said};
use super::ids;
use super::seen::Beginnings;
use crate::error::ApiError;
use crate::state::ServerState;

/// Takes those among what is new that wait for their answer, or that were answered and of which the request shows nothing that came of it:
/// as where it is sent again.
///
/// # Errors
/// Where the store fails.
pub(super) async fn dig_out(state: &ServerState, ask: &mut Ask) -> Result<(), ApiError> {
    let from = ask.history.newest_answer();
    let group = ask.history.before.get(from..).unwrap_or_default();
    let named = group.iter().enumerate().filter_map(|(at, item)| Some((at, answered(item)?)));
    let named: Vec<(usize, (CallId, Option<ConversationId>))> = named.collect();
    let held = named.iter().find_map(|(_, (_, held))| held.clone());
    let Some(conversation) = held.or_else(|| ask.conversation.clone()).filter(|_| !named.is_empty()) else { return Ok(()) };
    // Who says something after an answer has it.
    let has_it = ask.history.fresh.iter().any(|item| matches!(item.said, Said::User(_)));
    let look = |journal: &Journal| {
        let is_of_it = |held: &Option<ConversationId>| held.as_ref().is_none_or(|held| *held == conversation);
        let fresh = named.iter().filter(|(at, (call, held))| is_of_it(held) && is_new(journal, (group, *at), *call, has_it));
        fresh.map(|(at, _)| from.saturating_add(*at)).collect::<Vec<usize>>()
    };
    let fresh = where_there(state.engine().look(&conversation, look).await)?.unwrap_or_default();
    ask.history.renew(&fresh);
    Ok(())
}

/// The call that an item answers, where its name is one of ours.
pub(super) fn answered(item: &Item) -> Option<(CallId, Option<ConversationId>)> {
    match &item.said {
        Said::Result { call, .. } => ids::read_call(call),
        Said::Approval { request, .. } => ids::read_request(request).map(|(asked, held)| (asked.call, held)),
        Said::System(_)
        | Said::User(_)
        | Said::Answer { .. }
        | Said::Reference { .. }
        | Said::Elsewhere { .. }
        | Said::Echo
        | Said::Nothing => None,
    }
}

/// Whether the answer to this call of the newest turn, which stands there in the group, is new.
fn is_new(journal: &Journal, (group, at): (&[Arc<Item>], usize), call: CallId, has_answer: bool) -> bool {
    if journal.turn().is_none_or(|turn| call.message <= turn.id().0) {
        return false;
    }
    let answer = match group.get(at).map(|item| &item.said) {
        Some(Said::Result { .. }) => answer_to(journal, call, |entry| matches!(entry, Entry::Result(_))),
        Some(Said::Approval { request, .. }) => ids::read_request(request).and_then(|(asked, _)| {
            let made = decision(journal, asked)?;
            answer_to(journal, call, |entry| matches!(entry, Entry::Decision(other) if other == made))
        }),
        _ => return false,
    };
    let Some(answer) = answer else { return true };
    !has_answer && !group.iter().skip(at.saturating_add(1)).any(|item| shows_after(journal, item, answer))
}

/// Where the entry of this kind is that answers the call.
fn answer_to(journal: &Journal, call: CallId, is_it: impl Fn(&Entry) -> bool) -> Option<Seq> {
    let of_call = |entry: &Entry| match entry {
        Entry::Result(result) => result.call == call,
        Entry::Decision(decision) => decision.call == call,
        _ => false,
    };
    let since = journal.entries().iter().rev().take_while(|stored| stored.seq > call.message);
    since.filter(|stored| of_call(&stored.entry) && is_it(&stored.entry)).map(|stored| stored.seq).last()
}

/// Whether an item was told after this entry.
fn shows_after(journal: &Journal, item: &Item, answer: Seq) -> bool {
    let is_later = |named: Option<CallId>| named.is_some_and(|call| call.message > answer);
    match &item.said {
        Said::Answer { text, calls } => {
            let said_later = || {
                let since = journal.entries().iter().rev().take_while(|stored| stored.seq > answer);
                // Chat Completions tells the texts of all steps as one.
                let paragraphs = format!("\n\n{}\n\n", text.trim());
                let has = |said: &str| !said.is_empty() && paragraphs.contains(&format!("\n\n{said}\n\n"));
                let is_it = |entry: &Entry| matches!(entry, Entry::Assistant(message) if has(message.text().trim()));
                since.into_iter().any(|stored| is_it(&stored.entry))
            };
            calls.iter().any(|call| is_later(ids::read_call(&call.id).map(|(call, _)| call)))
                || !text.trim().is_empty() && said_later()
        }
        Said::Reference { id, .. } => match ids::read_item(id) {
            Some((after, _)) => after >= answer,
            None => is_later(ids::read_request(id).map(|(asked, _)| asked.call)),
        },
        Said::Result { .. } | Said::Approval { .. } => is_later(answered(item).map(|(call, _)| call)),
        Said::System(_) | Said::User(_) | Said::Elsewhere { .. } | Said::Echo | Said::Nothing => false,
    }
}

impl History {
    /// Where the items of the newest answer begin in `before`: after the last thing that a person said there.
    fn newest_answer(&self) -> usize {
        let said = self.before.iter().rposition(|item| matches!(item.said, Said::User(_)));
        said.map_or(0, |at| at.saturating_add(1))
    }

    /// Takes these items of `before`, by their places there from the first to the last, as new: before all that is.
    fn renew(&mut self, places: &[usize]) {
        if places.is_empty() {
            return;
        }
        let mut fresh = Vec::with_capacity(places.len().saturating_add(self.fresh.len()));
        let mut before = Vec::with_capacity(self.before.len());
        for (at, item) in std::mem::take(&mut self.before).into_iter().enumerate() {
            if places.contains(&at) { fresh.push(item) } else { before.push(item) }
        }
        // Only messages of people are looked up by their places, and the order is no longer the one in which they are written.
        self.places.splice(0..0, places.iter().copied());
        self.beginnings = Beginnings::default();
        fresh.append(&mut self.fresh);
        (self.before, self.fresh) = (before, fresh);
    }
}
