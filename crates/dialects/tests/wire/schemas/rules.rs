//! What each API documents of the schemas that it takes. Written from the documents, without the compiler.

use serde_json::{Map, Value};
use turnwright_dialects::schema::{Lowered, SchemaTarget};

/// Everything that a target would refuse.
pub(super) fn violations(lowered: &Lowered, target: SchemaTarget) -> Vec<String> {
    let mut wrong = Vec::new();
    let root = &lowered.schema;
    if root.get("type") != Some(&Value::from("object")) {
        wrong.push("the root is no object".to_owned());
    }
    for keyword in ["oneOf", "anyOf", "allOf", "enum", "const", "not", "$ref"] {
        if root.get(keyword).is_some() {
            wrong.push(format!("the root has {keyword}"));
        }
    }
    if depth(root) > 127 {
        wrong.push(format!("nested {} levels deep", depth(root)));
    }
    match target {
        SchemaTarget::OpenAiStrict if lowered.is_strict() => {
            let mut counts = (0, 0);
            walk(root, "", &mut |schema, at| strict(schema, at, &mut counts, &mut wrong));
            if counts.0 > 5_000 || counts.1 > 1_000 {
                wrong.push(format!("{counts:?} properties and values"));
            }
        }
        SchemaTarget::GeminiSubset => gemini(root, "", true, &mut wrong),
        SchemaTarget::OpenAi | SchemaTarget::OpenAiStrict => walk(root, "", &mut |schema, at| {
            plain(schema, at, &mut wrong);
            listed(schema, at, &mut wrong);
        }),
        SchemaTarget::GeminiJson => {
            walk(root, "", &mut |schema, at| plain(schema, at, &mut wrong));
        }
        SchemaTarget::Anthropic | SchemaTarget::AnthropicStrict => {
            if lowered.is_strict() {
                let mut counts = (0, 0);
                walk(root, "", &mut |schema, at| held(schema, at, &mut counts, &mut wrong));
                if counts.0 > 24 || counts.1 > 16 {
                    wrong.push(format!("{counts:?} optional properties and unions"));
                }
            }
            walk(root, "", &mut |schema, at| plain(schema, at, &mut wrong));
            if let Err(error) = jsonschema::draft202012::meta::validate(root) {
                wrong.push(format!("not valid in draft 2020-12: {error}"));
            }
            for name in root.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
                let is_valid = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
                    wrong.push(format!("the property name {name:?}"));
                }
            }
        }
        SchemaTarget::Compatible => walk(root, "", &mut |schema, at| {
            plain(schema, at, &mut wrong);
            compatible(schema, at, &mut wrong);
            listed(schema, at, &mut wrong);
        }),
    }
    wrong
}

/// No reference, nothing meta.
fn plain(schema: &Value, at: &str, wrong: &mut Vec<String>) {
    for keyword in schema.as_object().into_iter().flat_map(Map::keys) {
        let is_bad = matches!(
            keyword.as_str(),
            "$ref" | "$dynamicRef" | "$recursiveRef" | "$defs" | "definitions" | "$schema" | "$id" | "$comment" | "$anchor"
        );
        if is_bad {
            wrong.push(format!("{at}/{keyword}"));
        }
    }
}

/// Each list says what its elements are ("array schema missing items").
fn listed(schema: &Value, at: &str, wrong: &mut Vec<String>) {
    let types = schema.get("type").map(|types| types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]));
    let is_list = types.is_some_and(|types| types.contains(&Value::from("array")));
    if is_list && schema.get("items").is_none() && schema.get("unevaluatedItems").is_none() {
        wrong.push(format!("{at} is a list without items"));
    }
}

fn compatible(schema: &Value, at: &str, wrong: &mut Vec<String>) {
    if schema.is_boolean() && !at.ends_with("/items") && !at.ends_with("/additionalProperties") {
        wrong.push(format!("{at} is a boolean"));
    }
    for keyword in ["not", "if", "patternProperties", "dependentRequired", "oneOf", "const", "contains", "propertyNames"] {
        if schema.get(keyword).is_some() {
            wrong.push(format!("{at}/{keyword}"));
        }
    }
    let pattern = schema.get("pattern").and_then(Value::as_str);
    if pattern.is_some_and(|pattern| !pattern.starts_with('^') || !pattern.ends_with('$') || pattern.contains("(?")) {
        wrong.push(format!("{at}/pattern"));
    }
}

/// The keywords of strict mode.
const STRICT: [&str; 17] = [
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
];

