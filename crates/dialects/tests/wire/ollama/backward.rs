//! Recorded requests, read into our model and built again, ask the same.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, ContentBlock, ModelRef, Outcome, ReasoningEffort, ToolCall, ToolDefinition,
    ToolResult, TurnSettings, UserMessage,
};
use turnwright_dialects::ollama::Ollama;
use turnwright_dialects::schema::{SchemaTarget, compile_or_any};
use turnwright_dialects::{Dialect, Kept, ModelFacts, Profile, Target};

use super::request::{answer, call, origin, seq};
use crate::recordings::cases_of;
use crate::support::tool;

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

enum Turn {
    User(UserMessage),
    Model(AssistantMessage),
    Results(Vec<ToolResult>),
}

fn text(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

fn settings(body: &Value) -> TurnSettings {
    let mut settings = TurnSettings::new(ModelRef::new("p", body["model"].as_str().unwrap()));
    settings.system_prompt = list(&body["messages"]).find(|message| message["role"] == "system").map(text);
    settings.temperature = body["options"]["temperature"].as_f64();
    settings.max_output_tokens = body["options"]["num_predict"].as_u64().map(|tokens| tokens.try_into().unwrap());
    settings.reasoning_effort = match &body["think"] {
        Value::Bool(true) => Some(ReasoningEffort::Medium),
        Value::Bool(false) => Some(ReasoningEffort::None),
        _ => None,
    };
    settings
}

fn turns(body: &Value) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in list(&body["messages"]).filter(|message| message["role"] != "system") {
        match message["role"].as_str().unwrap() {
            "user" => {
                turns.push(Turn::User(UserMessage {
                    content: vec![ContentBlock::text(text(message))],
                    settings: settings(body),
                }));
            }
            "assistant" => {
                let thinking = message["thinking"].as_str().map(str::to_owned);
                let mut blocks: Vec<AssistantBlock> =
                    thinking.into_iter().map(|text| AssistantBlock::Reasoning { text, native: None }).collect();
                blocks.push(AssistantBlock::Text { text: text(message), native: None });
                let calls = list(&message["tool_calls"]).map(|asked| {
                    let function = &asked["function"];
                    call(function["name"].as_str().unwrap(), &function["arguments"].to_string(), asked["id"].as_str())
                });
                blocks.extend(calls);
                turns.push(Turn::Model(answer(body["model"].as_str().unwrap(), blocks)));
            }
            _ => {
                if !matches!(turns.last(), Some(Turn::Results(_))) {
                    turns.push(Turn::Results(Vec::new()));
                }
                let place = seq(u64::try_from(turns.len()).unwrap());
                let Some(Turn::Results(results)) = turns.last_mut() else { unreachable!() };
                let id = CallId { message: place, index: u32::try_from(results.len()).unwrap() };
                results.push(ToolResult::of(id, Outcome::Success, text(message)));
            }
        }
    }
    turns
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
                let all = results.iter().zip(&calls);
                let all = all.map(|(result, call)| PromptResult {
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

fn tools(body: &Value) -> Vec<Arc<ToolDefinition>> {
    let definition = |given: &Value| {
        let function = &given["function"];
        let mut tool = Arc::unwrap_or_clone(tool(function["name"].as_str().unwrap(), function["parameters"].clone()));
        function["description"].as_str().unwrap_or_default().clone_into(&mut tool.description);
        Arc::new(tool)
    };
    list(&body["tools"]).map(definition).collect()
}

/// What a body asks. Left out: whether the answer is streamed; the window, which we always size; and that what does not fit
/// is refused, which one recorded client asks too.
fn asked(body: &Value) -> Value {
    let message = |message: &Value| {
        let call = |call: &Value| json!([call["id"], call["function"]["name"], call["function"]["arguments"]]);
        let calls: Vec<Value> = list(&message["tool_calls"]).map(call).collect();
        json!([message["role"], message["content"], message["thinking"], message["tool_name"], calls])
    };
    // A schema and what it is lowered to ask the same.
    let tool = |tool: &Value| {
        let mut tool = tool.clone();
        let parameters = &mut tool["function"]["parameters"];
        *parameters = compile_or_any(parameters, SchemaTarget::Compatible).schema;
        tool
    };
    let format = Some(&body["format"]).filter(|format| **format != "");
    json!({
        "model": body["model"],
        "messages": list(&body["messages"]).map(message).collect::<Vec<_>>(),
        "tools": list(&body["tools"]).map(tool).collect::<Vec<_>>(),
        "think": body["think"],
        "format": format.cloned().unwrap_or_default(),
        "limits": [body["options"]["temperature"].as_f64(), body["options"]["num_predict"]],
    })
}

#[test]
fn a_recorded_request_read_and_built_again_asks_the_same() {
    let mut compared = 0;
    for case in cases_of("ollama") {
        let (turns, settings, tools) = (turns(&case.request), settings(&case.request), tools(&case.request));
        let messages = prompt_messages(&turns);
        let prompt = Prompt {
            conversation: None,
            settings: &settings,
            messages,
            tools: &tools,
            allow_calls: true,
            has_open_demand: false,
        };
        let origin = origin(settings.model.model());
        let target = Target { origin: &origin, profile: &Profile::COMPATIBLE, model: &ModelFacts::default() };
        let body: Value = serde_json::from_slice(&Ollama.request(&target, &prompt, &mut Kept::default()).body).unwrap();
        assert_eq!(asked(&body), asked(&case.request), "{}", case.name);
        compared += 1;
    }
    println!("{compared} requests were compared");
}
