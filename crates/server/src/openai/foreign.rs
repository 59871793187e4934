//! Items of a history that tools of OpenAI's left there, or such as its clients run at its word. What has words for a model is kept as
//! a call with its result; the rest of it says nothing here, and is left out. Pure.

use serde_json::{Map, Value, json};
use turnwright_core::ContentBlock;

use super::history::{Called, Item, Messages, Said};
use super::ids;

/// What says nothing by itself: thoughts of another model's, lists, and what is sealed for OpenAI alone.
const SILENT: [&str; 7] = [
    "reasoning",
    "mcp_list_tools",
    "mcp_approval_request",
    "compaction",
    "compaction_summary",
    "context_compaction",
    "ghost_snapshot",
];

/// What a call was asked for.
const ASKED: [&str; 7] = ["action", "operation", "arguments", "queries", "code", "input", "name"];
/// Where an item holds what came of it.
const CAME: [&str; 4] = ["output", "outputs", "results", "tools"];
/// What of that is text, in the order in which it is read.
const TEXTS: [&str; 9] = ["filename", "name", "title", "url", "text", "logs", "stdout", "stderr", "content"];

/// The item at this place of a request; `None` where it is of no such kind.
pub(super) fn item(at: usize, kind: &str, item: &Value) -> Option<Item> {
    if SILENT.contains(&kind) {
        return Some(silent(item));
    }
    let text = |key: &str| item.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let call_id = text("call_id");
    if kind.ends_with("_output") {
        let Some(call) = call_id else { return Some(silent(item)) };
        let said = came(item);
        let content = if said.is_empty() { Vec::new() } else { vec![ContentBlock::text(&said)] };
        let messages = Messages::Made(vec![json!({"role": "tool", "tool_call_id": call, "content": said})]);
        return Some(Item { said: Said::Result { call, content, is_error: false }, messages });
    }
    let tool = kind.strip_suffix("_call")?;
    let call = |id: &str| {
        let function = json!({"name": tool, "arguments": asked(item)});
        let call = json!({"id": id, "type": "function", "function": function});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    };
    if let Some(id) = call_id {
        let messages = Messages::Made(vec![call(&id)]);
        return Some(Item {
            said: Said::Answer { text: String::new(), calls: vec![Called { id, arguments: asked(item) }] },
            messages,
        });
    }
    let said = came(item);
    if said.is_empty() {
        return Some(silent(item));
    }
    let id = text("id").unwrap_or_else(|| format!("{kind}_{at}"));
    let messages = vec![call(&id), json!({"role": "tool", "tool_call_id": id, "content": said})];
    let said = Said::Elsewhere { name: tool.to_owned(), arguments: asked(item), gave: said };
    Some(Item { said, messages: Messages::Made(messages) })
}

fn silent(item: &Value) -> Item {
    let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
    let is_ours = ids::read_item(id).is_some() || ids::read_request(id).is_some();
    Item { said: if is_ours { Said::Echo } else { Said::Nothing }, messages: Messages::Made(Vec::new()) }
}

fn asked(item: &Value) -> String {
    let known = ASKED.iter().filter_map(|key| Some(((*key).to_owned(), item.get(key)?.clone())));
    Value::Object(known.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>()).to_string()
}

fn came(item: &Value) -> String {
    CAME.iter().find_map(|key| item.get(key)).map(words).unwrap_or_default()
}

/// What of a value is text, a line each.
fn words(value: &Value) -> String {
    let lines: Vec<String> = match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().map(words).collect(),
        Value::Object(members) => TEXTS.iter().filter_map(|key| members.get(*key)).map(words).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    };
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
