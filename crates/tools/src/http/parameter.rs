//! A parameter of an operation: where it goes, and how it is written there.

use serde_json::Value;

use super::description::{Broken, Document};
use super::style::{Escaping, Style, Way};

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Path,
    Query,
    Header,
    Cookie,
}

/// Headers that are ours to write, or the connection's (OpenAPI 3.1, section 4.8.12.2, and RFC 9110).
const OUR_HEADERS: [&str; 12] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A parameter as the description says it.
#[derive(Debug, Clone)]
pub(super) struct Parameter<'d> {
    pub(super) name: &'d str,
    pub(super) place: Place,
    pub(super) required: bool,
    pub(super) form: Form,
    pub(super) description: Option<&'d str>,
    pub(super) schema: Option<&'d Value>,
    pub(super) is_deprecated: bool,
}

/// How a value becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Styled(Way),
    /// As JSON, which is text then.
    Json,
    /// As it is.
    Plain,
}

impl Place {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// Reads a parameter; nothing where it is to be ignored.
pub(super) fn read<'d>(document: &'d Document, written: &'d Value) -> Result<Option<Parameter<'d>>, String> {
    let value = document.resolved(written).map_err(|broken: Broken| format!("a parameter of it is not usable: {broken}"))?;
    let name = value.get("name").and_then(Value::as_str).ok_or("a parameter of it has no name")?;
    let place = match value.get("in").and_then(Value::as_str) {
        Some("path") => Place::Path,
        Some("query") => Place::Query,
        Some("header") => Place::Header,
        Some("cookie") => Place::Cookie,
        Some(other) => {
            let other: String = other.chars().take(30).collect();
            return Err(format!("its parameter `{name}` is in `{other}`, which is no place that is known"));
        }
        None => return Err(format!("its parameter `{name}` says no place (`in`)")),
    };
    if place == Place::Header {
        if OUR_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return Ok(None);
        }
        if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(format!("its parameter `{name}` is no name of a header"));
        }
    }
    let is_true = |key: &str| value.get(key) == Some(&Value::Bool(true));
    let content = value.get("content").and_then(Value::as_object).and_then(|content| content.iter().next());
    let (form, schema) = match content {
        Some((media_type, content)) => {
            let form = if is_json(media_type) { Form::Json } else { Form::Plain };
            (form, content.get("schema"))
        }
        None => (Form::Styled(way(value, place, name)?), value.get("schema")),
    };
    Ok(Some(Parameter {
        name,
        place,
        required: place == Place::Path || is_true("required"),
        form,
        description: value.get("description").and_then(Value::as_str),
        schema,
        is_deprecated: is_true("deprecated"),
    }))
}

fn way(value: &Value, place: Place, name: &str) -> Result<Way, String> {
    let usual = match place {
        Place::Path | Place::Header => Style::Simple,
        Place::Query | Place::Cookie => Style::Form,
    };
    let style = match value.get("style").and_then(Value::as_str) {
        None => usual,
        // Its cookies are not to be escaped; ours are, so that none can be put in between.
        Some("cookie") if place == Place::Cookie => Style::Form,
        Some(text) => Style::of(text).ok_or_else(|| {
            let text: String = text.chars().take(30).collect();
            format!("its parameter `{name}` has the style `{text}`, which is not known")
        })?,
    };
    let fits = match place {
        Place::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Place::Header => style == Style::Simple,
        Place::Query => matches!(style, Style::Form | Style::SpaceDelimited | Style::PipeDelimited | Style::DeepObject),
        Place::Cookie => style == Style::Form,
    };
    if !fits {
        return Err(format!("its parameter `{name}` has a style that is not for the {}", place.as_str()));
    }
    let explode = value.get("explode").and_then(Value::as_bool).unwrap_or(style == Style::Form);
    let escaping = match place {
        Place::Header => Escaping::None,
        Place::Query if value.get("allowReserved") == Some(&Value::Bool(true)) => Escaping::Reserved,
        Place::Path | Place::Query | Place::Cookie => Escaping::Strict,
    };
    Ok(Way { style, explode, escaping })
}

/// Whether a media type is JSON.
pub(super) fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}
