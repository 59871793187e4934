//! What a stock client of the AI SDK means where it says something again, or wants another answer: it sends its messages up to
//! there. What it has from here has our names; its own have names that nobody else knows, so they are counted from the last one
//! whose name is ours. Pure.

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

/// Roles and names of the page's messages.
pub(super) fn names(messages: &[&RawValue]) -> Vec<(String, String)> {
    let messages = messages.iter().filter_map(|message| serde_json::from_str(message.get()).ok());
    messages.map(|Named { role, id }| (role, id)).collect()
}

/// The message of a person's that the last of `messages` stands for; `None` where it is new.
pub(super) fn question(journal: &Journal, messages: &[&RawValue]) -> Option<MessageId> {
    let messages: Vec<Named> = messages.iter().filter_map(|message| serde_json::from_str(message.get()).ok()).collect();
    let known = messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, named(journal, &message.id)?)));
    let (since, after) = known.map_or((0, None), |(at, known)| (at.saturating_add(1), Some(known)));
    let said = messages.get(since..).unwrap_or_default().iter().filter(|message| message.role == "user").count();
    match said.checked_sub(1) {
        Some(at) => shown(journal, after.map(|known| known.0)).nth(at),
        None => after.filter(|_| messages.last().is_some_and(|last| last.role == "user")),
    }
}

/// The message of a person's that has this name, such as `msg_4`, or to which the message of a model's with this name, such as
/// `msg_5`, `turn_4` or `turn_1_4`, is the answer; `None` where the name is not ours, or the message is not shown.
pub(super) fn named(journal: &Journal, name: &str) -> Option<MessageId> {
    let place = name.strip_prefix("turn_").map(|places| places.rsplit('_').next()?.parse::<u64>().ok());
    let message = match place {
        Some(place) => MessageId(Seq::new(place?)?),
        None => name.parse().ok()?,
    };
    let message = match &*journal.entry(message.0)?.entry {
        Entry::Assistant(answer) => shown(journal, None).take_while(|shown| shown.0 <= answer.saw).last()?,
        _ => message,
    };
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
