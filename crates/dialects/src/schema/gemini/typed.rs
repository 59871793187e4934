//! A node of one type, with the fields that belong to it.

use serde_json::{Number, Value, json};

use super::any_schema;
use crate::schema::Object;
use crate::schema::check::count;
use crate::schema::loss::{Change, Losses};
use crate::schema::modern::note;
use crate::schema::place::Place;
use crate::schema::strict::kind;

pub(super) fn typed(
    mut members: Object,
    one: &'static str,
    is_nullable: bool,
    place: &Place<'_>,
    level: usize,
    losses: &mut Losses,
) -> Object {
    if one == "null" {
        return null(&members, place, losses);
    }
    let values = listed(&mut members, one, place, losses);
    format(&mut members, one, place, losses);
    if one == "array" {
        tuple(&mut members, place, losses);
    }
    let mut node = Object::new();
    node.insert("type".to_owned(), json!(one));
    for keyword in ["format", "title", "description", "default", "example"] {
        if let Some(value) = members.get(keyword) {
            node.insert(keyword.to_owned(), value.clone());
        }
    }
    if is_nullable {
        node.insert("nullable".to_owned(), Value::Bool(true));
    }
    if let Some(values) = values {
        node.insert("enum".to_owned(), values);
    }
    match one {
        "string" => {
            counts(&members, &["minLength", "maxLength"], &mut node);
            if let Some(pattern) = members.get("pattern") {
                node.insert("pattern".to_owned(), pattern.clone());
            }
        }
        "integer" | "number" => bounds(&members, one, &mut node, place, losses),
        "array" => {
            counts(&members, &["minItems", "maxItems"], &mut node);
            let items = if let Some(items) = members.shift_remove("items") {
                any_schema(items, &place.child("items"), level + 1, losses)
            } else {
                losses.add(place, "items", Change::Narrower, "any item fits, which is taken as text");
                json!({"type": "string"}).as_object().cloned().unwrap_or_default()
            };
            node.insert("items".to_owned(), Value::Object(items));
        }
        "object" => object(members, &mut node, place, level, losses),
        _ => {}
    }
    node
}

/// A node that takes null alone.
pub(super) fn null(annotations: &Object, place: &Place<'_>, losses: &mut Losses) -> Object {
    losses.add(place, "type", Change::Wider, "null alone cannot be said");
    let mut node = Object::new();
    node.insert("type".to_owned(), json!("string"));
    for keyword in ["title", "description"] {
        if let Some(value) = annotations.get(keyword) {
            node.insert(keyword.to_owned(), value.clone());
        }
    }
    note(&mut node, "(always null)");
    node.insert("nullable".to_owned(), Value::Bool(true));
    node
}

/// The `enum` of a node: texts alone. Other values are told in words.
fn listed(members: &mut Object, one: &str, place: &Place<'_>, losses: &mut Losses) -> Option<Value> {
    let Some(Value::Array(values)) = members.shift_remove("enum") else { return None };
    let has_type = |value: &&Value| match one {
        "number" => value.is_number(),
        one => kind(value) == one,
    };
    let values: Vec<Value> = values.iter().filter(has_type).cloned().collect();
    if values.is_empty() {
        losses.add(place, "enum", Change::Wider, "none of the listed values is of the type: left open");
        return None;
    }
    if one == "string" {
        let texts: Vec<Value> = values.iter().filter(|value| *value != "").cloned().collect();
        if texts.len() < values.len() {
            let change = if texts.is_empty() { Change::Wider } else { Change::Narrower };
            losses.add(place, "enum", change, "the empty text cannot be listed");
        }
        return (!texts.is_empty()).then_some(Value::Array(texts));
    }
    if one == "boolean" && values.len() == 2 {
        return None;
    }
    let text = Value::Array(values).to_string();
    if text.len() <= super::MAX_TOLD_BYTES {
        note(members, &format!("(one of {text})"));
    }
    losses.add(place, "enum", Change::Wider, "told in words: only texts can be listed");
    None
}

fn format(members: &mut Object, one: &str, place: &Place<'_>, losses: &mut Losses) {
    let Some(Value::String(format)) = members.get("format") else { return };
    let is_known = match one {
        "string" => matches!(format.as_str(), "enum" | "date-time"),
        "number" => matches!(format.as_str(), "float" | "double"),
        "integer" => matches!(format.as_str(), "int32" | "int64"),
        _ => false,
    };
    if !is_known {
        let text = format!("(format: {format})");
        members.shift_remove("format");
        note(members, &text);
        losses.add(place, "format", Change::Told, "told in words: there is no such format");
    }
}

