//! Anthropic's strict tools: only where nothing that the schema says is lost. Optional properties stay optional.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Object;
use super::alternatives::are_disjoint;
use super::json::is_property_name;
use super::loss::Loss;
use super::merge::type_list;
use super::modern::note;
use super::place::Place;
use super::strict::no;

/// The formats that strict tools know.
const FORMATS: [&str; 10] = ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// What the strict tools of one request may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StrictRoom {
    tools: usize,
    optional_properties: usize,
    unions: usize,
}

impl StrictRoom {
    /// What one request has.
    pub(crate) const WHOLE: Self = Self { tools: 20, optional_properties: 24, unions: 16 };

    /// Takes what a strict schema needs; says whether there was that much.
    pub(crate) fn take(&mut self, schema: &Value) -> bool {
        let mut need = Self { tools: 1, optional_properties: 0, unions: 0 };
        need.add(schema);
        let left = self.tools.checked_sub(need.tools).and_then(|tools| {
            let optional_properties = self.optional_properties.checked_sub(need.optional_properties)?;
            Some(Self { tools, optional_properties, unions: self.unions.checked_sub(need.unions)? })
        });
        *self = left.unwrap_or(*self);
        left.is_some()
    }

    fn add(&mut self, schema: &Value) {
        let Some(members) = schema.as_object() else { return };
        let required = members.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        let properties = members.get("properties").and_then(Value::as_object);
        self.optional_properties += properties.map_or(0, Object::len).saturating_sub(required);
        let is_union = members.contains_key("anyOf") || members.get("type").is_some_and(Value::is_array);
        self.unions += usize::from(is_union);
        let alternatives = ["anyOf", "allOf"].iter().filter_map(|keyword| members.get(*keyword)?.as_array()).flatten();
        alternatives.chain(members.get("items")).chain(properties.into_iter().flat_map(Object::values)).for_each(|schema| {
            self.add(schema);
        });
    }
}

/// The schema in strict form.
///
/// # Errors
/// Why it has none, in words for people.
pub(super) fn lower(root: &Object, losses: &[Loss]) -> Result<Value, String> {
    if let Some(loss) = losses.iter().find(|loss| loss.change != super::Change::Told) {
        return Err(loss.to_string());
    }
    let odd = root
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Object::keys)
        .find(|name| !is_property_name(name));
    if let Some(name) = odd {
        return Err(no(&Place::ROOT, format!("the name of the property {} is refused", Value::from(name.as_str()))));
    }
    let lowered = schema(root, &Place::ROOT)?;
    let mut whole = StrictRoom::WHOLE;
    if !whole.take(&lowered) {
        let StrictRoom { optional_properties, unions, .. } = whole;
        let why = format!("more than {optional_properties} optional properties or {unions} properties of several types");
        return Err(no(&Place::ROOT, why));
    }
    Ok(lowered)
}

fn any_schema(value: &Value, place: &Place<'_>) -> Result<Value, String> {
    match value {
        Value::Object(members) if !members.is_empty() => schema(members, place),
        Value::Bool(false) => Err(no(place, "nothing fits it, which a strict tool cannot say")),
        _ => Err(no(place, "any value fits it, which a strict tool cannot say")),
    }
}

fn schema(members: &Object, place: &Place<'_>) -> Result<Value, String> {
    let mut lowered = Object::new();
    let mut default = None;
    for (keyword, value) in members {
        let here = place.child(keyword);
        match keyword.as_str() {
            "type" | "description" | "title" | "required" => drop(lowered.insert(keyword.clone(), value.clone())),
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                lowered.insert(keyword.clone(), value.clone());
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => drop(lowered.insert(keyword.clone(), value.clone())),
            "enum" | "const" => {
                let values = value.as_array().filter(|_| keyword == "enum").map_or(std::slice::from_ref(value), Vec::as_slice);
                if values.iter().any(|value| value.is_object() || value.is_array()) {
                    return Err(no(&here, "a value is an object or a list"));
                }
                lowered.insert(keyword.clone(), value.clone());
            }
            "items" => drop(lowered.insert(keyword.clone(), any_schema(value, &here)?)),
            "anyOf" | "allOf" => drop(lowered.insert(keyword.clone(), all(value, &here)?)),
            "oneOf" if !members.contains_key("anyOf") && value.as_array().is_some_and(|all| are_disjoint(all)) => {
                lowered.insert("anyOf".to_owned(), all(value, &here)?);
            }
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties = properties.map(|(name, value)| Ok((name.clone(), any_schema(value, &here.child(name))?)));
                lowered.insert(keyword.clone(), Value::Object(properties.collect::<Result<_, String>>()?));
            }
            "additionalProperties" if value == &Value::Bool(false) => drop(lowered.insert(keyword.clone(), value.clone())),
            "default" => default = Some(value),
            "deprecated" | "examples" | "example" | "readOnly" | "writeOnly" => {}
            "uniqueItems" if value == &Value::Bool(false) => {}
            "oneOf" => return Err(no(&here, "exactly one must fit, which a strict tool cannot say")),
            other if other.starts_with("x-") || other.starts_with("x_") || other == "nullable" => {}
            _ => return Err(no(&here, "a strict tool has no such keyword")),
        }
    }
    if let Some(value) = default {
        note(&mut lowered, &format!("(Default: {value})"));
    }
    said(&lowered, place)?;
    Ok(Value::Object(lowered))
}

/// Whether everything is said that has to be.
fn said(lowered: &Object, place: &Place<'_>) -> Result<(), String> {
    let kinds: Vec<&str> = lowered.get("type").map(type_list).unwrap_or_default();
    let has_values = ["enum", "const", "anyOf", "allOf"].iter().any(|keyword| lowered.contains_key(*keyword));
    let is_shaped = lowered.contains_key("properties") || lowered.contains_key("items");
    if kinds.is_empty() && (!has_values || is_shaped) {
        return Err(no(place, "it says no type"));
    }
    if kinds.contains(&"array") && !lowered.contains_key("items") {
        return Err(no(place, "its items may be anything, which a strict tool cannot say"));
    }
    if !kinds.contains(&"object") {
        return Ok(());
    }
    if lowered.get("additionalProperties") != Some(&json!(false)) {
        return Err(no(place, "the object is open: `additionalProperties` is not false"));
    }
    let known: HashSet<&str> =
        lowered.get("properties").and_then(Value::as_object).into_iter().flat_map(Object::keys).map(String::as_str).collect();
    let mut required = lowered.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    match required.find(|name| !known.contains(name)) {
        Some(name) => Err(no(place, format!("`{name}` is required and not among the properties"))),
        None => Ok(()),
    }
}

fn all(value: &Value, place: &Place<'_>) -> Result<Value, String> {
    let all = value.as_array().into_iter().flatten().enumerate();
    all.map(|(index, one)| any_schema(one, &place.child(&index.to_string()))).collect()
}
