//! Whether a schema is one, as far as reading it needs.

use serde_json::Value;

use super::keyword::{Holds, REFERENCES, TYPES, holds};
use super::limits::{MAX_BYTES, MAX_JSON_DEPTH};
use super::place::Place;

/// A schema that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}{}", place(pointer))]
pub struct BrokenSchema {
    /// Where, as a JSON pointer; empty for the root.
    pub pointer: String,
    /// What is wrong there, the value and what would be right.
    pub reason: String,
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" (at {pointer})") }
}

impl BrokenSchema {
    pub(super) fn at(place: &Place<'_>, reason: impl Into<String>) -> Self {
        Self { pointer: place.pointer(), reason: reason.into() }
    }
}

/// Checks the whole of a schema: its size first, without going into depths that the stack could not follow.
pub(super) fn check(root: &Value) -> Result<(), BrokenSchema> {
    let size = |reason| Err(BrokenSchema { pointer: String::new(), reason });
    let mut bytes = 0;
    let mut open = vec![(root, 1)];
    while let Some((value, level)) = open.pop() {
        if level > MAX_JSON_DEPTH {
            return size(format!("the schema is nested more than {MAX_JSON_DEPTH} levels deep"));
        }
        bytes += 2;
        match value {
            Value::Object(members) => {
                bytes += members.keys().map(String::len).sum::<usize>();
                open.extend(members.values().map(|value| (value, level + 1)));
            }
            Value::Array(items) => open.extend(items.iter().map(|value| (value, level + 1))),
            Value::String(text) => bytes += text.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if bytes > MAX_BYTES {
            return size(format!("the schema is larger than {MAX_BYTES} bytes"));
        }
    }
    match root {
        Value::Object(_) | Value::Bool(true) => schema(root, &Place::ROOT),
        Value::Bool(false) => size("the schema is `false`, which nothing fits".to_owned()),
        other => size(format!("the schema is {}, not an object", kind(other))),
    }
}

/// Checks what stands where a schema must.
pub(super) fn schema(value: &Value, place: &Place<'_>) -> Result<(), BrokenSchema> {
    let members = match value {
        Value::Object(members) => members,
        Value::Bool(_) => return Ok(()),
        other => return Err(BrokenSchema::at(place, format!("{} stands where a schema must", kind(other)))),
    };
    for (keyword, value) in members {
        let place = place.child(keyword);
        match (holds(keyword), value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Object(_) | Value::Bool(_)) => schema(value, &place)?,
            (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                if items.is_empty() && matches!(keyword.as_str(), "allOf" | "anyOf" | "oneOf") {
                    return Err(BrokenSchema::at(&place, "the list is empty"));
                }
                for (index, item) in items.iter().enumerate() {
                    schema(item, &place.child(&index.to_string()))?;
                }
            }
            (Holds::Map, Value::Object(schemas)) => {
                for (name, value) in schemas {
                    schema(value, &place.child(name))?;
                }
            }
            (Holds::Dependencies, Value::Object(all)) => {
                for (name, value) in all {
                    let place = place.child(name);
                    if value.is_array() { strings(value, &place)? } else { schema(value, &place)? }
                }
            }
            (Holds::Schema | Holds::SchemaOrList, other) => {
                return Err(BrokenSchema::at(&place, format!("{} stands where a schema must", kind(other))));
            }
            (Holds::List, other) => return Err(BrokenSchema::at(&place, format!("a list of schemas, not {}", kind(other)))),
            (Holds::Map | Holds::Dependencies, other) => {
                return Err(BrokenSchema::at(&place, format!("an object of schemas, not {}", kind(other))));
            }
            (Holds::Nothing, value) => simple(keyword, value, &place)?,
        }
    }
    Ok(())
}

fn simple(keyword: &str, value: &Value, place: &Place<'_>) -> Result<(), BrokenSchema> {
    let must = |is_right: bool, what: &str| {
        if is_right { Ok(()) } else { Err(BrokenSchema::at(place, format!("{what}, not {}", kind(value)))) }
    };
    match keyword {
        "type" => types(value, place),
        "required" => strings(value, place),
        "dependentRequired" => {
            must(value.is_object(), "an object of lists of names")?;
            value.as_object().into_iter().flatten().try_for_each(|(name, value)| strings(value, &place.child(name)))
        }
        "enum" => must(value.is_array(), "a list of values"),
        "examples" => must(value.is_array() || value.is_object(), "a list of values"),
        "pattern" | "format" | "title" | "description" | "$id" | "$schema" | "$anchor" | "$comment" => {
            must(value.is_string(), "a text")
        }
        "maximum" | "minimum" => must(value.is_number(), "a number"),
        "multipleOf" => must(value.as_f64().is_some_and(|number| number > 0.0), "a number above 0"),
        "exclusiveMaximum" | "exclusiveMinimum" => must(value.is_number() || value.is_boolean(), "a number"),
        "maxItems" | "minItems" | "maxLength" | "minLength" | "maxProperties" | "minProperties" | "maxContains"
        | "minContains" => must(count(value).is_some(), "a whole number from 0"),
        "uniqueItems" => must(value.is_boolean(), "true or false"),
        reference if REFERENCES.contains(&reference) => must(value.is_string(), "the address of a schema"),
        _ => Ok(()),
    }
}

/// A whole number from 0, also where it is written `2.0`.
pub(super) fn count(value: &Value) -> Option<u64> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number in the range of both")]
    value.as_u64().or_else(|| value.as_f64().and_then(whole).map(|number| number as u64))
}

fn types(value: &Value, place: &Place<'_>) -> Result<(), BrokenSchema> {
    let unknown = |found: &Value| {
        let found: String = found.to_string().chars().take(80).collect();
        Err(BrokenSchema::at(place, format!("{found} is no type; the types are {}", TYPES.join(", "))))
    };
    let is_known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(all) if all.is_empty() => Err(BrokenSchema::at(place, "the list of types is empty")),
        Value::Array(all) => all.iter().find(|one| !is_known(one)).map_or(Ok(()), unknown),
        one if is_known(one) => Ok(()),
        other => unknown(other),
    }
}

fn strings(value: &Value, place: &Place<'_>) -> Result<(), BrokenSchema> {
    match value {
        Value::Array(all) if all.iter().all(Value::is_string) => Ok(()),
        Value::Array(_) => Err(BrokenSchema::at(place, "a list of names holds something else")),
        other => Err(BrokenSchema::at(place, format!("a list of names, not {}", kind(other)))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
