//! Whether a tool's schema can be asked of its arguments, and the validator that asks.

mod circles;

use std::collections::{HashMap, HashSet};

use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

use crate::source::shown_name;

/// Schemas that a validator may come by on its ways through one schema. References can make ways without end out of a few
/// lines, and each call would go them all.
const MAX_WAYS: u64 = 1_000_000;
/// References and schemas within one another.
const MAX_DEPTH: usize = 1_000;

/// Whether a schema is one.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("its input schema is not an object".to_owned());
    }
    if let Some(address) = foreign(schema) {
        return Err(format!(
            "its input schema refers to `{}`, which is not part of it: nothing is fetched",
            shown_name(address)
        ));
    }
    validator(schema).map_err(|error| format!("its input schema is not valid: {}", shortened(&error.to_string())))?;
    if Ways::of(schema) > MAX_WAYS {
        return Err(format!("its input schema has more than {MAX_WAYS} ways through its references"));
    }
    Ok(())
}

/// A validator of a schema that somebody else wrote, with what it may cost: a few lines of schema and of a value can take it longer than
/// anybody waits.
#[derive(Debug)]
pub struct BoundedValidator {
    validator: Validator,
    /// See [`circles::branches`].
    branches: u64,
}

impl BoundedValidator {
    /// The validator of a schema, whatever its ways.
    pub(crate) fn new(schema: &Value) -> Option<Self> {
        let branches = circles::branches(schema, &References::of(schema));
        validator(schema).ok().map(|validator| Self { validator, branches })
    }

    /// Whether a value fits; `None` where finding that out could take without end.
    pub fn fits(&self, value: &Value) -> Option<bool> {
        circles::is_bearable(circles::looks(value, self.branches)).then(|| self.validator.is_valid(value))
    }

    /// What of a value does not fit; `None` where listing it could take without end: of alternatives each is gone through twice.
    pub fn problems<'v>(&'v self, value: &'v Value) -> Option<impl Iterator<Item = ValidationError<'v>>> {
        let looks = circles::looks(value, self.branches.saturating_mul(2));
        circles::is_bearable(looks).then(|| self.validator.iter_errors(value))
    }
}

/// The validator of a schema that somebody else wrote; `None` where it is none, or has ways without end.
pub fn bounded_validator(schema: &Value) -> Option<BoundedValidator> {
    check_schema(schema).ok().and_then(|()| BoundedValidator::new(schema))
}

/// The first reference that leads out of the schema.
fn foreign(schema: &Value) -> Option<&str> {
    let mut named = HashMap::new();
    names(schema, &mut named);
    let leads_out = |address: &&str| {
        let document = address.split_once('#').map_or(*address, |(document, _)| document);
        document.contains("://") && !document.contains("json-schema.org/") && !named.contains_key(document)
    };
    references(schema).into_iter().find(leads_out)
}

/// What the schema refers to. What is no schema, such as an example, is looked at too where it looks like one.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The first words of what may repeat a whole schema.
fn shortened(text: &str) -> String {
    const MOST: usize = 300;
    let end = text.floor_char_boundary(MOST);
    text.get(..end).filter(|_| text.len() > MOST).map_or_else(|| text.to_owned(), |start| format!("{start}…"))
}

/// The validator of a schema. A dialect that nobody here knows is read as the protocol's own (2020-12).
pub(crate) fn validator(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    if Draft::default().detect(schema) != Draft::Unknown {
        return jsonschema::validator_for(schema);
    }
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("$schema");
    }
    jsonschema::options().with_draft(Draft::Draft202012).build(&schema)
}

/// Where the references of a schema lead.
#[derive(Debug)]
struct References<'v> {
    root: &'v Value,
    named: HashMap<&'v str, &'v Value>,
}

impl<'v> References<'v> {
    fn of(root: &'v Value) -> Self {
        let mut named = HashMap::new();
        names(root, &mut named);
        Self { root, named }
    }

    fn target(&self, reference: &str) -> Option<&'v Value> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = if address.is_empty() { Some(self.root) } else { self.named.get(address).copied() };
        match fragment {
            "" => document,
            pointer if pointer.starts_with('/') => document.and_then(|document| document.pointer(&pointer.replace("%25", "%"))),
            name => self.named.get(name).copied(),
        }
    }
}

/// Counts the ways through a schema.
struct Ways<'v> {
    references: References<'v>,
    known: HashMap<*const Value, u64>,
    open: HashSet<*const Value>,
}

impl<'v> Ways<'v> {
    fn of(root: &'v Value) -> u64 {
        Self { references: References::of(root), known: HashMap::new(), open: HashSet::new() }.through(root, 0)
    }

    fn through(&mut self, value: &'v Value, depth: usize) -> u64 {
        let pointer = std::ptr::from_ref(value);
        if let Some(known) = self.known.get(&pointer) {
            return *known;
        }
        if depth > MAX_DEPTH {
            return MAX_WAYS + 1;
        }
        // Around a circle a validator goes only as far as the arguments go.
        if !self.open.insert(pointer) {
            return 1;
        }
        let mut ways: u64 = 1;
        match value {
            Value::Object(members) => {
                for (keyword, value) in members {
                    let target = match (keyword.as_str(), value) {
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(text)) => self.references.target(text),
                        ("$defs" | "definitions" | "enum" | "const" | "default" | "examples", _) => None,
                        (_, value) => Some(value),
                    };
                    ways = ways.saturating_add(target.map_or(0, |target| self.through(target, depth + 1)));
                }
            }
            Value::Array(items) => {
                for item in items {
                    ways = ways.saturating_add(self.through(item, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => ways = 0,
        }
        self.open.remove(&pointer);
        self.known.insert(pointer, ways);
        ways
    }
}

/// Collects what has a name of its own.
fn names<'v>(value: &'v Value, named: &mut HashMap<&'v str, &'v Value>) {
    match value {
        Value::Object(members) => {
            for keyword in ["$id", "id", "$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                    named.insert(name.trim_start_matches('#'), value);
                }
            }
            for value in members.values() {
                names(value, named);
            }
        }
        Value::Array(items) => {
            for item in items {
                names(item, named);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn a_dialect_that_nobody_knows_is_read_as_the_newest() {
        let schema = json!({"$schema": "https://example.test/x", "type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(check_schema(&schema), Ok(()));
        assert!(!validator(&schema).unwrap().is_valid(&json!({"a": 1})));
    }

    #[test]
    fn references_that_multiply_without_end_are_refused_and_circles_are_not() {
        let mut definitions = Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"anyOf": [next, next, next]}));
        }
        definitions.insert("l30".to_owned(), json!({"type": "string"}));
        let many = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": definitions});
        let problem = "its input schema has more than 1000000 ways through its references";
        assert_eq!(check_schema(&many), Err(problem.to_owned()));
        let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}});
        assert_eq!(check_schema(&tree), Ok(()));
    }

    #[test]
    fn a_reference_to_another_document_is_refused_without_fetching_it() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "https://example.test/a.json"}}});
        let problem = "its input schema refers to `https://example.test/a.json`, which is not part of it: nothing is fetched";
        assert_eq!(check_schema(&schema), Err(problem.to_owned()));
    }
}
