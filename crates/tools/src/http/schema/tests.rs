use serde_json::{Value, json};
use turnwright_engine::bounded_validator;

use super::*;

fn document(version: &str, schemas: &Value) -> Document {
    let text = json!({"openapi": version, "components": {"schemas": schemas}});
    Document::read(text.to_string().as_bytes()).unwrap()
}

/// A schema of a document as the only property of a tool.
fn made(version: &str, schemas: &Value, schema: &Value) -> Value {
    let mut all = schemas.clone();
    all["It"] = schema.clone();
    let document = document(version, &all);
    let mut schemas = Schemas::new(&document);
    let it = schemas.add(document.root().pointer("/components/schemas/It").unwrap());
    schemas.finish(Map::from_iter([("it".to_owned(), it)]))
}

fn of(version: &str, schema: &Value) -> Value {
    made(version, &json!({}), schema)["it"].clone()
}

#[test]
fn the_schemas_of_openapi_3_0_become_json_schema() {
    let cases = [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (json!({"type": "string", "nullable": true, "enum": ["a"]}), json!({"type": ["string", "null"], "enum": ["a", null]})),
        (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}), json!({"type": "integer", "exclusiveMinimum": 1})),
        (json!({"type": "integer", "maximum": 9, "exclusiveMaximum": false}), json!({"type": "integer", "maximum": 9})),
        (json!({"type": "integer", "format": "int64", "example": 3}), json!({"type": "integer", "examples": [3]})),
        (
            json!({"allOf": [{"type": "string"}], "nullable": true}),
            json!({"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        ),
        (json!({"nullable": true}), json!({})),
        (
            json!({"type": "object", "required": ["id", "name"], "discriminator": {"propertyName": "x"}, "xml": {}, "x-a": 1,
                "properties": {"id": {"type": "string", "readOnly": true}, "name": {"type": "string", "format": "uuid"}}}),
            json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "format": "uuid"}}}),
        ),
    ];
    for (given, expected) in cases {
        assert_eq!(of("3.0.3", &given), expected, "{given}");
    }
}

#[test]
fn the_schemas_of_openapi_3_1_stay_what_they_are() {
    let schema =
        json!({"type": ["string", "null"], "const": "a", "minLength": 1, "pattern": "^a", "if": {"const": "a"}, "then": true});
    assert_eq!(of("3.1.0", &schema), schema);
    assert_eq!(
        of("3.1.0", &json!({"type": "number", "exclusiveMinimum": 0, "nullable": true})),
        json!({"type": "number", "exclusiveMinimum": 0})
    );
}

#[test]
fn what_is_referred_to_is_there_once_and_circles_stay() {
    let schemas = json!({
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "id": {"$ref": "#/components/schemas/Id"}}},
        "Id": {"type": "string", "readOnly": true}
    });
    let tool = made("3.0.0", &schemas, &json!({"type": "array", "items": {"$ref": "#/components/schemas/Node"}}));
    assert_eq!(
        tool,
        json!({
            "it": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        })
    );
    let elsewhere = of("3.1.0", &json!({"$ref": "other.json#/a"}));
    assert_eq!(
        elsewhere,
        json!({"description": "Anything: it refers to `other.json#/a`, which is another document: nothing is fetched."})
    );
}

#[test]
fn circles_that_no_argument_ends_are_opened() {
    let to = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let schemas = json!({"A": to("B"), "B": {"allOf": [to("C"), {"type": "object"}]}, "C": {"anyOf": [to("A")], "properties": {"a": to("A")}}});
    let tool = made("3.1.0", &schemas, &to("A"));
    let root = json!({"type": "object", "properties": {"it": tool["it"]}, "$defs": tool["$defs"]});
    let validator = bounded_validator(&root).unwrap();
    assert_eq!(validator.fits(&json!({"it": {"a": {"a": {}}}})), Some(true));
    assert_eq!(validator.fits(&json!({"it": {"a": 1}})), Some(false), "{root}");
}

#[test]
fn a_schema_does_not_grow_beyond_its_size() {
    let wide: Map<String, Value> =
        (0..5_000).map(|n| (format!("p{n}"), json!({"type": "string", "description": "word ".repeat(50)}))).collect();
    let chain: Map<String, Value> = (0..5_000)
        .map(|n| {
            (
                format!("S{n}"),
                json!({"type": "object", "properties": {"next": {"$ref": format!("#/components/schemas/S{}", n + 1)}}}),
            )
        })
        .collect();
    let cases = [
        json!({"type": "object", "properties": wide}),
        json!({"$ref": "#/components/schemas/S0"}),
        json!({"enum": vec!["word"; 50_000]}),
    ];
    for schema in cases {
        let tool = made("3.1.0", &Value::Object(chain.clone()), &schema);
        let definitions = tool.get("$defs").cloned().unwrap_or_else(|| json!({}));
        let root = json!({"type": "object", "properties": {"it": tool["it"]}, "$defs": definitions});
        let size = tool.to_string().len();
        assert!(size < 2 * MAX_BYTES, "{size}");
        assert!(bounded_validator(&root).is_some(), "{}", schema.to_string().len());
    }
}
