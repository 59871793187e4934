//! Responses.

use super::{PNG, Row, Value, check, json, list, remove};
use crate::validate::responses::validate;

fn valid() -> Value {
    json!({
        "model": "gpt-4.1",
        "instructions": "i",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "t"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")},
                {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0x", "filename": "a.pdf"},
            ]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "x"},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "r"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "t"}, {"type": "refusal", "refusal": "no"}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "t"}]},
            {"role": "user", "content": "u"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": false}],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"], "store": false, "stream": true, "max_output_tokens": 16,
    })
}

const ROWS: &[Row] = &[
    ("no input", |b| b["input"] = json!([]), "/input: a list that is not empty"),
    (
        "messages for input",
        |b| {
            b["messages"] = json!([]);
            remove(b, "input");
        },
        "`input` is missing",
    ),
    ("an unknown parameter", |b| b["max_tokens"] = json!(1), "unknown key `max_tokens`"),
    ("an unknown item", |b| b["input"][6] = json!({"type": "thought"}), "unknown kind of item `thought`"),
    ("an unknown role", |b| b["input"][6]["role"] = json!("tool"), "unknown role `tool`"),
    (
        "an input text of an assistant",
        |b| b["input"][4]["content"][0]["type"] = json!("input_text"),
        "none of output_text, refusal",
    ),
    ("an output text of a user", |b| b["input"][0]["content"][0]["type"] = json!("output_text"), "none of input_text"),
    ("a call without its output", |b| drop(list(&mut b["input"]).remove(3)), "No tool output found for function call a"),
    (
        "an output without its call",
        |b| b["input"][3]["call_id"] = json!("z"),
        "No tool call found for function call output with call_id z",
    ),
    ("an output before its call", |b| list(&mut b["input"]).swap(2, 3), "No tool call found"),
    (
        "an output twice",
        |b| {
            let output = b["input"][3].clone();
            list(&mut b["input"]).push(output);
        },
        "answered twice",
    ),
    (
        "a call twice",
        |b| {
            let mut call = b["input"][2].clone();
            remove(&mut call, "id");
            list(&mut b["input"]).push(call);
        },
        "the call `a` is there twice",
    ),
    (
        "a call id of 65 characters",
        |b| {
            let id = json!("a".repeat(65));
            b["input"][2]["call_id"] = id.clone();
            b["input"][3]["call_id"] = id;
        },
        "at most 64 characters",
    ),
    ("an item id with a dot", |b| b["input"][2]["id"] = json!("fc_1.0"), "no item id"),
    ("an item id of 65 characters", |b| b["input"][2]["id"] = json!(format!("fc_{}", "a".repeat(62))), "no item id"),
    ("a call's id of another kind", |b| b["input"][2]["id"] = json!("call_1"), "does not begin with `fc_`"),
    ("a message's id of another kind", |b| b["input"][5]["id"] = json!("rs_9"), "does not begin with `msg_`"),
    (
        "an item twice",
        |b| {
            let item = b["input"][5].clone();
            list(&mut b["input"]).push(item);
        },
        "the item `msg_1` is there twice",
    ),
    ("reasoning at the end", |b| list(&mut b["input"]).truncate(2), "without its required following item"),
    ("reasoning before a user", |b| list(&mut b["input"]).swap(1, 5), "without its required following item"),
    ("reasoning without its summary", |b| remove(&mut b["input"][1], "summary"), "`summary` is missing"),
    ("reasoning without its id", |b| remove(&mut b["input"][1], "id"), "`id` is missing"),
    ("reasoning that is kept nowhere", |b| remove(&mut b["input"][1], "encrypted_content"), "no encrypted content"),
    (
        "a reference to what is not stored",
        |b| b["input"][6] = json!({"type": "item_reference", "id": "x"}),
        "nothing is stored",
    ),
    ("an unknown phase", |b| b["input"][5]["phase"] = json!("middle"), "none of commentary"),
    ("arguments that are no JSON", |b| b["input"][2]["arguments"] = json!("{"), "JSON object"),
    ("a call's name with a space", |b| b["input"][2]["name"] = json!("a b"), "no tool name"),
    ("an error flag", |b| b["input"][3]["is_error"] = json!(true), "unknown key `is_error`"),
    ("an output of nothing", |b| b["input"][3]["output"] = json!([]), "/input/3/output: a list that is not empty"),
    ("a tool without `strict`", |b| remove(&mut b["tools"][0], "strict"), "`strict` is missing"),
    ("a tool without parameters", |b| remove(&mut b["tools"][0], "parameters"), "`parameters` is missing"),
    (
        "a tool that is wrapped",
        |b| b["tools"][0] = json!({"type": "function", "function": {"name": "f"}}),
        "unknown key `function`",
    ),
    (
        "a tool twice",
        |b| {
            let tool = b["tools"][0].clone();
            list(&mut b["tools"]).push(tool);
        },
        "the tool `f` is there twice",
    ),
    ("a strict tool that is open", |b| b["tools"][0]["strict"] = json!(true), "additionalProperties: false"),
    ("no tools", |b| b["tools"] = json!([]), "/tools: a list that is not empty"),
    ("a choice without tools", |b| remove(b, "tools"), "`tool_choice` without `tools`"),
    ("a choice of no tool", |b| b["tool_choice"]["name"] = json!("z"), "there is no tool `z`"),
    (
        "a choice that is wrapped",
        |b| b["tool_choice"] = json!({"type": "function", "function": {"name": "f"}}),
        "unknown key `function`",
    ),
    ("two sources of an image", |b| b["input"][0]["content"][1]["file_id"] = json!("x"), "one of `image_url` and `file_id`"),
    (
        "an image that is another",
        |b| b["input"][0]["content"][1]["image_url"] = json!(format!("data:image/webp;base64,{PNG}")),
        "the bytes are no image/webp",
    ),
    ("a file without a name", |b| remove(&mut b["input"][0]["content"][2], "filename"), "`filename` is missing"),
    ("a format without its name", |b| remove(&mut b["text"]["format"], "name"), "`name` is missing"),
    ("a limit that is too low", |b| b["max_output_tokens"] = json!(1), "at least 16"),
    ("an unknown effort", |b| b["reasoning"]["effort"] = json!("huge"), "is none of none, minimal"),
    (
        "sampling of a reasoning model",
        |b| {
            b["model"] = json!("gpt-5.1");
            b["temperature"] = json!(1);
        },
        "`temperature` is refused",
    ),
];

#[test]
fn each_broken_rule_of_responses_is_seen() {
    check(&valid(), validate, ROWS);
}
