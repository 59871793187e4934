//! Anthropic Messages.

use std::collections::HashSet;

use serde_json::Value;

use super::check::{At, Findings, IMAGES, is_base64, is_word, sniffed};
use super::schema;

/// Blocks that only their maker understands, kept and sent back unchanged.
const OPAQUE: [&str; 13] = [
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "container_upload",
    "mcp_tool_use",
    "mcp_tool_result",
    "compaction",
    "fallback",
    "advisor_tool_result",
];

/// What the server would refuse.
pub(crate) fn validate(body: &Value) -> Vec<String> {
    let mut found = Findings::default();
    let at = At::root(body);
    let mut cache = Cache::default();
    top(&mut found, &at);
    if let Some(at) = at.key("tools") {
        tools(&mut found, &at, &mut cache);
    }
    choice(&mut found, &at);
    if let Some(at) = at.key("system")
        && !at.value.is_string()
    {
        for block in at.items() {
            text_block(&mut found, &block);
            cache.mark(&mut found, &block);
        }
    }
    if let Some(messages_at) = at.key("messages") {
        found.list(&messages_at);
        messages(&mut found, &messages_at, &mut cache, at.has("tools"));
        thinking_of_the_last_step(&mut found, &at, &messages_at);
    }
    cache.mark(&mut found, &at);
    found.demand(&at, cache.marks <= 4, format_args!("a maximum of 4 blocks with cache_control, found {}", cache.marks));
    found.0
}

/// The cache breakpoints, in the order of the cached prefix.
#[derive(Default)]
struct Cache {
    marks: usize,
    has_short: bool,
}

impl Cache {
    fn mark(&mut self, found: &mut Findings, holder: &At<'_, '_>) {
        let Some(at) = holder.set("cache_control") else { return };
        found.keys(&at, &["type"], &["ttl"]);
        found.word_of(&at, "type", &["ephemeral"]);
        found.word_of(&at, "ttl", &["5m", "1h"]);
        self.marks += 1;
        let is_long = at.str_of("ttl") == "1h";
        found.demand(&at, !(is_long && self.has_short), "a ttl of 1h after one of 5m");
        self.has_short |= !is_long;
    }
}

fn top(found: &mut Findings, at: &At<'_, '_>) {
    const KEYS: [&str; 18] = [
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
        "stop_sequences",
        "stream",
        "metadata",
        "service_tier",
        "speed",
        "temperature",
        "top_p",
        "top_k",
        "container",
        "context_management",
        "mcp_servers",
        "inference_geo",
    ];
    found.keys(at, &["model", "max_tokens", "messages"], &KEYS);
    found.filled_of(at, "model");
    found.integer(at, "max_tokens", 1);
    found.integer(at, "top_k", 0);
    found.number(at, "temperature", 0.0, 1.0);
    found.number(at, "top_p", 0.0, 1.0);
    found.boolean(at, "stream");
    let most = at.value["max_tokens"].as_i64().unwrap_or(i64::MAX);
    let thinks = match at.key("thinking") {
        None => false,
        Some(at) => {
            found.word_of(&at, "type", &["adaptive", "enabled", "disabled", "between_tools"]);
            found.word_of(&at, "display", &["summarized", "omitted"]);
            if at.str_of("type") == "enabled" {
                found.keys(&at, &["type", "budget_tokens"], &["display"]);
                found.integer(&at, "budget_tokens", 1024);
                let fits = at.value["budget_tokens"].as_i64().is_some_and(|budget| budget < most);
                found.demand(&at, fits, "`max_tokens` must be greater than `thinking.budget_tokens`");
            } else {
                found.keys(&at, &["type"], &["display"]);
            }
            matches!(at.str_of("type"), "adaptive" | "enabled")
        }
    };
    if thinks {
        for key in ["temperature", "top_k"] {
            found.demand(at, !at.has(key), format_args!("`{key}` may not be set when thinking is on"));
        }
        found.number(at, "top_p", 0.95, 1.0);
    }
    let model = at.str_of("model");
    if NO_SAMPLING.iter().any(|part| model.contains(part)) {
        for key in ["temperature", "top_p", "top_k"] {
            found.demand(at, !at.has(key), format_args!("`{key}` is not taken by this model"));
        }
    }
    if let Some(at) = at.key("output_config") {
        found.keys(&at, &[], &["effort", "format"]);
        found.word_of(&at, "effort", &["low", "medium", "high", "xhigh", "max"]);
        if let Some(at) = at.key("format") {
            found.keys(&at, &["type", "schema"], &[]);
            found.word_of(&at, "type", &["json_schema"]);
            at.key("schema").iter().for_each(|at| schema::anthropic_strict(found, at));
        }
    }
}

