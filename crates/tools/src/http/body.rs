//! The body of a request: which form is chosen of those that an operation takes, and how it is written.

mod multipart;

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::description::Document;
use super::parameter::is_json;
use super::schema::Schemas;
use super::style::{Escaping, Style, Way, escaped, plain};

/// What an operation takes besides its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Body {
    /// The argument that holds it.
    pub(super) argument: String,
    pub(super) required: bool,
    media_type: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Json,
    Form(HashMap<String, Encoding>),
    Multipart(HashMap<String, Encoding>),
    Text,
    File,
}

/// How a member of a form is written.
#[derive(Debug, Clone, Default, PartialEq)]
struct Encoding {
    way: Option<Way>,
    media_type: Option<String>,
}

/// A file as an argument.
pub(super) fn file_schema(description: Option<&str>) -> Value {
    let words = "A file: its `text`, or its bytes as `base64`.";
    json!({
        "type": "object",
        "description": description.map_or_else(|| words.to_owned(), |more| format!("{words} {more}")),
        "properties": {
            "filename": { "type": "string" },
            "media_type": { "type": "string", "examples": ["image/png"] },
            "text": { "type": "string" },
            "base64": { "type": "string" },
        },
        "additionalProperties": false,
    })
}

/// A file that was given as an argument.
struct File<'a> {
    name: &'a str,
    media_type: Option<&'a str>,
    bytes: Vec<u8>,
}

/// The body of an operation and the schema of its argument, whose name is to be filled in; nothing where it takes none.
pub(super) fn read<'d>(
    document: &'d Document,
    written: Option<&'d Value>,
    schemas: &mut Schemas<'d>,
) -> Result<Option<(Body, Value)>, String> {
    let Some(written) = written else { return Ok(None) };
    let value = document.resolved(written).map_err(|broken| format!("its body is not usable: {broken}"))?;
    let Some(content) = value.get("content").and_then(Value::as_object) else { return Ok(None) };
    let Some((media_type, content)) = content.iter().min_by_key(|(name, _)| rank(name)) else { return Ok(None) };
    let essence = essence(media_type);
    let schema = content.get("schema");
    let encodings = content.get("encoding").and_then(Value::as_object);
    let made = |schemas: &mut Schemas<'d>| schema.map_or_else(|| json!({}), |schema| schemas.add(schema));
    let (kind, mut schema) = match rank(media_type) {
        JSON | ANY => (Kind::Json, made(schemas)),
        FORM => (Kind::Form(encodings_of(encodings)), made(schemas)),
        MULTIPART => (Kind::Multipart(encodings_of(encodings)), parts(document, schema, schemas)),
        TEXT => (Kind::Text, json!({ "type": "string" })),
        _ => (Kind::File, file_schema(None)),
    };
    if let (Some(object), Some(description)) = (schema.as_object_mut(), value.get("description").and_then(Value::as_str)) {
        let line = super::text::shortened(description, 400);
        object.entry("description").or_insert_with(|| line.into());
    }
    let required = value.get("required") == Some(&Value::Bool(true));
    // What is no type of its own is sent as what it becomes.
    let media_type = match kind {
        Kind::Json if !is_json(media_type) => "application/json".to_owned(),
        Kind::File if essence.contains('*') => "application/octet-stream".to_owned(),
        Kind::Text if essence.contains('*') => "text/plain".to_owned(),
        _ => essence,
    };
    if reqwest::header::HeaderValue::from_str(&media_type).is_err() {
        return Err("its body has a media type that cannot be sent".to_owned());
    }
    Ok(Some((Body { argument: String::new(), required, media_type, kind }, schema)))
}

const JSON: u8 = 0;
const FORM: u8 = 1;
const MULTIPART: u8 = 2;
const TEXT: u8 = 3;
const ANY: u8 = 4;
const OTHER: u8 = 5;

/// Which form is chosen: the one that says most about what is meant.
fn rank(media_type: &str) -> u8 {
    let essence = essence(media_type);
    match essence.as_str() {
        _ if is_json(&essence) => JSON,
        "application/x-www-form-urlencoded" => FORM,
        "multipart/form-data" => MULTIPART,
        "application/xml" | "application/graphql" | "application/yaml" | "application/x-yaml" | "application/x-ndjson" => TEXT,
        "*/*" | "application/*" => ANY,
        _ if essence.starts_with("text/") || essence.ends_with("+xml") => TEXT,
        _ => OTHER,
    }
}

fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn encodings_of(written: Option<&Map<String, Value>>) -> HashMap<String, Encoding> {
    let read = |(name, value): (&String, &Value)| {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let style = text("style").and_then(Style::of);
        let explode = value.get("explode").and_then(Value::as_bool);
        let reserved = value.get("allowReserved") == Some(&Value::Bool(true));
        // As for a query, where one of them is said.
        let way = (style.is_some() || explode.is_some() || reserved).then(|| {
            let style = style.unwrap_or(Style::Form);
            let escaping = if reserved { Escaping::Reserved } else { Escaping::Strict };
            Way { style, explode: explode.unwrap_or(style == Style::Form), escaping }
        });
        let first = text("contentType").and_then(|types| types.split(',').next()).map(str::trim);
        let media_type = first.filter(|text| !text.contains('*') && !text.contains(char::is_control)).map(str::to_owned);
        (name.clone(), Encoding { way, media_type })
    };
    written.into_iter().flatten().map(read).collect()
}

