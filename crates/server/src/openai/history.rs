//! What a request says: the conversation as its client has it, with what is new at its end. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use turnwright_core::{CallId, ContentBlock, Control, Entry, Journal, MessageId, TurnStatus, is_blank, text_of};
use turnwright_engine::ClientResult;

use super::ids;
use super::known::Fingerprint;
use super::seen::Beginnings;

/// One thing that was said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// What the model is told before the conversation.
    System(String),
    /// A person's message.
    User(Vec<ContentBlock>),
    /// A model's message, with its calls.
    Answer { text: String, calls: Vec<Called> },
    /// What a tool of the client's gave, and whether the client says that it failed.
    Result { call: String, content: Vec<ContentBlock>, is_error: bool },
    /// A person's decision about a call that waits, by its place in the request.
    Approval { at: usize, request: String, is_approved: bool, reason: Option<String> },
    /// An item of an answer of ours, by its place in the request and its name.
    Reference { at: usize, id: String },
    /// A call that ran elsewhere, and what it gave, as `messages` say it.
    Elsewhere { name: String, arguments: String, gave: String },
    /// Of our own making, sent back: what stands before it was said.
    Echo,
    /// Nothing, to a model of ours.
    Nothing,
}

/// What a tool of the client's gave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gave<'a> {
    /// The call, as the client names it.
    pub(crate) call: &'a str,
    content: &'a [ContentBlock],
    is_error: bool,
}

impl Gave<'_> {
    /// As the result of this call.
    pub(crate) fn to(self, call: CallId) -> ClientResult {
        let content = if self.content.is_empty() { vec![ContentBlock::text("")] } else { self.content.to_vec() };
        ClientResult { call, content, is_error: self.is_error }
    }
}

/// A call that an answer makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) id: String,
    /// As they are written; empty where there are none.
    pub(crate) arguments: String,
}

impl Called {
    /// Of the form that Chat Completions and AG-UI have for one; nothing where it has no name.
    pub(crate) fn read(call: &Value) -> Option<Self> {
        let made = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
        Some(Self { id: call.get("id")?.as_str()?.to_owned(), arguments: arguments_of(made) })
    }

    /// Of the older form of Chat Completions; nothing where it has no name.
    pub(super) fn read_function(call: &Value) -> Option<Self> {
        Some(Self { id: by_name(call.get("name")?.as_str()?), arguments: arguments_of(call) })
    }
}

fn arguments_of(made: &Value) -> String {
    match made.get("arguments").or_else(|| made.get("input")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// One thing that was said, and the messages of Chat Completions that say it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) said: Said,
    pub(crate) messages: Messages,
}

impl Item {
    /// Whether there is anything in it to be taken over: not in what a model thought elsewhere.
    pub(crate) fn says_something(&self) -> bool {
        match &self.messages {
            Messages::Written(_) => true,
            Messages::Made(messages) => !messages.is_empty(),
        }
    }
}

/// Messages of Chat Completions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Messages {
    /// One, as the client wrote it.
    Written(String),
    /// What is said in another form.
    Made(Vec<Value>),
}

/// What a request says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct History {
    /// What the model is told before the conversation.
    pub(crate) system: Option<String>,
    /// What it is told besides, for this answer alone.
    pub(crate) instructions: Option<String>,
    /// Up to the newest answer.
    pub(crate) before: Vec<Arc<Item>>,
    /// What came since.
    pub(crate) fresh: Vec<Arc<Item>>,
    /// The place of each of those in the request.
    pub(crate) places: Vec<usize>,
    /// The first result that is of no call, by its place in the request, and what is wrong with it.
    pub(crate) stray: Option<(usize, String)>,
    /// How the messages of the request begin, where they are compared as they are written.
    pub(crate) beginnings: Beginnings,
}

impl History {
    /// Sorts what was said.
    pub(crate) fn of<I: Into<Arc<Item>>>(items: Vec<I>) -> Self {
        let mut history = Self::default();
        let mut system = Vec::new();
        let items: Vec<Arc<Item>> = items.into_iter().map(Into::into).collect();
        history.stray = stray(&items);
        for (at, item) in items.into_iter().enumerate() {
            match &item.said {
                Said::System(text) => system.push(text.clone()),
                Said::Answer { .. } | Said::Reference { .. } => {
                    history.before.append(&mut history.fresh);
                    history.before.push(item);
                    history.places.clear();
                }
                Said::User(_)
                | Said::Result { .. }
                | Said::Approval { .. }
                | Said::Elsewhere { .. }
                | Said::Echo
                | Said::Nothing => {
                    history.fresh.push(item);
                    history.places.push(at);
                }
            }
        }
        history.system = (!system.is_empty()).then(|| system.join("\n\n"));
        history
    }

