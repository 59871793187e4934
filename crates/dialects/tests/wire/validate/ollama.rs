//! Ollama's own `/api/chat`.

use std::collections::HashSet;

use serde_json::Value;

use super::check::{At, Findings};
use super::schema;

/// What the server would refuse or read wrongly.
pub(crate) fn validate(body: &Value) -> Vec<String> {
    let mut found = Findings::default();
    let at = At::root(body);
    let keys = ["stream", "tools", "think", "format", "options", "keep_alive", "logprobs", "top_logprobs", "truncate", "shift"];
    found.keys(&at, &["model", "messages"], &keys);
    found.filled_of(&at, "model");
    found.boolean(&at, "stream");
    if let Some(at) = at.key("think") {
        found.demand(
            &at,
            at.value.is_boolean() || matches!(at.str(), Some("low" | "medium" | "high")),
            "true, false or a level",
        );
    }
    if let Some(at) = at.key("format") {
        found.demand(&at, at.value.is_object() || at.str() == Some("json"), "`json` or a schema");
    }
    if let Some(at) = at.key("keep_alive") {
        found.demand(&at, at.value.is_string() || at.value.is_number(), "a duration");
    }
    if let Some(at) = at.key("options") {
        let keys = [
            "num_ctx",
            "temperature",
            "top_p",
            "top_k",
            "seed",
            "num_predict",
            "stop",
            "min_p",
            "repeat_penalty",
            "presence_penalty",
            "frequency_penalty",
        ];
        found.keys(&at, &[], &keys);
        found.integer(&at, "num_ctx", 1);
        found.integer(&at, "num_predict", -2);
        found.number(&at, "temperature", 0.0, 2.0);
    }
    if let Some(at) = at.key("tools") {
        tools(&mut found, &at);
    }
    if let Some(at) = at.key("messages") {
        found.list(&at);
        messages(&mut found, &at);
    }
    found.0
}

fn tools(found: &mut Findings, at: &At<'_, '_>) {
    found.list(at);
    let mut names = HashSet::new();
    for tool in at.items() {
        found.keys(&tool, &["type", "function"], &[]);
        found.word_of(&tool, "type", &["function"]);
        let Some(at) = tool.key("function") else { continue };
        found.keys(&at, &["name", "parameters"], &["description"]);
        if let Some(at) = at.key("name") {
            found.tool_name(&at);
            found.unique(&at, &mut names, "the tool");
        }
        at.key("parameters").iter().for_each(|at| schema::parameters(found, at));
    }
}

fn messages(found: &mut Findings, at: &At<'_, '_>) {
    // Name and id of the calls that wait for their result, in order: results are matched by it.
    let mut due: Vec<(&str, Option<&str>)> = Vec::new();
    for message in at.items() {
        let role = message.str_of("role");
        if role != "tool" {
            found.demand(&message, due.is_empty(), "calls of the message before have no result");
            due.clear();
        }
        match role {
            "system" => found.keys(&message, &["role", "content"], &[]),
            "user" => found.keys(&message, &["role", "content"], &["images"]),
            "assistant" => {
                found.keys(&message, &["role", "content"], &["thinking", "images", "tool_calls"]);
                assistant(found, &message, &mut due);
            }
            "tool" => {
                found.keys(&message, &["role", "content", "tool_name"], &["tool_call_id", "images"]);
                if due.is_empty() {
                    found.refuse(&message, "a result without a call");
                } else {
                    let (name, id) = due.remove(0);
                    found.demand(
                        &message,
                        message.str_of("tool_name") == name,
                        format_args!("the call at this place is `{name}`"),
                    );
                    let given = message.key("tool_call_id").and_then(|id| id.str());
                    found.demand(&message, given.is_none() || given == id, format_args!("the call's id is {id:?}"));
                }
            }
            other => found.refuse(&message, format_args!("unknown role `{other}`")),
        }
        found.text_of(&message, "content");
        if let Some(at) = message.key("images") {
            found.list(&at);
            at.items().for_each(|at| found.base64(&at));
        }
    }
    found.demand(at, due.is_empty(), "the calls at the end have no result");
}

fn assistant<'v>(found: &mut Findings, message: &At<'_, 'v>, due: &mut Vec<(&'v str, Option<&'v str>)>) {
    if let Some(at) = message.key("thinking") {
        found.text(&at);
    }
    let Some(calls) = message.key("tool_calls") else {
        return found.demand(message, !message.str_of("content").is_empty() || message.has("thinking"), "nothing is said");
    };
    found.list(&calls);
    for call in calls.items() {
        found.keys(&call, &["function"], &["id", "type"]);
        let Some(at) = call.key("function") else { continue };
        found.keys(&at, &["name", "arguments"], &["index"]);
        let name = at.key("name").map(|at| found.tool_name(&at)).unwrap_or_default();
        if let Some(at) = at.key("arguments") {
            found.demand(&at, at.value.is_object(), "the arguments are an object");
        }
        due.push((name, call.value["id"].as_str()));
    }
}
