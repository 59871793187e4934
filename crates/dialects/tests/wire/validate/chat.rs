//! OpenAI Chat Completions, and the servers that follow it.

use std::collections::HashSet;

use serde_json::Value;

use super::check::{At, Findings, IMAGES, Web, is_word};
use super::schema;

/// Who reads the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// OpenAI itself: nothing unknown, ids of at most 40 characters.
    OpenAi,
    /// A compatible server: reasoning fields on assistant messages, parameters of its own.
    Compatible,
    /// Mistral: ids of nine letters and digits.
    Mistral,
    /// Kimi while it thinks: reasoning on every message with calls.
    Kimi,
    /// Perplexity: neither two of a person in a row, nor one behind results.
    Perplexity,
    /// A server of models whose chat templates refuse two of a person in a row.
    Template,
    /// Gemini from its third generation on: a signature on the first call of each message.
    Google,
}

/// What the server would refuse.
pub(crate) fn validate(body: &Value, server: Server) -> Vec<String> {
    let mut found = Findings::default();
    let at = At::root(body);
    top(&mut found, &at, server);
    tools(&mut found, &at);
    if let Some(at) = at.key("messages") {
        found.list(&at);
        messages(&mut found, &at, server);
    }
    found.0
}

fn top(found: &mut Findings, at: &At<'_, '_>, server: Server) {
    const KEYS: [&str; 35] = [
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "max_completion_tokens",
        "max_tokens",
        "reasoning_effort",
        "verbosity",
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "seed",
        "stop",
        "n",
        "stream",
        "stream_options",
        "store",
        "metadata",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "prediction",
        "modalities",
        "audio",
        "web_search_options",
        "moderation",
        "user",
        "prompt_cache_retention",
        "functions",
        "function_call",
    ];
    const VENDORS: [&str; 17] = [
        "thinking",
        "enable_thinking",
        "reasoning",
        "reasoning_format",
        "reasoning_split",
        "provider",
        "models",
        "transforms",
        "usage",
        "top_k",
        "min_p",
        "chat_template_kwargs",
        "structured_outputs",
        "random_seed",
        "safe_prompt",
        "prompt_mode",
        "plugins",
    ];
    let optional = if server == Server::OpenAi { KEYS.to_vec() } else { [&KEYS[..], &VENDORS[..]].concat() };
    found.keys(at, &["model", "messages"], &optional);
    if let Some(at) = at.key("model") {
        found.filled(&at);
    }
    found.integer(at, "max_tokens", 1);
    found.integer(at, "max_completion_tokens", 1);
    found.number(at, "temperature", 0.0, 2.0);
    found.number(at, "top_p", 0.0, 1.0);
    found.boolean(at, "stream");
    found.boolean(at, "parallel_tool_calls");
    found.word_of(at, "reasoning_effort", &["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
    found.word_of(at, "verbosity", &["low", "medium", "high"]);
    let is_stream = at.value["stream"] == true;
    if let Some(at) = at.key("stream_options") {
        found.keys(&at, &[], &["include_usage", "include_obfuscation"]);
        found.demand(&at, is_stream, "`stream_options` without `stream`");
    }
    if let Some(at) = at.key("stop") {
        found.demand(&at, at.value.is_string() || (1..=4).contains(&at.items().count()), "a text or up to four");
    }
    if server == Server::OpenAi && is_reasoning_model(at.str_of("model")) {
        found.demand(at, !at.has("max_tokens"), "`max_tokens` is refused by reasoning models");
        if at.str_of("reasoning_effort") != "none" {
            for key in ["temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "logit_bias"] {
                found.demand(at, !at.has(key), format_args!("`{key}` is refused by reasoning models"));
            }
        }
    }
    if let Some(at) = at.key("response_format") {
        found.word_of(&at, "type", &["text", "json_object", "json_schema"]);
        match at.key("json_schema") {
            Some(at) => {
                found.keys(&at, &["name"], &["description", "schema", "strict"]);
                if let Some(at) = at.key("name") {
                    found.tool_name(&at);
                }
                if let Some(schema) = at.key("schema").filter(|_| at.value["strict"] == true) {
                    schema::openai_strict(found, &schema);
                }
            }
            None => found.demand(&at, at.str_of("type") != "json_schema", "`json_schema` is missing"),
        }
    }
}

pub(crate) fn is_reasoning_model(model: &str) -> bool {
    let version = model.strip_prefix("gpt-").and_then(|rest| rest.split(['.', '-']).next());
    let is_o = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_o || version.and_then(|version| version.parse::<u32>().ok()).is_some_and(|version| version >= 5)
        && !model.contains("chat")
}

fn tools(found: &mut Findings, at: &At<'_, '_>) {
    let mut names = HashSet::new();
    let Some(list) = at.key("tools") else {
        for key in ["tool_choice", "parallel_tool_calls"] {
            found.demand(at, at.key(key).is_none(), format_args!("`{key}` without `tools`"));
        }
        return;
    };
    found.list(&list);
    for tool in list.items() {
        let kind = if tool.has("type") { tool.str_of("type") } else { "function" };
        match kind {
            "function" => {
                found.keys(&tool, &["function"], &["type"]);
                let Some(at) = tool.key("function") else { continue };
                found.keys(&at, &["name"], &["description", "parameters", "strict"]);
                if let Some(at) = at.key("name") {
                    found.tool_name(&at);
                    found.unique(&at, &mut names, "the tool");
                }
                if let Some(at) = at.key("parameters") {
                    schema::parameters(found, &at);
                }
                if let Some(schema) = at.key("parameters").filter(|_| at.value["strict"] == true) {
                    schema::openai_strict(found, &schema);
                }
            }
            "custom" => found.keys(&tool, &["type", "custom"], &[]),
            other => found.refuse(&tool, format_args!("unknown kind of tool `{other}`")),
        }
    }
    if let Some(at) = at.key("tool_choice") {
        match at.value {
            Value::String(_) => found.word(&at, &["none", "auto", "required", "any"]),
            _ => match at.str_of("type") {
                "function" => {
                    let name = at.value["function"]["name"].as_str().unwrap_or_default();
                    found.demand(&at, names.contains(name), format_args!("there is no tool `{name}`"));
                }
                "allowed_tools" => {
                    found.keys(&at, &["type", "allowed_tools"], &[]);
                    let Some(at) = at.key("allowed_tools") else { return };
                    found.keys(&at, &["mode", "tools"], &[]);
                    found.word_of(&at, "mode", &["auto", "required"]);
                    for tool in at.key("tools").iter().flat_map(At::items) {
                        let name = tool.value["function"]["name"].as_str().unwrap_or_default();
                        found.demand(&tool, names.contains(name), format_args!("there is no tool `{name}`"));
                    }
                }
                "custom" => found.keys(&at, &["type", "custom"], &[]),
                other => found.refuse(&at, format_args!("unknown choice `{other}`")),
            },
        }
    }
}

fn messages(found: &mut Findings, at: &At<'_, '_>, server: Server) {
    // The ids that wait for their result.
    let mut due: Vec<&str> = Vec::new();
    let mut last = "";
    for message in at.items() {
        let role = message.str_of("role");
        if role == "tool" {
            tool_message(found, &message, &mut due);
        } else {
            found.demand(
                &message,
                due.is_empty(),
                format_args!("these tool_call_ids did not have response messages: {}", due.join(", ")),
            );
            due.clear();
        }
        match role {
            "tool" => {}
            "system" | "developer" => {
                found.keys(&message, &["role", "content"], &["name"]);
                content(found, &message, &["text"]);
            }
            "user" => {
                found.keys(&message, &["role", "content"], &["name"]);
                let documents = if server == Server::Mistral { "document_url" } else { "file" };
                content(found, &message, &["text", "image_url", "input_audio", documents]);
            }
            "assistant" => assistant(found, &message, server, &mut due),
            other => found.refuse(&message, format_args!("unknown role `{other}`")),
        }
        if server == Server::Mistral && role == "user" {
            found.demand(&message, last != "tool", "unexpected role `user` after role `tool`");
        }
        if server == Server::Template && role == "user" {
            found.demand(&message, last != "user", "conversation roles must alternate");
        }
        if server == Server::Perplexity && role == "user" {
            found.demand(&message, !matches!(last, "user" | "tool"), "user or tool message(s) should alternate");
        }
        last = role;
    }
    found.demand(at, due.is_empty(), format_args!("these tool_call_ids did not have response messages: {}", due.join(", ")));
}

fn tool_message(found: &mut Findings, message: &At<'_, '_>, due: &mut Vec<&str>) {
    found.keys(message, &["role", "tool_call_id", "content"], &["name"]);
    let id = message.str_of("tool_call_id");
    match due.iter().position(|due| *due == id) {
        Some(place) => drop(due.remove(place)),
        None => found.refuse(message, format_args!("`{id}` answers no call of the message before")),
    }
    content(found, message, &["text"]);
}

fn assistant<'v>(found: &mut Findings, message: &At<'_, 'v>, server: Server, due: &mut Vec<&'v str>) {
    const REASONING: [&str; 5] = ["reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "prefix"];
    const KEYS: [&str; 6] = ["content", "refusal", "tool_calls", "name", "audio", "annotations"];
    let optional = if server == Server::OpenAi { KEYS.to_vec() } else { [&KEYS[..], &REASONING[..]].concat() };
    found.keys(message, &["role"], &optional);
    if message.has("content") {
        content(found, message, &["text", "refusal"]);
    } else {
        let has_more = message.has("tool_calls") || message.has("refusal") || message.has("audio");
        found.demand(message, has_more, "neither content nor calls");
    }
    if let Some(at) = message.set("refusal") {
        found.text(&at);
    }
    for key in ["reasoning", "reasoning_content", "reasoning_text"] {
        if let Some(at) = message.set(key) {
            found.text(&at);
        }
    }
    if let Some(at) = message.key("reasoning_details") {
        found.list(&at);
    }
    let Some(calls) = message.key("tool_calls") else { return };
    found.list(&calls);
    if server == Server::Kimi {
        let is_there = !message.str_of("reasoning_content").is_empty();
        found.demand(message, is_there, "thinking is enabled but reasoning_content is missing");
    }
    if server == Server::Google {
        let is_signed = calls.value[0]["extra_content"]["google"]["thought_signature"].is_string();
        found.demand(message, is_signed, "function call is missing a thought_signature");
    }
    let mut ids = HashSet::new();
    for call in calls.items() {
        let optional: &[&str] = if server == Server::OpenAi { &[] } else { &["index", "extra_content"] };
        found.keys(&call, &["id", "type", "function"], optional);
        found.word_of(&call, "type", &["function"]);
        if let Some(at) = call.key("id") {
            match server {
                Server::OpenAi => {
                    found.spelled(&at, 40, "call id of at most 40 characters", |b| is_word(b) || matches!(b, b'.' | b':'))
                }
                Server::Compatible | Server::Kimi | Server::Perplexity | Server::Template | Server::Google => found.filled(&at),
                Server::Mistral => {
                    found.demand(&at, at.str().is_some_and(|id| id.len() == 9), "a call id has a length of 9");
                    found.spelled(&at, 9, "call id of a-z, A-Z, 0-9", |byte| byte.is_ascii_alphanumeric())
                }
            };
            found.unique(&at, &mut ids, "the call");
            due.extend(at.str());
        }
        let Some(at) = call.key("function") else { continue };
        found.keys(&at, &["name", "arguments"], &[]);
        if let Some(at) = at.key("name") {
            found.tool_name(&at);
        }
        if let Some(at) = at.key("arguments") {
            found.arguments(&at);
        }
    }
}

fn content(found: &mut Findings, message: &At<'_, '_>, kinds: &[&str]) {
    let Some(at) = message.key("content") else { return };
    if at.value.is_string() {
        return;
    }
    found.list(&at);
    for part in at.items() {
        found.word_of(&part, "type", kinds);
        match part.str_of("type") {
            "text" => {
                found.keys(&part, &["type", "text"], &["prompt_cache_breakpoint", "cache_control"]);
                found.text_of(&part, "text");
            }
            "refusal" => found.keys(&part, &["type", "refusal"], &[]),
            "image_url" => {
                found.keys(&part, &["type", "image_url"], &[]);
                let Some(at) = part.key("image_url") else { continue };
                found.keys(&at, &["url"], &["detail"]);
                found.word_of(&at, "detail", &["auto", "low", "high", "original"]);
                at.key("url").iter().for_each(|at| found.data_url(at, &IMAGES, Web::Allowed));
            }
            "file" => {
                found.keys(&part, &["type", "file"], &[]);
                let Some(at) = part.key("file") else { continue };
                if at.has("file_id") {
                    continue;
                }
                found.keys(&at, &["file_data", "filename"], &[]);
                at.key("file_data").iter().for_each(|at| found.data_url(at, &["application/pdf"], Web::Refused));
            }
            "document_url" => {
                found.keys(&part, &["type", "document_url"], &["document_name"]);
                part.key("document_url").iter().for_each(|at| found.data_url(at, &["application/pdf"], Web::Allowed));
            }
            "input_audio" => {
                found.keys(&part, &["type", "input_audio"], &[]);
                let Some(at) = part.key("input_audio") else { continue };
                found.keys(&at, &["data", "format"], &[]);
                found.word_of(&at, "format", &["wav", "mp3"]);
                at.key("data").iter().for_each(|at| found.base64(at));
            }
            "" => found.refuse(&part, "`type` is missing"),
            _ => {}
        }
    }
}
