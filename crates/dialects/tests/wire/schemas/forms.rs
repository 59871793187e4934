//! What becomes of the forms in which servers write things, target by target.

use serde_json::{Value, json};
use turnwright_dialects::schema::SchemaTarget::{
    Anthropic, AnthropicStrict, Compatible, GeminiJson, GeminiSubset, OpenAi, OpenAiStrict,
};
use turnwright_dialects::schema::{Lowered, SchemaTarget, Strictness, compile};

use super::corpus::named;

fn lowered(name: &str, target: SchemaTarget) -> Lowered {
    compile(&named(name), target).unwrap()
}

/// The lowered schema and what was lost, as a person reads it.
fn told(name: &str, target: SchemaTarget) -> (Value, Vec<String>) {
    let Lowered { schema, losses, .. } = lowered(name, target);
    (schema, losses.iter().map(ToString::to_string).collect())
}

#[test]
fn nothing_is_lost_of_an_ordinary_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Path below one of the roots"},
            "head": {"type": "integer", "minimum": 1}, "tail": {"type": "integer", "minimum": 1}},
        "required": ["path"],
        "additionalProperties": false,
    });
    for target in [OpenAi, Anthropic, GeminiJson, Compatible] {
        assert_eq!(told("zod3/read_file", target), (schema.clone(), vec![]), "{target:?}");
    }
}

#[test]
fn a_schema_of_optional_properties_becomes_strict_with_null_for_those_that_are_left_out() {
    let strict = lowered("handwritten/closed_optional", OpenAiStrict);
    let schema = json!({
        "type": "object",
        "required": ["a", "b", "c", "d"],
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["integer", "null"]},
            "c": {"type": ["array", "null"], "items": {"type": "string"}},
            "d": {"type": ["object", "null"], "required": ["x"], "additionalProperties": false,
                "properties": {"x": {"enum": ["p", "q", null], "type": ["string", "null"]}}},
        },
        "additionalProperties": false,
    });
    assert_eq!((strict.schema, strict.strict, strict.losses), (schema, Strictness::Strict, vec![]));
}

#[test]
fn what_cannot_be_made_strict_says_why() {
    for (name, why) in [
        ("handwritten/type_alone", "the root: the object is open: `additionalProperties` is not false"),
        ("zod3/write_file", ""),
        ("zod3/create_issue", "/properties/title/minLength: strict mode has no such keyword"),
        ("zod3/http_request", "/properties/url/format: strict mode has no such keyword"),
        (
            "zod4/vector_search",
            "/properties/filter/properties/and/items/properties/and/items/$ref: `__schema0` contains itself: left open from here on",
        ),
        (
            "handwritten/root_any_of_tagged",
            "/anyOf: the alternatives became one object: their properties are all there, and required where all require them",
        ),
        ("hostile/enum_large", "/properties/a/enum: more than 1000 values are listed"),
    ] {
        let because = match lowered(name, OpenAiStrict).strict {
            Strictness::Loose { because } => because,
            Strictness::Strict => String::new(),
            Strictness::NotAsked => panic!("{name}"),
        };
        assert_eq!(because, why, "{name}");
    }
}

#[test]
fn what_may_be_null_already_stays_as_it_is_where_it_is_optional_too() {
    let strict = lowered("handwritten/closed_optional_nullable", OpenAiStrict);
    let properties = &strict.schema["properties"];
    let types = [&properties["path"]["type"], &properties["depth"]["type"]];
    assert_eq!(types, [&json!(["string", "null"]), &json!(["integer", "null"])]);
    assert_eq!((&strict.schema["required"], strict.strict), (&json!(["path", "depth"]), Strictness::Strict));
}

#[test]
fn a_strict_tool_of_anthropic_keeps_what_is_optional_and_says_why_where_it_cannot_be() {
    let strict = lowered("handwritten/closed_optional", AnthropicStrict);
    assert_eq!(strict.strict, Strictness::Strict);
    assert_eq!(strict.schema, lowered("handwritten/closed_optional", Anthropic).schema);
    for (name, why) in [
        ("handwritten/type_alone", "the root: the object is open: `additionalProperties` is not false"),
        ("zod3/read_file", "/properties/head/minimum: a strict tool has no such keyword"),
        ("zod3/create_issue", "/properties/title/minLength: a strict tool has no such keyword"),
        (
            "handwritten/root_any_of_tagged",
            "/anyOf: the alternatives became one object: their properties are all there, and required where all require them",
        ),
    ] {
        let Lowered { schema, strict, .. } = lowered(name, AnthropicStrict);
        let because = match strict {
            Strictness::Loose { because } => because,
            Strictness::Strict => String::new(),
            Strictness::NotAsked => panic!("{name}"),
        };
        assert_eq!(because, why, "{name}");
        assert_eq!(schema, lowered(name, Anthropic).schema, "{name}");
    }
    let mode = json!({"type": "string", "enum": ["overwrite", "append"], "description": "(Default: \"overwrite\")"});
    let with_default = lowered("zod3/write_file", AnthropicStrict);
    assert_eq!((with_default.strict, &with_default.schema["properties"]["mode"]), (Strictness::Strict, &mode));
    let many: serde_json::Map<String, Value> = (0..25).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let many = json!({"type": "object", "properties": many, "additionalProperties": false});
    let because = "the root: more than 24 optional properties or 16 properties of several types".to_owned();
    assert_eq!(compile(&many, AnthropicStrict).unwrap().strict, Strictness::Loose { because });
}

