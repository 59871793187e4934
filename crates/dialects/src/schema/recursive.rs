//! Schemas that contain themselves, as they are taken with their references.
//!
//! `OpenAI` wants an object at the root. Gemini goes some levels into them, and wants an end that it may choose: a property that
//! is not required.

use serde_json::{Value, json};

use super::Object;
use super::keyword::{Holds, holds};
use super::merge::type_list;
use super::strict::{FORMATS, PLAIN};

/// The most references that the root may be behind.
const MAX_HOPS: usize = 8;

/// The schema with what its root refers to in the place of the root, which must say that it is an object.
pub(crate) fn with_root(schema: &Value) -> Value {
    let mut root = schema.clone();
    for _ in 0..MAX_HOPS {
        let Some(members) = root.as_object().filter(|members| !members.contains_key("type")) else { break };
        let pointer = members.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        let Some(Value::Object(target)) = pointer.and_then(|pointer| schema.pointer(pointer)) else { break };
        let mut members = members.clone();
        members.shift_remove("$ref");
        let mut merged = target.clone();
        merged.extend(members);
        root = Value::Object(merged);
    }
    root
}

/// The schema without what names it, where Gemini takes it: each way back to itself leads through a property that is not required,
/// and nothing stands beside a reference.
pub(crate) fn for_gemini(schema: &Value) -> Option<Value> {
    if !ends(schema, schema, &mut Vec::new()) {
        return None;
    }
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.retain(|keyword, _| !matches!(keyword.as_str(), "$schema" | "$id" | "$comment"));
    }
    Some(schema)
}

/// Whether a schema comes to an end where every property is left out that may be. `open` are the references that it stands behind.
fn ends<'v>(root: &'v Value, schema: &'v Value, open: &mut Vec<&'v str>) -> bool {
    let Value::Object(members) = schema else { return true };
    if let Some(reference) = members.get("$ref") {
        let Some(reference) = reference.as_str().filter(|reference| !open.contains(reference)) else { return false };
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else { return false };
        open.push(reference);
        let ends = ends(root, target, open);
        open.pop();
        return ends;
    }
    let required = members.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &String| required.iter().any(|required| required == name);
    members.iter().all(|(keyword, value)| match (holds(keyword), value) {
        // Nobody is there but through a reference.
        (Holds::Map, _) if matches!(keyword.as_str(), "$defs" | "definitions") => true,
        (Holds::Map, Value::Object(all)) if keyword == "properties" => {
            all.iter().filter(|(name, _)| is_required(name)).all(|(_, value)| ends(root, value, open))
        }
        (Holds::Map | Holds::Dependencies, Value::Object(all)) => all.values().all(|value| ends(root, value, open)),
        (Holds::List | Holds::SchemaOrList, Value::Array(all)) => all.iter().all(|value| ends(root, value, open)),
        (Holds::Schema | Holds::SchemaOrList, value) => ends(root, value, open),
        _ => true,
    })
}

/// Whether `OpenAI` takes a schema with references as a strict one: every object closed and every property required, as it is.
pub(crate) fn is_strict(schema: &Value) -> bool {
    schema.get("type") == Some(&json!("object")) && fits(schema)
}

fn fits(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    if let Some(reference) = members.get("$ref") {
        // Nothing may stand beside it.
        return members.len() == 1 && reference.as_str().is_some_and(|reference| reference.starts_with('#'));
    }
    let is_known = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "items" => fits(value),
        "anyOf" => value.as_array().is_some_and(|all| all.iter().all(fits)),
        "properties" | "$defs" | "definitions" => value.as_object().is_some_and(|all| all.values().all(fits)),
        "enum" | "const" | "required" | "additionalProperties" => true,
        keyword => PLAIN.contains(&keyword),
    };
    let says_what = ["type", "enum", "const", "anyOf"].iter().any(|keyword| members.contains_key(*keyword));
    says_what && members.iter().all(is_known) && is_closed(members)
}

fn is_closed(members: &Object) -> bool {
    let kinds: Vec<&str> = members.get("type").map(type_list).unwrap_or_default();
    if kinds.contains(&"array") && !members.contains_key("items") {
        return false;
    }
    if !kinds.contains(&"object") {
        return !members.contains_key("properties");
    }
    let required = members.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let properties = members.get("properties").and_then(Value::as_object);
    let is_required = |name: &String| required.iter().any(|required| required == name);
    members.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_some_and(|all| all.keys().all(is_required))
}