const NO_SAMPLING: [&str; 8] = ["sonnet-5-5", "opus-5-5", "fable-5", "haiku-5-5", "opus-5", "sonnet-5", "opus-4-8", "opus-4-7"];
const NO_FORCED_CHOICE: [&str; 3] = ["sonnet-5-5", "opus-5-5", "fable-5-1"];

fn tools(found: &mut Findings, at: &At<'_, '_>, cache: &mut Cache) {
    found.list(at);
    let mut names = HashSet::new();
    for tool in at.items() {
        cache.mark(found, &tool);
        if let Some(at) = tool.key("name") {
            found.tool_name(&at);
            found.unique(&at, &mut names, "the tool");
        }
        if !matches!(tool.str_of("type"), "" | "custom") {
            continue;
        }
        let optional =
            ["description", "cache_control", "strict", "eager_input_streaming", "input_examples", "defer_loading", "type"];
        found.keys(&tool, &["name", "input_schema"], &optional);
        let Some(at) = tool.key("input_schema") else { continue };
        schema::parameters(found, &at);
        for key in ["oneOf", "anyOf", "allOf"] {
            found.demand(&at, at.key(key).is_none(), "input_schema does not support oneOf, allOf, or anyOf at the top level");
        }
        if tool.value["strict"] == true {
            schema::anthropic_strict(found, &at);
        }
    }
}

