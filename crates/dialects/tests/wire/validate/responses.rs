//! OpenAI Responses, asked without anything stored on the other side.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::chat::is_reasoning_model;
use super::check::{At, Findings, IMAGES, Web, is_word};
use super::schema;

/// Items that only their maker understands, kept and sent back unchanged.
const OPAQUE: [&str; 27] = [
    "custom_tool_call",
    "custom_tool_call_output",
    "compaction",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "computer_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
    "configuration_update",
    "program",
    "program_output",
    "compaction_trigger",
    "tool_search_call_output",
];

/// What the server would refuse.
pub(crate) fn validate(body: &Value) -> Vec<String> {
    let mut found = Findings::default();
    let at = At::root(body);
    top(&mut found, &at);
    tools(&mut found, &at);
    if let Some(input) = at.key("input")
        && !input.value.is_string()
    {
        found.list(&input);
        // Items that the other side keeps may be referred to, and answered.
        let is_stateless = !at.has("previous_response_id") && !at.has("conversation");
        items(&mut found, &input, is_stateless, body["store"] == false);
    }
    found.0
}

fn top(found: &mut Findings, at: &At<'_, '_>) {
    const KEYS: [&str; 28] = [
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tool_calls",
        "max_output_tokens",
        "reasoning",
        "text",
        "include",
        "store",
        "previous_response_id",
        "conversation",
        "truncation",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "top_logprobs",
        "metadata",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_options",
        "background",
        "context_management",
        "user",
        "prompt",
        "moderation",
    ];
    found.keys(at, &["model", "input"], &KEYS);
    found.filled_of(at, "model");
    if at.has("instructions") {
        found.text_of(at, "instructions");
    }
    for key in ["stream", "store", "parallel_tool_calls", "background"] {
        found.boolean(at, key);
    }
    found.integer(at, "max_output_tokens", 16);
    found.number(at, "temperature", 0.0, 2.0);
    found.number(at, "top_p", 0.0, 1.0);
    found.word_of(at, "truncation", &["disabled", "auto"]);
    if let Some(at) = at.set("reasoning") {
        found.keys(&at, &[], &["effort", "summary", "context", "mode"]);
        found.word_of(&at, "effort", &["none", "minimal", "low", "medium", "high", "xhigh", "max"]);
        found.word_of(&at, "summary", &["auto", "concise", "detailed"]);
    }
    if let Some(at) = at.key("include") {
        found.each_filled(&at);
    }
    let is_stream = at.value["stream"] == true;
    if let Some(at) = at.key("stream_options") {
        found.keys(&at, &[], &["include_obfuscation"]);
        found.demand(&at, is_stream, "`stream_options` without `stream`");
    }
    if is_reasoning_model(at.str_of("model")) && at.value["reasoning"]["effort"] != "none" {
        for key in ["temperature", "top_p", "top_logprobs"] {
            found.demand(at, !at.has(key), format_args!("`{key}` is refused by reasoning models"));
        }
    }
    let Some(at) = at.key("text") else { return };
    found.keys(&at, &[], &["format", "verbosity"]);
    found.word_of(&at, "verbosity", &["low", "medium", "high"]);
    if let Some(at) = at.key("format") {
        found.word_of(&at, "type", &["text", "json_object", "json_schema"]);
        if at.str_of("type") == "json_schema" {
            found.keys(&at, &["type", "name", "schema"], &["strict", "description"]);
            found.tool_name_of(&at, "name");
            if let Some(schema) = at.key("schema").filter(|_| at.value["strict"] == true) {
                schema::openai_strict(found, &schema);
            }
        }
    }
}