fn counts(members: &Object, keywords: &[&str], node: &mut Object) {
    for keyword in keywords {
        if let Some(count) = members.get(*keyword).and_then(count) {
            node.insert((*keyword).to_owned(), json!(count));
        }
    }
}

/// `minimum` and `maximum`. Exclusive limits are the next whole number, and for fractions the limit itself.
fn bounds(members: &Object, one: &str, node: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    for (inclusive, exclusive, is_lower) in [("minimum", "exclusiveMinimum", true), ("maximum", "exclusiveMaximum", false)] {
        let mut limit = members.get(inclusive).and_then(Value::as_number).cloned();
        if let Some(open) = members.get(exclusive).and_then(Value::as_number) {
            let next = if one == "integer" { next_whole(open, is_lower) } else { None };
            if next.is_none() {
                losses.add(place, exclusive, Change::Wider, format!("`{inclusive}` stands for it, which takes the limit too"));
            }
            let next = next.unwrap_or_else(|| open.clone());
            let is_tighter = |known: &Number| {
                let (known, next) = (known.as_f64().unwrap_or_default(), next.as_f64().unwrap_or_default());
                if is_lower { next > known } else { next < known }
            };
            if limit.as_ref().is_none_or(is_tighter) {
                limit = Some(next);
            }
        }
        if let Some(limit) = limit {
            node.insert(inclusive.to_owned(), Value::Number(limit));
        }
    }
}

/// The whole number next to a limit that is not taken itself.
fn next_whole(limit: &Number, is_lower: bool) -> Option<Number> {
    let whole = if let Some(whole) = limit.as_i64() {
        if is_lower { whole.checked_add(1)? } else { whole.checked_sub(1)? }
    } else {
        let limit = limit.as_f64().filter(|limit| limit.abs() < 9e15)?;
        let next = if is_lower { limit.floor() + 1.0 } else { limit.ceil() - 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "a whole number in the range of both")]
        let whole = next as i64;
        whole
    };
    Some(Number::from(whole))
}

/// A list whose first items have schemas of their own: any of them may stand anywhere.
fn tuple(members: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    if let Some(Value::Bool(fits)) = members.get("items") {
        let fits = *fits;
        members.shift_remove("items");
        let length = members.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        if !fits {
            let most = members.get("maxItems").and_then(count).map_or(length, |most| most.min(length));
            members.insert("maxItems".to_owned(), json!(most));
        }
    }
    let Some(Value::Array(mut all)) = members.shift_remove("prefixItems") else { return };
    let text = Value::Array(all.clone()).to_string();
    if text.len() <= super::MAX_TOLD_BYTES {
        note(members, &format!("(the items in order: {text})"));
    }
    losses.add(place, "prefixItems", Change::Different, "any of the schemas may fit any item");
    all.extend(members.shift_remove("items"));
    all.retain(|schema| schema != &Value::Bool(false));
    let items = if all.iter().any(|schema| schema == &Value::Bool(true)) { json!({}) } else { json!({"anyOf": all}) };
    members.insert("items".to_owned(), items);
}

fn object(mut members: Object, node: &mut Object, place: &Place<'_>, level: usize, losses: &mut Losses) {
    let inside = place.child("properties");
    let mut properties = Object::new();
    if let Some(Value::Object(all)) = members.shift_remove("properties") {
        for (name, value) in all {
            if value == Value::Bool(false) {
                losses.add(&inside, &name, Change::Wider, "the property that must not be there is left out");
                continue;
            }
            let value = any_schema(value, &inside.child(&name), level + 1, losses);
            properties.insert(name, Value::Object(value));
        }
    }
    if let Some(Value::Array(required)) = members.get("required") {
        let is_known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        let known: Vec<Value> = required.iter().filter(is_known).cloned().collect();
        if known.len() < required.len() {
            losses.add(place, "required", Change::Wider, "names that are not among the properties are left out");
        }
        if !known.is_empty() {
            node.insert("required".to_owned(), Value::Array(known));
        }
    }
    if let Some(Value::Array(order)) = members.get("propertyOrdering")
        && order.iter().all(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
    {
        node.insert("propertyOrdering".to_owned(), Value::Array(order.clone()));
    }
    if !properties.is_empty() {
        node.insert("properties".to_owned(), Value::Object(properties));
    }
    counts(&members, &["minProperties", "maxProperties"], node);
}
