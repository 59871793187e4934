//! Recorded requests, read into our model and built again, ask the same.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, ContentBlock, EmbeddedResource, Outcome, OutputFormat, OutputSchema,
    ReasoningEffort, ToolCall, ToolChoice, ToolErrorKind, ToolResult, TurnSettings, UserMessage,
};

use super::native;
use super::request::{Ask, answer, asks, message, origin, says, seq, user};
use crate::recordings::cases_of;
use crate::support::tool;

/// What we ask otherwise than the recorded client, and why: a part of the case's name, the member that differs, the reason.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("computer-use", "tools", "the provider's own tools are not offered"),
    ("web-search", "tools", "as above"),
    ("sonnet-4-thinking", "thinking", "a word of effort has a budget of its own"),
    ("computer-use-1", "choice", "where no tool is offered none can be called"),
    ("redacted-thinking-roundtrip", "thinking", "the model finds out by itself how much to think"),
    ("redacted-thinking-roundtrip", "form", "a word of effort steers it"),
    ("test-tools-1", "messages", "text of white space alone is refused"),
    ("tool-choice-matrix-tools-plus-output-anthropic-1", "choice", "a demand is met by the first calls after a question"),
    ("vision-models", "messages", "an image by its address is text: nobody fetches it for a model"),
];

enum Turn {
    User(UserMessage),
    Model(AssistantMessage),
    Results(Vec<ToolResult>),
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A block without the client's marks.
fn unmarked(block: &Value) -> Value {
    let mut block = block.clone();
    block.as_object_mut().unwrap().remove("cache_control");
    block
}

/// The blocks of a content, which may be a text.
fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        content => list(content).map(unmarked).collect(),
    }
}

fn said(block: &Value) -> ContentBlock {
    let source = &block["source"];
    match block["type"].as_str().unwrap() {
        "image" => ContentBlock::Image { data: string(&source["data"]), mime_type: string(&source["media_type"]) },
        "document" => ContentBlock::Resource {
            resource: EmbeddedResource {
                uri: string(&block["title"]),
                mime_type: Some(string(&source["media_type"])),
                text: None,
                blob: Some(string(&source["data"])),
            },
        },
        _ => ContentBlock::text(string(&block["text"])),
    }
}

fn block(block: &Value) -> AssistantBlock {
    match block["type"].as_str().unwrap() {
        "text" => AssistantBlock::Text { text: string(&block["text"]), native: None },
        "tool_use" => AssistantBlock::Call(ToolCall {
            name: string(&block["name"]),
            arguments: block["input"].to_string(),
            provider_id: block["id"].as_str().map(str::to_owned),
            native: None,
            recovered: false,
        }),
        _ => AssistantBlock::Opaque { native: native(&block.to_string()) },
    }
}

fn result(block: &Value, message: u64, index: u32) -> ToolResult {
    let is_error = block["is_error"] == true;
    let outcome = if is_error { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success };
    let id = CallId { message: seq(message), index };
    ToolResult { content: blocks(&block["content"]).iter().map(said).collect(), ..ToolResult::of(id, outcome, "") }
}

fn turns(body: &Value, model: &str) -> Vec<Turn> {
    let mut turns = Vec::new();
    for message in list(&body["messages"]) {
        let content = blocks(&message["content"]);
        let place = u64::try_from(turns.len()).unwrap();
        if message["role"] == "assistant" {
            let blocks = content.iter().map(block).collect();
            turns.push(Turn::Model(AssistantMessage { origin: origin(model), ..says(blocks) }));
            continue;
        }
        let (results, rest): (Vec<&Value>, Vec<&Value>) = content.iter().partition(|block| block["type"] == "tool_result");
        if !results.is_empty() {
            turns.push(Turn::Results(results.iter().zip(0..).map(|(block, index)| result(block, place, index)).collect()));
        }
        if !rest.is_empty() {
            turns.push(Turn::User(user(rest.into_iter().map(said).collect())));
        }
    }
    turns
}

fn prompt_messages(turns: &[Turn]) -> Vec<PromptMessage<'_>> {
    let mut calls: Vec<&ToolCall> = Vec::new();
    let mut messages = Vec::new();
    for (turn, place) in turns.iter().zip(1..) {
        messages.push(match turn {
            Turn::User(said) => message(place, said),
            Turn::Model(said) => {
                calls = said.calls().collect();
                answer(place, said)
            }
            Turn::Results(results) => {
                assert_eq!(results.len(), calls.len());
                let all = results.iter().zip(&calls).map(|(result, call)| PromptResult {
                    id: result.call,
                    call,
                    result: ShownResult::from(result),
                    edit: None,
                    nudge: None,
                });
                PromptMessage::Results(all.collect())
            }
        });
    }
    messages
}

