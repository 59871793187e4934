//! What a tool wants, read from its JSON Schema.

use serde_json::Value;

use super::words::split;

/// An argument of a tool.
#[derive(Debug, Clone)]
pub(super) struct Argument<'a> {
    pub(super) name: &'a str,
    pub(super) is_required: bool,
    pub(super) want: Want<'a>,
}

/// What kind of value an argument takes.
#[derive(Debug, Clone)]
pub(super) enum Want<'a> {
    /// One of these.
    OneOf(Vec<&'a Value>),
    Boolean,
    Integer,
    Number,
    Text(Hint),
    List(Box<Want<'a>>),
    /// Something that a question does not hold, such as an object.
    Other,
}

/// What the text is, as the argument's name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Path,
    Url,
    Zone,
    Time,
    Any,
}

/// The arguments that a schema names, in its order.
pub(super) fn arguments_of(schema: &Value) -> Vec<Argument<'_>> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .map(|(name, property)| Argument {
            name,
            is_required: required.contains(&name.as_str()),
            want: want_of(schema, property, hint_of(name, property), MAX_DEPTH),
        })
        .collect()
}

/// How many references and lists are followed.
const MAX_DEPTH: usize = 4;

fn want_of<'a>(root: &'a Value, property: &'a Value, hint: Hint, depth: usize) -> Want<'a> {
    let Some(depth) = depth.checked_sub(1) else { return Want::Other };
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return Want::OneOf(values.iter().filter(|value| !value.is_null()).collect());
    }
    if let Some(value) = property.get("const") {
        return Want::OneOf(vec![value]);
    }
    let target = property.get("$ref").and_then(Value::as_str).and_then(|to| root.pointer(to.strip_prefix('#')?));
    if let Some(target) = target {
        return want_of(root, target, hint, depth);
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter().find_map(|word| property.get(word)?.as_array());
    if let Some(choices) = choices {
        let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) == Some("null");
        let values: Vec<&Value> = choices.iter().filter_map(|choice| choice.get("const")).collect();
        if !values.is_empty() && values.len() == choices.len() {
            return Want::OneOf(values);
        }
        return choices.iter().find(|choice| !is_null(choice)).map_or(Want::Other, |choice| want_of(root, choice, hint, depth));
    }
    let kind = match property.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null"),
        _ => "string",
    };
    match kind {
        "string" => Want::Text(hint),
        "integer" => Want::Integer,
        "number" => Want::Number,
        "boolean" => Want::Boolean,
        "array" => match property.get("items") {
            Some(items) => Want::List(Box::new(want_of(root, items, hint, depth))),
            None => Want::List(Box::new(Want::Text(hint))),
        },
        _ => Want::Other,
    }
}

fn hint_of(name: &str, property: &Value) -> Hint {
    let words = split(name);
    let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    if property.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uri"))
        || has(&["url", "uri", "urls", "uris"])
    {
        Hint::Url
    } else if has(&["path", "paths", "file", "files", "filename", "filepath", "dir", "directory", "folder", "cwd"]) {
        Hint::Path
    } else if has(&["timezone", "tz", "zone"]) {
        Hint::Zone
    } else if has(&["time"]) {
        Hint::Time
    } else {
        Hint::Any
    }
}
