//! A page that comes back to a thread: what was said there so far, and which part of the newest turn it is told. Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use turnwright_core::prompt::{self, PromptMessage, PromptResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Control, ConversationId, EmbeddedResource, Entry,
    Journal, MessageId, QuestionReason, Seq, Turn, TurnId, TurnStatus, text_of,
};
use turnwright_engine::Sent;

use crate::agui::input::{OnPage, Spoken, VIDEO_URI};
use crate::agui::names::{Names, is_said_name, result_id, said_name};
use crate::arguments;
use crate::openai::history::{completes, unanswered};
use crate::openai::ids;
use crate::openai::responses::object::{calls_at, held};
use crate::openai::track::{Asked, Part};

/// What a page that comes back is told.
#[derive(Debug)]
pub(crate) struct Back {
    /// All up to where the part begins, as messages of the protocol; nothing where the page has them and what came after.
    pub(crate) messages: Option<Vec<Value>>,
    /// The part of the newest turn that follows.
    pub(crate) part: Part,
    /// What its calls had asked before.
    pub(crate) asked: Vec<Asked>,
}

/// What a page is told that says nothing new: the newest turn, as it stands, and what goes on of it. What people said has the names
/// that the page has for it. `None` where no turn ever was.
pub(crate) fn back(conversation: &ConversationId, journal: &Journal, page: &OnPage) -> Option<Back> {
    let turn = journal.turn()?;
    Some(since(conversation, journal, page, (turn, place(journal, turn))))
}

/// The same for a page that had a turn tried again by the entry at `at`: all that came of that.
pub(crate) fn retried(conversation: &ConversationId, journal: &Journal, page: &OnPage, (turn, at): (TurnId, Seq)) -> Back {
    match journal.turn().filter(|newest| newest.id() == turn) {
        Some(newest) => since(conversation, journal, page, (newest, (at, at))),
        // Others followed since.
        None => Back { messages: None, part: Part { turn, after: at, calls: calls_at(journal, at) }, asked: Vec::new() },
    }
}

/// What was said before a part of the newest turn that is told again, to a page that may have some of it; `None` where others followed
/// since.
pub(crate) fn before(conversation: &ConversationId, journal: &Journal, page: &OnPage, part: &Part) -> Option<Vec<Value>> {
    let newest = journal.turn().filter(|newest| newest.id() == part.turn)?;
    let answers = journal.turn_entries(newest.id()).filter(|stored| stored.seq <= part.after);
    let answered = answers.filter(|stored| matches!(&*stored.entry, Entry::Assistant(_))).map(|stored| stored.seq).last();
    let answered = answered.unwrap_or(newest.id().0);
    since(conversation, journal, page, (newest, (answered, part.after))).messages
}

/// The turn that a run had tried again, and the entry that takes it up, by what is kept of the run; `None` where it said something, or
/// brought a history.
pub(crate) fn retry_of(journal: &Journal, kept: &Sent) -> Option<(TurnId, Seq)> {
    let (before, since) = journal.entries().split_at_checked(usize::try_from(kept.message_id.0.get()).ok()?)?;
    let has_failed = before.iter().rev().find_map(|stored| match &*stored.entry {
        Entry::User(_) => Some(false),
        Entry::Control(Control::Ended { status, .. }) => Some(matches!(status, TurnStatus::Failed { .. })),
        _ => None,
    });
    let at = since.iter().find(|stored| is_retry(&stored.entry)).filter(|_| has_failed == Some(true))?.seq;
    Some((kept.turn_id, at))
}

/// The newest time that the newest turn was tried again, where the page has that tried again.
pub(crate) fn newest_retry(journal: &Journal, spoken: &[Spoken], results: &[String]) -> Option<(TurnId, Seq)> {
    let turn = journal.turn().filter(|_| says_again(journal, spoken, results))?.id();
    Some((turn, last_retry(journal, turn)?))
}

