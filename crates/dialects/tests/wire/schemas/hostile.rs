//! Schemas that would break a careless reader, too large or too deep for a file.

use serde_json::{Map, Value, json};
use turnwright_dialects::schema::{SchemaTarget, compile};

use super::check;

#[test]
fn ten_thousand_levels_are_refused_without_a_stack_overflow() {
    type Wrap = fn(Value) -> Value;
    // Not `json!`, which would go as deep itself.
    let wraps: [Wrap; 4] = [
        |inner| member("properties", member("a", inner)),
        |inner| member("items", inner),
        |inner| member("allOf", Value::Array(vec![inner])),
        |inner| member("default", Value::Array(vec![inner])),
    ];
    for wrap in wraps {
        let mut schema = json!({"type": "object"});
        for _ in 0..10_000 {
            schema = wrap(schema);
        }
        for target in SchemaTarget::ALL {
            let error = compile(&schema, target).unwrap_err().to_string();
            assert_eq!(error, "the schema is nested more than 127 levels deep");
        }
        // Dropping so deep a value goes as deep itself.
        take_apart(schema);
    }
}

fn member(name: &str, value: Value) -> Value {
    Value::Object(std::iter::once((name.to_owned(), value)).collect())
}

fn take_apart(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => open.extend(members.into_iter().map(|(_, value)| value)),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}

#[test]
fn a_chain_of_ten_thousand_references_ends() {
    let mut definitions = Map::new();
    for index in 0..10_000 {
        definitions.insert(format!("d{index}"), json!({"$ref": format!("#/$defs/d{}", index + 1)}));
    }
    definitions.insert("d10000".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    for target in SchemaTarget::ALL {
        check("a chain", &schema, target);
    }
}

#[test]
fn many_references_to_a_large_schema_stay_bounded() {
    let values: Vec<String> = (0..2_000).map(|index| format!("value number {index}")).collect();
    let properties: Map<String, Value> =
        (0..2_000).map(|index| (format!("p{index}"), json!({"$ref": "#/$defs/large"}))).collect();
    let schema = json!({"type": "object", "properties": properties, "$defs": {"large": {"type": "string", "enum": values}}});
    for target in SchemaTarget::ALL {
        let lowered = check("many references", &schema, target);
        assert!(lowered.losses.iter().any(|loss| loss.to_string().contains("comes to more than 131072 bytes")));
    }
}

#[test]
fn a_schema_that_is_too_large_is_refused() {
    let schema = json!({"type": "object", "description": "x".repeat(2 << 20)});
    let error = compile(&schema, SchemaTarget::Anthropic).unwrap_err().to_string();
    assert_eq!(error, "the schema is larger than 1048576 bytes");
}

#[test]
fn a_long_description_is_cut_at_a_character() {
    let schema = json!({"type": "object", "description": "ü".repeat(100_000)});
    for target in SchemaTarget::ALL {
        let lowered = check("a long description", &schema, target);
        assert_eq!(lowered.schema.get("description").and_then(Value::as_str).map(str::len), Some(8_191));
        assert_eq!(lowered.losses.first().unwrap().to_string(), "/description: cut: it has 200000 bytes, limit 8192");
    }
}

#[test]
fn wide_lists_of_schemas_are_read_to_their_end() {
    let branches: Vec<Value> =
        (0..1_000).map(|index| json!({"type": "object", "properties": {format!("p{index}"): {"type": "string"}}})).collect();
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let nested = json!({"type": "object", "properties": {"a": {keyword: branches}}});
        let root = json!({"type": "object", keyword: branches});
        for target in SchemaTarget::ALL {
            check(keyword, &nested, target);
            check(keyword, &root, target);
        }
    }
}
