//! The tools of a request.

use std::borrow::Cow;
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
    description: Option<Cow<'a, str>>,
    parameters: Value,
    strict: bool,
}

/// The tools as the API takes them.
pub(super) fn of(tools: &[Arc<ToolDefinition>], schemas: SchemaTarget) -> Vec<Tool<'_>> {
    let written = tools.iter().map(|tool| {
        let lowered = compile_or_any(&tool.input_schema, schemas);
        let description = Some(tool.described()).filter(|text| !text.is_empty());
        let strict = lowered.is_strict();
        Tool { kind: "function", name: &tool.name, description, parameters: lowered.schema, strict }
    });
    written.collect()
}
