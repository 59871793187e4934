//! The smallest arguments that a schema takes, about.

use serde_json::{Map, Value, json};

/// How deep schemas are followed.
const MAX_DEPTH: usize = 8;

/// The properties that an object schema requires, each with the smallest value of its kind.
pub(super) fn smallest(schema: &Value) -> Map<String, Value> {
    object(schema, 0)
}

fn object(schema: &Value, depth: usize) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names = required.filter_map(Value::as_str);
    names
        .map(|name| {
            let property = schema.get("properties").and_then(|properties| properties.get(name));
            (name.to_owned(), property.map_or_else(|| json!("x"), |property| value(property, depth + 1)))
        })
        .collect()
}

fn value(schema: &Value, depth: usize) -> Value {
    if let Some(given) = schema.get("const").or_else(|| schema.get("default")) {
        return given.clone();
    }
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return first.clone();
    }
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        _ => None,
    };
    match kind {
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(16);
            (0..least).map(|_| schema.get("items").map_or(json!("x"), |items| value(items, depth + 1))).collect()
        }
        Some("object") => Value::Object(object(schema, depth)),
        Some("null") => Value::Null,
        _ => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(1).clamp(1, 1_024);
            Value::from("x".repeat(usize::try_from(least).unwrap_or(1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_gets_the_smallest_value_of_its_kind() {
        let schema = json!({"type": "object", "required": ["a", "b", "c", "d", "e", "f", "g"], "properties": {
            "a": {"type": "number"}, "b": {"type": "string", "minLength": 3}, "c": {"type": "boolean"},
            "d": {"enum": ["one", "two"]}, "e": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 5}},
            "f": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}, "left_out": {"type": "string"},
        }});
        let expected = json!({"a": 1, "b": "xxx", "c": true, "d": "one", "e": [5], "f": {"x": "x"}, "g": "x"});
        assert_eq!(Value::Object(smallest(&schema)), expected);
    }
}
