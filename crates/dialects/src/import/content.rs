//! What people and tools said, from parts of several kinds.

use serde_json::Value;
use turnwright_core::{ContentBlock, EmbeddedResource};

use super::draft::Draft;
use super::{list, text};

/// An image or a file by its address: its bytes where the address holds them, else a pointer to it, which is counted.
pub(super) fn at_address(address: &str, name: &str, draft: &mut Draft) -> ContentBlock {
    let inline = address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((mime_type, data)) if mime_type.starts_with("image/") => {
            ContentBlock::Image { data: data.to_owned(), mime_type: mime_type.to_owned() }
        }
        Some((mime_type, data)) if mime_type.starts_with("audio/") => {
            ContentBlock::Audio { data: data.to_owned(), mime_type: mime_type.to_owned() }
        }
        Some((mime_type, data)) => {
            let (uri, mime_type, blob) = (name.to_owned(), Some(mime_type.to_owned()), Some(data.to_owned()));
            let block = ContentBlock::Resource { resource: EmbeddedResource { uri, mime_type, text: None, blob } };
            // What nothing can be made of stays as it came.
            block.clone().shown().unwrap_or(block)
        }
        None => pointer(address, name, draft),
    }
}

/// Stands for something of which the file holds no bytes.
pub(super) fn pointer(address: &str, name: &str, draft: &mut Draft) -> ContentBlock {
    draft.leave_out("an image or file whose bytes are not in the export");
    ContentBlock::ResourceLink {
        uri: address.to_owned(),
        name: name.to_owned(),
        title: None,
        description: None,
        mime_type: None,
        size: None,
    }
}

/// A file's text under its name.
pub(super) fn file(name: &str, text: &str) -> ContentBlock {
    let resource = EmbeddedResource { uri: name.to_owned(), mime_type: None, text: Some(text.to_owned()), blob: None };
    ContentBlock::Resource { resource }
}

/// A text, or a list of parts in the forms of OpenAI and Anthropic.
pub(super) fn blocks(content: Option<&Value>, draft: &mut Draft) -> Vec<ContentBlock> {
    match content {
        Some(Value::String(text)) => vec![ContentBlock::text(text)],
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| block(part, draft)).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(other @ (Value::Object(_) | Value::Bool(_) | Value::Number(_))) => vec![ContentBlock::text(other.to_string())],
    }
}

/// `None` for what is empty, or was counted as left out.
fn block(part: &Value, draft: &mut Draft) -> Option<ContentBlock> {
    if let Some(text) = part.as_str() {
        return (!text.is_empty()).then(|| ContentBlock::text(text));
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
    match kind {
        "text" | "input_text" | "output_text" => {
            let text = part.get("text").and_then(|text| text.as_str().or_else(|| text.get("value")?.as_str()));
            text.filter(|text| !text.is_empty()).map(ContentBlock::text)
        }
        "refusal" => text(part, "refusal").map(ContentBlock::text),
        "image_url" | "input_image" => {
            let url = part.get("image_url").and_then(|url| url.as_str().or_else(|| url.get("url")?.as_str()));
            url.map(|url| at_address(url, "image", draft))
        }
        "image" => {
            let source = part.get("source").unwrap_or(part);
            let (data, mime_type) = (text(source, "data"), text(source, "media_type"));
            Some(match data.zip(mime_type) {
                Some((data, mime_type)) => ContentBlock::Image { data: data.to_owned(), mime_type: mime_type.to_owned() },
                None => pointer(text(source, "url").or(text(source, "file_uuid")).unwrap_or("image"), "image", draft),
            })
        }
        "input_audio" => {
            let audio = part.get("input_audio")?;
            let mime_type = format!("audio/{}", text(audio, "format").unwrap_or("wav"));
            Some(ContentBlock::Audio { data: text(audio, "data")?.to_owned(), mime_type })
        }
        "file" | "input_file" => {
            let file = part.get("file").unwrap_or(part);
            let name = text(file, "filename").unwrap_or("file");
            let address = text(file, "file_data").or(text(file, "file_id")).unwrap_or(name);
            Some(at_address(address, name, draft))
        }
        "resource" | "knowledge" => {
            let said = list(part, "content").iter().find_map(|part| text(part, "text")).or(text(part, "text"));
            // What was found, and where.
            let found: Vec<&str> = [text(part, "title"), text(part, "url"), said].into_iter().flatten().collect();
            (!found.is_empty()).then(|| ContentBlock::text(found.join("\n")))
        }
        other => {
            draft.leave_out(&format!("a part of type `{other}`"));
            None
        }
    }
}
