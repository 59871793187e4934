//! A request whose thoughts the provider does not take, without them.

use serde_json::Value;
use turnwright_core::ProviderFailure;

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
pub(super) fn without_thoughts(body: &[u8]) -> Option<Vec<u8>> {
    let mut body: Value = serde_json::from_slice(body).ok()?;
    let mut is_changed = body.as_object_mut()?.remove("thinking").is_some();
    for message in body.get_mut("messages")?.as_array_mut()? {
        let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) else { continue };
        let before = content.len();
        content.retain(|block| !matches!(block.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking")));
        is_changed |= content.len() < before;
    }
    if is_changed { serde_json::to_vec(&body).ok() } else { None }
}
