//! Puts every referenced schema in its place, and makes one schema of those that must all hold.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Object;
use super::check::{self, BrokenSchema};
use super::keyword::{Holds, REFERENCES, holds, is_annotation, is_meta};
use super::limits::{EXPANSIONS, Expansion, MAX_LEVELS};
use super::loss::{Change, Losses};
use super::merge::absorb;
use super::modern::modernize;
use super::place::Place;
use super::resolve::{Resources, Target};

/// The schema without references and meta keywords, in the forms of draft 2020-12; and whether a part of it is left open.
pub(super) fn inline(root: &Value, losses: &mut Losses) -> Result<(Value, bool), BrokenSchema> {
    let resources = Resources::of(root);
    let mut checked = HashSet::new();
    let [first, last] = EXPANSIONS;
    let mut inliner = Inliner::new(&resources, first, root, &mut checked);
    let mut schema = inliner.schema(root, "", &Place::ROOT, 0)?;
    if inliner.bytes > first.bytes {
        inliner = Inliner::new(&resources, last, root, &mut checked);
        schema = inliner.schema(root, "", &Place::ROOT, 0)?;
    }
    *losses = inliner.losses;
    Ok((schema, inliner.is_cut))
}

struct Inliner<'a, 'v> {
    resources: &'a Resources<'v>,
    limits: Expansion,
    /// Targets that are being put in place, from the outside in.
    open: Vec<*const Value>,
    /// Bytes of what was put in place so far.
    bytes: usize,
    checked: &'a mut HashSet<*const Value>,
    losses: Losses,
    /// Whether something is left open.
    is_cut: bool,
}

impl<'a, 'v> Inliner<'a, 'v> {
    fn new(resources: &'a Resources<'v>, limits: Expansion, root: &'v Value, checked: &'a mut HashSet<*const Value>) -> Self {
        let (open, losses) = (vec![std::ptr::from_ref(root)], Losses::default());
        Self { resources, limits, open, bytes: 0, checked, losses, is_cut: false }
    }

    fn schema(&mut self, value: &'v Value, base: &str, place: &Place<'_>, level: usize) -> Result<Value, BrokenSchema> {
        let Value::Object(members) = value else { return Ok(value.clone()) };
        if level > MAX_LEVELS {
            let meaning = format!("what is more than {MAX_LEVELS} levels deep is left open");
            self.losses.add(place, "", Change::Wider, meaning);
            self.is_cut = true;
            return Ok(stub(value, None));
        }
        if self.open.len() > 1 {
            self.bytes += own_bytes(members);
        }
        let base = self.resources.base(members, base);
        let reference = REFERENCES.iter().find(|keyword| members.contains_key(**keyword));
        let is_alone = reference.is_some_and(|keyword| *keyword == "$ref" && self.resources.draft().ignores_siblings());
        let mut own = Object::new();
        for (keyword, value) in members {
            let is_named = keyword == "id" && value.is_string() && self.resources.draft().names_by_id();
            if is_meta(keyword) || is_named || REFERENCES.contains(&keyword.as_str()) || (is_alone && !is_annotation(keyword)) {
                continue;
            }
            let before = self.losses.list().len();
            let value = self.keyword(keyword, value, &base, place, level)?;
            // Left open, these would turn around what they mean.
            let is_lost = self.losses.list().len() > before;
            let becomes = match keyword.as_str() {
                "oneOf" if is_lost && !members.contains_key("anyOf") => Some("anyOf"),
                "not" | "if" | "oneOf" if is_lost => None,
                keyword => Some(keyword),
            };
            if becomes != Some(keyword) {
                let meaning = "cannot hold as it is, since a part of it is left open";
                self.losses.add(place, keyword, Change::Wider, meaning);
            }
            if let Some(keyword) = becomes {
                own.insert(keyword.to_owned(), value);
            }
        }
        if !own.contains_key("if") {
            own.retain(|keyword, _| !matches!(keyword.as_str(), "then" | "else"));
        }
        modernize(&mut own, place, &mut self.losses);
        let mut parts = Vec::new();
        if let Some(keyword) = reference {
            let text = members.get(*keyword).and_then(Value::as_str).unwrap_or_default();
            parts.push(self.reference(keyword, text, &base, place, level)?);
        }
        if let Some(Value::Array(all)) = own.shift_remove("allOf") {
            parts.extend(all);
        }
        Ok(conjunction(own, parts))
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'v Value,
        base: &str,
        place: &Place<'_>,
        level: usize,
    ) -> Result<Value, BrokenSchema> {
        let place = place.child(keyword);
        Ok(match (holds(keyword), value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Object(_)) => self.schema(value, base, &place, level + 1)?,
            (Holds::List | Holds::SchemaOrList, Value::Array(items)) => {
                let mut schemas = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    schemas.push(self.schema(item, base, &place.child(&index.to_string()), level + 1)?);
                }
                Value::Array(schemas)
            }
            (Holds::Map | Holds::Dependencies, Value::Object(all)) => {
                let mut schemas = Object::new();
                for (name, value) in all {
                    schemas.insert(name.clone(), self.schema(value, base, &place.child(name), level + 1)?);
                }
                Value::Object(schemas)
            }
            _ => value.clone(),
        })
    }

    fn reference(
        &mut self,
        keyword: &str,
        reference: &str,
        base: &str,
        place: &Place<'_>,
        level: usize,
    ) -> Result<Value, BrokenSchema> {
        let resolved = self.resources.resolve(base, reference);
        let (target, base) = match resolved.map_err(|reason| BrokenSchema::at(&place.child(keyword), reason))? {
            Target::Schema(target, base) => (target, base),
            Target::MetaSchema => {
                self.losses.add(place, keyword, Change::Wider, "a JSON Schema: any object is taken");
                return Ok(json!({"type": ["object", "boolean"], "description": "A JSON Schema."}));
            }
        };
        let pointer = std::ptr::from_ref(target);
        if self.checked.insert(pointer) {
            check::schema(target, &place.child(keyword))?;
        }
        let name = reference.rsplit(['/', '#']).next().filter(|name| !name.is_empty());
        self.bytes += 16;
        if self.open.iter().filter(|open| **open == pointer).count() >= self.limits.open {
            let what = name.map_or_else(|| "the schema".to_owned(), |name| format!("`{name}`"));
            self.losses.add(place, keyword, Change::Wider, format!("{what} contains itself: left open from here on"));
            self.is_cut = true;
            return Ok(stub(target, name));
        }
        if self.bytes > self.limits.bytes {
            let meaning = format!("left open: what is referred to comes to more than {} bytes", self.limits.bytes);
            self.losses.add(place, keyword, Change::Wider, meaning);
            self.is_cut = true;
            return Ok(stub(target, name));
        }
        self.open.push(pointer);
        let schema = self.schema(target, &base, place, level + 1);
        self.open.pop();
        schema
    }
}

