//! OpenAI's strict mode: only where nothing that the schema says is lost.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Object;
use super::alternatives::are_disjoint;
use super::keyword::type_of;
use super::loss::Loss;
use super::modern::note;
use super::place::Place;

/// The limits of OpenAI's structured outputs.
const MAX_DEPTH: usize = 10;
const MAX_PROPERTIES: usize = 5_000;
const MAX_ENUM_VALUES: usize = 1_000;
const MAX_TEXT_BYTES: usize = 120_000;
/// One `enum` of more than [`LONG_ENUM`] values may have no more text than this.
const MAX_LONG_ENUM_BYTES: usize = 15_000;
const LONG_ENUM: usize = 250;

/// The formats that strict mode knows.
pub(super) const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// The keywords that mean the same there.
pub(super) const PLAIN: [&str; 11] = [
    "type",
    "pattern",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
    "description",
    "title",
];

/// The schema in strict form: every object closed, every property required, the optional ones nullable.
///
/// # Errors
/// Why it has none, in words for people.
pub(super) fn lower(root: &Object, losses: &[Loss]) -> Result<Value, String> {
    if let Some(loss) = losses.iter().find(|loss| loss.change != super::Change::Told) {
        return Err(loss.to_string());
    }
    let mut counts = Counts::default();
    schema(root, &Place::ROOT, 1, &mut counts)
}

#[derive(Default)]
struct Counts {
    properties: usize,
    enum_values: usize,
    text_bytes: usize,
}

/// Why there is no strict form, with the place.
pub(super) fn no(place: &Place<'_>, why: impl std::fmt::Display) -> String {
    let pointer = place.pointer();
    if pointer.is_empty() { format!("the root: {why}") } else { format!("{pointer}: {why}") }
}

fn any_schema(value: &Value, place: &Place<'_>, depth: usize, counts: &mut Counts) -> Result<Value, String> {
    match value {
        Value::Object(members) if !members.is_empty() => schema(members, place, depth, counts),
        Value::Bool(false) => Err(no(place, "nothing fits it, which strict mode cannot say")),
        _ => Err(no(place, "any value fits it, which strict mode cannot say")),
    }
}

fn schema(members: &Object, place: &Place<'_>, depth: usize, counts: &mut Counts) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err(no(place, format!("nested more than {MAX_DEPTH} levels deep")));
    }
    let mut lowered = Object::new();
    let mut told = None;
    for (keyword, value) in members {
        let here = place.child(keyword);
        match keyword.as_str() {
            plain if PLAIN.contains(&plain) => {
                lowered.insert(keyword.clone(), value.clone());
            }
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                lowered.insert(keyword.clone(), value.clone());
            }
            "enum" => {
                counts.values(value, &here)?;
                lowered.insert(keyword.clone(), value.clone());
            }
            "const" if !members.contains_key("enum") => {
                let values = json!([value]);
                counts.values(&values, &here)?;
                lowered.insert("enum".to_owned(), values);
            }
            "items" => {
                lowered.insert(keyword.clone(), any_schema(value, &here, depth + 1, counts)?);
            }
            "anyOf" => {
                lowered.insert(keyword.clone(), alternatives(value, &here, depth, counts)?);
            }
            "oneOf" if !members.contains_key("anyOf") && value.as_array().is_some_and(|all| are_disjoint(all)) => {
                lowered.insert("anyOf".to_owned(), alternatives(value, &here, depth, counts)?);
            }
            "default" => told = Some(format!("(Default: {value})")),
            "properties"
            | "required"
            | "additionalProperties"
            | "deprecated"
            | "examples"
            | "example"
            | "readOnly"
            | "writeOnly" => {}
            "uniqueItems" if value == &Value::Bool(false) => {}
            "oneOf" => return Err(no(&here, "exactly one must fit, which strict mode cannot say")),
            other if other.starts_with("x-") || other.starts_with("x_") || other == "nullable" => {}
            _ => return Err(no(&here, "strict mode has no such keyword")),
        }
    }
    if let Some(told) = told {
        note(&mut lowered, &told);
    }
    let is_open = !lowered.contains_key("type");
    if is_open && !lowered.contains_key("anyOf") {
        let values = lowered.get("enum").and_then(Value::as_array);
        let kinds = values.map(|values| kinds(values)).ok_or_else(|| no(place, "it says no type"))?;
        lowered.insert("type".to_owned(), kinds);
    } else if is_open && members.keys().any(|keyword| type_of(keyword).is_some()) {
        return Err(no(place, "it says no type"));
    }
    let kinds: Vec<&str> = lowered.get("type").map(super::merge::type_list).unwrap_or_default();
    if kinds.contains(&"array") && !lowered.contains_key("items") {
        return Err(no(place, "its items may be anything, which strict mode cannot say"));
    }
    if kinds.contains(&"object") {
        object(members, &mut lowered, place, depth, counts)?;
    }
    Ok(Value::Object(lowered))
}

