//! Which schemas the APIs take.

use super::check::{At, Findings};

/// `strict: true` of OpenAI: every object closed, every property required, no defaults.
pub(crate) fn openai_strict(found: &mut Findings, at: &At<'_, '_>) {
    found.demand(at, at.str_of("type") == "object", "the root of a strict schema is an object");
    strict(found, at);
}

fn strict(found: &mut Findings, at: &At<'_, '_>) {
    found.demand(at, at.key("default").is_none(), "a strict schema has no `default`");
    if let Some(properties) = at.key("properties") {
        let is_closed = at.value.get("additionalProperties") == Some(&false.into());
        found.demand(at, is_closed, "an object of a strict schema has `additionalProperties: false`");
        let required: Vec<&str> =
            at.value["required"].as_array().into_iter().flatten().filter_map(|key| key.as_str()).collect();
        for (name, property) in properties.members() {
            found.demand(&property, required.contains(&name), "a property of a strict schema is required");
            strict(found, &property);
        }
    }
    for key in ["items"] {
        if let Some(at) = at.key(key) {
            strict(found, &at);
        }
    }
    for key in ["anyOf"] {
        if let Some(at) = at.key(key) {
            at.items().for_each(|at| strict(found, &at));
        }
    }
    for key in ["$defs", "definitions"] {
        if let Some(at) = at.key(key) {
            at.members().for_each(|(_, at)| strict(found, &at));
        }
    }
}

/// The parameters of a tool: a schema whose root says that it is an object.
pub(crate) fn parameters(found: &mut Findings, at: &At<'_, '_>) {
    found.demand(at, at.value.is_object(), "a schema is an object");
    found.demand(at, at.str_of("type") == "object", "the root of a tool's schema is `type: object`");
    if let Some(properties) = at.key("properties") {
        found.demand(&properties, properties.value.is_object(), "`properties` is an object");
    }
}

const GEMINI_KEYS: [&str; 21] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "anyOf",
    "propertyOrdering",
    "default",
];

/// The subset that Gemini's `parameters` and `responseSchema` take.
pub(crate) fn gemini_subset(found: &mut Findings, at: &At<'_, '_>) {
    let Some(members) = at.value.as_object() else { return found.refuse(at, "a schema is an object") };
    for key in members.keys().filter(|key| !GEMINI_KEYS.contains(&key.as_str()) && key.as_str() != "example") {
        found.refuse(at, format_args!("unknown name `{key}`: cannot find field"));
    }
    let kind = at.str_of("type").to_ascii_lowercase();
    if let Some(at) = at.key("type") {
        let known = ["string", "number", "integer", "boolean", "array", "object", "null"];
        found.demand(&at, known.contains(&kind.as_str()), "`type` is one type");
    }
    let formats: &[&str] = match kind.as_str() {
        "string" => &["enum", "date-time"],
        "number" => &["float", "double"],
        "integer" => &["int32", "int64"],
        _ => &[],
    };
    found.word_of(at, "format", formats);
    if let Some(at) = at.key("enum") {
        found.list(&at);
        found.each_filled(&at);
    }
    if let Some(at) = at.key("properties") {
        found.demand(&at, at.value.as_object().is_some_and(|all| !all.is_empty()), "properties: should be non-empty");
        at.members().for_each(|(_, at)| gemini_subset(found, &at));
    }
    if let Some(list) = at.key("required") {
        for name in list.items() {
            let is_known = name.str().is_some_and(|name| at.value["properties"].get(name).is_some());
            found.demand(&name, is_known, "property is not defined");
        }
    }
    if kind == "array" {
        found.demand(at, at.has("items"), "items: missing field");
    }
    if let Some(at) = at.key("items") {
        gemini_subset(found, &at);
    }
    if let Some(branches) = at.key("anyOf") {
        found.list(&branches);
        let is_alone = at.members().all(|(key, _)| matches!(key, "anyOf" | "description" | "nullable" | "title"));
        found.demand(at, is_alone, "beside `anyOf` no other fields may be set");
        branches.items().for_each(|at| gemini_subset(found, &at));
    }
}

/// A schema that Anthropic's structured output and strict tools take.
pub(crate) fn anthropic_strict(found: &mut Findings, at: &At<'_, '_>) {
    const REFUSED: [&str; 14] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "oneOf",
        "not",
        "patternProperties",
        "uniqueItems",
        "if",
        "minProperties",
    ];
    for key in REFUSED {
        found.demand(at, at.key(key).is_none(), format_args!("`{key}` is not supported"));
    }
    if at.str_of("type") == "object" || at.key("properties").is_some() {
        let is_closed = at.value.get("additionalProperties") == Some(&false.into());
        found.demand(at, is_closed, "an object has `additionalProperties: false`");
    }
    if let Some(at) = at.key("minItems") {
        found.demand(&at, matches!(at.value.as_u64(), Some(0 | 1)), "`minItems` is 0 or 1");
    }
    let formats = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
    found.word_of(at, "format", &formats);
    for key in ["properties", "$defs", "definitions"] {
        if let Some(at) = at.key(key) {
            at.members().for_each(|(_, at)| anthropic_strict(found, &at));
        }
    }
    if let Some(at) = at.key("items") {
        anthropic_strict(found, &at);
    }
    for key in ["anyOf", "allOf"] {
        if let Some(at) = at.key(key) {
            at.items().for_each(|at| anthropic_strict(found, &at));
        }
    }
}
