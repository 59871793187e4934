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

/// The schema with every object closed. What cannot be demanded is said in the description.
pub(super) fn closed(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut closed = Map::new();
    let mut said = Vec::new();
    for (key, value) in members {
        let is_kept = match key.as_str() {
            "format" => value.as_str().is_some_and(|format| format == "uuid" || FORMATS.contains(&format)),
            "minItems" => value.as_u64().is_some_and(|count| count <= 1),
            key => KEPT.contains(&key),
        };
        match key.as_str() {
            "properties" | "$defs" | "definitions" => drop(closed.insert(key.clone(), each(value))),
            "items" => drop(closed.insert(key.clone(), self::closed(value))),
            "anyOf" | "allOf" => drop(closed.insert(key.clone(), all(value))),
            "oneOf" => drop(closed.insert("anyOf".to_owned(), all(value))),
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
    Value::Object(closed)
}

fn each(schemas: &Value) -> Value {
    let Value::Object(members) = schemas else { return schemas.clone() };
    Value::Object(members.iter().map(|(name, schema)| (name.clone(), closed(schema))).collect())
}

fn all(schemas: &Value) -> Value {
    let Value::Array(list) = schemas else { return schemas.clone() };
    Value::Array(list.iter().map(closed).collect())
}
