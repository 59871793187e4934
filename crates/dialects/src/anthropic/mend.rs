//! A request whose thoughts the provider does not take, without them.

use serde_json::Value;
use turnwright_core::ProviderFailure;

use crate::dialect::Mended;

/// Whether a request may succeed without its thoughts: a signature does not hold any more, or they do not stand where the
/// provider wants them.
pub(super) fn is_refused(failure: &ProviderFailure) -> bool {
    const SIGNS: [&str; 3] =
        ["invalid signature in thinking", "thinking or redacted_thinking blocks", "expected thinking or redacted_thinking"];
    let message = failure.message.to_lowercase().replace('`', "");
    failure.status == Some(400) && SIGNS.iter().any(|sign| message.contains(sign))
}

/// The body without thoughts, and without asking for new ones, which may not begin in the middle of an answer; `None` where
/// it has neither.
pub(super) fn mended(body: &[u8]) -> Option<Mended> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let stopped_thinking = body.as_object_mut()?.remove("thinking").is_some();
    let messages = body.get_mut("messages")?.as_array_mut()?;
    let count = messages.len();
    let forgot = forget_thoughts(messages);
    if !stopped_thinking && !forgot {
        return None;
    }
    Some(Mended { body: serde_json::to_vec(&body).ok()?, messages: count })
}

/// The body without the thoughts of its first messages, where it has some. New ones are asked for unless results are to be
/// answered whose answer began without one.
pub(super) fn still_mended(body: &[u8], messages: usize) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let all = body.get_mut("messages")?.as_array_mut()?;
    let refused = messages.min(all.len());
    if !all.get_mut(..refused).is_some_and(forget_thoughts) {
        return None;
    }
    if answers_in_the_middle(all) {
        body.as_object_mut()?.remove("thinking");
    }
    serde_json::to_vec(&body).ok()
}

/// Takes the thoughts out of messages; whether there were some.
fn forget_thoughts(messages: &mut [Value]) -> bool {
    let mut has_changed = false;
    for message in messages {
        let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) else { continue };
        let before = content.len();
        content.retain(|block| !is_thought(block));
        has_changed |= content.len() < before;
    }
    has_changed
}

/// Whether results are to be answered that belong to an answer which began without a thought.
fn answers_in_the_middle(messages: &[Value]) -> bool {
    let blocks = |message: &Value| message.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_result = |block: &Value| block.get("type").and_then(Value::as_str) == Some("tool_result");
    let is_of_person = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("user");
    let since = messages.iter().rev().take_while(|message| !is_of_person(message) || blocks(message).iter().any(is_result));
    let answers = since.filter(|message| !is_of_person(message));
    answers.last().is_some_and(|first| !blocks(first).first().is_some_and(is_thought))
}

fn is_thought(block: &Value) -> bool {
    matches!(block.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
}