fn tools(found: &mut Findings, at: &At<'_, '_>) {
    let Some(list) = at.key("tools") else {
        for key in ["tool_choice", "parallel_tool_calls"] {
            found.demand(at, at.key(key).is_none(), format_args!("`{key}` without `tools`"));
        }
        return;
    };
    found.list(&list);
    let mut names = HashSet::new();
    for tool in list.items() {
        match tool.str_of("type") {
            "function" => {
                found.keys(&tool, &["type", "name", "parameters", "strict"], &["description"]);
                if let Some(at) = tool.key("name") {
                    found.tool_name(&at);
                    found.unique(&at, &mut names, "the tool");
                }
                if let Some(at) = tool.key("strict") {
                    found.demand(&at, at.value.is_boolean() || at.value.is_null(), "true or false is expected");
                }
                let Some(at) = tool.set("parameters") else { continue };
                schema::parameters(found, &at);
                if tool.value["strict"] == true {
                    schema::openai_strict(found, &at);
                }
            }
            "" => found.refuse(&tool, "`type` is missing"),
            // The provider's own tools.
            _ => {}
        }
    }
    if let Some(at) = at.key("tool_choice") {
        match at.value {
            Value::String(_) => found.word(&at, &["none", "auto", "required"]),
            _ => match at.str_of("type") {
                "function" => {
                    found.keys(&at, &["type", "name"], &[]);
                    let name = at.str_of("name");
                    found.demand(&at, names.contains(name), format_args!("there is no tool `{name}`"));
                }
                "allowed_tools" => {
                    found.keys(&at, &["type", "mode", "tools"], &[]);
                    found.word_of(&at, "mode", &["auto", "required"]);
                    for tool in at.key("tools").iter().flat_map(At::items) {
                        let name = tool.str_of("name");
                        found.demand(&tool, names.contains(name), format_args!("there is no tool `{name}`"));
                    }
                }
                "custom" | "mcp" => {}
                other => found.refuse(&at, format_args!("unknown choice `{other}`")),
            },
        }
    }
}

fn items(found: &mut Findings, at: &At<'_, '_>, is_stateless: bool, is_not_stored: bool) {
    let mut ids = HashSet::new();
    // Whether each call has its output.
    let mut calls: HashMap<&str, bool> = HashMap::new();
    let list: Vec<_> = at.items().collect();
    for (item, place) in list.iter().zip(1..) {
        if let Some(at) = item.set("id") {
            found.spelled(&at, 64, "item id", is_word);
            found.unique(&at, &mut ids, "the item");
        }
        let kind = if item.has("type") { item.str_of("type") } else { "message" };
        match kind {
            "message" => message(found, item),
            "reasoning" => {
                found.keys(item, &["type", "id", "summary"], &["content", "encrypted_content", "status"]);
                prefix(found, item, "rs_");
                reasoning(found, item, is_not_stored);
                let next = list.get(place).map_or("", |next| if next.has("type") { next.str_of("type") } else { "message" });
                let is_followed = match next {
                    "" | "function_call_output" | "custom_tool_call_output" => false,
                    "message" => list.get(place).is_some_and(|next| next.str_of("role") == "assistant"),
                    _ => true,
                };
                found.demand(item, is_followed, "of type 'reasoning' was provided without its required following item");
            }
            "function_call" => {
                found.keys(item, &["type", "call_id", "name", "arguments"], &["id", "status", "namespace", "caller"]);
                prefix(found, item, "fc_");
                found.word_of(item, "status", &["completed", "incomplete", "in_progress"]);
                found.tool_name_of(item, "name");
                item.key("arguments").iter().for_each(|at| found.arguments(at));
                if let Some(at) = item.key("call_id") {
                    let id = found.filled(&at);
                    found.demand(&at, id.len() <= 64, "a call id has at most 64 characters");
                    found.demand(&at, calls.insert(id, false).is_none(), format_args!("the call `{id}` is there twice"));
                }
            }
            "function_call_output" => {
                found.keys(item, &["type", "call_id", "output"], &["id", "status"]);
                let id = item.str_of("call_id");
                match calls.get_mut(id) {
                    Some(is_answered) => {
                        found.demand(item, !*is_answered, format_args!("the call `{id}` is answered twice"));
                        *is_answered = true;
                    }
                    None => found.demand(
                        item,
                        !is_stateless,
                        format_args!("No tool call found for function call output with call_id {id}"),
                    ),
                }
                if let Some(at) = item.key("output") {
                    parts(found, &at, &["input_text", "input_image", "input_file"]);
                }
            }
            "item_reference" => {
                found.demand(item, !(is_stateless && is_not_stored), "nothing is stored that could be referred to");
            }
            other => found.demand(item, OPAQUE.contains(&other), format_args!("unknown kind of item `{other}`")),
        }
    }
    let mut open: Vec<&str> = calls.into_iter().filter(|(_, is_answered)| !is_answered).map(|(id, _)| id).collect();
    open.sort_unstable();
    found.demand(at, open.is_empty(), format_args!("No tool output found for function call {}", open.join(", ")));
}

