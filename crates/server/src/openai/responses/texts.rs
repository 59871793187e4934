//! The items that hold what a model says. Pure.

use serde_json::{Value, json};

/// Whether an item holds all that it was to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    Whole,
    Cut,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Refusal,
    Reasoning,
}

/// What the events of a text's part begin with.
pub(super) fn part_event(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Refusal => "response.content_part",
        Kind::Reasoning => "response.reasoning_summary_part",
    }
}

/// The fields, and which part of the item they are about.
pub(super) fn at_first_part(kind: Kind, mut fields: Value) -> Value {
    let key = match kind {
        Kind::Text | Kind::Refusal => "content_index",
        Kind::Reasoning => "summary_index",
    };
    if let Value::Object(fields) = &mut fields {
        fields.insert(key.to_owned(), Value::from(0));
    }
    fields
}

/// A text as the part of an item.
pub(super) fn part(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Text => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
        Kind::Refusal => json!({"type": "refusal", "refusal": text}),
        Kind::Reasoning => json!({"type": "summary_text", "text": text}),
    }
}

/// An item with its whole text, or one that begins.
pub(super) fn item(kind: Kind, id: &str, text: Option<(&str, Close)>) -> Value {
    let parts: Vec<Value> = text.iter().map(|(text, _)| part(kind, text)).collect();
    let status = match text {
        None => "in_progress",
        Some((_, Close::Whole)) => "completed",
        Some((_, Close::Cut)) => "incomplete",
    };
    match kind {
        Kind::Text | Kind::Refusal => {
            json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": parts})
        }
        Kind::Reasoning => json!({"id": id, "type": "reasoning", "summary": parts}),
    }
}