    /// All that people say since the newest answer, and since what is of our own making, whatever stands between.
    pub(crate) fn users(&self) -> Vec<ContentBlock> {
        self.contents().flatten().cloned().collect()
    }

    /// Whether a person says something since the newest answer.
    pub(crate) fn has_users(&self) -> bool {
        self.contents().next().is_some()
    }

    /// How many blocks each of those messages has.
    pub(crate) fn user_lengths(&self) -> Vec<usize> {
        self.contents().map(<[ContentBlock]>::len).collect()
    }

    /// How many of those messages may have been said before: all but the last, which is new; that too where all of them stand before
    /// what the request brings for calls that were made since (`answers_them`).
    pub(crate) fn said_before_at_most(&self, answers_them: bool) -> usize {
        let fresh = self.fresh.get(self.unsaid()..).unwrap_or_default();
        let answer = fresh.iter().rposition(|item| matches!(item.said, Said::Result { .. } | Said::Approval { .. }));
        let behind = fresh.get(answer.filter(|_| answers_them).unwrap_or(0)..).unwrap_or_default();
        let has_new = behind.iter().any(|item| content_of(item).is_some());
        self.contents().count().saturating_sub(usize::from(has_new))
    }

    fn contents(&self) -> impl Iterator<Item = &[ContentBlock]> {
        self.fresh.iter().skip(self.unsaid()).filter_map(|item| content_of(item))
    }

    /// Where in `fresh` begins what was not said before.
    fn unsaid(&self) -> usize {
        let echo = self.fresh.iter().rposition(|item| item.said == Said::Echo);
        echo.map_or(0, |at| at.saturating_add(1))
    }

    /// Where a part of that stands in the request, of Chat Completions.
    pub(crate) fn place_of(&self, mut part: usize) -> Option<String> {
        for (item, at) in self.fresh.iter().zip(&self.places).skip(self.unsaid()) {
            let Some(content) = content_of(item) else { continue };
            if part < content.len() {
                return Some(format!("messages[{at}].content[{part}]"));
            }
            part = part.saturating_sub(content.len());
        }
        None
    }

    /// What is taken over where a conversation begins with the history: all up to the last thing that is no person's.
    pub(crate) fn before_users(&self) -> impl Iterator<Item = &Item> {
        self.before.iter().chain(self.fresh.iter().take(self.first_user())).map(Arc::as_ref)
    }

    /// How that is written, with what the model is told between; nothing where it is not known as it is written.
    pub(crate) fn written_before_users(&self) -> Option<u64> {
        let first = self.places.get(self.first_user()).copied();
        self.beginnings.before(first)
    }

    /// How all that stands before what came since is written, likewise.
    pub(crate) fn written_before(&self) -> Option<u64> {
        self.beginnings.before(self.places.first().copied())
    }

    /// What is taken over, to be changed. Another request may have it too.
    pub(crate) fn before_users_mut(&mut self) -> impl Iterator<Item = &mut Arc<Item>> {
        let first = self.first_user();
        self.before.iter_mut().chain(self.fresh.iter_mut().take(first))
    }

    /// What is said after that, of all that people say; nothing where no model takes it.
    pub(crate) fn after_taken_over(&self, mut said: Vec<ContentBlock>) -> Vec<ContentBlock> {
        let before = self.fresh.iter().take(self.first_user()).skip(self.unsaid()).filter_map(|item| content_of(item));
        let count = before.map(<[ContentBlock]>::len).sum::<usize>().min(said.len());
        said.drain(..count);
        if is_blank(&said) { Vec::new() } else { said }
    }

    fn first_user(&self) -> usize {
        let is_told = |item: &Arc<Item>| content_of(item).is_none() && item.says_something();
        self.fresh.iter().rposition(is_told).map_or(0, |at| at.saturating_add(1)).max(self.unsaid())
    }