/// Where a turn was tried again last.
pub(crate) fn last_retry(journal: &Journal, turn: TurnId) -> Option<Seq> {
    Some(journal.turn_entries(turn).filter(|stored| is_retry(&stored.entry)).last()?.seq)
}

/// What is told as it was said, up to the answer at `answered`, and what follows on `after`.
fn since(
    conversation: &ConversationId,
    journal: &Journal,
    page: &OnPage,
    (turn, (answered, after)): (&Turn, (Seq, Seq)),
) -> Back {
    let mut given: BTreeSet<CallId> = handed_over(journal, turn.id()).collect();
    let mut asks = Vec::new();
    for stored in journal.turn_entries(turn.id()).take_while(|stored| stored.seq <= after) {
        match &*stored.entry {
            Entry::Result(result) => {
                given.insert(result.call);
            }
            Entry::Elicited(elicited) => asks.extend(elicited.asks.iter().map(|_| elicited.call)),
            _ => {}
        }
    }
    let history = prompt::history(journal);
    let names: Vec<(&str, &[ContentBlock])> = page.spoken.iter().flat_map(names_of).collect();
    let mut rest = names.as_slice();
    let messages = history.iter().flat_map(|message| match message {
        PromptMessage::User { seq, message } => {
            let name = name_of(&message.content, &mut rest).unwrap_or_else(|| said_name(journal, *seq));
            vec![said(&name, &message.content)]
        }
        PromptMessage::Assistant { seq, message } if *seq <= answered => answer(conversation, *seq, message),
        PromptMessage::Results(results) => {
            let told = results.iter().filter(|result| result.id.message < answered || given.contains(&result.id));
            told.map(|result| gave(conversation, page, result)).collect()
        }
        PromptMessage::Assistant { .. } | PromptMessage::Context { .. } => Vec::new(),
    });
    let messages = Some(messages.collect());
    let was_asked = |call: CallId, index: u32| {
        usize::try_from(index).is_ok_and(|index| index < asks.iter().filter(|asking| **asking == call).count())
    };
    let asked =
        turn.questions().filter(|question| was_asked(question.call.id, question.id.index)).map(|question| Asked::of(&question));
    let asked = asked.collect();
    Back { messages, part: Part { turn: turn.id(), after, calls: calls_at(journal, after) }, asked }
}

/// The calls of a turn that the page runs: what it brought is told by nothing that follows.
fn handed_over(journal: &Journal, turn: TurnId) -> impl Iterator<Item = CallId> {
    journal.turn_entries(turn).filter_map(|stored| match &*stored.entry {
        Entry::Question(question) if question.reason == QuestionReason::ClientTool => Some(question.call),
        _ => None,
    })
}

/// The newest answer of a turn that is whole, or where it was tried again; and where what follows begins that was not told as its
/// end before: where it waited last and goes on, or that answer.
fn place(journal: &Journal, turn: &Turn) -> (Seq, Seq) {
    let held = held(journal, turn.id().0);
    let mut answered = turn.id().0;
    let mut waited = Vec::new();
    for stored in journal.turn_entries(turn.id()) {
        match &*stored.entry {
            Entry::Assistant(AssistantMessage { completion: Completion::Complete, .. })
            | Entry::Control(Control::Retried { .. }) => {
                answered = stored.seq;
                waited.clear();
            }
            Entry::Control(Control::Suspended) => waited.push(stored.seq),
            _ if held.contains(&stored.seq) => waited.push(stored.seq),
            _ => {}
        }
    }
    if turn.is_suspended() || turn.is_held() {
        // That is its end as it stands.
        waited.pop();
    }
    (answered, waited.last().copied().unwrap_or(answered))
}

/// Whether the page says nothing by these results: they are of calls that ran here.
pub(crate) fn ran_here<'a>(journal: &Journal, mut results: impl Iterator<Item = &'a str>) -> bool {
    let is_pages = |call: CallId| {
        journal.entries().iter().any(|stored| match &*stored.entry {
            Entry::Question(question) => question.call == call && question.reason == QuestionReason::ClientTool,
            _ => false,
        })
    };
    results.all(|call| ids::read_call(call).is_some_and(|(call, _)| journal.result(call).is_some() && !is_pages(call)))
}

