//! Older and careless forms, written as draft 2020-12 has them. What is accepted stays the same.

use serde_json::{Value, json};

use super::Object;
use super::limits::{MAX_DESCRIPTION_BYTES, MAX_LITERAL_DEPTH};
use super::loss::{Change, Losses};
use super::merge::same;
use super::place::Place;

/// Rewrites one schema whose own schemas are done.
pub(super) fn modernize(schema: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    bound(schema, "minimum", "exclusiveMinimum");
    bound(schema, "maximum", "exclusiveMaximum");
    tuple(schema);
    dependencies(schema);
    types(schema);
    names(schema);
    literals(schema, place, losses);
    description(schema, place, losses);
}

/// `exclusiveMinimum: true` beside `minimum`, up to draft 4.
fn bound(schema: &mut Object, inclusive: &str, exclusive: &str) {
    match schema.get(exclusive) {
        Some(Value::Bool(true)) => match schema.shift_remove(inclusive) {
            Some(limit) => {
                schema.insert(exclusive.to_owned(), limit);
            }
            None => {
                schema.shift_remove(exclusive);
            }
        },
        Some(Value::Bool(false)) => {
            schema.shift_remove(exclusive);
        }
        _ => {}
    }
}

/// A list in `items`, up to draft 2019-09.
fn tuple(schema: &mut Object) {
    let rest = schema.shift_remove("additionalItems");
    if let Some(Value::Array(items)) = schema.get("items") {
        let items = items.clone();
        schema.shift_remove("items");
        if !items.is_empty() {
            schema.insert("prefixItems".to_owned(), Value::Array(items));
        }
        if let Some(rest) = rest {
            schema.insert("items".to_owned(), rest);
        }
    }
    // An empty list says nothing, and newer drafts have none.
    if schema.get("prefixItems").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        schema.shift_remove("prefixItems");
    }
}

/// `dependencies`, up to draft 7.
fn dependencies(schema: &mut Object) {
    let Some(Value::Object(all)) = schema.shift_remove("dependencies") else { return };
    let (names, schemas): (Object, Object) = all.into_iter().partition(|(_, value)| value.is_array());
    for (keyword, all) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if !all.is_empty() && !schema.contains_key(keyword) {
            schema.insert(keyword.to_owned(), Value::Object(all));
        }
    }
}

fn types(schema: &mut Object) {
    let Some(Value::Array(all)) = schema.get("type") else { return };
    let has_number = all.iter().any(|one| one == "number");
    let mut types: Vec<Value> = Vec::new();
    for one in all {
        let is_said = has_number && one == "integer";
        if !is_said && !types.contains(one) {
            types.push(one.clone());
        }
    }
    let types = match types.as_slice() {
        [one] => one.clone(),
        _ => Value::Array(types),
    };
    schema.insert("type".to_owned(), types);
}

/// Names that are required twice; lists that say nothing.
fn names(schema: &mut Object) {
    if let Some(Value::Array(required)) = schema.get("required") {
        let mut seen = std::collections::HashSet::new();
        let once: Vec<Value> = required.iter().filter(|name| seen.insert(name.as_str())).cloned().collect();
        if once.is_empty() {
            schema.shift_remove("required");
        } else {
            schema.insert("required".to_owned(), Value::Array(once));
        }
    }
    for keyword in ["properties", "patternProperties", "dependentRequired", "dependentSchemas"] {
        if schema.get(keyword).and_then(Value::as_object).is_some_and(Object::is_empty) {
            schema.shift_remove(keyword);
        }
    }
}

fn literals(schema: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    for keyword in ["default", "examples", "example", "enum", "const"] {
        let levels = if matches!(keyword, "enum" | "examples") { MAX_LITERAL_DEPTH + 1 } else { MAX_LITERAL_DEPTH };
        if schema.get(keyword).is_some_and(|value| is_deeper_than(value, levels)) {
            schema.shift_remove(keyword);
            let change = if matches!(keyword, "enum" | "const") { Change::Wider } else { Change::Told };
            losses.add(
                place,
                keyword,
                change,
                format!("left out: a value is nested more than {MAX_LITERAL_DEPTH} levels deep"),
            );
        }
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        let once = without_repeats(values);
        if once.len() < values.len() {
            schema.insert("enum".to_owned(), Value::Array(once));
        }
    }
}

fn without_repeats(values: &[Value]) -> Vec<Value> {
    // Texts alone can be many; they are compared by their hash.
    let mut texts = std::collections::HashSet::new();
    let mut once: Vec<Value> = Vec::new();
    let mut others: Vec<&Value> = Vec::new();
    for value in values {
        let is_new = match value {
            Value::String(text) => texts.insert(text),
            other if others.len() < 512 => !others.iter().any(|known| same(known, other)),
            _ => true,
        };
        if is_new {
            if !value.is_string() {
                others.push(value);
            }
            once.push(value.clone());
        }
    }
    once
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|value| is_deeper_than(value, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn description(schema: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    let Some(Value::String(text)) = schema.get_mut("description") else { return };
    if text.len() > MAX_DESCRIPTION_BYTES {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(MAX_DESCRIPTION_BYTES - '…'.len_utf8()));
        text.push('…');
        let meaning = format!("cut: it has {bytes} bytes, limit {MAX_DESCRIPTION_BYTES}");
        losses.add(place, "description", Change::Told, meaning);
    }
}

/// Adds `note` to what the model is told about a schema.
pub(super) fn note(schema: &mut Object, note: &str) {
    let mut text = match schema.get("description") {
        Some(Value::String(text)) if !text.is_empty() => format!("{text} "),
        _ => String::new(),
    };
    // What does not fit is lost to the model, and to it alone.
    if text.len() + note.len() <= MAX_DESCRIPTION_BYTES {
        text.push_str(note);
        schema.insert("description".to_owned(), json!(text));
    }
}