    /// What people decided since the newest answer, each with its place in the request.
    pub(crate) fn approvals(&self) -> impl Iterator<Item = (usize, &str, bool, Option<&str>)> {
        self.fresh.iter().filter_map(|item| match &item.said {
            Said::Approval { at, request, is_approved, reason } => {
                Some((*at, request.as_str(), *is_approved, reason.as_deref()))
            }
            Said::System(_)
            | Said::User(_)
            | Said::Answer { .. }
            | Said::Result { .. }
            | Said::Reference { .. }
            | Said::Elsewhere { .. }
            | Said::Echo
            | Said::Nothing => None,
        })
    }

    /// What tools of the client's gave since the newest answer.
    pub(crate) fn results(&self) -> impl Iterator<Item = Gave<'_>> {
        self.fresh.iter().filter_map(|item| match &item.said {
            Said::Result { call, content, is_error } => Some(Gave { call, content, is_error: *is_error }),
            Said::System(_)
            | Said::User(_)
            | Said::Answer { .. }
            | Said::Approval { .. }
            | Said::Reference { .. }
            | Said::Elsewhere { .. }
            | Said::Echo
            | Said::Nothing => None,
        })
    }
}

/// What a person says in it.
fn content_of(item: &Item) -> Option<&[ContentBlock]> {
    match &item.said {
        Said::User(content) => Some(content),
        Said::System(_)
        | Said::Answer { .. }
        | Said::Result { .. }
        | Said::Approval { .. }
        | Said::Reference { .. }
        | Said::Elsewhere { .. }
        | Said::Echo
        | Said::Nothing => None,
    }
}

/// How many of these blocks, which are messages of these `lengths`, were said before and have no answer, so that clients say them again
/// with what they say next: they are the newest of `unanswered`, which has the oldest first. No more than `most` messages are.
pub(crate) fn said_again(said: &[ContentBlock], (lengths, most): (&[usize], usize), unanswered: &[&[ContentBlock]]) -> usize {
    // Several messages may be stored as one.
    let there: Vec<&ContentBlock> = unanswered.iter().copied().flatten().collect();
    let blocks = |count: usize| lengths.iter().take(count).sum::<usize>();
    let is_it = |again: &usize| {
        let newest = there.len().checked_sub(*again).and_then(|from| there.get(from..));
        newest.zip(said.get(..*again)).is_some_and(|(newest, again)| again.iter().eq(newest.iter().copied()))
    };
    (1..=most).rev().map(blocks).find(is_it).unwrap_or_default()
}

/// What people said since a turn was completed last, the oldest first: who has no answer may say it again, also where a part of one
/// was told.
pub(crate) fn unanswered(journal: &Journal) -> Vec<&[ContentBlock]> {
    let since = journal.entries().iter().rev().take_while(|stored| !completes(&stored.entry));
    let mut said: Vec<&[ContentBlock]> = since
        .filter_map(|stored| match &*stored.entry {
            Entry::User(message) if !journal.is_hidden(MessageId(stored.seq)) => Some(message.content.as_slice()),
            _ => None,
        })
        .collect();
    said.reverse();
    said
}

/// What people said last, at most so many messages, the oldest first: whoever has none of the answers may say it again.
pub(crate) fn said_last(journal: &Journal, most: usize) -> Vec<&[ContentBlock]> {
    let said = journal.entries().iter().rev().filter_map(|stored| match &*stored.entry {
        Entry::User(message) if !journal.is_hidden(MessageId(stored.seq)) => Some(message.content.as_slice()),
        _ => None,
    });
    let mut said: Vec<&[ContentBlock]> = said.take(most).collect();
    said.reverse();
    said
}

/// Whether an entry says that a turn was completed.
pub(crate) fn completes(entry: &Entry) -> bool {
    matches!(entry, Entry::Control(Control::Ended { status: TurnStatus::Completed, .. }))
}

/// What the results of the older form are of, which have the name of their function alone.
pub(crate) fn by_name(function: &str) -> String {
    format!("{BY_NAME}{function}")
}

/// No call's name begins so.
const BY_NAME: &str = "function ";

