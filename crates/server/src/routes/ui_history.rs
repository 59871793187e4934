//! A history for `useChat`: the parts that the stream of its turns left.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnwright_core::{ConversationId, Journal, Seq, TurnId};
use turnwright_engine::{EngineError, Event, WatchFrom};

use crate::offered::offered_in;
use crate::state::ServerState;
use crate::ui::{Assembled, Begin, UiVersion, assembled, chunks_of, turns_of};

/// The messages with the parts that a client has who was told them as they came. A message that says something else there stays
/// as it is: part of it is hidden, say.
pub(super) async fn as_told(
    state: &ServerState,
    conversation: &ConversationId,
    journal: &Journal,
    messages: Vec<Box<RawValue>>,
    version: UiVersion,
) -> Result<Vec<Box<RawValue>>, EngineError> {
    let mut read: Vec<Map<String, Value>> =
        messages.iter().map(|message| serde_json::from_str(message.get()).unwrap_or_default()).collect();
    let of_turns: Vec<TurnId> = read.iter().filter_map(turn_of).collect();
    let (Some(first), Some(last)) = (of_turns.first(), of_turns.last()) else { return Ok(messages) };
    let from = WatchFrom::After(Seq::new(first.0.get().saturating_sub(1)));
    let frame = state.engine().watch(conversation, from).await?.next().await;
    let events = frame.map_or_else(|| Arc::from([]), |frame| frame.events);
    let events = stored(&events);
    let turns = turns_of(journal);
    let mut told: Vec<Assembled> = Vec::new();
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| (first..=last).contains(turn)) {
        let next = turns.get(at.saturating_add(1)).copied();
        let chunks = chunks_of(conversation, *turn, next, events, offered_in(journal, *turn, turn.0), (version, Begin::Apart));
        told.extend(assembled(&chunks));
    }
    for message in &mut read {
        let id = message.get("id").and_then(Value::as_str).unwrap_or_default();
        let Some(at) = told.iter().position(|told| told.id == id && is_the_same(message, told)) else {
            if version < UiVersion::V6 {
                ask_nothing(message);
            }
            continue;
        };
        let Assembled { metadata, mut parts, .. } = told.swap_remove(at);
        tell_reasons(&mut parts, events);
        message.insert("parts".to_owned(), parts.into_iter().map(Value::Object).collect());
        message.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    }
    let written = read.iter().zip(messages);
    Ok(written.map(|(message, as_it_was)| serde_json::value::to_raw_value(message).unwrap_or(as_it_was)).collect())
}

/// The turn of a model's message.
fn turn_of(message: &Map<String, Value>) -> Option<TurnId> {
    let id = message.get("id")?.as_str()?;
    let number = id.strip_prefix("turn_")?.split('_').next()?;
    format!("turn_{number}").parse().ok()
}

/// Without the message in flight: whoever begins with a history resumes its stream.
fn stored(events: &[Event]) -> &[Event] {
    let is_entry = |event: &Event| matches!(event, Event::Entry { .. });
    let last = events.iter().rposition(is_entry).unwrap_or_default();
    let is_begin = |event: &Event| matches!(event, Event::StepStarted { .. });
    let rest = events.get(last..).unwrap_or_default();
    let end = rest.iter().position(is_begin).map_or(events.len(), |begin| last.saturating_add(begin));
    events.get(..end).unwrap_or_default()
}

/// Adds the person's words to what they denied. The stream has no place for them before version 7, where the page that sent them has them.
fn tell_reasons(parts: &mut [Map<String, Value>], events: &[Event]) {
    for part in parts {
        let Some(call) = part.get("toolCallId").and_then(Value::as_str).map(str::to_owned) else { continue };
        let Some(approval) = part.get_mut("approval").and_then(Value::as_object_mut) else { continue };
        if approval.get("approved") != Some(&Value::Bool(false)) || approval.contains_key("reason") {
            continue;
        }
        let said = events.iter().rev().find_map(|event| match event {
            Event::ToolApprovalDecided { call_id, reason, .. } if call_id.to_string() == call => reason.clone(),
            _ => None,
        });
        approval.extend(said.map(|said| ("reason".to_owned(), Value::from(said))));
    }
}

/// Makes of calls that wait to be allowed what clients know that know no approvals.
fn ask_nothing(message: &mut Map<String, Value>) {
    let parts = message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten();
    let is_asked = |part: &&mut Map<String, Value>| part.get("state").is_some_and(|state| state == "approval-requested");
    for part in parts.filter_map(Value::as_object_mut).filter(is_asked) {
        part.insert("state".to_owned(), "input-available".into());
        part.remove("approval");
    }
}

/// Whether both hold the same words and the same calls.
fn is_the_same(message: &Map<String, Value>, told: &Assembled) -> bool {
    let parts = message.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    said(parts.iter().filter_map(Value::as_object)) == said(told.parts.iter())
}

fn said<'a>(parts: impl Iterator<Item = &'a Map<String, Value>>) -> (String, Vec<&'a str>) {
    let (mut words, mut calls) = (String::new(), Vec::new());
    for part in parts {
        let of = |key: &str| part.get(key).and_then(Value::as_str);
        words.push_str(of("text").filter(|_| of("type") == Some("text")).unwrap_or_default());
        calls.extend(of("toolCallId"));
    }
    (words, calls)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_that_knows_no_approvals_is_given_a_call_that_waits_as_one_without_output() {
        let text = json!({"type": "text", "text": "I write."});
        let call = |more: Value| {
            let mut call = json!({"type": "dynamic-tool", "toolCallId": "call_4_0", "toolName": "t", "input": {}});
            call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            call
        };
        let asked = call(json!({"state": "approval-requested", "approval": {"id": "appr_4_0"}}));
        let mut message = json!({"id": "turn_1", "role": "assistant", "parts": [text, asked]});
        ask_nothing(message.as_object_mut().unwrap());
        assert_eq!(message["parts"], json!([text, call(json!({"state": "input-available"}))]));
    }
}
