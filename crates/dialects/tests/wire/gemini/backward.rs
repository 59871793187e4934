//! Recorded requests, read into our model and built again, ask the same.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, ContentBlock, ModelRef, Outcome, OutputFormat, OutputSchema, ReasoningEffort,
    ToolCall, ToolChoice, ToolDefinition, ToolResult, TurnSettings, UserMessage,
};
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::schema::{SchemaTarget, compile_or_any};
use turnwright_dialects::{Dialect, Kept, ModelFacts, Profile, Target};

use super::native;
use super::request::{answer, origin, seq};
use crate::recordings::cases_of;
use crate::support::tool;

/// What we ask otherwise than the recorded client, and why: a part of the case's name, the member that differs, the reason.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("file-search", "tools", "the provider's own tools are not offered"),
    ("file-search", "thinking", "thoughts are asked for where the model has any: they are shown"),
    ("model-armor", "thinking", "as above"),
    ("recursive-schema", "thinking", "as above"),
    ("structured-output-1", "choice", "a demand is met by the first calls after a question"),
    ("multi-turn-streaming-loop", "thinking", "as above"),
    ("streaming-history", "thinking", "as above"),
    ("unicode-arguments", "thinking", "as above"),
    ("vertex-", "thinking", "as above"),
    ("multiple-images-google-vertex-1", "contents", "an image by its address is text: nobody fetches it for a model"),
    ("invalid-role", "contents", "the role is none, which is what the provider says of it"),
];

/// A request in our own terms.
#[derive(Default)]
struct Conversation {
    turns: Vec<Turn>,
    tools: Vec<Arc<ToolDefinition>>,
}

enum Turn {
    User(UserMessage),
    Model(AssistantMessage),
    Results(Vec<ToolResult>),
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A member under its name, or under the same name in snake case.
fn get<'v>(value: &'v Value, name: &str) -> &'v Value {
    let snake: String =
        name.chars().flat_map(|c| if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] }).collect();
    value.get(name).or_else(|| value.get(&snake)).unwrap_or(&Value::Null)
}

fn blob(part: &Value) -> Option<ContentBlock> {
    let data = get(part, "inlineData");
    let text = |name| get(data, name).as_str().map(str::to_owned);
    Some(ContentBlock::Image { data: text("data")?, mime_type: text("mimeType")? })
}

