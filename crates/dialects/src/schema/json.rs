//! Targets that read JSON Schema itself.

use serde_json::{Value, json};

use super::alternatives::are_disjoint;
use super::keyword::{Holds, holds};
use super::loss::{Change, Losses};
use super::modern::note;
use super::place::Place;
use super::{Object, SchemaTarget};

/// The longest property name that Anthropic takes.
const MAX_NAME_CHARS: usize = 64;

pub(super) fn lower(mut root: Object, target: SchemaTarget, losses: &mut Losses) -> Value {
    if target == SchemaTarget::Anthropic {
        names(&mut root, losses);
    }
    schema(root, target, &Place::ROOT, losses)
}

fn any_schema(value: Value, target: SchemaTarget, place: &Place<'_>, losses: &mut Losses) -> Value {
    match value {
        Value::Object(members) => schema(members, target, place, losses),
        Value::Bool(false) if target != SchemaTarget::Compatible => json!({"not": {}}),
        // Grammars know no schema that nothing fits.
        Value::Bool(false) => {
            losses.add(place, "", Change::Wider, "nothing fits it, which cannot be said: left open");
            json!({})
        }
        _ => json!({}),
    }
}

fn schema(mut members: Object, target: SchemaTarget, place: &Place<'_>, losses: &mut Losses) -> Value {
    if target == SchemaTarget::Compatible {
        plain(&mut members, place, losses);
    }
    let mut lowered = Object::new();
    for (keyword, value) in members {
        let place = place.child(&keyword);
        let is_flag =
            matches!(keyword.as_str(), "additionalProperties" | "items" | "unevaluatedItems" | "unevaluatedProperties");
        let value = match (holds(&keyword), value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Bool(fits)) if is_flag => Value::Bool(fits),
            (Holds::Schema | Holds::SchemaOrList, value) => any_schema(value, target, &place, losses),
            (Holds::List, Value::Array(items)) => {
                let items = items.into_iter().enumerate();
                items.map(|(index, item)| any_schema(item, target, &place.child(&index.to_string()), losses)).collect()
            }
            (Holds::Map, Value::Object(all)) => {
                let all = all.into_iter().map(|(name, value)| {
                    let value = any_schema(value, target, &place.child(&name), losses);
                    (name, value)
                });
                Value::Object(all.collect())
            }
            (_, value) => value,
        };
        lowered.insert(keyword, value);
    }
    if matches!(target, SchemaTarget::OpenAi | SchemaTarget::Compatible) {
        items(&mut lowered);
    }
    Value::Object(lowered)
}

/// OpenAI refuses a list that says nothing of its elements: they may be anything.
fn items(schema: &mut Object) {
    let is_list = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "array"),
        other => other.is_some_and(|one| one == "array"),
    };
    let is_open = matches!(schema.get("items"), None | Some(Value::Bool(true))) && !schema.contains_key("unevaluatedItems");
    if is_list && is_open {
        schema.insert("items".to_owned(), json!({}));
    }
}

/// Whether Anthropic takes a property of this name.
pub(super) fn is_property_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_CHARS
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// Property names that Anthropic refuses are told in words, so that the model can still give them.
fn names(root: &mut Object, losses: &mut Losses) {
    let Some(Value::Object(properties)) = root.get_mut("properties") else { return };
    let odd: Vec<(String, Value)> = properties
        .iter()
        .filter(|(name, _)| !is_property_name(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if odd.is_empty() {
        return;
    }
    properties.retain(|name, _| is_property_name(name));
    let place = Place::ROOT;
    let place = place.child("properties");
    let required = root.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, value) in &odd {
        let name = Value::from(name.as_str());
        let takes = if required.contains(&name) { "needs" } else { "also takes" };
        note(root, &format!("It {takes} the property {name}, of the schema {value}."));
        let meaning = format!("the property {name} is told in the description, since its name is refused");
        losses.add(&place, name.as_str().unwrap_or_default(), Change::Wider, meaning);
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        required.retain(|name| !odd.iter().any(|(odd, _)| name == odd));
        if required.is_empty() {
            root.shift_remove("required");
        }
    }
    // Closed, it would refuse what the description asks for.
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        if root.get(keyword).is_some_and(|rest| rest != &Value::Bool(true)) {
            root.shift_remove(keyword);
            losses.add(&Place::ROOT, keyword, Change::Wider, "left out for the properties that are told in words");
        }
    }
}

/// Keywords that some servers cannot make a grammar of, or stumble over.
const REFUSED: [&str; 18] = [
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "multipleOf",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

fn plain(members: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    // Where names that fit a pattern are properties of their own, the rest is not closed.
    if members.contains_key("patternProperties") && members.shift_remove("additionalProperties").is_some() {
        losses.add(place, "additionalProperties", Change::Wider, "left out together with `patternProperties`");
    }
    if members.contains_key("dependentSchemas") {
        note(members, "Some properties depend on others.");
    }
    for keyword in REFUSED {
        if members.shift_remove(keyword).is_some() {
            losses.add(place, keyword, Change::Wider, "left out: many compatible servers cannot read it");
        }
    }
    if let Some(value) = members.shift_remove("const") {
        match members.get("enum") {
            None => {
                members.insert("enum".to_owned(), Value::Array(vec![value]));
            }
            Some(_) => losses.add(place, "const", Change::Wider, "left out beside `enum`"),
        }
    }
    if let Some(Value::Array(all)) = members.get("oneOf") {
        let (all, is_exact) = (all.clone(), are_disjoint(all));
        if !is_exact {
            losses.add(place, "oneOf", Change::Wider, "more than one of the alternatives may fit");
        }
        members.shift_remove("oneOf");
        match members.get("anyOf") {
            None => {
                members.insert("anyOf".to_owned(), Value::Array(all));
            }
            Some(_) => losses.add(place, "oneOf", Change::Wider, "left out beside `anyOf`"),
        }
    }
    if let Some(Value::String(pattern)) = members.get("pattern")
        && !is_simple(pattern)
    {
        let text = format!("(Pattern: {pattern})");
        members.shift_remove("pattern");
        note(members, &text);
        losses.add(place, "pattern", Change::Wider, "told in words: grammars take only simple patterns from ^ to $");
    }
    if let (Some(Value::Array(first)), Some(Value::Bool(false))) = (members.get("prefixItems"), members.get("items")) {
        let length = first.len() as u64;
        members.shift_remove("items");
        let most = members.get("maxItems").and_then(super::check::count).map_or(length, |most| most.min(length));
        members.insert("maxItems".to_owned(), json!(most));
    }
    impossible(members, place, losses);
}

/// Properties that must not be there.
fn impossible(members: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    let is_closed = members.get("additionalProperties") == Some(&Value::Bool(false));
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        let place = place.child("properties");
        properties.retain(|name, value| {
            let is_left = value != &Value::Bool(false);
            if !is_left && !is_closed {
                losses.add(&place, name, Change::Wider, "the property that must not be there is left out");
            }
            is_left
        });
    }
}

/// Whether every grammar writer takes a pattern: from `^` to `$`, without groups that look around or name things.
fn is_simple(pattern: &str) -> bool {
    let has_class = ["\\p", "\\P", "\\b", "\\B", "\\k", "(?"].iter().any(|part| pattern.contains(part));
    let has_backreference = (1..=9).any(|n| pattern.contains(&format!("\\{n}")));
    pattern.starts_with('^') && pattern.ends_with('$') && !has_class && !has_backreference && pattern.is_ascii()
}
