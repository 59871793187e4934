//! Ollama.

use super::{PNG, Row, Value, check, json, list, remove};
use crate::validate::ollama::validate;

fn valid() -> Value {
    json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "t", "images": [PNG]},
            {"role": "assistant", "content": "", "thinking": "h", "tool_calls": [
                {"id": "a", "function": {"name": "f", "arguments": {}}},
                {"function": {"name": "g", "arguments": {"x": 1}}},
            ]},
            {"role": "tool", "content": "r", "tool_name": "f", "tool_call_id": "a"},
            {"role": "tool", "content": "", "tool_name": "g"},
            {"role": "assistant", "content": "t"},
            {"role": "user", "content": "u"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}],
        "think": true, "format": {"type": "object"}, "options": {"num_ctx": 4096, "temperature": 1}, "stream": true,
    })
}

const ROWS: &[Row] = &[
    ("no model", |b| remove(b, "model"), "`model` is missing"),
    ("a choice of tools", |b| b["tool_choice"] = json!("auto"), "unknown key `tool_choice`"),
    ("sampling at the top", |b| b["temperature"] = json!(1), "unknown key `temperature`"),
    ("an unknown option", |b| b["options"]["max_tokens"] = json!(1), "unknown key `max_tokens`"),
    ("no messages", |b| b["messages"] = json!([]), "/messages: a list that is not empty"),
    ("an unknown role", |b| b["messages"][0]["role"] = json!("developer"), "unknown role `developer`"),
    ("a content of parts", |b| b["messages"][1]["content"] = json!([{"type": "text", "text": "t"}]), "a text is expected"),
    ("a content that is null", |b| b["messages"][2]["content"] = json!(null), "a text is expected"),
    ("an image with its prefix", |b| b["messages"][1]["images"][0] = json!(format!("data:image/png;base64,{PNG}")), "base64"),
    ("a call without its result", |b| drop(list(&mut b["messages"]).remove(4)), "have no result"),
    ("a call at the end", |b| list(&mut b["messages"]).truncate(4), "have no result"),
    (
        "a result of nothing",
        |b| list(&mut b["messages"]).insert(6, json!({"role": "tool", "content": "", "tool_name": "f"})),
        "a result without a call",
    ),
    ("results in another order", |b| list(&mut b["messages"]).swap(3, 4), "the call at this place"),
    ("a result without its name", |b| remove(&mut b["messages"][3], "tool_name"), "`tool_name` is missing"),
    ("a result with another id", |b| b["messages"][3]["tool_call_id"] = json!("z"), "the call's id is"),
    ("an empty list of calls", |b| b["messages"][5]["tool_calls"] = json!([]), "/messages/5/tool_calls: a list"),
    (
        "arguments that are a text",
        |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{}"),
        "the arguments are an object",
    ),
    ("nothing said", |b| b["messages"][5]["content"] = json!(""), "nothing is said"),
    ("a tool's name with a dot", |b| b["tools"][0]["function"]["name"] = json!("a.b"), "no tool name"),
    ("an empty list of tools", |b| b["tools"] = json!([]), "/tools: a list"),
    (
        "a tool twice",
        |b| {
            let tool = b["tools"][0].clone();
            list(&mut b["tools"]).push(tool);
        },
        "the tool `f` is there twice",
    ),
    ("a level that there is not", |b| b["think"] = json!("huge"), "true, false or a level"),
    ("a format that there is not", |b| b["format"] = json!("xml"), "`json` or a schema"),
];

#[test]
fn each_broken_rule_of_ollama_is_seen() {
    check(&valid(), validate, ROWS);
}
