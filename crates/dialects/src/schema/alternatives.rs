//! Alternatives (`anyOf`, `oneOf`): when exactly one can fit, and one object schema in the place of several.

use serde_json::{Value, json};

use super::Object;
use super::merge::{same, type_list};

/// Whether no value fits two of the schemas: their types differ, or a property that all require has other values in each.
pub(super) fn are_disjoint(schemas: &[Value]) -> bool {
    let differ = |a: &Value, b: &Value| types_differ(a, b) || values_differ(a, b) || is_told_apart(a, b);
    // Beyond this many the comparison of each with each is not worth its time.
    schemas.len() <= 64 && schemas.iter().enumerate().all(|(index, a)| schemas.iter().skip(index + 1).all(|b| differ(a, b)))
}

fn types_differ(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.get("type"), b.get("type")) else { return false };
    let meets = |a: &str, b: &str| a == b || (a == "integer" && b == "number") || (a == "number" && b == "integer");
    let (a, b) = (type_list(a), type_list(b));
    !a.iter().any(|a| b.iter().any(|b| meets(a, b)))
}

fn values_differ(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (values(a), values(b)) else { return false };
    !a.iter().any(|a| b.iter().any(|b| same(a, b)))
}

/// Whether both are objects of which a required property has other values in each.
fn is_told_apart(a: &Value, b: &Value) -> bool {
    let is_object = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "object");
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let (ours, theirs) = (properties(a), properties(b));
    is_object(a)
        && is_object(b)
        && required(a).iter().any(|name| {
            let both = ours.get(*name).zip(theirs.get(*name));
            required(b).contains(name) && both.is_some_and(|(a, b)| values_differ(a, b) || types_differ(a, b))
        })
}

/// The only values that fit, where they are listed.
fn values(schema: &Value) -> Option<Vec<Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value.clone()]),
        None => schema.get("enum").and_then(Value::as_array).filter(|all| all.len() <= 64).cloned(),
    }
}

/// The names that a schema requires.
pub(super) fn required(schema: &Value) -> Vec<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Makes one object schema of `parent` and of alternatives for it: all their properties, of which those are required that
/// every alternative requires. Returns what the alternatives require, in words for the model, where they differ in it.
pub(super) fn unite(parent: &mut Object, alternatives: &[Value]) -> Option<String> {
    let can_be_object = |schema: &&Value| match schema {
        Value::Bool(fits) => *fits,
        other => other.get("type").is_none_or(|kind| type_list(kind).contains(&"object")),
    };
    let branches: Vec<Object> = alternatives
        .iter()
        .filter(can_be_object)
        .map(|branch| {
            let mut branch = branch.as_object().cloned().unwrap_or_default();
            for keyword in ["anyOf", "oneOf"] {
                if let Some(Value::Array(inner)) = branch.shift_remove(keyword) {
                    unite(&mut branch, &inner);
                }
            }
            if let Some(Value::Array(all)) = branch.shift_remove("allOf") {
                for part in &all {
                    take_properties(&mut branch, part);
                }
            }
            branch
        })
        .collect();
    let mut properties = match parent.shift_remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Object::new(),
    };
    let own: std::collections::HashSet<String> =
        properties.iter().filter(|(_, value)| !says_nothing(value)).map(|(name, _)| name.clone()).collect();
    let mut variants: Object = Object::new();
    for (name, schema) in branches.iter().filter_map(|branch| branch.get("properties")?.as_object()).flatten() {
        if own.contains(name) || schema == &Value::Bool(false) {
            continue;
        }
        if let Value::Array(all) = variants.entry(name).or_insert_with(|| json!([]))
            && !all.iter().any(|known| same(known, schema))
        {
            all.push(schema.clone());
        }
    }
    for (name, all) in variants {
        if let Value::Array(all) = all {
            properties.insert(name, one_of_these(all));
        }
    }
    if !properties.is_empty() {
        parent.insert("properties".to_owned(), Value::Object(properties));
    }
    let lists: Vec<Vec<&str>> = branches.iter().map(names_required).collect();
    let shared: Vec<Value> = match lists.as_slice() {
        [first, rest @ ..] => {
            first.iter().filter(|name| rest.iter().all(|list| list.contains(name))).map(|name| json!(name)).collect()
        }
        [] => Vec::new(),
    };
    let ours = parent.get("required").cloned().unwrap_or_else(|| json!([]));
    let union = super::merge::union(&ours, &Value::Array(shared));
    let known: Vec<String> =
        union.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    if !known.is_empty() {
        parent.insert("required".to_owned(), union);
    }
    let is_closed = |branch: &Object| branch.get("additionalProperties") == Some(&Value::Bool(false));
    if !parent.contains_key("additionalProperties") && !branches.is_empty() && branches.iter().all(is_closed) {
        parent.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    choice(&lists, &known)
}

/// Adds the properties of a schema that also holds, as far as they are not there.
pub(super) fn take_properties(schema: &mut Object, other: &Value) {
    for keyword in ["anyOf", "oneOf"] {
        if let Some(inner) = other.get(keyword).and_then(Value::as_array) {
            unite(schema, inner);
        }
    }
    for inner in other.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        take_properties(schema, inner);
    }
    let Some(theirs) = other.get("properties").and_then(Value::as_object) else { return };
    if let Value::Object(ours) = schema.entry("properties").or_insert_with(|| json!({})) {
        for (name, value) in theirs {
            if ours.get(name).is_none_or(says_nothing) {
                ours.insert(name.clone(), value.clone());
            }
        }
    }
}

fn says_nothing(schema: &Value) -> bool {
    match schema {
        Value::Bool(fits) => *fits,
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn names_required(branch: &Object) -> Vec<&str> {
    branch.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// One schema for values of any of these. Lists of texts become one list.
fn one_of_these(mut schemas: Vec<Value>) -> Value {
    let listed: Option<Vec<Vec<Value>>> = schemas
        .iter()
        .map(|schema| values(schema).filter(|all| all.iter().all(Value::is_string) && schema.get("anyOf").is_none()))
        .collect();
    if let (Some(lists), true) = (listed, schemas.len() > 1) {
        let mut all: Vec<Value> = Vec::new();
        for value in lists.into_iter().flatten() {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        return json!({"type": "string", "enum": all});
    }
    match schemas.pop() {
        Some(one) if schemas.is_empty() => one,
        Some(last) => {
            schemas.push(last);
            json!({"anyOf": schemas})
        }
        None => Value::Bool(true),
    }
}

fn choice(lists: &[Vec<&str>], known: &[String]) -> Option<String> {
    let mut choices: Vec<String> = Vec::new();
    for list in lists {
        let names: Vec<String> =
            list.iter().filter(|name| !known.iter().any(|known| known == *name)).map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() { "none of these".to_owned() } else { names.join(" and ") };
        if !choices.contains(&names) {
            choices.push(names);
        }
    }
    let is_choice = choices.len() > 1 && choices.len() <= 16;
    is_choice.then(|| format!("Give {}.", choices.join(", or ")))
}
