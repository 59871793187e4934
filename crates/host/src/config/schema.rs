//! The JSON Schema of the configuration: made from its types, checked by [`super::check`], printed by `config schema`.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::Config;
use super::secret_table::is_secret;

/// The JSON Schema (2020-12) of `turnwright.toml`.
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| settings.inline_subschemas = true);
    settings.with_transform(WithoutNull).into_generator().into_root_schema_for::<Config>().to_value()
}

/// The same for editors and other programs, which see the file before its variables are put in: what is no text may be written as
/// one with a variable in it, such as `"${PORT:-8700}"`, and a secret as a table that says where it is.
pub fn printed_schema() -> Value {
    let mut schema = json_schema();
    let_variables_in(&mut schema);
    schema
}

fn let_variables_in(schema: &mut Value) {
    if is_secret(schema) {
        let place = |key: &str| json!({ "type": "object", "properties": { key: { "type": "string" } }, "required": [key], "additionalProperties": false });
        return let_be_also(schema, ["file", "env", "keyring"].map(place));
    }
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(let_variables_in);
    }
    for key in ["additionalProperties", "items"] {
        object.get_mut(key).into_iter().for_each(let_variables_in);
    }
    // Where there are several forms, one of them is a text.
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.iter_mut().filter(|choice| choice.get("properties").is_some()).for_each(let_variables_in);
    }
    let is_value = matches!(object.get("type").and_then(Value::as_str), Some("integer" | "number" | "boolean" | "array"));
    let is_word = object.contains_key("enum") || (object.contains_key("oneOf") && !object.contains_key("properties"));
    if !is_value && !is_word {
        return;
    }
    let_be_also(schema, [json!({ "type": "string", "pattern": r"\$\{" })]);
}

/// Takes these forms too.
fn let_be_also(schema: &mut Value, forms: impl IntoIterator<Item = Value>) {
    let Some(object) = schema.as_object_mut() else { return };
    let mut all = serde_json::Map::new();
    for key in ["title", "description", "default"] {
        all.extend(object.remove(key).map(|value| (key.to_owned(), value)));
    }
    let own = Value::Object(std::mem::take(object));
    all.insert("anyOf".to_owned(), std::iter::once(own).chain(forms).collect());
    *object = all;
}

/// TOML has no null: a key that may be left out is just not required.
#[derive(Debug, Clone)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        // The default of a table is what the defaults of its keys say already.
        if object.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
            object.remove("default");
        }
        if let Some(Value::Array(words)) = object.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(mut choices)) = object.remove("anyOf") {
            choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
            match choices.as_slice() {
                [Value::Object(only)] => {
                    for (key, value) in only {
                        object.entry(key).or_insert_with(|| value.clone());
                    }
                }
                _ => {
                    object.insert("anyOf".to_owned(), Value::Array(choices));
                }
            }
        }
    }
}

/// The keys that may stand alone in an environment variable: tables in tables of fixed names, down to values and lists.
pub(crate) fn leaves(schema: &Value) -> Vec<Vec<String>> {
    let Some(properties) = properties(schema) else { return Vec::new() };
    let mut found = Vec::new();
    for (key, schema) in properties {
        let is_leaf = match schema.get("type").and_then(Value::as_str) {
            Some("object") => false,
            Some("array") => schema.pointer("/items/type").is_none_or(|name| name != "object"),
            Some(_) | None => true,
        };
        if is_leaf {
            found.push(vec![key.clone()]);
        }
        found.extend(leaves(schema).into_iter().map(|mut path| {
            path.insert(0, key.clone());
            path
        }));
    }
    found
}

/// The named keys of a table's schema.
pub(crate) fn properties(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The words that an enumeration's schema allows.
pub(crate) fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(Value::Array(words)) = schema.get("enum") {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let choices = schema.get("oneOf")?.as_array()?;
    let constants = choices.iter().map(|choice| {
        let all = choice.get("enum").and_then(Value::as_array).map(|words| words.iter().filter_map(Value::as_str).collect());
        choice.get("const").and_then(Value::as_str).map(|word| vec![word]).or(all)
    });
    constants.collect::<Option<Vec<_>>>().map(|words| words.concat())
}

pub(crate) fn model(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "model" })
}

pub(crate) fn models(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": model(generator) })
}

pub(crate) fn address_ranges(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "address-range" } })
}

pub(crate) fn origins(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "origin" } })
}

pub(crate) fn past_proxy(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "past-proxy" } })
}

pub(crate) fn approve_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["ask", "all", "none", "read-only"], "default": "ask" })
}

pub(crate) fn reasoning_effort(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max"] })
}

pub(crate) fn reasoning_style(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["never", "effort", "budget", "adaptive"] })
}

/// The levels of [`turnwright_mcp::LogLevel`].
pub(crate) fn log_level(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": turnwright_mcp::LogLevel::ALL.map(turnwright_mcp::LogLevel::as_str) })
}

pub(crate) fn protocol(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": turnwright_mcp::Protocol::ALL.map(turnwright_mcp::Protocol::as_str) })
}

pub(crate) fn http_fields(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": { "format": "operation-glob" },
        "additionalProperties": { "type": "array", "minItems": 1, "items": { "type": "string", "format": "field-path" } },
    })
}

fn one_or_several(format: &str, description: &str) -> Value {
    let text = if format.is_empty() { json!({ "type": "string" }) } else { json!({ "type": "string", "format": format }) };
    json!({ "anyOf": [text, { "type": "array", "minItems": 1, "items": text }], "description": description })
}

pub(crate) fn rules(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "tool": { "type": "string", "format": "glob", "description": "A glob over qualified tool names, such as `filesystem__write*`." },
                "when": {
                    "type": "object",
                    "description": "What must hold of arguments, by name (or by JSON pointer, from `/`). All must hold.",
                    "additionalProperties": {
                        "anyOf": [
                            { "type": "string", "format": "glob", "description": "A glob over the argument's text; `*` stops at `/`, `**` does not." },
                            {
                                "type": "object",
                                "properties": {
                                    "glob": { "type": "string", "format": "glob", "description": "A glob over its text." },
                                    "below": one_or_several("path", "Folders: it is the path of one of them, or lies in it."),
                                    "min": { "type": "number", "description": "The least number that it may be." },
                                    "max": { "type": "number", "description": "The greatest number that it may be." },
                                    "one_of": { "type": "array", "minItems": 1, "description": "The values that it may have." },
                                    "program": one_or_several("", "Programs, by name or absolute path, of a shell line: a rule that allows wants all of the line's to be among them, another one any.")
                                },
                                "additionalProperties": false
                            }
                        ]
                    }
                },
                "action": { "type": "string", "enum": ["allow", "ask", "deny"], "description": "What happens to the calls that match." }
            },
            "required": ["tool", "action"],
            "additionalProperties": false
        }
    })
}
