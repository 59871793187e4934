//! Gemini's `Schema`: a part of `OpenAPI`'s, in which a node has one type or is an `anyOf`.

mod typed;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Object;
use super::alternatives::{are_disjoint, unite};
use super::keyword::{TYPES, is_annotation, type_of};
use super::limits::MAX_LEVELS;
use super::loss::{Change, Losses};
use super::merge::{absorb, type_list, union};
use super::modern::note;
use super::place::Place;
use super::strict::kind;

/// Keywords that it does not have, and that a model understands in words.
const TOLD: [&str; 12] = [
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "multipleOf",
    "not",
    "patternProperties",
    "propertyNames",
    "then",
    "else",
];

/// Keywords that it does not have, and that nobody misses.
const SILENT: [&str; 6] =
    ["contentSchema", "maxContains", "minContains", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"];

/// The longest value of a keyword that is told in words.
const MAX_TOLD_BYTES: usize = 400;

pub(super) fn lower(mut root: Object, losses: &mut Losses) -> Value {
    root.shift_remove("nullable");
    Value::Object(node(root, &Place::ROOT, 0, losses))
}

fn any_schema(value: Value, place: &Place<'_>, level: usize, losses: &mut Losses) -> Object {
    match value {
        Value::Object(members) => node(members, place, level, losses),
        _ => node(Object::new(), place, level, losses),
    }
}

fn node(mut members: Object, place: &Place<'_>, level: usize, losses: &mut Losses) -> Object {
    if level > MAX_LEVELS {
        losses.add(place, "", Change::Different, format!("what is more than {MAX_LEVELS} levels deep is taken as text"));
        return json!({"type": "string", "description": "any JSON value"}).as_object().cloned().unwrap_or_default();
    }
    if let Some(Value::Array(all)) = members.shift_remove("allOf") {
        for part in all {
            force(&mut members, part);
        }
        losses.add(place, "allOf", Change::Different, "made one schema: of what contradicts, the last holds");
    }
    tell(&mut members, place, losses);
    let mut is_nullable = members.shift_remove("nullable") == Some(Value::Bool(true));
    if let Some(value) = members.shift_remove("const") {
        members.insert("enum".to_owned(), Value::Array(vec![value]));
    }
    if let Some(alternatives) = alternatives(&mut members, place, losses) {
        let said = members.iter().filter(|(keyword, _)| !is_annotation(keyword)).count();
        let is_shaped = ["properties", "items", "prefixItems"].iter().any(|keyword| members.contains_key(*keyword));
        match (said, is_shaped) {
            (0, _) => return any_of(&members, alternatives, is_nullable, place, level, losses),
            (_, false) => {
                let alternatives = with_each(&mut members, alternatives, place, losses);
                return any_of(&members, alternatives, is_nullable, place, level, losses);
            }
            (_, true) if is_object(&members) => {
                if let Some(choice) = unite(&mut members, &alternatives) {
                    note(&mut members, &choice);
                }
                let meaning =
                    "the alternatives became one object: their properties are all there, and required where all require them";
                losses.add(place, "anyOf", Change::Different, meaning);
            }
            (_, true) => losses.add(place, "anyOf", Change::Wider, "left out beside what else is said of the value"),
        }
    }
    let types = types(&members, &mut is_nullable, place, losses);
    match types.as_slice() {
        [one] => typed::typed(members, one, is_nullable, place, level, losses),
        [] => anything(members, is_nullable, place, losses),
        many => {
            let alternatives = many.iter().map(|one| Value::Object(of_type(&members, one))).collect();
            members.retain(|keyword, _| is_annotation(keyword));
            any_of(&members, alternatives, is_nullable, place, level, losses)
        }
    }
}

fn is_object(members: &Object) -> bool {
    members.get("type").map_or(members.contains_key("properties"), |kind| type_list(kind) == ["object"])
}

/// Takes `b` into `a`; the last holds.
fn force(a: &mut Object, b: Value) {
    let Value::Object(b) = b else { return };
    let Err(b) = absorb(a, b) else { return };
    for (keyword, theirs) in b {
        let merged = match (keyword.as_str(), a.get(&keyword), &theirs) {
            ("properties", Some(Value::Object(ours)), Value::Object(theirs)) => {
                let mut all = ours.clone();
                all.extend(theirs.clone());
                Value::Object(all)
            }
            ("required", Some(ours), theirs) => union(ours, theirs),
            ("description" | "title", Some(ours), _) => ours.clone(),
            _ => theirs,
        };
        a.insert(keyword, merged);
    }
    if let Some(Value::Array(more)) = a.shift_remove("allOf") {
        for part in more {
            force(a, part);
        }
    }
}

/// Puts in words what there is no field for.
fn tell(members: &mut Object, place: &Place<'_>, losses: &mut Losses) {
    for keyword in TOLD {
        let Some(value) = members.shift_remove(keyword) else { continue };
        let text = value.to_string();
        let meaning = if text.len() <= MAX_TOLD_BYTES {
            note(members, &format!("({keyword}: {text})"));
            "told in words: there is no such field"
        } else {
            "left out: there is no such field"
        };
        losses.add(place, keyword, Change::Wider, meaning);
    }
    match members.shift_remove("additionalProperties") {
        None | Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => {
            losses.add(place, "additionalProperties", Change::Wider, "left out: there is no such field");
        }
        Some(value) => {
            let text = value.to_string();
            if text.len() <= MAX_TOLD_BYTES {
                note(members, &format!("(any other property: {text})"));
            }
            losses.add(place, "additionalProperties", Change::Wider, "told in words: there is no such field");
        }
    }
    if members.get("uniqueItems") == Some(&Value::Bool(true)) {
        note(members, "(no item twice)");
    }
    for keyword in SILENT {
        if members.shift_remove(keyword).is_some_and(|value| value != Value::Bool(false) || keyword != "uniqueItems") {
            losses.add(place, keyword, Change::Wider, "left out: there is no such field");
        }
    }
}

/// The alternatives of `anyOf` or `oneOf`, taken out; `None` where there are none or one of them takes everything.
fn alternatives(members: &mut Object, place: &Place<'_>, losses: &mut Losses) -> Option<Vec<Value>> {
    let any_of = members.shift_remove("anyOf");
    let one_of = members.shift_remove("oneOf");
    let alternatives = match (any_of, one_of) {
        (Some(Value::Array(all)), one_of) => {
            if one_of.is_some() {
                losses.add(place, "oneOf", Change::Wider, "left out beside `anyOf`");
            }
            all
        }
        (_, Some(Value::Array(all))) => {
            if !are_disjoint(&all) {
                losses.add(place, "oneOf", Change::Wider, "more than one of the alternatives may fit");
            }
            all
        }
        _ => return None,
    };
    let takes_all = |value: &Value| value == &Value::Bool(true) || value.as_object().is_some_and(Object::is_empty);
    if alternatives.iter().any(takes_all) {
        return None;
    }
    Some(alternatives.into_iter().filter(|value| value != &Value::Bool(false)).collect())
}

/// What is said beside the alternatives, said in each of them.
fn with_each(members: &mut Object, alternatives: Vec<Value>, place: &Place<'_>, losses: &mut Losses) -> Vec<Value> {
    let mut shared = members.clone();
    shared.retain(|keyword, _| !is_annotation(keyword));
    members.retain(|keyword, _| is_annotation(keyword));
    let mut is_lost = false;
    let alternatives = alternatives.into_iter().filter_map(|alternative| {
        let Value::Object(mut alternative) = alternative else { return None };
        if let Err(shared) = absorb(&mut alternative, shared.clone()) {
            if let (Some(a), Some(b)) = (shared.get("type"), alternative.get("type")) {
                let meets = type_list(a).iter().any(|a| type_list(b).contains(a) || (*a == "number" && b == "integer"));
                if !meets {
                    return None;
                }
            }
            is_lost = true;
        }
        Some(Value::Object(alternative))
    });
    let alternatives = alternatives.collect();
    if is_lost {
        losses.add(place, "anyOf", Change::Wider, "what is said beside the alternatives does not fit into each of them");
    }
    alternatives
}

/// A node that is one of several. Besides them it has a description alone.
fn any_of(
    annotations: &Object,
    alternatives: Vec<Value>,
    mut is_nullable: bool,
    place: &Place<'_>,
    level: usize,
    losses: &mut Losses,
) -> Object {
    let inside = place.child("anyOf");
    let mut nodes: Vec<Object> = Vec::new();
    let mut seen = HashSet::new();
    for (index, alternative) in alternatives.into_iter().enumerate() {
        if is_null(&alternative) {
            is_nullable = true;
            continue;
        }
        let mut lowered = any_schema(alternative, &inside.child(&index.to_string()), level + 1, losses);
        let inner = match lowered.shift_remove("anyOf") {
            Some(Value::Array(inner)) => inner.into_iter().filter_map(|one| one.as_object().cloned()).collect(),
            _ => vec![lowered],
        };
        nodes.extend(inner.into_iter().filter(|one| seen.insert(Value::Object(one.clone()).to_string())));
    }
    if is_nullable {
        for one in &mut nodes {
            one.insert("nullable".to_owned(), Value::Bool(true));
        }
    }
    let told = ["description", "title"].iter().find_map(|keyword| annotations.get(*keyword)).cloned();
    if nodes.len() > 1 {
        let mut node = Object::new();
        if let Some(told) = told {
            node.insert("description".to_owned(), told);
        }
        node.insert("anyOf".to_owned(), nodes.into_iter().map(Value::Object).collect());
        return node;
    }
    let Some(mut node) = nodes.pop() else {
        return if is_nullable {
            typed::null(annotations, place, losses)
        } else {
            anything(annotations.clone(), false, place, losses)
        };
    };
    for keyword in ["title", "description", "default"] {
        if let Some(value) = annotations.get(keyword) {
            node.insert(keyword.to_owned(), value.clone());
        }
    }
    node
}

/// Whether a schema is that of null alone.
fn is_null(schema: &Value) -> bool {
    let has = |keyword: &str, value: &Value| schema.get(keyword) == Some(value);
    has("type", &json!("null")) || has("const", &Value::Null) || has("enum", &json!([null]))
}

/// The types that a value may have, without null, which goes into `is_nullable`. Empty where any will do.
fn types(members: &Object, is_nullable: &mut bool, place: &Place<'_>, losses: &mut Losses) -> Vec<&'static str> {
    let known = |name: &str| TYPES.iter().find(|known| **known == name).copied();
    let values = members.get("enum").and_then(Value::as_array);
    let listed: Vec<&'static str> = match (members.get("type"), values) {
        (Some(kinds), _) => type_list(kinds).into_iter().filter_map(known).collect(),
        (None, Some(values)) => {
            let mut kinds: Vec<&str> = Vec::new();
            for kind in values.iter().map(kind) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            kinds
        }
        (None, None) => {
            let Some(kind) = members.keys().find_map(|keyword| type_of(keyword)) else { return Vec::new() };
            losses.add(place, "type", Change::Narrower, format!("it is not said: taken as {kind}"));
            vec![kind]
        }
    };
    let takes_null = listed.contains(&"null") && values.is_none_or(|values| values.contains(&Value::Null));
    *is_nullable |= takes_null;
    let rest: Vec<&'static str> = listed.iter().copied().filter(|kind| *kind != "null").collect();
    match (rest.is_empty(), values) {
        (true, _) => vec!["null"],
        // Of several types those alone count that a listed value has.
        (false, Some(values)) => {
            let has = |one: &&str| values.iter().any(|value| kind(value) == *one || (*one == "number" && value.is_number()));
            let used: Vec<&'static str> = rest.iter().copied().filter(has).collect();
            if used.is_empty() { rest } else { used }
        }
        (false, None) if rest.len() >= TYPES.len() - 2 => Vec::new(),
        (false, None) => rest,
    }
}

/// What a schema says of values of one type.
fn of_type(members: &Object, one: &str) -> Object {
    let speaks = |keyword: &str| match type_of(keyword) {
        Some("number") => matches!(one, "number" | "integer"),
        Some(other) => other == one,
        None => matches!(keyword, "enum" | "format"),
    };
    let mut part = Object::new();
    part.insert("type".to_owned(), json!(one));
    part.extend(members.iter().filter(|(keyword, _)| speaks(keyword)).map(|(keyword, value)| (keyword.clone(), value.clone())));
    part
}

/// A node that takes any value, which it takes as text.
fn anything(mut members: Object, is_nullable: bool, place: &Place<'_>, losses: &mut Losses) -> Object {
    members.retain(|keyword, _| matches!(keyword.as_str(), "title" | "description"));
    let told = if members.contains_key("description") { "(any JSON value)" } else { "any JSON value" };
    note(&mut members, told);
    losses.add(place, "", Change::Narrower, "any value fits it, which is taken as text");
    let mut node = Object::new();
    node.insert("type".to_owned(), json!("string"));
    node.extend(members);
    if is_nullable {
        node.insert("nullable".to_owned(), Value::Bool(true));
    }
    node
}
