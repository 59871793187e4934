//! Recorded requests, read into our model and built again: they ask the same of the API.
//!
//! Allowed differences, which [`asked`] takes out on both sides:
//! - `type: "message"` and lists of one text part, where the recording has neither: short forms of the same.
//! - Messages of the roles `system` and `developer`: we send them as `instructions`.
//! - `include`, `store`, `stream`, `previous_response_id` and `prompt_cache_key`: we always ask for a stream, and for nothing
//!   to be kept.
//! - `tool_choice` of `auto`, `strict` of `false`, `detail` of `auto`, `null` for a description: what is meant without them.
//! - An empty list of required properties, which strict schemas must have.
//! - `reasoning.summary`: we always ask for one.
//! - A tool's schema and what it is lowered to.
//! - `parallel_tool_calls` and `allowed_tools`: a turn has no such settings.
//! - `status`, `annotations` and `logprobs` of items: they say nothing to the API.
//! - Call ids over 64 characters: they are replaced on call and result, and the call goes without the id of its item.
//! - An empty `content` of reasoning, which some clients leave out.
//! - Reasoning without encrypted content: with nothing kept on the other side it is refused or means nothing.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use turnwright_core::prompt::{PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, ContentBlock, EmbeddedResource, Outcome, OutputFormat, OutputSchema, ToolResult,
    UserMessage,
};
use turnwright_dialects::schema::{SchemaTarget, compile_or_any};

use super::ask::{Ask, decode_text, says, seq, settings, user};
use crate::recordings::{Case, cases_of, turns_of};
use crate::support::tool;

/// What somebody said, in our model.
enum Said {
    User(UserMessage),
    Model(AssistantMessage),
    /// By the provider's id of the call.
    Results(HashMap<String, Vec<ContentBlock>>),
}

fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or("message")
}

fn is_of_user(item: &Value) -> bool {
    kind(item) == "message" && item["role"] != "assistant"
}

fn is_output(item: &Value) -> bool {
    kind(item).ends_with("_output") && kind(item) != "shell_call_output"
}

/// Reads the input of a recorded request. What the model said is read by the decoder, as the response that it was.
fn read(input: &Value) -> Vec<Said> {
    let items = match input {
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        _ => input.as_array().unwrap().clone(),
    };
    let mut said: Vec<Said> = Vec::new();
    let mut of_model: Vec<Value> = Vec::new();
    for mut item in items {
        if is_of_user(&item) || is_output(&item) {
            if !of_model.is_empty() {
                said.push(Said::Model(answer(&std::mem::take(&mut of_model))));
            }
            if is_output(&item) {
                let id = item["call_id"].as_str().unwrap().to_owned();
                match said.last_mut() {
                    Some(Said::Results(results)) => drop(results.insert(id, blocks(&item["output"]))),
                    _ => said.push(Said::Results([(id, blocks(&item["output"]))].into())),
                }
            } else if item["role"] == "user" {
                said.push(Said::User(user(blocks(&item["content"]))));
            }
            continue;
        }
        if item.get("type").is_none() {
            item["type"] = json!("message");
        }
        if item["content"].is_string() {
            item["content"] = json!([{"type": "output_text", "text": item["content"]}]);
        }
        of_model.push(item);
    }
    if !of_model.is_empty() {
        said.push(Said::Model(answer(&of_model)));
    }
    said
}

fn answer(items: &[Value]) -> AssistantMessage {
    let decoded = decode_text(&json!({"status": "completed", "output": items}).to_string());
    assert_eq!(decoded.failure, None);
    says(decoded.message.blocks)
}

fn blocks(content: &Value) -> Vec<ContentBlock> {
    let Some(parts) = content.as_array() else { return vec![ContentBlock::text(content.as_str().unwrap())] };
    let data = |url: &Value| -> Option<(String, String)> {
        let (head, data) = url.as_str()?.strip_prefix("data:")?.split_once(";base64,")?;
        Some((head.to_owned(), data.to_owned()))
    };
    parts
        .iter()
        .map(|part| match (part["type"].as_str().unwrap(), data(&part["image_url"]), data(&part["file_data"])) {
            (_, Some((mime_type, data)), _) => ContentBlock::Image { data, mime_type },
            (_, _, Some((mime_type, data))) => ContentBlock::Resource {
                resource: EmbeddedResource {
                    uri: part["filename"].as_str().unwrap().to_owned(),
                    mime_type: Some(mime_type),
                    text: None,
                    blob: Some(data),
                },
            },
            _ => ContentBlock::text(part["text"].as_str().unwrap()),
        })
        .collect()
}

