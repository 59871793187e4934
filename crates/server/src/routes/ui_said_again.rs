//! What a stock client of the AI SDK means where it says something again, or wants another answer: it sends its messages up to
//! there. What it has from here has our names; its own have names that nobody else knows, so they are counted from the last one
//! whose name is ours. Pure.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::{Control, Entry, Journal, MessageId, Seq, StoredEntry, TurnId, TurnStatus, text_of};

use crate::error::ApiError;

/// A message as the client names it.
#[derive(Debug, Deserialize)]
struct Named {
    role: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    parts: Value,
}

impl Named {
    /// What it says, as far as that is text.
    fn text(&self) -> String {
        let parts = self.parts.as_array().into_iter().flatten().filter(|part| part["type"] == "text");
        parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Which message of a person's the last of a page's messages is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    /// This one.
    Message(MessageId),
    /// It was not said yet.
    New,
    /// It is one of several, and nothing says which.
    Unknown,
}

impl Meant {
    /// The message, where it was said.
    ///
    /// # Errors
    /// 404, where nothing says which it is.
    pub(super) fn message(self, name: &str) -> Result<Option<MessageId>, ApiError> {
        match self {
            Self::Message(message) => Ok(Some(message)),
            Self::New => Ok(None),
            Self::Unknown => {
                let name: String = name.chars().take(200).collect();
                let what = "message of this name in the conversation, and none of the page's messages before it is known: load the messages anew";
                Err(ApiError::not_found(format_args!("`{name}`: no {what}")))
            }
        }
    }
}

/// Roles and names of the page's messages.
pub(super) fn names(messages: &[&RawValue]) -> Vec<(String, String)> {
    let messages = messages.iter().filter_map(|message| serde_json::from_str(message.get()).ok());
    messages.map(|Named { role, id, .. }| (role, id)).collect()
}

/// The message of a person's that the last of `messages` stands for, which is counted from the last that has a name of ours; from the
/// beginning of the conversation only where the page shows that it has that.
pub(super) fn question(journal: &Journal, messages: &[&RawValue]) -> Meant {
    let messages: Vec<Named> = messages.iter().filter_map(|message| serde_json::from_str(message.get()).ok()).collect();
    let known = messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, named(journal, &message.id)?)));
    let (since, after) = known.map_or((0, None), |(at, known)| (at.saturating_add(1), Some(known)));
    let said: Vec<&Named> = messages.get(since..).unwrap_or_default().iter().filter(|message| message.role == "user").collect();
    let counted = match said.len().checked_sub(1) {
        Some(at) => shown(journal, after.map(|known| known.0)).nth(at),
        None => after.filter(|_| messages.last().is_some_and(|last| last.role == "user")),
    };
    match counted {
        None => Meant::New,
        Some(_) if known.is_none() && !begins_with(journal, &said) => Meant::Unknown,
        Some(message) => Meant::Message(message),
    }
}

/// Whether what people said begins with these messages, of which the last may be said otherwise: all before it say the same, or it is
/// all that was said.
fn begins_with(journal: &Journal, said: &[&Named]) -> bool {
    let Some((last, before)) = said.split_last() else { return false };
    let text = |message: MessageId| match journal.entry(message.0).map(|stored| &*stored.entry) {
        Some(Entry::User(said)) => text_of(&said.content),
        _ => String::new(),
    };
    let are_same = before.iter().zip(shown(journal, None)).all(|(said, message)| said.text() == text(message));
    let is_same = || shown(journal, None).nth(before.len()).is_some_and(|message| text(message) == last.text());
    let is_all = || shown(journal, None).count() == said.len();
    are_same && !is_ours(&last.id) && (!before.is_empty() || is_all() || is_same())
}

/// Whether a name is one of ours, such as `msg_4`, whatever it names.
fn is_ours(name: &str) -> bool {
    name.starts_with("turn_") || name.parse::<MessageId>().is_ok()
}

/// The message of a person's that has this name, such as `msg_4`, or to which the message of a model's with this name, such as
/// `msg_5`, `turn_4` or `turn_1_4`, is the answer; or which was said in its place. `None` where the name is not ours, or the message
/// is not shown.
pub(super) fn named(journal: &Journal, name: &str) -> Option<MessageId> {
    let place = name.strip_prefix("turn_").map(|places| places.rsplit('_').next()?.parse::<u64>().ok());
    let message = match place {
        Some(place) => MessageId(Seq::new(place?)?),
        None => name.parse().ok()?,
    };
    let message = match &*journal.entry(message.0)?.entry {
        Entry::Assistant(answer) => {
            let is_asked = |asked: &MessageId| journal.is_hidden(message) || !journal.is_hidden(*asked);
            said(journal).take_while(|asked| asked.0 <= answer.saw).filter(is_asked).last()?
        }
        _ => message,
    };
    let message = in_place_of(journal, message);
    shown(journal, None).find(|shown| *shown == message)
}

/// What was said in the place of a message, in the append that hides first this one and then what came after it.
fn in_place_of(journal: &Journal, mut message: MessageId) -> MessageId {
    let entries = journal.entries();
    let hides = |stored: &StoredEntry| match &*stored.entry {
        Entry::Control(Control::Hidden { message }) => Some(*message),
        _ => None,
    };
    while let Some(hidden) = entries.iter().position(|stored| hides(stored) == Some(message)) {
        let is_first = hidden.checked_sub(1).and_then(|at| entries.get(at)).is_none_or(|before| hides(before).is_none());
        let mut run = entries.iter().skip(hidden);
        let at_ms = entries.get(hidden).map(|stored| stored.at_ms);
        let next = run.find(|stored| hides(stored).is_none());
        let is_it = |next: &&StoredEntry| is_first && Some(next.at_ms) == at_ms && matches!(*next.entry, Entry::User(_));
        let Some(next) = next.filter(is_it) else { break };
        message = MessageId(next.seq);
    }
    message
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

/// The newest turn, where this question was answered well in it by another process than began to: the page heard its stream break, and
/// has not heard the end.
pub(super) fn answered_elsewhere(journal: &Journal, question: MessageId) -> Option<TurnId> {
    let turn = journal.turn().filter(|turn| turn.id().0 <= question.0 && turn.ended() == Some(&TurnStatus::Completed))?;
    let mut since = journal.turn_entries(turn.id()).filter(|stored| stored.seq > question.0);
    let is_resumed = since.any(|stored| matches!(&*stored.entry, Entry::Control(Control::Resumed { .. })));
    is_resumed.then_some(turn.id())
}

/// What people said after an entry, as far as it is shown.
fn shown(journal: &Journal, after: Option<Seq>) -> impl Iterator<Item = MessageId> {
    said(journal).filter(move |message| Some(message.0) > after && !journal.is_hidden(*message))
}

/// What people said, hidden or not.
fn said(journal: &Journal) -> impl Iterator<Item = MessageId> {
    let said = journal.entries().iter().filter(|stored| matches!(*stored.entry, Entry::User(_)));
    said.map(|stored| MessageId(stored.seq))
}
