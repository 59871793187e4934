//! The tools of a request.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use turnwright_core::ToolDefinition;

use crate::schema::{SchemaTarget, compile_or_any};

/// A tool. Without `strict` the API tries by itself to make the schema strict.
#[derive(Debug, Serialize)]
pub(super) struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Value,
    strict: bool,
}

/// The tools as the API takes them.
pub(super) fn of(tools: &[Arc<ToolDefinition>]) -> Vec<Tool<'_>> {
    let written = tools.iter().map(|tool| {
        let (parameters, strict) = parameters(&tool.input_schema);
        let description = Some(tool.description.as_str()).filter(|text| !text.is_empty());
        Tool { kind: "function", name: &tool.name, description, parameters, strict }
    });
    written.collect()
}

/// The schema, and whether the model is held to it. Strict mode has no optional properties but those that may be null, and
/// null is not what a tool takes for one that is left out: a schema with optional properties is not made strict.
fn parameters(schema: &Value) -> (Value, bool) {
    let loose = compile_or_any(schema, SchemaTarget::OpenAi).schema;
    let strict = compile_or_any(schema, SchemaTarget::OpenAiStrict);
    if !strict.is_strict() {
        return (loose, false);
    }
    let is_same = in_order(&compile_or_any(&strict.schema, SchemaTarget::OpenAi).schema) == in_order(&loose);
    if is_same { (strict.schema, true) } else { (loose, false) }
}

/// The schema with its lists of required properties in one order.
fn in_order(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| {
                let mut value = in_order(value);
                if let ("required", Some(names)) = (key.as_str(), value.as_array_mut()) {
                    names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                }
                (key.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(in_order).collect(),
        other => other.clone(),
    }
}
