//! From our tools and results to the protocol's, in the form of each era.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, Icon, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use turnwright_engine::ToolOutput;

use super::backing::OfferedTool;

/// Whose form a result has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Up to 2025-11-25: the structured content is an object.
    Legacy,
    /// From 2026-07-28 on: it is any value.
    Modern,
}

/// A tool as it is listed.
pub(super) fn tool(OfferedTool { definition, face }: &OfferedTool, form: Form) -> Tool {
    let mut tool = Tool::default();
    tool.name = Cow::Owned(definition.name.clone());
    tool.title.clone_from(&definition.title);
    tool.description = (!definition.description.is_empty()).then(|| Cow::Owned(definition.description.clone()));
    tool.input_schema = Arc::new(match &definition.input_schema {
        Value::Object(schema) => with_objects(schema),
        _ => Map::from_iter([("type".to_owned(), Value::from("object"))]),
    });
    tool.annotations = definition.annotations.clone().and_then(|hints| serde_json::from_value(hints).ok());
    if definition.declared.read_only {
        // What the operator declares counts more than what the source hints.
        let mut annotations = tool.annotations.take().unwrap_or_else(ToolAnnotations::default);
        annotations.read_only_hint = Some(true);
        tool.annotations = Some(annotations);
    }
    tool.output_schema = match &face.output_schema {
        // Of whatever else a result may be, older clients could not be sent any.
        Some(Value::Object(schema)) if form == Form::Modern || schema.get("type") == Some(&Value::from("object")) => {
            Some(Arc::new(with_objects(schema)))
        }
        Some(_) | None => None,
    };
    tool.icons = (!face.icons.is_empty()).then(|| face.icons.iter().map(icon).collect());
    tool
}

/// A schema whose properties are described by objects: of `true` and `false`, which JSON Schema has too, official clients take the whole
/// list of tools for broken.
fn with_objects(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = schema.clone();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        match property {
            Value::Bool(true) => *property = json!({}),
            Value::Bool(false) => *property = json!({"not": {}}),
            _ => {}
        }
    }
    schema
}

fn icon(known: &turnwright_engine::Icon) -> Icon {
    let mut icon = Icon::new(known.src.clone());
    icon.mime_type.clone_from(&known.mime_type);
    icon.sizes = (!known.sizes.is_empty()).then(|| known.sizes.clone());
    icon.theme = known.theme.as_ref().and_then(|theme| serde_json::from_value(Value::from(theme.as_str())).ok());
    icon
}

/// A result as it is answered.
pub(super) fn result(output: ToolOutput, form: Form) -> CallToolResult {
    let ToolOutput { content, structured_content, is_error, diagnostic: _ } = output;
    let content: Vec<ContentBlock> = content
        .into_iter()
        .map(|block| {
            let shown = block.as_text().into_owned();
            let read = serde_json::to_value(block).and_then(serde_json::from_value);
            read.unwrap_or_else(|_| ContentBlock::text(shown))
        })
        .collect();
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = structured_content.filter(|value| form == Form::Modern || value.is_object());
    result
}

/// A call that failed, in words for the model.
pub(super) fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_described_by_objects() {
        let schema = json!({"type": "object", "properties": {"any": true, "none": false, "text": {"type": "string"}}, "additionalProperties": false});
        let expected = json!({"type": "object", "properties": {"any": {}, "none": {"not": {}}, "text": {"type": "string"}}, "additionalProperties": false});
        assert_eq!(Value::Object(with_objects(schema.as_object().unwrap())), expected);
    }
}
