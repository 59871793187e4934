//! The root: arguments are always one object, and no API takes alternatives there.

use serde_json::{Value, json};

use super::Object;
use super::alternatives::{take_properties, unite};
use super::check::BrokenSchema;
use super::loss::{Change, Losses};
use super::merge::type_list;
use super::modern::note;
use super::place::Place;

/// Keywords that no root may have, besides alternatives: what to say of each.
const NEVER: [(&str, &str); 3] = [
    ("enum", "left out: arguments are not a choice of whole objects"),
    ("const", "left out: arguments are not one fixed object"),
    ("not", "left out: it cannot stand at the root"),
];

/// The schema as one object schema, `type` and `properties` first.
///
/// # Errors
/// Where no object fits.
pub(super) fn root(schema: Value, losses: &mut Losses) -> Result<Object, BrokenSchema> {
    let mut schema = match schema {
        Value::Object(members) => members,
        Value::Bool(true) => Object::new(),
        _ => return Err(BrokenSchema::at(&Place::ROOT, "nothing fits the schema")),
    };
    if let Some(kind) = schema.shift_remove("type")
        && !type_list(&kind).contains(&"object")
    {
        let place = Place::ROOT;
        return Err(BrokenSchema::at(&place.child("type"), format!("arguments are an object, and {kind} is none")));
    }
    for (keyword, meaning) in NEVER {
        if schema.shift_remove(keyword).is_some() {
            losses.add(&Place::ROOT, keyword, Change::Wider, meaning);
        }
    }
    if let Some(Value::Array(all)) = schema.shift_remove("allOf") {
        for part in &all {
            let names = json!(super::alternatives::required(part));
            let ours = schema.get("required").cloned().unwrap_or_else(|| json!([]));
            let union = super::merge::union(&ours, &names);
            if union.as_array().is_some_and(|names| !names.is_empty()) {
                schema.insert("required".to_owned(), union);
            }
            take_properties(&mut schema, part);
        }
        let meaning = "made one with the schema around it: of what contradicts, the first is kept";
        losses.add(&Place::ROOT, "allOf", Change::Different, meaning);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(all)) = schema.shift_remove(keyword) {
            if let Some(choice) = unite(&mut schema, &all) {
                note(&mut schema, &choice);
            }
            let meaning =
                "the alternatives became one object: their properties are all there, and required where all require them";
            losses.add(&Place::ROOT, keyword, Change::Different, meaning);
        }
    }
    let mut root = Object::new();
    root.insert("type".to_owned(), json!("object"));
    let properties = schema.shift_remove("properties").unwrap_or_else(|| json!({}));
    root.insert("properties".to_owned(), properties);
    root.extend(schema);
    Ok(root)
}
