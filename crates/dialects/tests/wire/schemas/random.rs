//! Schemas that nobody thought of.

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};
use turnwright_dialects::schema::{SchemaTarget, compile, compile_or_any};

use super::check;
use super::equal::compare;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-d]", 1 => Just(String::new()), 1 => Just("a b".to_owned()), 1 => Just("$ref".to_owned())]
}

fn kind() -> impl Strategy<Value = Value> {
    let one = proptest::sample::select(vec!["string", "integer", "number", "boolean", "null", "array", "object"]);
    prop_oneof![4 => one.clone().prop_map(Value::from), 1 => proptest::collection::vec(one, 1..4).prop_map(|all| json!(all))]
}

fn literal() -> impl Strategy<Value = Value> {
    proptest::sample::select(vec![
        json!("a"),
        json!(""),
        json!(0),
        json!(1.5),
        json!(true),
        json!(null),
        json!([1]),
        json!({"a": 1}),
    ])
}

/// A keyword that holds no schema.
fn simple() -> impl Strategy<Value = (String, Value)> {
    prop_oneof![
        kind().prop_map(|kind| ("type".to_owned(), kind)),
        proptest::collection::vec(literal(), 1..4).prop_map(|all| ("enum".to_owned(), json!(all))),
        literal().prop_map(|value| ("const".to_owned(), value)),
        literal().prop_map(|value| ("default".to_owned(), value)),
        (proptest::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), -3..4_i32)
            .prop_map(|(keyword, limit)| (keyword.to_owned(), json!(limit))),
        (proptest::sample::select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties"]), 0..3_u32)
            .prop_map(|(keyword, limit)| (keyword.to_owned(), json!(limit))),
        proptest::collection::vec(name(), 0..3).prop_map(|names| ("required".to_owned(), json!(names))),
        Just(("pattern".to_owned(), json!("^[a-c]*$"))),
        Just(("uniqueItems".to_owned(), json!(true))),
        Just(("description".to_owned(), json!("Said."))),
        Just(("$ref".to_owned(), json!("#/$defs/a"))),
        Just(("$ref".to_owned(), json!("#"))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        6 => proptest::collection::vec(simple(), 0..3).prop_map(|all| Value::Object(all.into_iter().collect())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let one = (
            proptest::sample::select(vec![
                "items",
                "additionalProperties",
                "not",
                "if",
                "then",
                "else",
                "contains",
                "propertyNames",
                "unevaluatedProperties",
            ]),
            inner.clone(),
        );
        let list = (
            proptest::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]),
            proptest::collection::vec(inner.clone(), 1..4),
        );
        let map = (
            proptest::sample::select(vec!["properties", "properties", "patternProperties", "dependentSchemas"]),
            proptest::collection::vec((name(), inner), 0..4),
        );
        let holder = prop_oneof![
            one.prop_map(|(keyword, schema)| (keyword.to_owned(), schema)),
            list.prop_map(|(keyword, all)| (keyword.to_owned(), Value::Array(all))),
            map.prop_map(|(keyword, all)| (keyword.to_owned(), Value::Object(all.into_iter().collect()))),
        ];
        (proptest::collection::vec(simple(), 0..3), proptest::collection::vec(holder, 1..4))
            .prop_map(|(simple, holders)| Value::Object(simple.into_iter().chain(holders).collect()))
    })
}

fn tool() -> impl Strategy<Value = Value> {
    (
        proptest::collection::vec((name(), schema()), 0..4),
        schema(),
        schema(),
        proptest::collection::vec(name(), 0..2),
        any::<bool>(),
    )
        .prop_map(|(properties, extra, definition, required, is_closed)| {
            let mut tool = extra.as_object().cloned().unwrap_or_default();
            tool.insert("type".to_owned(), json!("object"));
            let properties = properties.into_iter().collect();
            tool.insert("properties".to_owned(), Value::Object(properties));
            tool.insert("required".to_owned(), json!(required));
            tool.insert("$defs".to_owned(), json!({"a": definition}));
            if is_closed {
                tool.insert("additionalProperties".to_owned(), json!(false));
            }
            Value::Object(tool)
        })
}

/// Any JSON at all.
fn garbage() -> impl Strategy<Value = Value> {
    let keywords = vec![
        "type",
        "properties",
        "items",
        "anyOf",
        "allOf",
        "$ref",
        "enum",
        "const",
        "required",
        "not",
        "$id",
        "$defs",
        "minimum",
        "pattern",
        "description",
        "additionalProperties",
        "if",
        "then",
        "dependencies",
        "prefixItems",
        "a",
    ];
    let leaf = prop_oneof![
        literal(),
        proptest::sample::select(vec!["object", "string", "#", "#/a", "#/properties/a", "http://x.test/"])
            .prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let key = proptest::sample::select(keywords.clone());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..5)
                .prop_map(|all| Value::Object(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())),
        ]
    })
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_schema_obeys_every_targets_rules(schema in tool()) {
        for target in SchemaTarget::ALL {
            if compile(&schema, target).is_ok() {
                check("a random schema", &schema, target);
            }
        }
    }

    #[test]
    fn any_schema_without_references_accepts_what_its_losses_say(schema in tool()) {
        // What refers to the whole of itself goes on for ever in the library that is asked here.
        if !schema.to_string().contains("$ref\":\"#") {
            for target in SchemaTarget::ALL {
                if let Ok(lowered) = compile(&schema, target) {
                    compare("a random schema", &schema, &lowered, target);
                }
            }
        }
    }

    #[test]
    fn any_json_is_compiled_or_refused(value in garbage()) {
        for target in SchemaTarget::ALL {
            match compile(&value, target) {
                Ok(_) => drop(check("garbage", &value, target)),
                Err(broken) => {
                    let any = compile_or_any(&value, target);
                    prop_assert!(any.losses[0].to_string().contains(&broken.to_string()));
                    prop_assert_eq!(super::rules::violations(&any, target), Vec::<String>::new());
                }
            }
        }
    }
}
