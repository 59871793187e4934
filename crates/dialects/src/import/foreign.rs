//! Forms that look like OpenAI's messages and keep their calls elsewhere: reading them would drop the calls.

use serde_json::Value;

use super::list;

/// Whose messages these are, where they are not OpenAI's.
pub(super) fn form(messages: &[Value]) -> Option<&'static str> {
    messages.iter().find_map(of_message)
}

fn of_message(message: &Value) -> Option<&'static str> {
    if let Some(part) = list(message, "parts").first() {
        return Some(if part.get("type").is_some() { "the AI SDK's UI messages" } else { "Gemini's messages" });
    }
    list(message, "content").iter().find_map(|part| match part.get("type").and_then(Value::as_str)? {
        "tool_use" | "tool_result" => Some("Anthropic's messages"),
        "tool-call" | "tool-result" => Some("the AI SDK's messages"),
        _ => None,
    })
}
