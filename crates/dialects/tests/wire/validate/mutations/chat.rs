//! Chat Completions.

use super::{PNG, Row, Server, Value, check, json, list, remove};
use crate::validate::chat::validate;

fn valid() -> Value {
    json!({
        "model": "gpt-4o",
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}},
            {"type": "function", "function": {"name": "g", "strict": true, "parameters":
                {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"], "additionalProperties": false}}},
        ],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [
                {"type": "text", "text": "t"},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0x", "filename": "a.pdf"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "b", "content": "r"},
            {"role": "tool", "tool_call_id": "a", "content": ""},
            {"role": "assistant", "content": "text"},
            {"role": "user", "content": "u"},
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "max_tokens": 9, "temperature": 1.5, "stream": true, "stream_options": {"include_usage": true},
    })
}

const ROWS: &[Row] = &[
    ("no model", |b| remove(b, "model"), "`model` is missing"),
    ("an empty model", |b| b["model"] = json!(""), "/model: the text is empty"),
    ("no messages", |b| b["messages"] = json!([]), "/messages: a list that is not empty"),
    ("an unknown parameter", |b| b["thinking"] = json!({}), "unknown key `thinking`"),
    ("an unknown role", |b| b["messages"][0]["role"] = json!("bot"), "/messages/0: unknown role"),
    ("an unknown key of a message", |b| b["messages"][1]["id"] = json!("x"), "unknown key `id`"),
    ("no content of a user", |b| remove(&mut b["messages"][6], "content"), "`content` is missing"),
    ("a content of nothing", |b| b["messages"][1]["content"] = json!([]), "/messages/1/content: a list that is not empty"),
    ("nothing said", |b| b["messages"][5]["content"] = json!(null), "neither content nor calls"),
    ("an empty list of calls", |b| b["messages"][5]["tool_calls"] = json!([]), "/messages/5/tool_calls: a list"),
    ("a call without its result", |b| drop(list(&mut b["messages"]).remove(4)), "did not have response messages: a"),
    ("a call at the end", |b| list(&mut b["messages"]).truncate(4), "did not have response messages: a"),
    ("a result twice", |b| b["messages"][4]["tool_call_id"] = json!("b"), "`b` answers no call"),
    (
        "a result of nothing",
        |b| list(&mut b["messages"]).insert(6, json!({"role": "tool", "tool_call_id": "z", "content": ""})),
        "`z` answers no call",
    ),
    (
        "something between the results",
        |b| list(&mut b["messages"]).insert(4, json!({"role": "user", "content": "u"})),
        "did not have response messages",
    ),
    (
        "an image in a result",
        |b| b["messages"][3]["content"] = json!([{"type": "image_url", "image_url": {"url": "https://x"}}]),
        "none of text",
    ),
    ("a call id of 41 characters", |b| b["messages"][2]["tool_calls"][0]["id"] = json!("a".repeat(41)), "no call id"),
    ("a call id with a space", |b| b["messages"][2]["tool_calls"][0]["id"] = json!("a b"), "no call id"),
    ("a call id twice", |b| b["messages"][2]["tool_calls"][1]["id"] = json!("a"), "the call `a` is there twice"),
    ("no call id", |b| remove(&mut b["messages"][2]["tool_calls"][0], "id"), "`id` is missing"),
    ("a name with a dot", |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("a.b"), "no tool name"),
    (
        "a name of 65 characters",
        |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("a".repeat(65)),
        "no tool name",
    ),
    ("no name", |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!(""), "no tool name"),
    ("arguments that are no JSON", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{"), "JSON object"),
    ("arguments that are a list", |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("[]"), "JSON object"),
    (
        "arguments that are no text",
        |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}),
        "a text is expected",
    ),
    (
        "reasoning, which only others take",
        |b| b["messages"][5]["reasoning_content"] = json!("r"),
        "unknown key `reasoning_content`",
    ),
    ("no tools and a choice", |b| remove(b, "tools"), "`tool_choice` without `tools`"),
    ("an empty list of tools", |b| b["tools"] = json!([]), "/tools: a list that is not empty"),
    (
        "parallel calls without tools",
        |b| {
            remove(b, "tools");
            remove(b, "tool_choice");
            b["parallel_tool_calls"] = json!(true);
        },
        "`parallel_tool_calls` without `tools`",
    ),
    ("a tool twice", |b| b["tools"][1]["function"]["name"] = json!("f"), "the tool `f` is there twice"),
    ("a tool's name with a slash", |b| b["tools"][0]["function"]["name"] = json!("a/b"), "no tool name"),
    ("a flat tool", |b| b["tools"][0] = json!({"type": "function", "name": "f"}), "`function` is missing"),
    ("a schema without type", |b| b["tools"][0]["function"]["parameters"] = json!({}), "`type: object`"),
    (
        "a strict schema that is open",
        |b| remove(&mut b["tools"][1]["function"]["parameters"], "additionalProperties"),
        "additionalProperties: false",
    ),
    (
        "a strict schema with what is optional",
        |b| b["tools"][1]["function"]["parameters"]["required"] = json!([]),
        "is required",
    ),
    (
        "a strict schema with a default",
        |b| b["tools"][1]["function"]["parameters"]["properties"]["a"]["default"] = json!(""),
        "no `default`",
    ),
    ("a choice of no tool", |b| b["tool_choice"]["function"]["name"] = json!("z"), "there is no tool `z`"),
    (
        "a choice among tools of which one is not there",
        |b| {
            let tools = json!([{"type": "function", "function": {"name": "z"}}]);
            b["tool_choice"] = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}});
        },
        "there is no tool `z`",
    ),
    ("an unknown choice", |b| b["tool_choice"] = json!("must"), "is none of none, auto, required"),
    (
        "an image of no known type",
        |b| b["messages"][1]["content"][1]["image_url"]["url"] = json!("data:image/bmp;base64,AAAA"),
        "`image/bmp` is none of",
    ),
    (
        "an image that is another",
        |b| b["messages"][1]["content"][1]["image_url"]["url"] = json!(format!("data:image/gif;base64,{PNG}")),
        "the bytes are no image/gif",
    ),
    (
        "an image that is no base64",
        |b| b["messages"][1]["content"][1]["image_url"]["url"] = json!("data:image/png;base64,a-b"),
        "base64",
    ),
    (
        "an image that is no address",
        |b| b["messages"][1]["content"][1]["image_url"]["url"] = json!("x.png"),
        "neither a data URL",
    ),
    ("a file without a name", |b| remove(&mut b["messages"][1]["content"][2]["file"], "filename"), "`filename` is missing"),
    ("a part of no kind", |b| remove(&mut b["messages"][1]["content"][0], "type"), "`type` is missing"),
    ("a format without its schema", |b| remove(&mut b["response_format"], "json_schema"), "`json_schema` is missing"),
    ("a format's name too long", |b| b["response_format"]["json_schema"]["name"] = json!("a".repeat(65)), "no tool name"),
    ("a limit of nothing", |b| b["max_tokens"] = json!(0), "at least 1"),
    ("too hot", |b| b["temperature"] = json!(2.5), "from 0 to 2"),
    ("options of a stream without one", |b| remove(b, "stream"), "without `stream`"),
    ("five stops", |b| b["stop"] = json!(["a", "b", "c", "d", "e"]), "up to four"),
    ("sampling of a reasoning model", |b| b["model"] = json!("gpt-5"), "`temperature` is refused"),
    ("the old limit with a reasoning model", |b| b["model"] = json!("o3-mini"), "`max_tokens` is refused"),
    ("an unknown effort", |b| b["reasoning_effort"] = json!("huge"), "is none of none, minimal"),
];

