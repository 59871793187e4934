//! Tools of a client that it knows otherwise than the model does: functions of a namespace, and tools that take a free text. What its
//! client calls such a tool is stored with its definition, so that a call finds its way also after a restart. Pure.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use turnwright_core::ToolDefinition;

use super::settings;
use crate::error::ApiError;

/// The longest name that every model takes.
const MAX_NAME_BYTES: usize = 64;

/// What a free text is called among the arguments that a model gives.
const INPUT: &str = "input";

/// Where a definition keeps what its client calls the tool.
const KEPT: &str = "openai";

/// A tool as its client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Face<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) takes: Takes,
}

/// What a client's tool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// JSON, as a function does.
    Arguments,
    /// A free text.
    Text,
}

/// How its client knows one of its tools.
pub(crate) fn face(tool: &ToolDefinition) -> Face<'_> {
    let kept = tool.annotations.as_ref().and_then(|annotations| annotations.get(KEPT));
    let text = |key: &str| kept?.get(key)?.as_str();
    let takes = if text("type") == Some("custom") { Takes::Text } else { Takes::Arguments };
    Face { name: text("name").unwrap_or(&tool.name), namespace: text("namespace"), takes }
}

/// The name under which a model is offered a function of a namespace.
pub(crate) fn model_name(namespace: Option<&str>, name: &str) -> String {
    let whole = match namespace {
        None => return name.to_owned(),
        Some(namespace) if namespace.ends_with("__") => format!("{namespace}{name}"),
        Some(namespace) => format!("{namespace}__{name}"),
    };
    if whole.len() <= MAX_NAME_BYTES {
        return whole;
    }
    let hash = Sha256::digest(whole.as_bytes()).iter().take(4).fold(0_u32, |hash, byte| (hash << 8) | u32::from(*byte));
    let begin = whole.get(..whole.floor_char_boundary(MAX_NAME_BYTES.saturating_sub(9))).unwrap_or_default();
    format!("{begin}_{hash:08x}")
}

/// A function, of a namespace where it has one.
///
/// # Errors
/// 400, where no provider would take it.
pub(crate) fn function(place: &str, tool: &Value, namespace: Option<&str>) -> Result<Arc<ToolDefinition>, ApiError> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let known = namespace.map(|namespace| json!({"type": "function", "namespace": namespace, "name": name}));
    let description = text("description").map(str::to_owned);
    let parameters = tool.get("parameters").cloned();
    let function = settings::tool(place, &model_name(namespace, name), description, parameters)?;
    Ok(with_face(function, known))
}

/// A tool that takes a free text: for the model a function with that text as its one argument.
///
/// # Errors
/// 400, where no provider would take it.
pub(crate) fn custom(place: &str, tool: &Value, namespace: Option<&str>) -> Result<Arc<ToolDefinition>, ApiError> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let grammar = tool.get("format").and_then(|format| {
        let definition = format.get("definition")?.as_str()?;
        let syntax = format.get("syntax").and_then(Value::as_str).unwrap_or("this");
        Some(format!("It must fit this grammar ({syntax}):\n{definition}"))
    });
    let told = ["The whole text that the tool takes.".to_owned()].into_iter().chain(grammar).collect::<Vec<_>>().join(" ");
    let properties = json!({INPUT: {"type": "string", "description": told}});
    let schema = json!({"type": "object", "properties": properties, "required": [INPUT], "additionalProperties": false});
    let description = text("description").map(str::to_owned);
    let made = settings::tool(place, &model_name(namespace, name), description, Some(schema))?;
    Ok(with_face(made, Some(json!({"type": "custom", "namespace": namespace, "name": name}))))
}

fn with_face(tool: Arc<ToolDefinition>, known: Option<Value>) -> Arc<ToolDefinition> {
    let Some(known) = known else { return tool };
    Arc::new(ToolDefinition { annotations: Some(json!({KEPT: known})), ..Arc::unwrap_or_clone(tool) })
}

/// The arguments of a call with a free text.
pub(crate) fn arguments_of(input: &str) -> String {
    json!({INPUT: input}).to_string()
}

/// The free text of a call; all of its arguments where a model wrote something else, and no text where it wrote none.
pub(crate) fn input_of(arguments: &str) -> String {
    let read: Option<Value> = serde_json::from_str(arguments).ok();
    if read.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty) {
        return String::new();
    }
    let input = read.as_ref().and_then(|arguments| arguments.get(INPUT)?.as_str());
    input.unwrap_or(arguments).to_owned()
}

/// A tool as its client named it.
pub(crate) fn told(tool: &ToolDefinition) -> Value {
    let face = face(tool);
    let told = match face.takes {
        Takes::Text => json!({"type": "custom", "name": face.name, "description": tool.description}),
        Takes::Arguments => {
            json!({"type": "function", "name": face.name, "description": tool.description, "parameters": tool.input_schema,
                   "strict": false})
        }
    };
    match face.namespace {
        None => told,
        Some(namespace) => json!({"type": "namespace", "name": namespace, "description": "", "tools": [told]}),
    }
}

#[cfg(test)]
mod tests {
    use super::{input_of, model_name};

    #[test]
    fn a_function_of_a_namespace_has_a_name_that_every_model_takes() {
        assert_eq!(model_name(None, "run"), "run");
        assert_eq!(model_name(Some("mcp__files"), "read"), "mcp__files__read");
        assert_eq!(model_name(Some("mcp__files__"), "read"), "mcp__files__read");
        let long = |last: &str| model_name(Some(&"n".repeat(60)), &format!("a_long_name_{last}"));
        assert_eq!((long("a").len(), long("b").len()), (64, 64));
        assert_ne!(long("a"), long("b"));
    }

    #[test]
    fn a_free_text_is_read_whatever_the_model_wrote() {
        let read = [r#"{"input":"a\nb"}"#, r#"{"text":1}"#, "not JSON", "{}", ""].map(input_of);
        assert_eq!(read, ["a\nb", r#"{"text":1}"#, "not JSON", "", ""]);
    }
}