#[test]
fn alternatives_at_the_root_become_one_object() {
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "string"}, "name": {"type": "string"}, "slug": {"type": "string"}},
        "description": "Give `id`, or `name` and `slug`.",
    });
    for target in [OpenAi, Anthropic, GeminiJson, GeminiSubset, Compatible] {
        let (found, losses) = told("handwritten/one_of_required_sets", target);
        assert_eq!((found, losses.len()), (schema.clone(), 1), "{target:?}");
    }
    let (tagged, _) = told("handwritten/root_any_of_tagged", Anthropic);
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"type": "string", "enum": ["a", "b"]}, "x": {"type": "integer"}, "y": {"type": "string"}},
        "required": ["kind"],
        "additionalProperties": false,
        "description": "Give `x`, or none of these.",
    });
    assert_eq!(tagged, schema);
}

#[test]
fn gemini_gets_its_own_fields_alone() {
    let (schema, losses) = told("handwritten/types_listed", GeminiSubset);
    let expected = json!({"type": "object", "properties": {
        "a": {"anyOf": [{"type": "string", "nullable": true}, {"type": "integer", "nullable": true}]},
        "b": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
    }});
    assert_eq!((schema, losses), (expected, vec![]));
    let (schema, losses) = told("handwritten/enum_mixed", GeminiSubset);
    let expected = json!({"type": "object", "properties": {"value": {"anyOf": [
        {"type": "string", "nullable": true, "enum": ["auto"]},
        {"type": "integer", "description": "(one of [0])", "nullable": true},
        {"type": "number", "description": "(one of [0,1.5])", "nullable": true},
        {"type": "boolean", "description": "(one of [true])", "nullable": true},
    ]}}});
    assert_eq!((schema, losses.len()), (expected, 3));
    let (schema, _) = told("handwritten/exact_bounds", GeminiSubset);
    let expected = json!({"type": "object", "properties": {
        "a": {"type": "integer", "minimum": 1, "maximum": 9},
        "b": {"type": "number", "minimum": 0.5},
        "c": {"type": "integer", "minimum": 2},
    }});
    assert_eq!(schema, expected);
    assert_eq!(told("handwritten/empty_properties", GeminiSubset).0, json!({"type": "object"}));
}

#[test]
fn a_property_name_that_anthropic_refuses_is_told_in_words() {
    let (schema, losses) = told("handwritten/empty_name", Anthropic);
    let expected = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "description": "It also takes the property \"\", of the schema {\"type\":\"string\"}.",
    });
    assert_eq!((schema, losses.len()), (expected, 1));
    assert_eq!(told("handwritten/empty_name", OpenAi).1, Vec::<String>::new());
    let needed = json!({"type": "object", "properties": {"город": {"type": "string"}}, "required": ["город"]});
    let told = compile(&needed, Anthropic).unwrap().schema;
    assert_eq!(told["description"], "It needs the property \"город\", of the schema {\"type\":\"string\"}.");
}

#[test]
fn references_of_every_kind_are_put_in_place() {
    let text = json!({"type": "string"});
    let expected = json!({"a": text, "b": {"type": "integer"}, "c": {"type": "boolean"}, "d": {"type": "number"}});
    assert_eq!(lowered("handwritten/escaped_pointer", OpenAi).schema.get("properties"), Some(&expected));
    let expected = json!({"a": {"type": "string", "minLength": 1}, "b": {"type": "string", "maxLength": 3}});
    assert_eq!(lowered("handwritten/relative_ids", OpenAi).schema.get("properties"), Some(&expected));
    let expected = json!({"id": text, "a": {"type": "string", "minLength": 1}, "b": {"type": "integer"}});
    assert_eq!(lowered("handwritten/draft4_ids", OpenAi).schema.get("properties"), Some(&expected));
    let expected = json!({"a": {"minLength": 3, "description": "The name.", "type": "string", "maxLength": 20}});
    assert_eq!(lowered("handwritten/ref_with_siblings", OpenAi).schema.get("properties"), Some(&expected));
    let expected = json!({"a": {"description": "kept", "type": "string"}});
    assert_eq!(lowered("handwritten/draft7_ref_ignores_siblings", OpenAi).schema.get("properties"), Some(&expected));
}

#[test]
fn remote_references_are_refused_and_never_fetched() {
    let error = compile(&named("hostile/ref_metadata_service"), Anthropic).unwrap_err().to_string();
    let expected = "`http://169.254.169.254/latest` is another document; only references within the schema are followed (at /properties/a/$ref)";
    assert_eq!(error, expected);
}

#[test]
fn schemas_that_all_hold_become_one() {
    let (schema, losses) = told("handwritten/all_of_two_refs", OpenAi);
    let expected = json!({"item": {"type": "object", "required": ["id"],
        "properties": {"id": {"type": "integer", "minimum": 1}, "tag": {"type": "string"}}}});
    assert_eq!((schema.get("properties"), losses), (Some(&expected), vec![]));
    let (schema, losses) = told("handwritten/closed_objects_merged", OpenAi);
    let expected = json!({"a": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"not": {}}},
        "additionalProperties": false}});
    assert_eq!((schema.get("properties"), losses), (Some(&expected), vec![]));
}