fn stray(items: &[Arc<Item>]) -> Option<(usize, String)> {
    // How many calls of a name have no result yet.
    let mut open: HashMap<&str, usize> = HashMap::new();
    items.iter().enumerate().find_map(|(at, item)| match &item.said {
        Said::Answer { calls, .. } => {
            for call in calls {
                *open.entry(&call.id).or_default() += 1;
            }
            None
        }
        Said::Result { call, .. } if call.starts_with(BY_NAME) => None,
        Said::Result { call, .. } => match open.get_mut(call.as_str()) {
            None => Some((at, format!("is the result of the call `{call}`, which no answer before it holds"))),
            Some(0) => Some((at, format!("is a second result of the call `{call}`"))),
            Some(count) => {
                *count = count.saturating_sub(1);
                None
            }
        },
        Said::System(_)
        | Said::User(_)
        | Said::Approval { .. }
        | Said::Reference { .. }
        | Said::Elsewhere { .. }
        | Said::Echo
        | Said::Nothing => None,
    })
}

/// Adds things that were said to a fingerprint. Answers that follow one another are one, as whoever told them as one marks it.
pub(crate) fn mark<'a>(fingerprint: &mut Fingerprint, items: impl Iterator<Item = &'a Item>) {
    let mut answer: Option<(Vec<&str>, Vec<&str>)> = None;
    for item in items {
        match &item.said {
            Said::Answer { text, calls } => {
                let (texts, all) = answer.get_or_insert_default();
                texts.extend(Some(text.trim()).filter(|text| !text.is_empty()));
                all.extend(calls.iter().map(|call| call.id.as_str()));
                arguments_elsewhere(item).for_each(|arguments| fingerprint.named(arguments));
                continue;
            }
            Said::System(_) | Said::Echo | Said::Nothing => continue,
            Said::User(_) | Said::Result { .. } | Said::Approval { .. } | Said::Reference { .. } | Said::Elsewhere { .. } => {
                mark_answer(fingerprint, answer.take());
            }
        }
        match &item.said {
            Said::User(content) => {
                fingerprint.user(&words_of(content));
                content.iter().filter_map(bytes_of).for_each(|bytes| fingerprint.attached(bytes));
            }
            Said::Result { call, content, .. } => {
                fingerprint.result(call, &words_of(content));
                content.iter().filter_map(bytes_of).for_each(|bytes| fingerprint.attached(bytes));
            }
            Said::Approval { request: id, .. } | Said::Reference { id, .. } => fingerprint.named(id),
            Said::Elsewhere { name, arguments, gave } => fingerprint.ran([name, arguments, gave]),
            Said::System(_) | Said::Answer { .. } | Said::Echo | Said::Nothing => {}
        }
    }
    mark_answer(fingerprint, answer);
}

fn mark_answer(fingerprint: &mut Fingerprint, answer: Option<(Vec<&str>, Vec<&str>)>) {
    let Some((texts, calls)) = answer else { return };
    match texts.as_slice() {
        [text] => fingerprint.answer(text, calls.into_iter()),
        texts => fingerprint.answer(&texts.join("\n\n"), calls.into_iter()),
    }
}

/// What [`text_of`] gives; most contents are one text, which is not copied.
fn words_of(content: &[ContentBlock]) -> Cow<'_, str> {
    match content {
        [ContentBlock::Text { text }] => Cow::Borrowed(text),
        content => Cow::Owned(text_of(content)),
    }
}

/// The arguments of calls that were made elsewhere: the names of our own are each of one call, what others are called may be called so
/// again.
pub(crate) fn arguments_elsewhere(item: &Item) -> impl Iterator<Item = &str> {
    let (calls, ran) = match &item.said {
        Said::Answer { calls, .. } if calls.iter().any(|call| ids::read_call(&call.id).is_none()) => (calls.as_slice(), None),
        Said::Elsewhere { arguments, .. } => (&[][..], Some(arguments)),
        _ => (&[][..], None),
    };
    let made = calls.iter().map(|call| &call.arguments).chain(ran);
    made.map(String::as_str).filter(|arguments| !arguments.is_empty())
}

/// What a block holds that its text does not tell.
fn bytes_of(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => Some(data),
        ContentBlock::Resource { resource } => resource.blob.as_deref(),
        ContentBlock::ResourceLink { uri, .. } => Some(uri),
        ContentBlock::Text { .. } => None,
    }
}
