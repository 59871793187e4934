//! What is told of entries whose words are hidden: their places, and nothing of what they say. Pure.
//!
//! Whoever comes later needs every place to find their own. What a call that is hidden came to is hidden with it, but for calls
//! that go on or wait for a person, who has to know about what.

use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Compacted, Completion, Context, Control, Decision, Elicited, Entry, Journal,
    MessageId, Sampled, SamplingOutcome, Seq, StoredEntry, UserMessage, Waits,
};

/// What is told in the place of an entry of which something is hidden.
#[derive(Debug, PartialEq)]
pub(crate) struct Withheld {
    /// The entry without what is hidden.
    pub(crate) entry: Entry,
    /// Whether more than the entry is told: it is about no call that is hidden.
    pub(crate) is_told: bool,
}

/// What is told in the place of an entry; `None` where nothing of it is hidden.
pub(crate) fn withheld(journal: &Journal, stored: &StoredEntry) -> Option<Withheld> {
    let is_hidden = |message: Seq| journal.is_hidden(MessageId(message));
    if let Some(call) = call_of(&stored.entry) {
        let entry = (is_hidden(call.message) && !goes_on(journal, call.message)).then(|| of_call(&stored.entry))?;
        return Some(Withheld { entry, is_told: false });
    }
    let entry = match &*stored.entry {
        Entry::User(message) if is_hidden(stored.seq) => {
            Entry::User(UserMessage { content: Vec::new(), settings: message.settings.clone() })
        }
        Entry::Assistant(message) if is_hidden(stored.seq) => {
            Entry::Assistant(without_words(message, goes_on(journal, stored.seq)))
        }
        Entry::Control(Control::Context(context)) if is_hidden(context.message.0) => {
            let (text, parts, notices) = (String::new(), Vec::new(), Vec::new());
            Entry::Control(Control::Context(Context { message: context.message, text, parts, notices }))
        }
        Entry::Control(Control::Compacted(compacted)) if tells_of_hidden(journal, stored.seq, compacted) => {
            Entry::Control(Control::Compacted(Compacted { summary: String::new(), ..compacted.clone() }))
        }
        _ => return None,
    };
    Some(Withheld { entry, is_told: true })
}

/// Whether a call of this message goes on, or waits for a person.
fn goes_on(journal: &Journal, message: Seq) -> bool {
    let Some(Entry::Assistant(said)) = journal.entry(message).map(|stored| &*stored.entry) else { return false };
    let mut calls = (0_u32..).zip(said.calls()).map(|(index, _)| CallId { message, index });
    journal.open_turn().is_some() && said.completion == Completion::Complete && calls.any(|call| journal.result(call).is_none())
}

/// Whether something was hidden after the summary that it stands for.
fn tells_of_hidden(journal: &Journal, at: Seq, compacted: &Compacted) -> bool {
    let after = usize::try_from(at.get()).unwrap_or(usize::MAX);
    journal
        .entries()
        .get(after..)
        .unwrap_or_default()
        .iter()
        .any(|stored| matches!(&*stored.entry, Entry::Control(Control::Hidden { message }) if message.0 <= compacted.through))
}

fn without_words(message: &AssistantMessage, keeps_calls: bool) -> AssistantMessage {
    let mut blocks = message.blocks.clone();
    blocks.retain(|block| keeps_calls && matches!(block, AssistantBlock::Call(_)));
    AssistantMessage { blocks, ..message.clone() }
}

/// The call that an entry is about.
fn call_of(entry: &Entry) -> Option<CallId> {
    match entry {
        Entry::Decision(decision) => Some(decision.call),
        Entry::Question(question) => Some(question.call),
        Entry::Started(started) => Some(started.call),
        Entry::TaskAccepted(task) => Some(task.call),
        Entry::Elicited(elicited) => Some(elicited.call),
        Entry::Answered(answered) => Some(answered.question.call),
        Entry::Sampled(sampled) => Some(sampled.question.call),
        Entry::Result(result) => Some(result.call),
        Entry::Control(Control::Nudged { call, .. }) => Some(*call),
        Entry::User(_) | Entry::Assistant(_) | Entry::Control(_) => None,
    }
}

/// An entry about a call without what it says of it.
fn of_call(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    match &mut entry {
        Entry::Decision(Decision { arguments, reason, remembered, .. }) => {
            (*arguments, *reason, *remembered) = (None, None, None);
        }
        Entry::TaskAccepted(task) => task.task = serde_json::Value::Null,
        Entry::Elicited(Elicited { asks, waits, .. }) => {
            asks.clear();
            if let Waits::Parked { resume } = waits {
                *resume = serde_json::Value::Null;
            }
        }
        Entry::Answered(answered) => (answered.content, answered.reason) = (None, None),
        Entry::Sampled(Sampled { outcome: SamplingOutcome::Answered(message), .. }) => {
            *message = without_words(message, false);
        }
        Entry::Result(result) => {
            result.content.clear();
            (result.structured_content, result.diagnostic) = (None, None);
        }
        Entry::Control(Control::Nudged { text, .. }) => text.clear(),
        // They have no words, or are about no call.
        Entry::Sampled(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::User(_)
        | Entry::Assistant(_)
        | Entry::Control(_) => {}
    }
    entry
}
