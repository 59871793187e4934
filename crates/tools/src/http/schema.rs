//! Schemas of a description as JSON Schema 2020-12, for the arguments of one tool.
//!
//! What is referred to becomes a definition of the tool's own schema, once, so that circles stay circles and nothing is
//! multiplied. A schema has a size that it does not grow beyond: what is further in is left open, nearest first to be kept.

mod circles;

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::description::Document;
use super::text::{free, plain_name, shortened};

/// The size of the schema of one tool, in bytes: beyond it is left open.
const MAX_BYTES: usize = 64 * 1024;
/// Schemas within one another, written in place.
const MAX_DEPTH: usize = 48;
/// The longest description of a property, in characters.
const MAX_DESCRIPTION: usize = 400;
/// The most definitions of one tool.
const MAX_DEFINITIONS: usize = 200;
/// The longest name of a definition.
const MAX_NAME: usize = 40;
/// References that are followed to see what a property is.
const MAX_HOPS: usize = 8;

/// Formats that JSON Schema knows; some providers refuse others.
const FORMATS: [&str; 13] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
    "regex",
    "json-pointer",
];

/// Makes the schemas of one tool.
#[derive(Debug)]
pub(super) struct Schemas<'d> {
    document: &'d Document,
    definitions: Map<String, Value>,
    /// The names of the definitions by what refers to them.
    names: HashMap<String, String>,
    waiting: VecDeque<(String, &'d Value)>,
    room: usize,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        Self { document, definitions: Map::new(), names: HashMap::new(), waiting: VecDeque::new(), room: MAX_BYTES }
    }

    /// A schema as it stands in the tool's; what it refers to waits.
    pub(super) fn add(&mut self, schema: &'d Value) -> Value {
        self.schema(schema, 0)
    }

    /// Puts the definitions into a schema, the root of all that was added.
    pub(super) fn finish(mut self, mut root: Map<String, Value>) -> Value {
        while let Some((name, schema)) = self.waiting.pop_front() {
            let made = self.schema(schema, 0);
            self.definitions.insert(name, made);
        }
        circles::cut(&mut self.definitions);
        if !self.definitions.is_empty() {
            root.insert("$defs".to_owned(), Value::Object(self.definitions));
        }
        Value::Object(root)
    }

    fn schema(&mut self, value: &'d Value, depth: usize) -> Value {
        let object = match value {
            Value::Object(object) => object,
            Value::Bool(all) => return Value::Bool(*all),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return json!({}),
        };
        if depth > MAX_DEPTH || !self.spend(16) {
            return left_open();
        }
        let mut made = Map::new();
        if let Some(reference) = object.get("$ref").or_else(|| object.get("$dynamicRef")).and_then(Value::as_str) {
            match self.reference(reference) {
                Ok(name) => made.insert("$ref".to_owned(), format!("#/$defs/{name}").into()),
                Err(why) => made.insert("description".to_owned(), why.into()),
            };
        }
        // In OpenAPI 3.0 nothing counts beside a reference; words do no harm.
        let counts = |key: &str| !self.document.is_first() || key == "description";
        let is_reference = made.contains_key("$ref");
        let hidden = self.read_only_properties(object);
        let keys: Vec<_> = object.iter().filter(|(key, _)| !is_reference || counts(key)).collect();
        for (key, value) in keys {
            if let Some(value) = self.keyword(key, value, &hidden, depth) {
                made.entry(key.clone()).or_insert(value);
            }
        }
        let count = |members: Option<&Value>| members.and_then(Value::as_object).map_or(0, Map::len);
        if count(made.get("properties")) + hidden.len() < count(object.get("properties")) {
            // Those that were left out are taken all the same.
            made.shift_remove("additionalProperties");
            made.shift_remove("unevaluatedProperties");
        }
        if !is_reference {
            self.example(object, &mut made);
            if self.document.is_first() {
                first(object, &mut made);
            }
        }
        let mut made = Value::Object(made);
        if self.document.is_first() && object.get("nullable") == Some(&Value::Bool(true)) && !is_reference {
            made = or_null(made);
        }
        made
    }

    /// What a keyword becomes; nothing where it says nothing to whoever writes arguments.
    fn keyword(&mut self, key: &str, value: &'d Value, hidden: &[&str], depth: usize) -> Option<Value> {
        let made = match (key, value) {
            ("title", Value::String(text)) if text.len() <= MAX_DESCRIPTION => text.as_str().into(),
            ("description", Value::String(text)) => shortened(text, MAX_DESCRIPTION).into(),
            ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) => value.clone(),
            ("pattern", Value::String(_))
            | ("type", Value::String(_) | Value::Array(_))
            | ("const" | "default", _)
            | ("deprecated" | "uniqueItems", Value::Bool(true))
            | (
                "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minLength" | "maxLength"
                | "minItems" | "maxItems" | "minContains" | "maxContains" | "minProperties" | "maxProperties",
                Value::Number(_),
            )
            | ("enum", Value::Array(_))
            | ("dependentRequired", Value::Object(_)) => value.clone(),
            ("required", Value::Array(names)) => {
                let shown = |name: &&Value| name.as_str().is_some_and(|name| !hidden.contains(&name));
                Value::Array(names.iter().filter(shown).cloned().collect())
            }
            (
                "items"
                | "not"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "contains"
                | "propertyNames"
                | "if"
                | "then"
                | "else",
                Value::Object(_) | Value::Bool(_),
            ) => return Some(self.schema(value, depth + 1)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(items)) if !items.is_empty() => {
                return Some(Value::Array(items.iter().map(|item| self.schema(item, depth + 1)).collect()));
            }
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(members)) => {
                return Some(self.members(members, if key == "properties" { hidden } else { &[] }, depth));
            }
            _ => return None,
        };
        // Large lists of values are no help; their type is still there.
        self.spend(made.to_string().len()).then_some(made)
    }

    fn members(&mut self, members: &'d Map<String, Value>, hidden: &[&str], depth: usize) -> Value {
        let mut made = Map::new();
        for (name, schema) in members.iter().filter(|(name, _)| !hidden.contains(&name.as_str())) {
            if !self.spend(name.len()) {
                break;
            }
            made.insert(name.clone(), self.schema(schema, depth + 1));
        }
        Value::Object(made)
    }

    /// Properties that an API gives and does not take.
    fn read_only_properties<'s>(&self, object: &'s Map<String, Value>) -> Vec<&'s str> {
        let properties = object.get("properties").and_then(Value::as_object);
        let is_read_only = |schema: &Value| {
            let mut schema = Some(schema);
            for _ in 0..MAX_HOPS {
                let Some(now) = schema else { return false };
                if now.get("readOnly") == Some(&Value::Bool(true)) {
                    return true;
                }
                let reference = now.get("$ref").and_then(Value::as_str);
                schema = reference.and_then(|reference| self.document.at(reference).ok());
            }
            false
        };
        let found = properties.into_iter().flatten().filter(|(_, schema)| is_read_only(schema));
        found.map(|(name, _)| name.as_str()).collect()
    }

    /// The name of the definition that a reference leads to, or what is to be said instead.
    fn reference(&mut self, reference: &str) -> Result<String, String> {
        if let Some(name) = self.names.get(reference) {
            return Ok(name.clone());
        }
        let target = self.document.at(reference).map_err(|broken| format!("Anything: {broken}."))?;
        if self.names.len() >= MAX_DEFINITIONS || !self.spend(reference.len()) {
            return Err("Left open here: the whole schema is too large.".to_owned());
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain = plain_name(last, true, MAX_NAME);
        let name = free(&plain, |name| self.names.values().any(|known| known == name));
        self.names.insert(reference.to_owned(), name.clone());
        self.waiting.push_back((name.clone(), target));
        Ok(name)
    }

    /// A small example says more than words.
    fn example(&mut self, object: &Map<String, Value>, made: &mut Map<String, Value>) {
        const MOST: usize = 120;
        let first = object.get("examples").and_then(Value::as_array).and_then(|all| all.first());
        let Some(example) = object.get("example").or(first).filter(|example| !example.is_null()) else { return };
        let is_small = match example {
            Value::Array(items) => items.len() <= 8,
            Value::Object(members) => members.len() <= 8,
            Value::String(text) => text.len() <= MOST,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if is_small && example.to_string().len() <= MOST && self.spend(MOST) {
            made.insert("examples".to_owned(), json!([example]));
        }
    }

    /// Whether there is room for so many bytes more.
    fn spend(&mut self, bytes: usize) -> bool {
        match self.room.checked_sub(bytes) {
            Some(rest) => {
                self.room = rest;
                true
            }
            None => false,
        }
    }
}

/// What stands for a schema that there is no room for.
fn left_open() -> Value {
    json!({ "description": "Left open here: the whole schema is too large." })
}

/// What OpenAPI 3.0 says otherwise: an exclusive bound is a truth value beside the bound.
fn first(object: &Map<String, Value>, made: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if object.get(exclusive) == Some(&Value::Bool(true))
            && let Some(value) = made.shift_remove(bound)
        {
            made.insert(exclusive.to_owned(), value);
        }
    }
    // A list of types is of later versions, and `null` is none of this one's.
    if made.get("type").is_some_and(|kind| !kind.is_string()) {
        made.shift_remove("type");
    }
}

/// A schema that null fits too.
fn or_null(mut schema: Value) -> Value {
    let Some(object) = schema.as_object_mut() else { return schema };
    let is_plain = !["allOf", "anyOf", "oneOf", "not", "const", "$ref"].iter().any(|key| object.contains_key(*key));
    if let (true, Some(Value::String(kind))) = (is_plain, object.get("type")) {
        let kinds = json!([kind, "null"]);
        object.insert("type".to_owned(), kinds);
        if let Some(Value::Array(values)) = object.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        return schema;
    }
    if is_plain && !object.contains_key("enum") {
        // Without a type anything fits, null too.
        return schema;
    }
    json!({ "anyOf": [schema, { "type": "null" }] })
}

#[cfg(test)]
mod tests;