fn strict(schema: &Value, at: &str, counts: &mut (usize, usize), wrong: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return wrong.push(format!("{at} is a boolean")) };
    let unknown = members.keys().filter(|keyword| *keyword != "type" && !STRICT.contains(&keyword.as_str()));
    wrong.extend(unknown.map(|keyword| format!("{at}/{keyword} is unknown")));
    if !members.contains_key("type") && !members.contains_key("anyOf") {
        wrong.push(format!("{at} has no type"));
    }
    counts.1 += members.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
    if types(schema).contains(&"array") && !members.contains_key("items") {
        wrong.push(format!("{at} has no items"));
    }
    if !types(schema).contains(&"object") {
        return;
    }
    if members.get("additionalProperties") != Some(&Value::Bool(false)) {
        wrong.push(format!("{at} is open"));
    }
    let names: Vec<&str> = members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|all| all.keys().map(String::as_str))
        .collect();
    let required: Vec<&str> =
        members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    counts.0 += names.len();
    if names != required {
        wrong.push(format!("{at} has the properties {names:?} and requires {required:?}"));
    }
}

/// The keywords of Anthropic's strict tools.
const HELD: [&str; 13] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "description",
    "enum",
    "format",
    "items",
    "minItems",
    "properties",
    "required",
    "title",
    "type",
];

fn held(schema: &Value, at: &str, counts: &mut (usize, usize), wrong: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return wrong.push(format!("{at} is a boolean")) };
    wrong.extend(members.keys().filter(|key| !HELD.contains(&key.as_str())).map(|key| format!("{at}/{key} is unknown")));
    if members.get("minItems").is_some_and(|count| !matches!(count.as_u64(), Some(0 | 1))) {
        wrong.push(format!("{at} has more than one item"));
    }
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    if !members.get("enum").and_then(Value::as_array).into_iter().flatten().chain(members.get("const")).all(is_plain) {
        wrong.push(format!("{at} has a value that is none of a text, a number, true, false and null"));
    }
    if types(schema).contains(&"object") && members.get("additionalProperties") != Some(&Value::Bool(false)) {
        wrong.push(format!("{at} is open"));
    }
    let properties = members.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    counts.0 += properties - members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    counts.1 += usize::from(members.contains_key("anyOf") || types(schema).len() > 1);
}

/// The fields of `Schema`.
const GEMINI: [&str; 22] = [
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

fn gemini(schema: &Value, at: &str, is_root: bool, wrong: &mut Vec<String>) {
    let Some(members) = schema.as_object() else { return wrong.push(format!("{at} is no object")) };
    let unknown = members.keys().filter(|keyword| !GEMINI.contains(&keyword.as_str()));
    wrong.extend(unknown.map(|keyword| format!("{at}/{keyword} is unknown")));
    if let Some(all) = members.get("anyOf") {
        if members.keys().any(|keyword| keyword != "anyOf" && keyword != "description") {
            wrong.push(format!("{at} has more than anyOf"));
        }
        for (index, one) in all.as_array().unwrap().iter().enumerate() {
            gemini(one, &format!("{at}/anyOf/{index}"), false, wrong);
        }
        return;
    }
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    let formats: &[&str] = match kind {
        "string" => &["enum", "date-time"],
        "number" => &["float", "double"],
        "integer" => &["int32", "int64"],
        "boolean" | "array" | "object" => &[],
        other => return wrong.push(format!("{at} is of type {other:?}")),
    };
    if members.get("format").is_some_and(|format| !formats.contains(&format.as_str().unwrap_or_default())) {
        wrong.push(format!("{at}/format"));
    }
    if let Some(values) = members.get("enum") {
        let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        if kind != "string" || !values.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_text)) {
            wrong.push(format!("{at}/enum"));
        }
    }
    for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        if members.get(keyword).is_some_and(|value| !value.is_u64()) {
            wrong.push(format!("{at}/{keyword}"));
        }
    }
    match (kind, members.get("items")) {
        ("array", Some(items)) => gemini(items, &format!("{at}/items"), false, wrong),
        ("array", None) => wrong.push(format!("{at} has no items")),
        (_, Some(_)) => wrong.push(format!("{at}/items of no array")),
        (_, None) => {}
    }
    let properties = members.get("properties").and_then(Value::as_object);
    if properties.is_some_and(Map::is_empty) {
        wrong.push(format!("{at}/properties is empty"));
    }
    let has = |name: &Value| properties.is_some_and(|all| all.contains_key(name.as_str().unwrap_or_default()));
    if !members.get("required").and_then(Value::as_array).into_iter().flatten().all(has) {
        wrong.push(format!("{at}/required names what is not there"));
    }
    for (name, value) in properties.into_iter().flatten() {
        gemini(value, &format!("{at}/properties/{name}"), false, wrong);
    }
    if is_root && members.contains_key("nullable") {
        wrong.push("the root is nullable".to_owned());
    }
}

/// Goes through all schemas of a schema that refers to nothing.
fn walk(schema: &Value, at: &str, look: &mut dyn FnMut(&Value, &str)) {
    look(schema, at);
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let at = format!("{at}/{keyword}");
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(all)) => {
                all.iter().for_each(|(name, value)| walk(value, &format!("{at}/{name}"), look));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                all.iter().enumerate().for_each(|(index, value)| walk(value, &format!("{at}/{index}"), look));
            }
            (
                "items"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                value,
            ) if keyword != "additionalProperties" || value.is_object() => walk(value, &at, look),
            _ => {}
        }
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
