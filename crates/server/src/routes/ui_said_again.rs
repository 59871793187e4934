//! What a stock client of the AI SDK means where it says something again, or wants another answer: it sends its messages up to
//! there. Those of models have the names of turns; its own have names that nobody else knows, so they are counted. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;
use turnwright_core::{Entry, Journal, MessageId, Seq, TurnId, TurnStatus};

/// A message as the client names it.
#[derive(Debug, Deserialize)]
struct Named {
    role: String,
    #[serde(default)]
    id: String,
}

/// The message of a person's that the last of `messages` stands for; `None` where it is new.
pub(super) fn question(journal: &Journal, messages: &[&RawValue]) -> Option<MessageId> {
    let messages: Vec<Named> = messages.iter().filter_map(|message| serde_json::from_str(message.get()).ok()).collect();
    let answer = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let answered = (message.role == "assistant").then(|| answered(journal, &message.id)).flatten()?;
        Some((at, answered))
    });
    let (since, after) = answer.map_or((0, None), |(at, answered)| (at.saturating_add(1), Some(answered.0)));
    let said = messages.get(since..).unwrap_or_default().iter().filter(|message| message.role == "user").count();
    shown(journal, after).nth(said.checked_sub(1)?)
}

/// The message of a person's that the answer with this name, `turn_1` or `turn_1_5`, is the answer to.
pub(super) fn answered(journal: &Journal, name: &str) -> Option<MessageId> {
    let place = name.strip_prefix("turn_")?.rsplit('_').next()?.parse().ok()?;
    let message = MessageId(Seq::new(place)?);
    shown(journal, None).find(|shown| *shown == message)
}

/// The newest message of a person's.
pub(super) fn newest(journal: &Journal) -> Option<MessageId> {
    shown(journal, None).last()
}

/// Whether a message is answered by the last turn, and that did not end well, or is not over.
pub(super) fn can_be_retried(journal: &Journal, question: MessageId) -> bool {
    let is_last = |turn: TurnId| turn.0 <= question.0;
    journal.turn().is_some_and(|turn| is_last(turn.id()) && turn.ended() != Some(&TurnStatus::Completed))
}

/// What people said after an entry, as far as it is shown.
fn shown(journal: &Journal, after: Option<Seq>) -> impl Iterator<Item = MessageId> {
    let said = journal.entries().iter().filter(|stored| matches!(*stored.entry, Entry::User(_)));
    let said = said.map(|stored| MessageId(stored.seq));
    said.filter(move |message| Some(message.0) > after && !journal.is_hidden(*message))
}