/// A function's response as one text, whatever the members are called under which clients put it.
fn response_text(response: &Value) -> String {
    let Some(members) = response.as_object() else { return String::new() };
    let held = ["output", "error", "result", "return_value", "content"].iter().find_map(|key| members.get(*key));
    match held {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn settings(body: &Value, model: &str) -> TurnSettings {
    let mut settings = TurnSettings::new(ModelRef::new("p", model));
    let system: String = list(&body["systemInstruction"]["parts"]).filter_map(|part| part["text"].as_str()).collect();
    settings.system_prompt = (!system.is_empty()).then_some(system);
    let config = &body["generationConfig"];
    settings.temperature = config["temperature"].as_f64();
    settings.max_output_tokens = config["maxOutputTokens"].as_u64().map(|tokens| tokens.try_into().unwrap());
    let thinking = &config["thinkingConfig"];
    settings.reasoning_effort = match (get(thinking, "thinkingLevel").as_str(), get(thinking, "thinkingBudget").as_u64()) {
        (Some("HIGH"), _) => Some(ReasoningEffort::High),
        (Some("LOW"), _) => Some(ReasoningEffort::Low),
        (_, Some(0 | 128)) => Some(ReasoningEffort::None),
        _ => None,
    };
    let schema = config["responseJsonSchema"].clone();
    settings.output =
        schema.is_object().then(|| OutputFormat::Schema(OutputSchema { name: "answer".to_owned(), schema, strict: true }));
    if body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY" {
        settings.tool_choice = Some(ToolChoice::Required);
    }
    settings
}

fn read(body: &Value, model: &str) -> Conversation {
    let mut read = Conversation::default();
    for declaration in list(&body["tools"]).flat_map(|tool| list(&tool["functionDeclarations"])) {
        let mut tool = Arc::unwrap_or_clone(tool(declaration["name"].as_str().unwrap(), schema(declaration)));
        declaration["description"].as_str().unwrap_or_default().clone_into(&mut tool.description);
        read.tools.push(Arc::new(tool));
    }
    for content in list(&body["contents"]) {
        let parts: Vec<&Value> = list(&content["parts"]).collect();
        let responses: Vec<&Value> =
            parts.iter().map(|part| get(part, "functionResponse")).filter(|part| part.is_object()).collect();
        if content["role"] == "model" {
            read.turns.push(Turn::Model(answer(origin(model), parts.iter().map(|part| block(part)).collect())));
        } else if responses.is_empty() {
            let content = parts
                .iter()
                .map(|part| blob(part).unwrap_or_else(|| ContentBlock::text(part["text"].as_str().unwrap_or_default())));
            read.turns.push(Turn::User(UserMessage { content: content.collect(), settings: settings(body, model) }));
        } else {
            let message = seq(u64::try_from(read.turns.len()).unwrap());
            let results = responses.iter().zip(0..).map(|(response, index)| {
                let mut content = vec![ContentBlock::text(response_text(&response["response"]))];
                content.extend(list(&response["parts"]).filter_map(blob));
                ToolResult { content, ..ToolResult::of(CallId { message, index }, Outcome::Success, "") }
            });
            read.turns.push(Turn::Results(results.collect()));
        }
    }
    read
}

fn block(part: &Value) -> AssistantBlock {
    let signed = get(part, "thoughtSignature").is_string().then(|| native(&part.to_string()));
    let call = get(part, "functionCall");
    if call.is_object() {
        return AssistantBlock::Call(ToolCall {
            name: call["name"].as_str().unwrap().to_owned(),
            arguments: call["args"].to_string(),
            provider_id: call["id"].as_str().map(str::to_owned),
            native: signed,
            recovered: false,
        });
    }
    AssistantBlock::Text { text: part["text"].as_str().unwrap().to_owned(), native: signed }
}

fn schema(declaration: &Value) -> Value {
    let own =
        ["parametersJsonSchema", "parameters"].into_iter().map(|name| get(declaration, name)).find(|found| found.is_object());
    own.map(lower_types).unwrap_or_default()
}

fn prompt_messages(turns: &[Turn]) -> Vec<PromptMessage<'_>> {
    let mut calls: Vec<&ToolCall> = Vec::new();
    let mut messages = Vec::new();
    for (turn, place) in turns.iter().zip(1..) {
        messages.push(match turn {
            Turn::User(message) => PromptMessage::User { seq: seq(place), message },
            Turn::Model(message) => {
                calls = message.calls().collect();
                PromptMessage::Assistant { seq: seq(place), message }
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

/// What a body asks, without what is only another way to write it: names in snake case, nulls, types in capitals, the
/// role of the system instruction, the member that holds a result's text, and settings at their defaults.
fn asked(body: &Value) -> Value {
    let part = |part: &Value| {
        let mut asked = Map::new();
        let (call, response) = (get(part, "functionCall"), get(part, "functionResponse"));
        if call.is_object() {
            asked.insert("call".to_owned(), json!([call["id"], call["name"], call["args"]]));
        }
        if response.is_object() {
            let media: Vec<Value> = list(&response["parts"]).map(|part| json!(blob(part))).collect();
            asked.insert(
                "response".to_owned(),
                json!([response["id"], response["name"], response_text(&response["response"]), media]),
            );
        }
        asked.insert("text".to_owned(), part["text"].clone());
        asked.insert("data".to_owned(), json!(blob(part)));
        asked.insert("signature".to_owned(), get(part, "thoughtSignature").clone());
        Value::Object(asked)
    };
    let content = |content: &Value| json!([content["role"], list(&content["parts"]).map(part).collect::<Vec<_>>()]);
    let declaration = |tool: &Value| {
        json!([tool["name"], tool["description"], compile_or_any(&schema(tool), SchemaTarget::GeminiJson).schema])
    };
    let declarations = list(&body["tools"]).flat_map(|tool| match tool.get("functionDeclarations") {
        Some(declarations) => list(declarations).map(declaration).collect(),
        None => vec![tool.clone()],
    });
    let config = &body["generationConfig"];
    let thinking = &config["thinkingConfig"];
    let thoughts = get(thinking, "includeThoughts").as_bool().unwrap_or_default();
    let text = |system: &Value| -> String { list(&system["parts"]).filter_map(|part| part["text"].as_str()).collect() };
    json!({
        "system": text(&body["systemInstruction"]),
        "contents": list(&body["contents"]).map(content).collect::<Vec<_>>(),
        "tools": declarations.collect::<Vec<_>>(),
        // All names are what is allowed without any.
        "choice": body["toolConfig"]["functionCallingConfig"]["mode"].as_str().unwrap_or("AUTO"),
        "thinking": [thoughts, get(thinking, "thinkingBudget"), get(thinking, "thinkingLevel")],
        "limits": [config["temperature"], config["maxOutputTokens"]],
        "form": [config["responseMimeType"], config["responseJsonSchema"]],
    })
}

fn lower_types(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let lower = |(key, value): (&String, &Value)| match value {
                Value::String(text) if key == "type" => (key.clone(), Value::from(text.to_lowercase())),
                value => (key.clone(), lower_types(value)),
            };
            Value::Object(members.iter().map(lower).collect())
        }
        Value::Array(items) => items.iter().map(lower_types).collect(),
        other => other.clone(),
    }
}

#[test]
fn a_recorded_request_read_and_built_again_asks_the_same() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    let mut used = vec![false; DIFFERENCES.len()];
    for case in cases_of("gemini").iter().filter(|case| case.request.is_object()) {
        let read = read(&case.request, &case.model);
        let settings = settings(&case.request, &case.model);
        let prompt = Prompt {
            conversation: None,
            settings: &settings,
            messages: prompt_messages(&read.turns),
            tools: &read.tools,
            allow_calls: true,
            has_open_demand: false,
        };
        let target = Target { origin: &origin(&case.model), profile: &Profile::COMPATIBLE, model: &ModelFacts::default() };
        let body: Value = serde_json::from_slice(&Gemini.request(&target, &prompt, &mut Kept::default()).body).unwrap();
        let (mut ours, mut theirs) = (asked(&body), asked(&case.request));
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
