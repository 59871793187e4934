//! What a message says, in the forms of Chat Completions and Responses. Pure.

use serde_json::Value;
use turnwright_core::{ContentBlock, EmbeddedResource};
use turnwright_engine::artifacts::is_artifact_id;

use crate::attached::shown_name;
use crate::error::ApiError;

/// The text of an answer that is sent back.
pub(super) fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("text")))
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// A text, or parts in the forms of Chat Completions and Responses.
///
/// # Errors
/// 400, where a part is not known or holds no bytes.
pub(super) fn blocks(place: &str, content: &Value) -> Result<Vec<ContentBlock>, ApiError> {
    match content {
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) => Ok(vec![ContentBlock::text(text)]),
        Value::Null => Ok(Vec::new()),
        Value::Array(parts) => {
            let places = (0..parts.len()).map(|at| format!("{place}.content[{at}]"));
            parts.iter().zip(places).map(|(part, place)| block(&place, part)).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            let what = format!("`{place}.content` must be a text or a list of parts");
            Err(ApiError::invalid(what).about(format!("{place}.content")))
        }
    }
}

fn block(place: &str, part: &Value) -> Result<ContentBlock, ApiError> {
    let block = as_sent(place, part)?;
    block.shown().map_err(|error| ApiError::invalid(format!("`{place}`: {error}")).about(place))
}

fn as_sent(place: &str, part: &Value) -> Result<ContentBlock, ApiError> {
    let wrong = |what: &str| ApiError::invalid(format!("`{place}` {what}")).about(place);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => {
            text(part, "text").map(ContentBlock::text).ok_or_else(|| wrong("has no `text`"))
        }
        Some("refusal") => Ok(ContentBlock::text(text(part, "refusal").unwrap_or_default())),
        Some("image_url" | "input_image") => {
            if let Some(id) = text(part, "file_id") {
                return link(&id).ok_or_else(|| no_file(&format!("{place}.file_id"), &id));
            }
            let url = part.get("image_url").and_then(|url| url.as_str().or_else(|| url.get("url")?.as_str()));
            let (mime_type, data) = url.and_then(bytes_in).ok_or_else(|| {
                wrong("holds no image: send it as a `data:` URL with base64, since addresses are not fetched here")
            })?;
            Ok(ContentBlock::Image { data, mime_type })
        }
        Some("input_audio") => {
            let audio = part.get("input_audio").unwrap_or(part);
            let data = text(audio, "data").ok_or_else(|| wrong("has no `data`"))?;
            Ok(ContentBlock::Audio { data, mime_type: format!("audio/{}", text(audio, "format").unwrap_or("wav".to_owned())) })
        }
        Some("file" | "input_file") => {
            let inner = part.get("file");
            let file = inner.unwrap_or(part);
            if let Some(id) = text(file, "file_id") {
                let inner = if inner.is_some() { ".file" } else { "" };
                return link(&id).ok_or_else(|| no_file(&format!("{place}{inner}.file_id"), &id));
            }
            let name = text(file, "filename").map_or_else(|| "file".to_owned(), |name| shown_name(&name));
            let (mime_type, blob) = text(file, "file_data").as_deref().and_then(bytes_in).ok_or_else(|| {
                wrong("holds no file: send it as `file_data`, a `data:` URL with base64, or as the `file_id` that POST /api/v1/artifacts gave")
            })?;
            let uri = format!("file:///{name}");
            let resource = EmbeddedResource { uri, mime_type: Some(mime_type), text: None, blob: Some(blob) };
            Ok(ContentBlock::Resource { resource })
        }
        Some(kind) => Err(wrong(&format!("is of type `{kind}`, which is not known here"))),
        None => Err(wrong("has no `type`")),
    }
}

fn no_file(place: &str, id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let what =
        format!("`{place}` is `{id}`, which names no file that was uploaded here; POST /api/v1/artifacts gives the names");
    ApiError::invalid(what).about(place)
}

/// A file that was uploaded here.
fn link(id: &str) -> Option<ContentBlock> {
    let (title, description, mime_type, size) = (None, None, None, None);
    let uri = format!("/api/v1/artifacts/{id}");
    is_artifact_id(id).then(|| ContentBlock::ResourceLink { uri, name: "file".to_owned(), title, description, mime_type, size })
}

/// The media type and the base64 of a `data:` URL.
fn bytes_in(url: &str) -> Option<(String, String)> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((mime_type.to_owned(), data.to_owned()))
}
