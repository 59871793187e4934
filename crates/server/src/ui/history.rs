//! Turns of a journal as the chunks that told them. Pure.

use std::sync::Arc;

use serde_json::value::RawValue;
use turnwright_core::{Control, ConversationId, Entry, Journal, Seq, ToolDefinition, TurnId};
use turnwright_engine::{Event, Frame};

use super::{Begin, UiFold, UiVersion};

/// The turns of a journal, oldest first, the open one last.
pub(crate) fn turns_of(journal: &Journal) -> Vec<TurnId> {
    let ended = journal.entries().iter().filter_map(|stored| match &*stored.entry {
        Entry::Control(Control::Ended { turn, .. }) => Some(*turn),
        _ => None,
    });
    let mut turns: Vec<TurnId> = ended.chain(journal.turn().map(turnwright_core::Turn::id)).collect();
    // A turn that was tried again ended more than once.
    turns.dedup();
    turns
}

/// What a client of the stream would have been told of `turn` so far, where it `begins` so: the last entry of the turn says what it has of
/// what people said. `events` begin with the turn's or before; what comes after it is left alone.
pub(crate) fn chunks_of(
    conversation: &ConversationId,
    turn: TurnId,
    next: Option<TurnId>,
    events: &[Event],
    offered: Arc<[Arc<ToolDefinition>]>,
    (version, begins): (UiVersion, fn(Seq) -> Begin),
) -> Vec<Box<RawValue>> {
    let place = |seq: Seq| events.iter().position(|event| matches!(event, Event::Entry { seq: at, .. } if *at == seq));
    let begin = place(turn.0).unwrap_or(events.len());
    let end = next.and_then(|next| place(next.0)).unwrap_or(events.len());
    let own = events.get(begin..end).unwrap_or_default();
    let seq = |event: &Event| match event {
        Event::Entry { seq, .. } => Some(*seq),
        _ => None,
    };
    let last = own.iter().rev().find_map(seq).unwrap_or(turn.0);
    let mut fold = UiFold::new(conversation.clone(), turn, version, begins(last), offered);
    let mut out = Vec::new();
    fold.fold(&Frame { seq: Some(turn.0), events: Arc::from(own), has_caught_up: true }, &mut out);
    let text = String::from_utf8(out).unwrap_or_default();
    let json = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    json.filter_map(|data| RawValue::from_string(data.to_owned()).ok()).collect()
}
