//! A page that comes back to a thread: what was said there so far, and which part of the newest turn it is told. Pure.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnwright_core::prompt::{self, PromptMessage, PromptResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Control, ConversationId, Entry, Journal, MessageId,
    QuestionReason, Seq, Turn,
};

use crate::openai::ids;
use crate::openai::responses::object::{calls_at, held};
use crate::openai::track::{Asked, Part};

/// What a page that comes back is told.
#[derive(Debug)]
pub(crate) struct Back {
    /// All up to where the part begins, as messages of the protocol.
    pub(crate) messages: Vec<Value>,
    /// The part of the newest turn that follows.
    pub(crate) part: Part,
    /// What its calls had asked before.
    pub(crate) asked: Vec<Asked>,
}

/// What a page is told that says nothing new: the newest turn, as it stands, and what goes on of it. `None` where no turn ever was.
pub(crate) fn back(conversation: &ConversationId, journal: &Journal) -> Option<Back> {
    let turn = journal.turn()?;
    let (answered, after) = place(journal, turn);
    let mut given = BTreeSet::new();
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
    let messages = history.iter().flat_map(|message| match message {
        PromptMessage::User { seq, message } => vec![said(*seq, &message.content)],
        PromptMessage::Assistant { seq, message } if *seq <= answered => answer(conversation, *seq, message),
        PromptMessage::Results(results) => {
            let told = results.iter().filter(|result| result.id.message < answered || given.contains(&result.id));
            told.map(|result| gave(conversation, result)).collect()
        }
        PromptMessage::Assistant { .. } | PromptMessage::Context { .. } => Vec::new(),
    });
    let messages = messages.collect();
    let was_asked = |call: CallId, index: u32| {
        usize::try_from(index).is_ok_and(|index| index < asks.iter().filter(|asking| **asking == call).count())
    };
    let asked =
        turn.questions().filter(|question| was_asked(question.call.id, question.id.index)).map(|question| Asked::of(&question));
    let asked = asked.collect();
    Some(Back { messages, part: Part { turn: turn.id(), after, calls: calls_at(journal, after) }, asked })
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

fn said(seq: Seq, content: &[ContentBlock]) -> Value {
    let data = |kind: &str, data: &str, mime_type: &str| json!({"type": kind, "source": {"type": "data", "value": data, "mimeType": mime_type}});
    let part = |block: &ContentBlock| match block {
        ContentBlock::Image { data: bytes, mime_type } => data("image", bytes, mime_type),
        ContentBlock::Audio { data: bytes, mime_type } => data("audio", bytes, mime_type),
        ContentBlock::Text { .. } | ContentBlock::Resource { .. } | ContentBlock::ResourceLink { .. } => {
            json!({"type": "text", "text": block.as_text()})
        }
    };
    let content = match content {
        [ContentBlock::Text { text }] => Value::from(text.as_str()),
        parts => parts.iter().map(part).collect(),
    };
    json!({"id": MessageId(seq).to_string(), "role": "user", "content": content})
}

fn answer(conversation: &ConversationId, seq: Seq, message: &AssistantMessage) -> Vec<Value> {
    let id = MessageId(seq).to_string();
    let (mut text, mut thought) = (String::new(), String::new());
    for block in &message.blocks {
        match block {
            AssistantBlock::Text { text: said, .. } | AssistantBlock::Refusal { text: said } => text.push_str(said),
            AssistantBlock::Reasoning { text: said, .. } => thought.push_str(said),
            AssistantBlock::Call(_) | AssistantBlock::Opaque { .. } => {}
        }
    }
    let calls: Vec<Value> = message
        .calls()
        .zip(0_u32..)
        .map(|(call, index)| {
            let id = ids::call_id(conversation, CallId { message: seq, index });
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        })
        .collect();
    let mut told = Vec::new();
    if !thought.is_empty() {
        told.push(json!({"id": format!("{id}_thought"), "role": "reasoning", "content": thought}));
    }
    told.push(if calls.is_empty() {
        json!({"id": id, "role": "assistant", "content": text})
    } else {
        json!({"id": id, "role": "assistant", "content": text, "toolCalls": calls})
    });
    told
}

fn gave(conversation: &ConversationId, result: &PromptResult<'_>) -> Value {
    let call = ids::call_id(conversation, result.id);
    json!({"id": result_id(&call), "role": "tool", "toolCallId": call, "content": result.text()})
}

/// The name of the message that holds what a call gave.
pub(crate) fn result_id(call: &str) -> String {
    call.replacen("call_", "result_", 1)
}