/// The request for what was said, with the settings of `recorded`.
fn build(said: &[Said], recorded: &Value) -> Value {
    let mut messages = Vec::new();
    let mut newest: Option<(u64, &AssistantMessage)> = None;
    for (said, number) in said.iter().zip(1..) {
        match said {
            Said::User(message) => messages.push(PromptMessage::User { seq: seq(number), message }),
            Said::Model(message) => {
                messages.push(PromptMessage::Assistant { seq: seq(number), message });
                newest = Some((number, message));
            }
            Said::Results(results) => {
                let (number, message) = newest.unwrap();
                let results = message.calls().zip(0..).map(|(call, index)| {
                    let id = CallId { message: seq(number), index };
                    let content = results[call.provider_id.as_deref().unwrap()].clone();
                    let result = ShownResult::from(ToolResult { content, ..ToolResult::of(id, Outcome::Success, "") });
                    PromptResult { id, call, result, edit: None, nudge: None }
                });
                messages.push(PromptMessage::Results(results.collect()));
            }
        }
    }
    let mut ask = Ask::new(messages);
    ask.settings = settings();
    let items = recorded["input"].as_array().into_iter().flatten();
    let instructions = items.filter(|item| matches!(item["role"].as_str(), Some("system" | "developer")));
    let instructions = instructions.flat_map(|item| blocks(&item["content"])).map(|block| block.as_text().into_owned()).next();
    ask.settings.system_prompt = instructions.or_else(|| recorded["instructions"].as_str().map(str::to_owned));
    ask.settings.max_output_tokens = recorded["max_output_tokens"].as_u64().map(|limit| u32::try_from(limit).unwrap());
    ask.settings.temperature = recorded["temperature"].as_f64();
    ask.settings.reasoning_effort = serde_json::from_value(recorded["reasoning"]["effort"].clone()).ok();
    ask.settings.tool_choice = recorded["tool_choice"].as_str().map(|word| serde_json::from_value(json!(word)).unwrap());
    let format = &recorded["text"]["format"];
    ask.settings.output = format["name"].as_str().map(|name| {
        OutputFormat::Schema(OutputSchema {
            name: name.to_owned(),
            schema: format["schema"].clone(),
            strict: format["strict"] == true,
        })
    });
    let tools = recorded["tools"].as_array().into_iter().flatten();
    let tools = tools.map(|given| {
        let mut made = (*tool(given["name"].as_str().unwrap(), given["parameters"].clone())).clone();
        made.description = given["description"].as_str().unwrap_or_default().to_owned();
        made.into()
    });
    ask.tools = tools.collect();
    ask.body()
}

/// What a request asks, without the allowed differences.
fn asked(body: &Value) -> Value {
    let mut asked: Map<String, Value> = body.as_object().unwrap().clone();
    for key in ["model", "include", "store", "stream", "previous_response_id", "prompt_cache_key", "parallel_tool_calls"] {
        asked.remove(key);
    }
    if asked.get("tool_choice").is_some_and(|choice| choice == "auto" || choice["type"] == "allowed_tools") {
        asked.remove("tool_choice");
    }
    if let Some(reasoning) = asked.get_mut("reasoning").and_then(Value::as_object_mut) {
        reasoning.remove("summary");
    }
    for tool in asked.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        let tool = tool.as_object_mut().unwrap();
        tool.remove("strict");
        if let Some(parameters) = tool.get_mut("parameters") {
            *parameters = compile_or_any(parameters, SchemaTarget::OpenAiStrict).schema;
        }
        tool.retain(|_, value| !value.is_null());
        if tool["parameters"]["required"] == json!([]) {
            tool["parameters"].as_object_mut().unwrap().remove("required");
        }
    }
    let input = match asked.remove("input") {
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        input => input.unwrap().as_array().unwrap().clone(),
    };
    let mut items = Vec::new();
    for item in input {
        if matches!(item["role"].as_str(), Some("system" | "developer")) {
            asked.insert("instructions".to_owned(), blocks(&item["content"])[0].as_text().into());
            continue;
        }
        items.extend(asked_item(&item));
    }
    asked.insert("input".to_owned(), items.into());
    Value::Object(asked)
}

