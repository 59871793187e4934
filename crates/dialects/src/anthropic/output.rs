//! The schema of an answer, as far as the format holds a model to it.

use serde_json::{Map, Value};

/// The keywords that mean the same there.
const KEPT: [&str; 14] = [
    "$defs",
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "format",
    "items",
    "minItems",
    "properties",
    "required",
    "type",
];
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"];

/// The schema with every object closed. What cannot be demanded is said in the description. `None` where an object has properties
/// that the schema does not name: closed, it would hold nothing of them.
pub(super) fn closed(schema: &Value) -> Option<Value> {
    let Value::Object(members) = schema else { return Some(schema.clone()) };
    if is_map(members) {
        return None;
    }
    let mut closed = Map::new();
    let mut said = Vec::new();
    for (key, value) in members {
        let is_kept = match key.as_str() {
            "format" => value.as_str().is_some_and(|format| format == "uuid" || FORMATS.contains(&format)),
            "minItems" => value.as_u64().is_some_and(|count| count <= 1),
            key => KEPT.contains(&key),
        };
        match key.as_str() {
            "properties" | "$defs" | "definitions" => drop(closed.insert(key.clone(), each(value)?)),
            "items" => drop(closed.insert(key.clone(), self::closed(value)?)),
            "anyOf" | "allOf" => drop(closed.insert(key.clone(), all(value)?)),
            "oneOf" => drop(closed.insert("anyOf".to_owned(), all(value)?)),
            _ if is_kept => drop(closed.insert(key.clone(), value.clone())),
            "additionalProperties" | "$schema" | "$id" | "title" | "default" | "examples" => {}
            _ => said.push(format!("{key}: {value}")),
        }
    }
    let is_object = closed.get("type").is_some_and(|kind| kind == "object") || closed.contains_key("properties");
    if is_object {
        closed.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    if !said.is_empty() {
        let before = closed.get("description").and_then(Value::as_str).map(|text| format!("{text} ")).unwrap_or_default();
        closed.insert("description".to_owned(), Value::from(format!("{before}{{{}}}", said.join(", "))));
    }
    Some(Value::Object(closed))
}

/// Whether an object is one of names that only whoever writes it knows.
fn is_map(members: &Map<String, Value>) -> bool {
    let named = members.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    let is_object = match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        kind => kind.is_some_and(|kind| kind == "object"),
    };
    let is_combined = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| members.contains_key(*keyword));
    match members.get("additionalProperties") {
        Some(Value::Bool(false)) => false,
        Some(Value::Object(schema)) if !schema.is_empty() => true,
        Some(_) | None => is_object && named == 0 && !is_combined,
    }
}

fn each(schemas: &Value) -> Option<Value> {
    let Value::Object(members) = schemas else { return Some(schemas.clone()) };
    let closed = members.iter().map(|(name, schema)| Some((name.clone(), closed(schema)?)));
    Some(Value::Object(closed.collect::<Option<_>>()?))
}

fn all(schemas: &Value) -> Option<Value> {
    let Value::Array(list) = schemas else { return Some(schemas.clone()) };
    list.iter().map(closed).collect::<Option<_>>().map(Value::Array)
}
