//! Anthropic Messages.

use super::{PNG, Row, Value, check, json, list, remove};
use crate::validate::anthropic::validate;

fn valid() -> Value {
    json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "t"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "", "signature": "sig"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "t"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {"x": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "r", "is_error": true},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "r"}]},
                {"type": "text", "text": "also", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
        "stream": true,
    })
}

const ROWS: &[Row] = &[
    ("no limit", |b| remove(b, "max_tokens"), "`max_tokens` is missing"),
    ("an unknown parameter", |b| b["reasoning_effort"] = json!("low"), "unknown key `reasoning_effort`"),
    ("no messages", |b| b["messages"] = json!([]), "/messages: a list that is not empty"),
    ("an assistant first", |b| drop(list(&mut b["messages"]).remove(0)), "the first message is of the user"),
    (
        "an assistant last",
        |b| list(&mut b["messages"]).push(json!({"role": "assistant", "content": "t"})),
        "must end with a user message",
    ),
    ("two users", |b| list(&mut b["messages"]).push(json!({"role": "user", "content": "t"})), "two messages of the same role"),
    ("a system message", |b| b["messages"][0]["role"] = json!("system"), "unknown role `system`"),
    ("an empty content", |b| b["messages"][0]["content"] = json!([]), "/messages/0/content: a list that is not empty"),
    ("an empty text for a content", |b| b["messages"][0]["content"] = json!(""), "non-empty content"),
    ("an empty text", |b| b["messages"][0]["content"][0]["text"] = json!(""), "must be non-empty"),
    ("a text of spaces", |b| b["messages"][1]["content"][2]["text"] = json!(" \n"), "non-whitespace"),
    (
        "a call without its result",
        |b| drop(list(&mut b["messages"][2]["content"]).remove(1)),
        "found without `tool_result` blocks immediately after: a",
    ),
    ("a call at the end", |b| list(&mut b["messages"]).truncate(2), "found without `tool_result` blocks"),
    (
        "a result twice",
        |b| b["messages"][2]["content"][1]["tool_use_id"] = json!("b"),
        "unexpected tool_use_id found in tool_result blocks: b",
    ),
    ("a result of nothing", |b| b["messages"][2]["content"][1]["tool_use_id"] = json!("z"), "unexpected tool_use_id"),
    ("a text before the results", |b| list(&mut b["messages"][2]["content"]).swap(0, 2), "at the beginning"),
    ("a call id with a dot", |b| b["messages"][1]["content"][3]["id"] = json!("a.b"), "no tool_use id"),
    ("a call id of 65 characters", |b| b["messages"][1]["content"][3]["id"] = json!("a".repeat(65)), "no tool_use id"),
    ("a call id twice", |b| b["messages"][1]["content"][4]["id"] = json!("a"), "tool_use ids must be unique"),
    ("a name with a colon", |b| b["messages"][1]["content"][3]["name"] = json!("a:b"), "no tool name"),
    ("arguments that are a text", |b| b["messages"][1]["content"][3]["input"] = json!("{}"), "input should be an object"),
    ("arguments that are null", |b| b["messages"][1]["content"][3]["input"] = json!(null), "input should be an object"),
    ("an error of nothing", |b| b["messages"][2]["content"][0]["content"] = json!(""), "cannot be empty if is_error"),
    ("an error without content", |b| remove(&mut b["messages"][2]["content"][0], "content"), "cannot be empty if is_error"),
    ("an empty text in a result", |b| b["messages"][2]["content"][1]["content"][0]["text"] = json!(""), "must be non-empty"),
    (
        "calls and no tools",
        |b| {
            remove(b, "tools");
            remove(b, "tool_choice");
        },
        "tool_use blocks and no `tools`",
    ),
    ("a choice without tools", |b| remove(b, "tools"), "`tool_choice` without `tools`"),
    ("a choice of no tool", |b| b["tool_choice"] = json!({"type": "tool", "name": "z"}), "there is no tool `z`"),
    ("a forced choice while thinking", |b| b["tool_choice"] = json!({"type": "any"}), "forces tool use"),
    (
        "a forced choice of a model without",
        |b| {
            b["model"] = json!("claude-opus-5-5");
            b["tool_choice"] = json!({"type": "any"});
        },
        "no forced tool choice",
    ),
    ("an unknown choice", |b| b["tool_choice"] = json!({"type": "required"}), "is none of auto, any"),
    (
        "a tool twice",
        |b| {
            let tool = b["tools"][0].clone();
            list(&mut b["tools"]).push(tool);
        },
        "the tool `f` is there twice",
    ),
    ("a tool's name too long", |b| b["tools"][0]["name"] = json!("a".repeat(65)), "no tool name"),
    ("a schema of no object", |b| b["tools"][0]["input_schema"] = json!({}), "`type: object`"),
    ("a schema with a root of alternatives", |b| b["tools"][0]["input_schema"]["anyOf"] = json!([]), "at the top level"),
    ("a strict tool that is open", |b| b["tools"][0]["strict"] = json!(true), "additionalProperties: false"),
    ("an unsigned thought", |b| b["messages"][1]["content"][0]["signature"] = json!(""), "the text is empty"),
    ("a thought without a signature", |b| remove(&mut b["messages"][1]["content"][0], "signature"), "`signature` is missing"),
    (
        "a thought that is last",
        |b| b["messages"][1]["content"] = json!([{"type": "redacted_thinking", "data": "x"}]),
        "the final block",
    ),
    (
        "a step that does not begin with its thoughts",
        |b| drop(list(&mut b["messages"][1]["content"]).drain(..2)),
        "Expected `thinking` or `redacted_thinking`",
    ),
    ("a budget over the limit", |b| b["max_tokens"] = json!(1024), "must be greater"),
    ("a budget too small", |b| b["thinking"]["budget_tokens"] = json!(10), "at least 1024"),
    ("sampling while thinking", |b| b["temperature"] = json!(0.5), "when thinking is on"),
    (
        "sampling of a model without",
        |b| {
            b["model"] = json!("claude-opus-4-7");
            remove(b, "thinking");
            b["temperature"] = json!(1);
        },
        "not taken by this model",
    ),
    (
        "five breakpoints",
        |b| {
            let mark = b["tools"][0]["cache_control"].clone();
            b["messages"][0]["content"][0]["cache_control"] = mark.clone();
            b["messages"][1]["content"][3]["cache_control"] = mark;
        },
        "a maximum of 4 blocks",
    ),
    ("a long one after a short one", |b| b["tools"][0]["cache_control"] = json!({"type": "ephemeral"}), "1h after one of 5m"),
    (
        "a breakpoint on a thought",
        |b| b["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"}),
        "unknown key `cache_control`",
    ),
    ("a breakpoint of no kind", |b| b["system"][0]["cache_control"]["type"] = json!("x"), "none of ephemeral"),
    (
        "an image of no known type",
        |b| b["messages"][0]["content"][1]["source"]["media_type"] = json!("image/bmp"),
        "none of image/png",
    ),
    (
        "an image that is another",
        |b| b["messages"][0]["content"][1]["source"]["media_type"] = json!("image/jpeg"),
        "do not match the provided media type",
    ),
    (
        "an image in an assistant's message",
        |b| list(&mut b["messages"][1]["content"]).push(json!({"type": "image"})),
        "cannot stand here",
    ),
    ("an unknown block", |b| list(&mut b["messages"][2]["content"]).push(json!({"type": "audio"})), "cannot stand here"),
];

#[test]
fn each_broken_rule_of_anthropic_is_seen() {
    check(&valid(), validate, ROWS);
}