fn asked_item(item: &Value) -> Option<Value> {
    if kind(item) == "reasoning" && item["encrypted_content"].as_str().is_none_or(str::is_empty) {
        return None;
    }
    let mut asked = item.as_object().unwrap().clone();
    asked.insert("type".to_owned(), kind(item).into());
    asked.retain(|key, value| key != "status" && !value.is_null() && *value != json!([]) || key == "summary");
    for key in ["content", "output"] {
        if let Some(text) = asked.get(key).and_then(Value::as_str) {
            asked.insert(key.to_owned(), json!([{"type": "text", "text": text}]));
        }
        for part in asked.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            let part = part.as_object_mut().unwrap();
            part.retain(|key, value| !matches!(key.as_str(), "annotations" | "logprobs") && value != "auto");
            if part.contains_key("text") {
                part.insert("type".to_owned(), json!("text"));
            }
        }
    }
    Some(Value::Object(asked))
}

/// An item without what ties it to its provider.
fn without_id(item: &Value) -> Value {
    let mut item = item.clone();
    item.as_object_mut().unwrap().retain(|key, _| !matches!(key.as_str(), "id" | "phase" | "item_id" | "output_index"));
    item
}

fn has_long_id(item: &Value) -> bool {
    item["call_id"].as_str().is_some_and(|id| id.len() > 64)
}

/// Items with their calls numbered.
fn numbered(items: &Value) -> Value {
    let mut ids: Vec<Value> = Vec::new();
    let items = items.as_array().unwrap().iter().map(|item| {
        let mut item = without_id(item);
        if let Some(id) = item.get("call_id").cloned() {
            let place = ids.iter().position(|known| *known == id).unwrap_or(ids.len());
            if place == ids.len() {
                ids.push(id);
            }
            item["call_id"] = place.into();
        }
        item
    });
    items.collect()
}

#[test]
fn every_recorded_request_is_built_again_from_our_model() {
    let cases = cases_of("openai-responses");
    let mut compared = 0;
    for case in cases.iter().filter(|case| case.status == 200 && !case.request.is_null()) {
        let tools = case.request["tools"].as_array().into_iter().flatten();
        // The other side keeps the rest of the conversation, or runs the tools.
        if !case.request["previous_response_id"].is_null() || tools.into_iter().any(|tool| tool["type"] != "function") {
            continue;
        }
        let built = build(&read(&case.request["input"]), &case.request);
        let (mut built, mut recorded) = (asked(&built), asked(&case.request));
        if case.request["input"].as_array().into_iter().flatten().any(has_long_id) {
            (built["input"], recorded["input"]) = (numbered(&built["input"]), numbered(&recorded["input"]));
        }
        assert_eq!(built, recorded, "{}", case.name);
        compared += 1;
    }
    assert!(cases.is_empty() || compared >= 30, "{compared} requests were compared");
}

#[test]
fn a_recorded_answer_and_its_results_are_the_next_request() {
    let cases = cases_of("openai-responses");
    let turns = turns_of("openai-responses");
    let mut compared = 0;
    for after in cases.iter().filter(|case| case.status == 200 && !case.request.is_null()) {
        let Some((conversation, turn)) = turns.get(&after.name) else { continue };
        let is_before = |case: &&Case| turns.get(&case.name).is_some_and(|(c, t)| c == conversation && t + 1 == *turn);
        let Some(before) = cases.iter().find(is_before) else { continue };
        // One client relied on what the provider keeps, one renamed the calls.
        if !after.request["previous_response_id"].is_null() || after.name.starts_with("bedrock-reused-tool-call-ids") {
            continue;
        }
        let answer = AssistantMessage { origin: says(Vec::new()).origin, ..before.answer() };
        let is_of_model = |said: &&mut Said| matches!(said, Said::Model(_));
        let spoken = read(&before.request["input"]).iter_mut().filter(is_of_model).count();
        let mut said = read(&after.request["input"]);
        let Some(Said::Model(sent)) = said.iter_mut().filter(is_of_model).nth(spoken) else { panic!("{}", after.name) };
        let is_reasoning =
            |block: &AssistantBlock| matches!(block, AssistantBlock::Reasoning { .. } | AssistantBlock::Opaque { .. });
        let is_with_reasoning = sent.blocks.iter().any(is_reasoning);
        *sent = answer;
        // Some recorded clients threw reasoning away.
        sent.blocks.retain(|block| is_with_reasoning || !is_reasoning(block));
        let built = build(&said, &after.request);
        let tail = |body: &Value| {
            let items: Vec<Value> = asked(body)["input"].as_array().unwrap().iter().map(without_id).collect();
            Value::from(items)
        };
        assert_eq!(tail(&built), tail(&after.request), "{}", after.name);
        compared += 1;
    }
    assert!(cases.is_empty() || compared >= 8, "{compared} conversations were compared");
}