fn prefix(found: &mut Findings, item: &At<'_, '_>, prefix: &str) {
    if let Some(at) = item.set("id") {
        let fits = at.str().is_some_and(|id| id.starts_with(prefix));
        found.demand(&at, fits, format_args!("the id does not begin with `{prefix}`"));
    }
}

fn reasoning(found: &mut Findings, item: &At<'_, '_>, is_not_stored: bool) {
    if is_not_stored {
        let has_either = item.has("encrypted_content") || item.has("content");
        found.demand(item, has_either, "nothing is stored, and there is no encrypted content");
    }
    if let Some(at) = item.key("summary") {
        found.demand(&at, at.value.is_array(), "a list is expected");
        for part in at.items() {
            found.keys(&part, &["type", "text"], &[]);
            found.word_of(&part, "type", &["summary_text"]);
        }
    }
    if let Some(at) = item.set("content") {
        for part in at.items() {
            found.keys(&part, &["type", "text"], &[]);
            found.word_of(&part, "type", &["reasoning_text", "text"]);
        }
    }
}

fn message(found: &mut Findings, item: &At<'_, '_>) {
    found.keys(item, &["role", "content"], &["type", "id", "status", "phase"]);
    let role = item.str_of("role");
    let Some(content) = item.key("content") else { return };
    match role {
        "user" | "system" | "developer" => parts(found, &content, &["input_text", "input_image", "input_file"]),
        "assistant" => {
            prefix(found, item, "msg_");
            found.word_of(item, "phase", &["commentary", "final_answer"]);
            found.word_of(item, "status", &["completed", "incomplete", "in_progress"]);
            parts(found, &content, &["output_text", "refusal"]);
        }
        other => found.refuse(item, format_args!("unknown role `{other}`")),
    }
}

fn parts(found: &mut Findings, at: &At<'_, '_>, kinds: &[&str]) {
    if at.value.is_string() {
        return;
    }
    found.list(at);
    for part in at.items() {
        found.word_of(&part, "type", kinds);
        match part.str_of("type") {
            "input_text" => {
                found.keys(&part, &["type", "text"], &["prompt_cache_breakpoint"]);
                found.text_of(&part, "text");
            }
            "output_text" => {
                found.keys(&part, &["type", "text"], &["annotations", "logprobs"]);
                found.text_of(&part, "text");
            }
            "refusal" => found.keys(&part, &["type", "refusal"], &[]),
            "input_image" => {
                found.keys(&part, &["type"], &["image_url", "file_id", "detail"]);
                found.word_of(&part, "detail", &["auto", "low", "high", "original"]);
                found.demand(&part, part.has("image_url") != part.has("file_id"), "one of `image_url` and `file_id`");
                part.set("image_url").iter().for_each(|at| found.data_url(at, &IMAGES, Web::Allowed));
            }
            "input_file" => {
                found.keys(&part, &["type"], &["file_data", "filename", "file_id", "file_url", "detail"]);
                let sources = ["file_data", "file_id", "file_url"].iter().filter(|key| part.has(key)).count();
                found.demand(&part, sources == 1, "one of `file_data`, `file_id` and `file_url`");
                if let Some(at) = part.set("file_data") {
                    found.data_url(&at, &["application/pdf"], Web::Refused);
                    found.demand(&part, part.has("filename"), "`filename` is missing");
                }
            }
            "" => found.refuse(&part, "`type` is missing"),
            _ => {}
        }
    }
}