fn choice(found: &mut Findings, at: &At<'_, '_>) {
    let Some(choice) = at.key("tool_choice") else { return };
    found.demand(&choice, at.has("tools"), "`tool_choice` without `tools`");
    found.word_of(&choice, "type", &["auto", "any", "tool", "none"]);
    let kind = choice.str_of("type");
    match kind {
        "tool" => {
            found.keys(&choice, &["type", "name"], &["disable_parallel_tool_use"]);
            let name = choice.str_of("name");
            let is_known = at.value["tools"].as_array().into_iter().flatten().any(|tool| tool["name"] == name);
            found.demand(&choice, is_known, format_args!("there is no tool `{name}`"));
        }
        "none" => found.keys(&choice, &["type"], &[]),
        _ => found.keys(&choice, &["type"], &["disable_parallel_tool_use"]),
    }
    if matches!(kind, "any" | "tool") {
        let thinks = matches!(at.value["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
        found.demand(&choice, !thinks, "thinking may not be on when the tool choice forces tool use");
        let model = at.str_of("model");
        let is_taken = !NO_FORCED_CHOICE.iter().any(|part| model.contains(part));
        found.demand(&choice, is_taken, "this model takes no forced tool choice");
    }
}

fn messages(found: &mut Findings, at: &At<'_, '_>, cache: &mut Cache, has_tools: bool) {
    let mut ids = HashSet::new();
    let mut due: Vec<&str> = Vec::new();
    let mut last = "";
    let count = at.items().count();
    for (message, place) in at.items().zip(1..) {
        found.keys(&message, &["role", "content"], &[]);
        let role = message.str_of("role");
        if last.is_empty() {
            found.demand(&message, role == "user", "the first message is of the user");
        }
        found.demand(&message, last != role, "two messages of the same role");
        let is_last = place == count;
        match role {
            "user" => user(found, &message, &mut due, cache, has_tools),
            "assistant" => {
                found.demand(&message, due.is_empty(), "tool_use ids without tool_result");
                due = assistant(found, &message, &mut ids, cache, has_tools, is_last);
            }
            other => found.refuse(&message, format_args!("unknown role `{other}`")),
        }
        last = role;
    }
    found.demand(
        at,
        due.is_empty(),
        format_args!("`tool_use` ids were found without `tool_result` blocks immediately after: {}", due.join(", ")),
    );
}

fn user<'v>(found: &mut Findings, message: &At<'_, 'v>, due: &mut Vec<&'v str>, cache: &mut Cache, has_tools: bool) {
    let Some(content) = message.key("content") else { return };
    if content.value.is_string() {
        plain(found, &content);
        found.demand(
            message,
            due.is_empty(),
            format_args!("`tool_use` ids were found without `tool_result` blocks immediately after: {}", due.join(", ")),
        );
        due.clear();
        return;
    }
    found.list(&content);
    let mut is_begin = true;
    for block in content.items() {
        cache.mark(found, &block);
        if block.str_of("type") == "tool_result" {
            found.demand(&block, is_begin, "a tool_result that does not stand at the beginning of the message");
            let id = block.str_of("tool_use_id");
            match due.iter().position(|due| *due == id) {
                Some(place) => drop(due.remove(place)),
                None => found.refuse(&block, format_args!("unexpected tool_use_id found in tool_result blocks: {id}")),
            }
            found.demand(&block, has_tools, "tool_result blocks and no `tools`");
            tool_result(found, &block, cache);
        } else {
            is_begin = false;
            input_block(found, &block);
        }
    }
    found.demand(
        message,
        due.is_empty(),
        format_args!("`tool_use` ids were found without `tool_result` blocks immediately after: {}", due.join(", ")),
    );
    due.clear();
}

fn tool_result(found: &mut Findings, block: &At<'_, '_>, cache: &mut Cache) {
    found.keys(block, &["type", "tool_use_id"], &["content", "is_error", "cache_control"]);
    found.boolean(block, "is_error");
    let is_error = block.value["is_error"] == true;
    match block.key("content") {
        None => found.demand(block, !is_error, "content cannot be empty if is_error is true"),
        Some(at) if at.value.is_string() => {
            found.demand(&at, !is_error || !found_text(&at).is_empty(), "content cannot be empty if is_error is true");
        }
        Some(at) => {
            found.list(&at);
            for inner in at.items() {
                cache.mark(found, &inner);
                input_block(found, &inner);
            }
        }
    }
}

fn found_text<'v>(at: &At<'_, 'v>) -> &'v str {
    at.str().unwrap_or_default().trim()
}

/// A text that stands for a whole message.
fn plain(found: &mut Findings, at: &At<'_, '_>) {
    found.demand(at, !found_text(at).is_empty(), "messages must have non-empty content");
}

fn text_block(found: &mut Findings, block: &At<'_, '_>) {
    found.keys(block, &["type", "text"], &["cache_control", "citations"]);
    found.word_of(block, "type", &["text"]);
    if let Some(at) = block.key("text") {
        found.text(&at);
        found.demand(&at, !found_text(&at).is_empty(), "text content blocks must be non-empty and contain non-whitespace text");
    }
}

fn input_block(found: &mut Findings, block: &At<'_, '_>) {
    match block.str_of("type") {
        "text" => text_block(found, block),
        "image" => {
            found.keys(block, &["type", "source"], &["cache_control"]);
            block.key("source").iter().for_each(|at| source(found, at, &IMAGES));
        }
        "document" => {
            found.keys(block, &["type", "source"], &["cache_control", "title", "context", "citations"]);
            block.key("source").iter().for_each(|at| source(found, at, &["application/pdf"]));
        }
        "search_result" | "tool_reference" | "container_upload" => {}
        other => found.refuse(block, format_args!("a block `{other}` cannot stand here")),
    }
}

fn source(found: &mut Findings, at: &At<'_, '_>, kinds: &[&str]) {
    match at.str_of("type") {
        "base64" => {
            found.keys(at, &["type", "media_type", "data"], &[]);
            found.word_of(at, "media_type", kinds);
            let Some(data) = at.key("data") else { return };
            let text = found.filled(&data);
            found.demand(&data, is_base64(text), "not standard base64");
            let fits = sniffed(text).is_none_or(|real| real == at.str_of("media_type"));
            found.demand(at, fits, "the bytes do not match the provided media type");
        }
        "url" => found.keys(at, &["type", "url"], &[]),
        "file" => found.keys(at, &["type", "file_id"], &[]),
        "text" if kinds.contains(&"application/pdf") => {
            found.keys(at, &["type", "media_type", "data"], &[]);
            found.word_of(at, "media_type", &["text/plain"]);
            found.filled_of(at, "data");
        }
        "content" if kinds.contains(&"application/pdf") => found.keys(at, &["type", "content"], &[]),
        other => found.refuse(at, format_args!("unknown kind of source `{other}`")),
    }
}

/// Gives the ids of its calls.
fn assistant<'v>(
    found: &mut Findings,
    message: &At<'_, 'v>,
    ids: &mut HashSet<&'v str>,
    cache: &mut Cache,
    has_tools: bool,
    is_last: bool,
) -> Vec<&'v str> {
    let mut calls = Vec::new();
    let Some(content) = message.key("content") else { return calls };
    if content.value.is_string() {
        plain(found, &content);
        found.demand(message, !is_last, "the conversation must end with a user message");
        return calls;
    }
    found.list(&content);
    let mut own = false;
    let mut newest = "";
    for block in content.items() {
        cache.mark(found, &block);
        newest = block.str_of("type");
        match newest {
            "text" => text_block(found, &block),
            "thinking" => {
                found.keys(&block, &["type", "thinking", "signature"], &[]);
                found.text_of(&block, "thinking");
                found.filled_of(&block, "signature");
            }
            "redacted_thinking" => {
                found.keys(&block, &["type", "data"], &[]);
                found.filled_of(&block, "data");
            }
            "tool_use" => {
                found.keys(&block, &["type", "id", "name", "input"], &["cache_control", "caller", "toolset_name"]);
                found.demand(&block, has_tools, "tool_use blocks and no `tools`");
                found.tool_name_of(&block, "name");
                if let Some(at) = block.key("input") {
                    found.demand(&at, at.value.is_object(), "input should be an object");
                }
                if let Some(at) = block.key("id") {
                    calls.push(found.spelled(&at, 64, "tool_use id", is_word));
                    found.unique(&at, ids, "tool_use ids must be unique:");
                }
            }
            other => {
                found.demand(&block, OPAQUE.contains(&other), format_args!("a block `{other}` cannot stand here"));
                own |= other == "server_tool_use";
            }
        }
    }
    let is_thought = matches!(newest, "thinking" | "redacted_thinking");
    found.demand(message, !is_thought, "the final block in an assistant message cannot be thinking");
    // After a pause of the provider's own tools it goes on by itself.
    found.demand(message, !is_last || own, "the conversation must end with a user message");
    calls
}

/// In a loop of tools the answer begins as it was given where thinking is on.
fn thinking_of_the_last_step(found: &mut Findings, at: &At<'_, '_>, messages: &At<'_, '_>) {
    if at.value["thinking"]["type"] != "enabled" {
        return;
    }
    let all: Vec<_> = messages.items().collect();
    let is_result = |block: &Value| block["type"] == "tool_result";
    let blocks = |message: &At<'_, '_>| message.value["content"].as_array().cloned().unwrap_or_default();
    let Some((last, earlier)) = all.split_last() else { return };
    if !blocks(last).first().is_some_and(is_result) {
        return;
    }
    // The answer goes on through messages that hold results alone.
    let begin = earlier.iter().rposition(|message| message.str_of("role") == "user" && !blocks(message).iter().all(is_result));
    let Some(first) = earlier.get(begin.map_or(0, |place| place + 1)) else { return };
    let kind = first.value["content"][0]["type"].as_str().unwrap_or_default().to_owned();
    let fits = matches!(kind.as_str(), "thinking" | "redacted_thinking");
    found.demand(first, fits, format_args!("Expected `thinking` or `redacted_thinking`, but found `{kind}`"));
}
