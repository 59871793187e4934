//! What requests of OpenAI's APIs choose, as settings of a turn. Pure.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{Declared, OutputFormat, ReasoningEffort, ToolChoice, ToolDefinition};

use crate::error::ApiError;

/// Where the tools of a client come from, as they are stored.
const CLIENT: &str = "client";

/// A tool that the client runs.
///
/// # Errors
/// 400, where it is none that a provider would take.
pub(crate) fn tool(
    place: &str,
    name: &str,
    description: Option<String>,
    parameters: Option<Value>,
) -> Result<Arc<ToolDefinition>, ApiError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !(1..=64).contains(&name.len()) || !name.chars().all(fits) {
        let what = format!("`{place}.name` must be 1 to 64 characters of A-Z a-z 0-9 _ -");
        return Err(ApiError::invalid(what).about(format!("{place}.name")));
    }
    let input_schema = match parameters {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema @ Value::Object(_)) => schema,
        Some(_) => {
            let what = format!("`{place}.parameters` must be a JSON Schema, an object");
            return Err(ApiError::invalid(what).about(format!("{place}.parameters")));
        }
    };
    Ok(Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: CLIENT.to_owned(),
        tool: name.to_owned(),
        title: None,
        description: description.unwrap_or_default(),
        input_schema,
        annotations: None,
        declared: Declared::default(),
    }))
}

/// Whether and what the model must call.
///
/// # Errors
/// 400, where it is not known.
pub(crate) fn tool_choice(choice: Option<&Value>) -> Result<Option<ToolChoice>, ApiError> {
    let Some(choice) = choice.filter(|choice| !choice.is_null()) else { return Ok(None) };
    let named = |choice: &Value| {
        let name = choice.get("name").or_else(|| choice.get("function")?.get("name"))?.as_str()?;
        let server = choice.get("server_label").and_then(Value::as_str);
        Some(server.map_or_else(|| name.to_owned(), |server| turnwright_engine::qualified(server, name)))
    };
    let chosen = match choice {
        Value::String(word) => match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "required" => Some(ToolChoice::Required),
            "none" => Some(ToolChoice::None),
            _ => None,
        },
        Value::Object(object) => match object.get("type").and_then(Value::as_str) {
            Some("function" | "mcp") => named(choice).map(ToolChoice::Tool),
            Some("allowed_tools") => {
                let allowed = object.get("allowed_tools").unwrap_or(choice);
                let is_required = allowed.get("mode").and_then(Value::as_str) == Some("required");
                let listed = allowed.get("tools").and_then(Value::as_array);
                let all = listed.map(|listed| listed.iter().filter_map(named).collect()).unwrap_or_default();
                Some(if is_required { ToolChoice::Tools(all) } else { ToolChoice::Auto })
            }
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    let wrong = || ApiError::invalid("`tool_choice` must be auto, none, required, or name a tool").about("tool_choice");
    chosen.map(Some).ok_or_else(wrong)
}

/// How much a model should think.
///
/// # Errors
/// 400, where the word is not known.
pub(crate) fn effort(place: &str, word: Option<&str>) -> Result<Option<ReasoningEffort>, ApiError> {
    let Some(word) = word else { return Ok(None) };
    let read = serde_json::from_value(Value::from(word));
    let words = "none, minimal, low, medium, high, xhigh or max";
    read.map(Some).map_err(|_| ApiError::invalid(format!("`{place}` is `{word}`, it must be {words}")).about(place))
}

/// The form of the answer: `text`, `json_object` or `json_schema`, the schema's fields beside the type or inside
/// `json_schema`.
///
/// # Errors
/// 400, where it is not known.
pub(crate) fn output(place: &str, format: Option<&Value>) -> Result<Option<OutputFormat>, ApiError> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    let wrong = |what: &str| ApiError::invalid(format!("`{place}` {what}")).about(place);
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => {
            let schema = json!({"type": "object"});
            Ok(Some(OutputFormat { name: "json_object".to_owned(), schema, strict: false }))
        }
        Some("json_schema") => {
            let inner = format.get("json_schema").unwrap_or(format);
            let schema = inner.get("schema").cloned().ok_or_else(|| wrong("has no `schema`"))?;
            let name = inner.get("name").and_then(Value::as_str).unwrap_or("answer").to_owned();
            let strict = inner.get("strict").and_then(Value::as_bool).unwrap_or(false);
            Ok(Some(OutputFormat { name, schema, strict }))
        }
        _ => Err(wrong("must be of type text, json_object or json_schema")),
    }
}

/// Something that is asked for and not to be had.
pub(crate) fn unsupported(param: &str, why: &str) -> ApiError {
    ApiError::bad_request("unsupported_parameter", format!("`{param}` {why}")).about(param)
}