fn settings(body: &Value) -> TurnSettings {
    let mut settings = asks("").settings;
    let system: Vec<String> = blocks(&body["system"]).iter().map(|block| string(&block["text"])).collect();
    settings.system_prompt = (!system.is_empty()).then(|| system.concat());
    settings.temperature = body["temperature"].as_f64();
    settings.max_output_tokens = body["max_tokens"].as_u64().map(|tokens| tokens.try_into().unwrap());
    settings.reasoning_effort = match body["thinking"]["budget_tokens"].as_u64() {
        Some(1024) => Some(ReasoningEffort::Minimal),
        Some(_) => Some(ReasoningEffort::Low),
        None => None,
    };
    let schema = form(body)["schema"].clone();
    settings.output =
        schema.is_object().then(|| OutputFormat::Schema(OutputSchema { name: "answer".to_owned(), schema, strict: true }));
    if body["tool_choice"]["type"] == "any" {
        settings.tool_choice = Some(ToolChoice::Required);
    }
    settings
}

/// The form of an answer, under its name or its older one.
fn form(body: &Value) -> Value {
    body["output_config"].get("format").or_else(|| body.get("output_format")).cloned().unwrap_or_default()
}

/// What a body asks, without what is only another way to write it: a text for a list of one, marks for the cache, what a
/// schema says of itself, and settings at their defaults.
fn asked(body: &Value) -> Value {
    let block = |block: &Value| {
        let mut block = unmarked(block);
        if block["type"] == "tool_result" {
            block["content"] = Value::Array(blocks(&block["content"]));
            block["is_error"] = Value::from(block["is_error"] == true);
        }
        block
    };
    let message = |message: &Value| json!([message["role"], blocks(&message["content"]).iter().map(block).collect::<Vec<_>>()]);
    let tool = |tool: &Value| {
        let mut tool = unmarked(tool);
        tool["description"] = Value::from(string(&tool["description"]));
        if let Some(schema) = tool["input_schema"].as_object_mut() {
            schema.remove("$schema");
            schema.retain(|key, value| key != "required" || *value != json!([]));
        }
        tool
    };
    let choice = match body["tool_choice"]["type"].as_str() {
        None | Some("auto") => Value::Null,
        Some(_) => body["tool_choice"].clone(),
    };
    json!({
        "system": blocks(&body["system"]),
        "messages": list(&body["messages"]).map(message).collect::<Vec<_>>(),
        "tools": list(&body["tools"]).map(tool).collect::<Vec<_>>(),
        "choice": choice,
        "max_tokens": body["max_tokens"],
        "thinking": body["thinking"],
        "temperature": body["temperature"].as_f64(),
        "form": [body["output_config"]["effort"], form(body)],
    })
}

#[test]
fn a_recorded_request_read_and_built_again_asks_the_same() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    let mut used = vec![false; DIFFERENCES.len()];
    for case in cases_of("anthropic-messages").iter().filter(|case| case.request.is_object()) {
        let turns = turns(&case.request, &case.model);
        let mut ask = Ask::new(prompt_messages(&turns));
        ask.model = case.request["model"].as_str().unwrap_or(&case.model).to_owned();
        ask.settings = settings(&case.request);
        let own = list(&case.request["tools"]).filter(|tool| tool["input_schema"].is_object()).map(|recorded| {
            let mut tool = Arc::unwrap_or_clone(tool(recorded["name"].as_str().unwrap(), recorded["input_schema"].clone()));
            tool.description = string(&recorded["description"]);
            Arc::new(tool)
        });
        ask.tools = own.collect();
        let (mut ours, mut theirs) = (asked(&ask.body()), asked(&case.request));
        for ((_, member, _), used) in DIFFERENCES.iter().zip(&mut used).filter(|((part, ..), _)| case.name.contains(part)) {
            let (ours, theirs) = (ours[*member].take(), theirs[*member].take());
            *used |= ours != theirs;
        }
        for (member, ours) in ours.as_object().unwrap() {
            if *ours != theirs[member] {
                wrong.push(format!("{}: {member}\n  ours   {ours}\n  theirs {}", case.name, theirs[member]));
            }
        }
        compared += 1;
    }
    println!("{compared} requests were compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unused: Vec<_> = DIFFERENCES.iter().zip(&used).filter(|(_, used)| !**used).collect();
    assert!(compared == 0 || unused.is_empty(), "no such difference: {unused:?}");
}