/// The schema of a form in parts: what is bytes becomes a file.
fn parts<'d>(document: &'d Document, schema: Option<&'d Value>, schemas: &mut Schemas<'d>) -> Value {
    let resolved = schema.and_then(|schema| document.resolved(schema).ok());
    let Some(properties) = resolved.and_then(|schema| schema.get("properties")).and_then(Value::as_object) else {
        return schema.map_or_else(|| json!({ "type": "object" }), |schema| schemas.add(schema));
    };
    let mut made = Map::new();
    for (name, property) in properties {
        let said = |value: &'d Value| value.get("description").and_then(Value::as_str);
        let resolved = document.resolved(property).unwrap_or(property);
        let items = resolved.get("items").and_then(|items| document.resolved(items).ok());
        let schema = if is_file(resolved) {
            file_schema(said(resolved))
        } else if items.is_some_and(is_file) {
            json!({ "type": "array", "items": file_schema(said(resolved)) })
        } else {
            schemas.add(property)
        };
        made.insert(name.clone(), schema);
    }
    let required = resolved.and_then(|schema| schema.get("required")).filter(|names| names.is_array());
    json!({ "type": "object", "properties": made, "required": required.cloned().unwrap_or_else(|| json!([])) })
}

fn is_file(schema: &Value) -> bool {
    schema.get("format").is_some_and(|format| format == "binary") || schema.get("contentMediaType").is_some()
}

impl Body {
    /// The same in the argument of this name.
    pub(super) fn called(self, argument: String) -> Self {
        Self { argument, ..self }
    }

    /// The body as it is sent, with its media type. `mark` parts a form in parts.
    pub(super) fn written(&self, value: &Value, mark: &str) -> Result<(String, Vec<u8>), String> {
        let whole = |bytes: Vec<u8>| (self.media_type.clone(), bytes);
        match &self.kind {
            Kind::Json => Ok(whole(value.to_string().into_bytes())),
            Kind::Form(encodings) => Ok(whole(form(self.members(value)?, encodings).into_bytes())),
            Kind::Multipart(encodings) => multipart::written(self.members(value)?, encodings, mark),
            Kind::Text => {
                let text = value.as_str().ok_or_else(|| format!("`{}` must be a text", self.argument))?;
                Ok((format!("{}; charset=utf-8", self.media_type), text.as_bytes().to_vec()))
            }
            Kind::File => {
                let file = file(value).map_err(|why| format!("`{}`: {why}", self.argument))?;
                Ok((file.media_type.map_or_else(|| self.media_type.clone(), str::to_owned), file.bytes))
            }
        }
    }

    fn members<'v>(&self, value: &'v Value) -> Result<&'v Map<String, Value>, String> {
        value.as_object().ok_or_else(|| format!("`{}` must be an object", self.argument))
    }
}

/// `application/x-www-form-urlencoded` (OpenAPI 3.1, section 4.8.15.1): lists repeat their name, objects are JSON unless a style is said.
fn form(members: &Map<String, Value>, encodings: &HashMap<String, Encoding>) -> String {
    let usual = Way { style: Style::Form, explode: true, escaping: Escaping::Strict };
    let mut pairs = Vec::new();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        match encodings.get(name).and_then(|encoding| encoding.way) {
            Some(way) => pairs.extend(way.pairs(name, value)),
            None if value.is_object() => pairs.push((usual.escaped(name), usual.escaped(&plain(value)))),
            None => pairs.extend(usual.pairs(name, value)),
        }
    }
    pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn file(value: &Value) -> Result<File<'_>, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let bytes = match (text("text"), text("base64")) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(coded)) => {
            let coded: String = coded.split_whitespace().collect();
            STANDARD.decode(coded).map_err(|error| format!("its `base64` cannot be read: {error}"))?
        }
        (Some(_), Some(_)) | (None, None) => return Err("a file must have either `text` or `base64`".to_owned()),
    };
    let media_type = text("media_type").filter(|text| reqwest::header::HeaderValue::from_str(text).is_ok());
    Ok(File { name: text("filename").unwrap_or("file"), media_type, bytes })
}

/// A name within quotes of a header, as browsers write it (HTML, "multipart/form-data").
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// Whether a text may be a name of a part as it is.
fn is_header_text(text: &str) -> bool {
    !text.contains(|letter: char| letter.is_control())
}

/// What marks the ends of parts: letters of a key that nobody else has.
fn boundary(mark: &str) -> String {
    let plain: String = escaped(mark, Escaping::Strict).chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("turnwright-{plain}")
}

#[cfg(test)]
mod tests;
