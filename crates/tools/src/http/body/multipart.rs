//! `multipart/form-data` (RFC 7578).

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::style::plain;
use super::{Encoding, boundary, file, is_header_text, quoted};

struct Part {
    name: String,
    filename: Option<String>,
    media_type: Option<String>,
    bytes: Vec<u8>,
}

/// The form, with its media type.
pub(super) fn written(
    members: &Map<String, Value>,
    encodings: &HashMap<String, Encoding>,
    mark: &str,
) -> Result<(String, Vec<u8>), String> {
    let mut parts = Vec::new();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let encoding = encodings.get(name);
        match value {
            Value::Array(items) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    parts.push(part(name, item, encoding)?);
                }
            }
            value => parts.push(part(name, value, encoding)?),
        }
    }
    let mut boundary = boundary(mark);
    while parts.iter().any(|part| holds(&part.bytes, boundary.as_bytes())) {
        boundary.push('x');
    }
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(format!("--{boundary}\r\n{}\r\n", head(&part)).as_bytes());
        bytes.extend_from_slice(&part.bytes);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), bytes))
}

fn part(name: &str, value: &Value, encoding: Option<&Encoding>) -> Result<Part, String> {
    let said = encoding.and_then(|encoding| encoding.media_type.clone());
    let is_file = value.as_object().is_some_and(|object| {
        let known = ["filename", "media_type", "text", "base64"];
        (object.contains_key("text") || object.contains_key("base64")) && object.keys().all(|key| known.contains(&key.as_str()))
    });
    if is_file {
        let file = file(value).map_err(|why| format!("`{name}`: {why}"))?;
        let media_type = file.media_type.map(str::to_owned).or(said).unwrap_or_else(|| "application/octet-stream".to_owned());
        return Ok(Part {
            name: name.to_owned(),
            filename: Some(file.name.to_owned()),
            media_type: Some(media_type),
            bytes: file.bytes,
        });
    }
    let media_type = said.or_else(|| (value.is_object() || value.is_array()).then(|| "application/json".to_owned()));
    Ok(Part { name: name.to_owned(), filename: None, media_type, bytes: plain(value).into_bytes() })
}

fn head(part: &Part) -> String {
    let filename = part.filename.as_deref().map(|name| format!("; filename=\"{}\"", quoted(name))).unwrap_or_default();
    let media_type = part.media_type.as_deref().filter(|text| is_header_text(text));
    let media_type = media_type.map(|text| format!("Content-Type: {text}\r\n")).unwrap_or_default();
    format!("Content-Disposition: form-data; name=\"{}\"{filename}\r\n{media_type}", quoted(&part.name))
}

fn holds(bytes: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(bytes, what).is_some()
}