/// Whether the page says once more what was said last, and knows of nothing that people said since: it has no answer, or the one
/// that broke off. All that its people said is what was said last, as far as the page has it; a message that it has alone says
/// nothing of its place, so it is the only one that was said, or has our name.
pub(crate) fn says_again(journal: &Journal, spoken: &[Spoken], results: &[String]) -> bool {
    let said = said_before(journal);
    let (Some(newest), Some((at, content))) = (spoken.last(), said.first()) else { return false };
    let is_of_newest_turn = journal.turn().is_some_and(|turn| turn.id().0 <= *at);
    // What follows one another may be stored as one message or as several.
    let page: Vec<&ContentBlock> = spoken.iter().flat_map(|spoken| &spoken.content).rev().collect();
    let there: Vec<&ContentBlock> = said.iter().flat_map(|(_, content)| content.iter().rev()).collect();
    let is_there = |(at, (page, there)): (usize, (&&ContentBlock, &&ContentBlock))| {
        if at < newest.last().len() { is_same(page, there) } else { page.as_text() == there.as_text() }
    };
    let is_within = content.len() <= page.len() && page.len() <= there.len();
    let are_same = is_within && page.iter().zip(&there).enumerate().all(is_there);
    let has_place = page.len() > content.len() || said.len() == 1 || is_said_name(&newest.id, *at);
    is_of_newest_turn && are_same && has_place && ran_here(journal, results.iter().map(String::as_str))
}

/// Whether the page has a block that is stored: files have other names there than some doors gave them.
fn is_same(page: &ContentBlock, there: &ContentBlock) -> bool {
    match (page, there) {
        (ContentBlock::Resource { resource: page }, ContentBlock::Resource { resource: there }) => {
            let is_of_kind = there.mime_type.is_none() || page.mime_type == there.mime_type;
            is_of_kind && page.text == there.text && page.blob == there.blob
        }
        (page, there) => page == there,
    }
}

/// What people said, the newest first. What a page said without an answer to it may be in what it said next.
fn said_before(journal: &Journal) -> Vec<(Seq, &[ContentBlock])> {
    let mut said: Vec<(Seq, &[ContentBlock])> = Vec::new();
    let mut is_answered = false;
    for stored in journal.entries().iter().rev() {
        is_answered = is_answered || completes(&stored.entry);
        let Entry::User(message) = &*stored.entry else { continue };
        let content = message.content.as_slice();
        let is_in_next = said.last().is_some_and(|(_, next)| next.len() > content.len() && next.starts_with(content));
        if (is_answered || !is_in_next) && !journal.is_hidden(MessageId(stored.seq)) {
            said.push((stored.seq, content));
            is_answered = false;
        }
    }
    said
}

/// Whether a text is what people said last: the last message, or several of those that are not answered.
pub(crate) fn is_said_last(journal: &Journal, text: &str) -> bool {
    let said = unanswered(journal);
    (0..said.len()).any(|from| said.get(from..).is_some_and(|newest| text_of(&newest.concat()) == text))
}

/// Whether the newest turn failed.
pub(crate) fn has_failed(journal: &Journal) -> bool {
    journal.turn().is_some_and(|turn| matches!(turn.ended(), Some(TurnStatus::Failed { .. })))
}

fn is_retry(entry: &Entry) -> bool {
    matches!(entry, Entry::Control(Control::Retried { .. }))
}

/// What the page calls what was said in a row: each message of it, and all of it, as which it may be stored.
fn names_of(spoken: &Spoken) -> impl Iterator<Item = (&str, &[ContentBlock])> {
    let each = spoken.messages.iter().map(|(id, content)| (id.as_str(), content.as_slice()));
    each.chain((spoken.messages.len() > 1).then_some((spoken.id.as_str(), spoken.content.as_slice())))
}

