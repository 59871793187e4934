//! What the request of a response said, kept beside its conversation: the journal says what a turn runs with, and a response tells what
//! was asked for, whenever it is told.

use serde_json::{Map, Value, json};
use turnwright_api::openai::{ResponsesRequest, WireResponse};
use turnwright_core::{ConversationId, Seq};
use turnwright_engine::EngineError;

use crate::state::ServerState;

/// The most bytes of it that are kept. Of what does not fit, the largest first, what the turn runs with is told.
const MAX_BYTES: usize = 256 * 1024;

/// What a request said, by the names of a response's fields, where that is not what the response tells without it.
pub(crate) fn said(request: &ResponsesRequest, object: &WireResponse) -> Map<String, Value> {
    let mut said = Map::new();
    said.insert("instructions".to_owned(), json!(request.instructions));
    said.insert("metadata".to_owned(), json!(request.metadata.clone().unwrap_or_default()));
    said.insert("previous_response_id".to_owned(), json!(request.previous_response_id));
    said.insert("background".to_owned(), json!(request.background == Some(true)));
    said.insert("tools".to_owned(), request.tools.iter().flatten().map(without_secrets).collect());
    let reasoning = request.reasoning.as_ref();
    let text = request.text.as_ref();
    let chosen = [
        ("parallel_tool_calls", json!(request.parallel_tool_calls)),
        ("temperature", json!(request.temperature)),
        ("tool_choice", json!(request.tool_choice)),
        ("truncation", json!(request.truncation)),
        ("max_output_tokens", json!(request.max_output_tokens)),
        ("max_tool_calls", json!(request.max_tool_calls)),
        ("reasoning", reasoning.map_or(Value::Null, |asked| json!({"effort": asked.effort, "summary": asked.summary}))),
        ("text", text.map_or(Value::Null, text_of)),
    ];
    let chosen = chosen.into_iter().filter(|(_, value)| !value.is_null());
    said.extend(chosen.map(|(name, value)| (name.to_owned(), value)));
    let told = serde_json::to_value(object).unwrap_or_default();
    let mut other: Vec<_> = said.into_iter().filter(|(name, value)| told.get(name) != Some(value)).collect();
    other.sort_by_cached_key(|(_, value)| value.to_string().len());
    let mut room = MAX_BYTES;
    let fits = |(_, value): &(String, Value)| {
        let left = room.checked_sub(value.to_string().len());
        room = left.unwrap_or(0);
        left.is_some()
    };
    other.into_iter().take_while(fits).collect()
}

/// What opens a server is told to nobody.
fn without_secrets(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Value::Object(fields) = &mut tool
        && fields.get("type").and_then(Value::as_str) == Some("mcp")
    {
        for name in ["authorization", "headers"] {
            fields.remove(name);
        }
    }
    tool
}

fn text_of(asked: &turnwright_api::openai::ResponsesText) -> Value {
    let format = asked.format.clone().filter(|format| !format.is_null()).unwrap_or_else(|| json!({"type": "text"}));
    match &asked.verbosity {
        Some(verbosity) => json!({"format": format, "verbosity": verbosity}),
        None => json!({"format": format}),
    }
}

/// The response with what its request said.
pub(crate) fn with(object: WireResponse, said: &Map<String, Value>) -> WireResponse {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(&object) else { return object };
    fields.extend(said.iter().map(|(name, value)| (name.clone(), value.clone())));
    serde_json::from_value(Value::Object(fields)).unwrap_or(object)
}

/// Keeps what the request of the response after this entry said; what is kept of it, where the same response was asked for before.
pub(crate) async fn keep(
    state: &ServerState,
    (conversation, after): (&ConversationId, Seq),
    said: Map<String, Value>,
) -> Result<Map<String, Value>, EngineError> {
    if let Some(kept) = read(state, conversation, after).await? {
        return Ok(kept);
    }
    if !said.is_empty() {
        let text = Value::Object(said.clone()).to_string();
        state.engine().keep_beside(conversation, &name(after), &text).await?;
    }
    Ok(said)
}

/// What is kept of the request of the response after this entry.
pub(crate) async fn kept(
    state: &ServerState,
    conversation: &ConversationId,
    after: Seq,
) -> Result<Map<String, Value>, EngineError> {
    Ok(read(state, conversation, after).await?.unwrap_or_default())
}

async fn read(
    state: &ServerState,
    conversation: &ConversationId,
    after: Seq,
) -> Result<Option<Map<String, Value>>, EngineError> {
    let kept = state.engine().kept_beside(conversation, &name(after)).await?;
    // What a newer version kept and this one cannot read is told as if it were not there.
    Ok(kept.and_then(|text| serde_json::from_str(&text).ok()))
}

fn name(after: Seq) -> String {
    format!("response/{after}")
}