fn alternatives(value: &Value, place: &Place<'_>, depth: usize, counts: &mut Counts) -> Result<Value, String> {
    let all = value.as_array().into_iter().flatten().enumerate();
    all.map(|(index, one)| any_schema(one, &place.child(&index.to_string()), depth, counts)).collect()
}

fn object(members: &Object, lowered: &mut Object, place: &Place<'_>, depth: usize, counts: &mut Counts) -> Result<(), String> {
    if members.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(no(place, "the object is open: `additionalProperties` is not false"));
    }
    let empty = Object::new();
    let properties = members.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: HashSet<&str> =
        members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(unknown) = required.iter().filter(|name| !properties.contains_key(**name)).min() {
        return Err(no(place, format!("`{unknown}` is required and not among the properties")));
    }
    counts.properties += properties.len();
    counts.text(properties.keys().map(String::len).sum(), place)?;
    if counts.properties > MAX_PROPERTIES {
        return Err(no(place, format!("more than {MAX_PROPERTIES} properties")));
    }
    let mut all = Object::new();
    let inside = place.child("properties");
    for (name, value) in properties {
        let here = inside.child(name);
        let mut property = any_schema(value, &here, depth + 1, counts)?;
        if !required.contains(name.as_str()) {
            property = nullable(property);
        }
        all.insert(name.clone(), property);
    }
    lowered.insert("required".to_owned(), all.keys().map(|name| json!(name)).collect());
    lowered.insert("properties".to_owned(), Value::Object(all));
    lowered.insert("additionalProperties".to_owned(), Value::Bool(false));
    Ok(())
}

/// The schema, or null.
fn nullable(mut schema: Value) -> Value {
    let Some(members) = schema.as_object_mut() else { return schema };
    if members.contains_key("type") && members.contains_key("anyOf") {
        return json!({"anyOf": [schema, {"type": "null"}]});
    }
    match members.get_mut("type") {
        Some(Value::Array(types)) if types.contains(&json!("null")) => {}
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(one) if one != "null" => *one = json!([one.clone(), "null"]),
        _ => {}
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(all)) = members.get_mut("anyOf") {
        let is_null = |one: &Value| {
            one.get("type").is_some_and(|kind| super::merge::type_list(kind).contains(&"null"))
                && one.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null))
        };
        if !all.iter().any(is_null) {
            all.push(json!({"type": "null"}));
        }
    }
    schema
}

fn kinds(values: &[Value]) -> Value {
    let mut kinds: Vec<&str> = Vec::new();
    for value in values {
        let kind = kind(value);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.contains(&"number") {
        kinds.retain(|kind| *kind != "integer");
    }
    match kinds.as_slice() {
        [one] => json!(one),
        all => json!(all),
    }
}

/// The type of a value, `integer` for whole numbers.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|number| number.fract() != 0.0) => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Counts {
    fn text(&mut self, bytes: usize, place: &Place<'_>) -> Result<(), String> {
        self.text_bytes += bytes;
        if self.text_bytes > MAX_TEXT_BYTES {
            return Err(no(place, format!("names and values of more than {MAX_TEXT_BYTES} bytes")));
        }
        Ok(())
    }

    fn values(&mut self, values: &Value, place: &Place<'_>) -> Result<(), String> {
        let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
        if values.is_empty() {
            return Err(no(place, "the list is empty"));
        }
        if values.iter().any(|value| value.is_object() || value.is_array()) {
            return Err(no(place, "a value is an object or a list"));
        }
        self.enum_values += values.len();
        let bytes: usize = values.iter().filter_map(Value::as_str).map(str::len).sum();
        self.text(bytes, place)?;
        if self.enum_values > MAX_ENUM_VALUES {
            return Err(no(place, format!("more than {MAX_ENUM_VALUES} values are listed")));
        }
        if values.len() > LONG_ENUM && bytes > MAX_LONG_ENUM_BYTES {
            return Err(no(place, format!("more than {LONG_ENUM} values of more than {MAX_LONG_ENUM_BYTES} bytes")));
        }
        Ok(())
    }
}