/// What the page calls a message, where it has it among those that come next.
fn name_of(content: &[ContentBlock], rest: &mut &[(&str, &[ContentBlock])]) -> Option<String> {
    let text = text_of(content);
    let at = rest.iter().position(|(_, content)| text_of(content) == text)?;
    let (id, _) = rest.get(at)?;
    *rest = rest.get(at.saturating_add(1)..).unwrap_or_default();
    Some((*id).to_owned()).filter(|id| !id.is_empty())
}

fn said(id: &str, content: &[ContentBlock]) -> Value {
    let data = |kind: &str, data: &str, mime_type: &str| json!({"type": kind, "source": {"type": "data", "value": data, "mimeType": mime_type}});
    let part = |block: &ContentBlock| match block {
        ContentBlock::Image { data: bytes, mime_type } => data("image", bytes, mime_type),
        ContentBlock::Audio { data: bytes, mime_type } => data("audio", bytes, mime_type),
        ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text, blob, .. } } => {
            let kind = if uri.as_str() == VIDEO_URI { "video" } else { "document" };
            match (blob, text) {
                (Some(blob), _) => data(kind, blob, mime_type.as_deref().unwrap_or("application/octet-stream")),
                (None, Some(text)) => data(kind, &STANDARD.encode(text), mime_type.as_deref().unwrap_or("text/plain")),
                (None, None) => json!({"type": "text", "text": block.as_text()}),
            }
        }
        ContentBlock::Text { .. } | ContentBlock::ResourceLink { .. } => json!({"type": "text", "text": block.as_text()}),
    };
    let content = match content {
        [ContentBlock::Text { text }] => Value::from(text.as_str()),
        parts => parts.iter().map(part).collect(),
    };
    json!({"id": id, "role": "user", "content": content})
}

/// What a model said, as the messages of its stream.
fn answer(conversation: &ConversationId, seq: Seq, message: &AssistantMessage) -> Vec<Value> {
    let mut names = Names::of(message.saw.next());
    let mut told: Vec<Value> = Vec::new();
    for block in &message.blocks {
        match block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } if !text.is_empty() => {
                told.push(json!({"id": names.text(), "role": "assistant", "content": text}));
            }
            AssistantBlock::Reasoning { text, .. } if !text.is_empty() => {
                told.push(json!({"id": names.thought(), "role": "reasoning", "content": text}));
            }
            AssistantBlock::Text { .. }
            | AssistantBlock::Refusal { .. }
            | AssistantBlock::Reasoning { .. }
            | AssistantBlock::Call(_)
            | AssistantBlock::Opaque { .. } => {}
        }
    }
    let calls: Vec<Value> = message
        .calls()
        .zip(0_u32..)
        .map(|(call, index)| {
            let id = ids::call_id(conversation, CallId { message: seq, index });
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments::told(&call.arguments)}})
        })
        .collect();
    if calls.is_empty() {
        return told;
    }
    let id = names.of_calls();
    match told
        .iter_mut()
        .find(|message| message.get("id").is_some_and(|told| *told == id.as_str()))
        .and_then(Value::as_object_mut)
    {
        Some(text) => {
            text.insert("toolCalls".to_owned(), Value::from(calls));
        }
        None => told.push(json!({"id": id, "role": "assistant", "content": "", "toolCalls": calls})),
    }
    told
}

/// What a call gave, as the stream tells it: what the model alone is told beside it is no part of it. The page's own has the name that
/// the page has for it.
fn gave(conversation: &ConversationId, page: &OnPage, result: &PromptResult<'_>) -> Value {
    let call = ids::call_id(conversation, result.id);
    let text = text_of(&result.result.content);
    let content = match result.edit {
        Some(edit) => format!("{}\n{text}", prompt::change_note(edit)),
        None => text,
    };
    let id = page.results.get(&call).cloned().unwrap_or_else(|| result_id(&call));
    json!({"id": id, "role": "tool", "toolCallId": call, "content": content})
}
