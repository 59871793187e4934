//! From our tools and results to the protocol's, in the form of each era.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use rmcp::model::{CallToolResult, ContentBlock, Icon, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use turnwright_core::{ContentBlock as Block, EmbeddedResource};
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
            let block = sendable(block);
            let shown = block.as_text().into_owned();
            let read = serde_json::to_value(block).and_then(serde_json::from_value);
            read.unwrap_or_else(|_| ContentBlock::text(shown))
        })
        .collect();
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = structured_content.filter(|value| form == Form::Modern || value.is_object());
    result
}

/// A block that official clients take: of one that holds no base64, or names no absolute address, they throw the whole result away.
/// What cannot be made right is named in words.
fn sendable(block: Block) -> Block {
    let words = |block: &Block| Block::text(block.as_text().into_owned());
    match block {
        Block::Image { data, mime_type } => match in_base64(&data) {
            Some(data) => Block::Image { data, mime_type },
            None => words(&Block::Image { data, mime_type }),
        },
        Block::Audio { data, mime_type } => match in_base64(&data) {
            Some(data) => Block::Audio { data, mime_type },
            None => words(&Block::Audio { data, mime_type }),
        },
        Block::Resource { resource } => {
            let blob = resource.blob.as_deref().map(in_base64);
            match (address(&resource.uri), blob) {
                (Some(uri), None) => Block::Resource { resource: EmbeddedResource { uri, ..resource } },
                (Some(uri), Some(Some(blob))) => {
                    Block::Resource { resource: EmbeddedResource { uri, blob: Some(blob), ..resource } }
                }
                (None, _) | (_, Some(None)) => words(&Block::Resource { resource }),
            }
        }
        Block::ResourceLink { uri, name, title, description, mime_type, size } => match address(&uri) {
            Some(uri) => Block::ResourceLink { uri, name, title, description, mime_type, size },
            None => words(&Block::ResourceLink { uri, name, title, description, mime_type, size }),
        },
        text @ Block::Text { .. } => text,
    }
}

/// Base64 as it is to be sent, also of an address `data:…;base64,…`; `None` where it is none.
fn in_base64(data: &str) -> Option<String> {
    let bare = match data.strip_prefix("data:") {
        Some(address) => address.split_once(";base64,")?.1,
        None => data,
    };
    let bare: String = bare.split_ascii_whitespace().collect();
    STANDARD.decode(&bare).ok().map(|_| bare)
}

/// An absolute address as it is, or of an absolute path.
fn address(uri: &str) -> Option<String> {
    match Url::parse(uri) {
        Ok(_) => Some(uri.to_owned()),
        Err(_) => Url::from_file_path(uri).ok().map(String::from),
    }
}

/// A call that failed, in words for the model.
pub(super) fn failed(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_official_clients_refuse_is_made_right_or_named_beside_the_rest() {
        let of = |block: Value| serde_json::from_value::<Block>(block).unwrap();
        let sent = |block: Value| {
            let output = ToolOutput { content: vec![of(block)], ..ToolOutput::default() };
            serde_json::to_value(&result(output, Form::Legacy).content[0]).unwrap()
        };
        let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
        let resource = |uri: &str, key: &str, data: &str| json!({"type": "resource", "resource": {"uri": uri, key: data}});
        let link = |uri: &str| json!({"type": "resource_link", "uri": uri, "name": "n"});
        for whole in [image("AAEC"), resource("a://b", "blob", "AA=="), resource("file:///x", "text", "t"), link("urn:a:b")] {
            assert_eq!(sent(whole.clone()), whole);
        }
        assert_eq!(sent(image("data:image/png;base64,AA\nEC")), image("AAEC"));
        assert_eq!(sent(link("/tmp/a b")), link("file:///tmp/a%20b"));
        assert_eq!(sent(resource("/x", "text", "t")), resource("file:///x", "text", "t"));
        for broken in [
            image("not base64!!"),
            json!({"type": "audio", "data": "data:audio/wav,abc", "mimeType": "audio/wav"}),
            resource("a://b", "blob", "%%%"),
            resource("file.txt", "text", "t"),
            link(""),
        ] {
            let words = of(broken.clone()).as_text().into_owned();
            assert_eq!(sent(broken), json!({"type": "text", "text": words}));
        }
    }

    #[test]
    fn properties_are_described_by_objects() {
        let schema = json!({"type": "object", "properties": {"any": true, "none": false, "text": {"type": "string"}}, "additionalProperties": false});
        let expected = json!({"type": "object", "properties": {"any": {}, "none": {"not": {}}, "text": {"type": "string"}}, "additionalProperties": false});
        assert_eq!(Value::Object(with_objects(schema.as_object().unwrap())), expected);
    }
}