#[test]
fn each_broken_rule_of_chat_completions_is_seen() {
    check(&valid(), |body| validate(body, Server::OpenAi), ROWS);
}

#[test]
fn each_broken_rule_of_mistral_is_seen() {
    let mut body = valid();
    list(&mut body["messages"]).truncate(6);
    list(&mut body["messages"][1]["content"]).truncate(2);
    for (call, id) in [(0, "aaaaaaaaa"), (1, "bbbbbbbbb")] {
        body["messages"][2]["tool_calls"][call]["id"] = json!(id);
        body["messages"][4 - call]["tool_call_id"] = json!(id);
    }
    let rows: &[Row] = &[
        ("a short id", |b| b["messages"][2]["tool_calls"][0]["id"] = json!("a"), "a length of 9"),
        ("a dash in an id", |b| b["messages"][2]["tool_calls"][0]["id"] = json!("aaaa-aaaa"), "a-z, A-Z, 0-9"),
        ("a user after a result", |b| b["messages"][5] = json!({"role": "user", "content": "u"}), "unexpected role `user`"),
    ];
    check(&body, |body| validate(body, Server::Mistral), rows);
}

#[test]
fn each_broken_rule_of_kimi_is_seen() {
    let mut body = valid();
    body["messages"][2]["reasoning_content"] = json!(" ");
    let rows: &[Row] = &[
        ("no reasoning", |b| remove(&mut b["messages"][2], "reasoning_content"), "reasoning_content is missing"),
        ("empty reasoning", |b| b["messages"][2]["reasoning_content"] = json!(""), "reasoning_content is missing"),
    ];
    check(&body, |body| validate(body, Server::Kimi), rows);
}

#[test]
fn each_broken_rule_of_perplexity_is_seen() {
    let rows: &[Row] = &[
        (
            "two of a person in a row",
            |b| list(&mut b["messages"]).push(json!({"role": "user", "content": "u"})),
            "should alternate",
        ),
        ("a person behind a result", |b| b["messages"][5] = json!({"role": "user", "content": "u"}), "should alternate"),
    ];
    check(&valid(), |body| validate(body, Server::Perplexity), rows);
}

#[test]
fn each_broken_rule_of_gemini_under_this_format_is_seen() {
    let mut body = valid();
    body["messages"][2]["tool_calls"][0]["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
    let unsigned = |b: &mut Value| remove(&mut b["messages"][2]["tool_calls"][0], "extra_content");
    let rows: &[Row] = &[("a first call without a signature", unsigned, "missing a thought_signature")];
    check(&body, |body| validate(body, Server::Google), rows);
}

#[test]
fn each_broken_rule_of_a_template_is_seen() {
    let twice = |b: &mut Value| list(&mut b["messages"]).push(json!({"role": "user", "content": "u"}));
    let rows: &[Row] = &[("two of a person in a row", twice, "roles must alternate")];
    check(&valid(), |body| validate(body, Server::Template), rows);
}
