//! Tools in what a server asks of a model (`sampling.tools`): they are the server's, and it runs them itself.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use turnwright_core::{
    AssistantMessage, ContentBlock, Declared, Sampled, SamplingCall, SamplingMessage, SamplingResult, ToolChoice,
    ToolDefinition,
};

use crate::list::is_schema;
use crate::output;

/// The most tools of a question.
const MAX_TOOLS: usize = 128;

/// The tools that the model may ask for, and whether it must.
///
/// # Errors
/// What is wrong with them, for the server.
pub(super) fn offered(params: &mut Map<String, Value>) -> Result<(Vec<Arc<ToolDefinition>>, Option<ToolChoice>), String> {
    let tools = match params.remove("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tools)) if tools.len() <= MAX_TOOLS => tools,
        Some(Value::Array(tools)) => return Err(format!("`tools` are {}, limit {MAX_TOOLS}", tools.len())),
        Some(_) => return Err("`tools` is an array".to_owned()),
    };
    let choice = match params.remove("toolChoice").as_ref().and_then(|choice| choice.get("mode")).and_then(Value::as_str) {
        Some("required") => Some(ToolChoice::Required),
        Some("none") => Some(ToolChoice::None),
        _ => None,
    };
    let tools = tools.into_iter().map(tool).collect::<Result<Vec<_>, _>>()?;
    let mut names = HashSet::new();
    match tools.iter().find(|tool| !names.insert(tool.name.as_str())) {
        Some(twice) => Err(format!("the tool `{}` is there twice", twice.name)),
        None => Ok((tools, choice)),
    }
}

fn tool(tool: Value) -> Result<Arc<ToolDefinition>, String> {
    let Value::Object(mut tool) = tool else { return Err("each of the `tools` is an object".to_owned()) };
    let mut text = |key: &str| match tool.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (name, title, description) = (text("name").unwrap_or_default(), text("title"), text("description").unwrap_or_default());
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
        return Err(format!("the name of a tool is 1 to 64 letters, digits, `_` and `-`, not {}", json!(name)));
    }
    let input_schema = match tool.remove("inputSchema") {
        None | Some(Value::Null) => json!({"type": "object"}),
        Some(schema @ Value::Object(_)) => schema,
        Some(_) => return Err(format!("the inputSchema of the tool `{name}` is no object")),
    };
    is_schema(&input_schema).map_err(|why| format!("the inputSchema of the tool `{name}` is no JSON Schema: {why}"))?;
    Ok(Arc::new(ToolDefinition {
        tool: name.clone(),
        name,
        source: String::new(),
        title,
        description,
        input_schema,
        annotations: None,
        declared: Declared::default(),
    }))
}

/// What a block of an assistant's message asks for, where it asks for a tool.
///
/// # Errors
/// What is wrong with it, for the server.
pub(super) fn call(block: &Value) -> Result<SamplingCall, String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let id = text("id").ok_or("a `tool_use` has an id")?;
    let name = text("name").ok_or("a `tool_use` has the name of its tool")?;
    let arguments = block.get("input").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(SamplingCall { id, name, arguments })
}

/// What a block of a user's message says that a tool gave.
///
/// # Errors
/// What is wrong with it, for the server.
pub(super) fn result(block: Value) -> Result<SamplingResult, String> {
    let Value::Object(mut block) = block else { return Err("a `tool_result` is an object".to_owned()) };
    let Some(Value::String(call)) = block.remove("toolUseId") else { return Err("a `tool_result` has a toolUseId".to_owned()) };
    let content: Vec<ContentBlock> = match block.remove("content") {
        Some(Value::Array(blocks)) => blocks.into_iter().map(output::block).collect(),
        Some(one @ Value::Object(_)) => vec![output::block(one)],
        _ => Vec::new(),
    };
    let structured_content = block.remove("structuredContent").filter(|structured| !structured.is_null());
    let is_error = block.remove("isError") == Some(Value::Bool(true));
    Ok(SamplingResult { call, content, structured_content, is_error })
}

/// Every call has its result in the message after it, in its order.
///
/// # Errors
/// What is wrong, for the server.
pub(super) fn answered(messages: &mut [SamplingMessage]) -> Result<(), String> {
    let mut calls: Vec<String> = Vec::new();
    for message in messages {
        let mut results = std::mem::take(&mut message.results);
        for call in &calls {
            let Some(at) = results.iter().position(|result| result.call == *call) else {
                return Err(format!("the message after the call `{call}` has no result of it"));
            };
            message.results.push(results.swap_remove(at));
        }
        if let Some(more) = results.first() {
            return Err(format!("the result of `{}` belongs to no call of the message before it", more.call));
        }
        calls = message.calls.iter().map(|call| call.id.clone()).collect();
    }
    Ok(())
}

/// The calls of an answer, as the protocol has them. Their names are of the question, so that no two of a call are the same.
pub(super) fn told<'a>(sampled: &'a Sampled, message: &'a AssistantMessage) -> impl Iterator<Item = Value> + 'a {
    message.calls().enumerate().map(|(index, call)| {
        let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
        let id = format!("{}_{index}", sampled.question);
        json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
    })
}