/// What is known of a schema that is not put in place: its type, and what the model is told of it.
fn stub(target: &Value, name: Option<&str>) -> Value {
    let mut stub = Object::new();
    if let Some(kind) = target.get("type") {
        stub.insert("type".to_owned(), kind.clone());
    }
    let told = ["description", "title"].iter().find_map(|keyword| target.get(keyword).and_then(Value::as_str)).or(name);
    if let Some(told) = told.filter(|told| told.len() <= 200) {
        stub.insert("description".to_owned(), json!(told));
    }
    Value::Object(stub)
}

/// The bytes of what a schema says itself, without the schemas in it.
fn own_bytes(members: &Object) -> usize {
    fn bytes(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 6,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
            Value::Object(members) => members.iter().map(|(name, value)| name.len() + bytes(value) + 4).sum::<usize>() + 2,
        }
    }
    let of = |keyword: &String, value: &Value| match (holds(keyword), value) {
        (Holds::Nothing, value) => bytes(value),
        (Holds::Map | Holds::Dependencies, Value::Object(all)) => all.keys().map(|name| name.len() + 4).sum(),
        _ => 2,
    };
    members.iter().map(|(keyword, value)| keyword.len() + 4 + of(keyword, value)).sum::<usize>() + 2
}

/// One schema that says what `own` and all `parts` say.
fn conjunction(mut own: Object, parts: Vec<Value>) -> Value {
    // These speak about what the other parts leave over, and come last.
    let later = ["unevaluatedProperties", "unevaluatedItems"].map(|keyword| (keyword, own.shift_remove(keyword)));
    let mut rest = Vec::new();
    for part in parts {
        match part {
            Value::Bool(false) => return Value::Bool(false),
            Value::Object(part) => match absorb(&mut own, part) {
                Ok(()) => {}
                Err(part) => rest.push(Value::Object(part)),
            },
            _ => {}
        }
    }
    // A part may have brought an `allOf` of its own.
    if let (false, Some(Value::Array(more))) = (rest.is_empty(), own.get("allOf")) {
        rest.splice(0..0, more.iter().cloned());
    }
    if !rest.is_empty() {
        own.insert("allOf".to_owned(), Value::Array(rest));
    }
    for (keyword, value) in later {
        if let Some(value) = value {
            leftover(&mut own, keyword, value);
        }
    }
    Value::Object(own)
}

/// Sets `unevaluatedProperties` or `unevaluatedItems`, as the keyword that it comes down to where nothing else in the
/// schema takes part.
fn leftover(schema: &mut Object, keyword: &str, value: Value) {
    let others = ["allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas"];
    let is_plain = !others.iter().any(|other| schema.contains_key(*other));
    let simple = match keyword {
        "unevaluatedProperties" => "additionalProperties",
        _ => "items",
    };
    let is_free = keyword == "unevaluatedProperties" || !schema.contains_key("contains");
    match (schema.contains_key(simple), is_plain && is_free) {
        // Everything is spoken for.
        (true, _) => {}
        (false, true) => {
            schema.insert(simple.to_owned(), value);
        }
        (false, false) => {
            schema.insert(keyword.to_owned(), value);
        }
    }
}
