//! Compares the tree with the schema: what is right comes out as JSON, what is wrong as problems.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};
use turnwright_core::{letters, nearest};

use super::document::{Node, NodeValue};
use super::format::{self, Bases};
use super::key_path::KeyPath;
use super::listed::listed;
use super::schema::{properties, words};
use super::secret::without_secrets;
use super::{Place, Problem};

/// The longest text that a message repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// Compares trees with a schema and collects the problems.
pub(crate) struct Check<'a> {
    /// The schema of the whole configuration, where the place of a stray key is looked up.
    pub(crate) root: &'a Value,
    /// The folder of the configuration file.
    pub(crate) file_folder: &'a Path,
    pub(crate) working_directory: &'a Path,
    pub(crate) home: Option<&'a Path>,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Check<'_> {
    /// The part of `node` that fits `schema`; `None` where nothing does.
    pub(crate) fn value(&mut self, node: &Node, schema: &Value, path: &KeyPath) -> Option<Value> {
        if matches!(node.value, NodeValue::Broken) {
            return None;
        }
        if let Some(Value::Array(choices)) = schema.get("anyOf") {
            return match choices.iter().find(|choice| fits(&node.value, choice)) {
                Some(choice) => self.value(node, choice, path),
                None => self.mismatch(node, schema, path),
            };
        }
        if let Some(words) = words(schema) {
            return self.word(node, &words, path);
        }
        let kind = schema.get("type").and_then(Value::as_str);
        let meant = kind.and_then(|kind| meant(node, kind));
        match (kind, meant.as_ref().unwrap_or(&node.value)) {
            (Some("object"), NodeValue::Table(table)) => Some(self.table(node, table, schema, path)),
            (Some("array"), NodeValue::Array(items)) => self.list(node, items, schema, path),
            (Some("string"), NodeValue::String(text)) => self.text(node, text, schema, path),
            (Some("boolean"), NodeValue::Boolean(boolean)) => Some(Value::Bool(*boolean)),
            (Some("integer" | "number"), NodeValue::Integer(integer)) => self.number(Value::from(*integer), node, schema, path),
            (Some("number"), NodeValue::Float(float)) => self.number(Value::from(*float), node, schema, path),
            (Some(_), _) => self.mismatch(node, schema, path),
            (None, value) => anything(value),
        }
    }

    fn table(&mut self, node: &Node, table: &IndexMap<String, Node>, schema: &Value, path: &KeyPath) -> Value {
        let known = properties(schema);
        let others = schema.get("additionalProperties").filter(|others| !matches!(others, Value::Bool(false)));
        let name_format = schema.pointer("/propertyNames/format").and_then(Value::as_str).unwrap_or_default();
        let mut result = Map::with_capacity(table.len());
        for (key, child) in table {
            let Some(schema) = known.and_then(|known| known.get(key)).or(others) else {
                self.unknown(key, child, schema, path);
                continue;
            };
            if let Err(right) = format::parse(name_format, key, self.bases(&child.place)) {
                self.tell(&child.place, format!("the name {key:?} in {} is not valid; it must be {right}", path.section()));
                continue;
            }
            if let Some(value) = self.value(child, schema, &path.key(key)) {
                result.insert(key.clone(), value);
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for key in required.filter(|key| !table.contains_key(*key)) {
            let right = known.and_then(|known| known.get(key)).map(expected).unwrap_or_default();
            self.tell(&node.place, format!("{} has no `{key}`; it must be {right}", path.section()));
        }
        Value::Object(result)
    }

    fn list(&mut self, node: &Node, items: &[Node], schema: &Value, path: &KeyPath) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if u64::try_from(items.len()).is_ok_and(|length| length < least) {
            return self.mismatch(node, schema, path);
        }
        let mut item_schema = schema.get("items").cloned().unwrap_or(Value::Bool(true));
        // The format of a list is the format of what is in it.
        if let (Some(format), Value::Object(item)) = (schema.get("format"), &mut item_schema) {
            item.insert("format".to_owned(), format.clone());
        }
        let values = items.iter().enumerate().filter_map(|(index, item)| self.value(item, &item_schema, &path.index(index)));
        Some(Value::Array(values.collect()))
    }

    fn text(&mut self, node: &Node, text: &str, schema: &Value, path: &KeyPath) -> Option<Value> {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        match format::parse(format, text, self.bases(&node.place)) {
            Ok(text) => Some(Value::String(text)),
            Err(right) => {
                self.tell(&node.place, format!("`{path}` is {}; it must be {right}", shown(node, schema)));
                None
            }
        }
    }

    fn word(&mut self, node: &Node, words: &[&str], path: &KeyPath) -> Option<Value> {
        let text = if let NodeValue::String(text) = &node.value { text.as_str() } else { "" };
        if words.contains(&text) {
            return Some(Value::from(text));
        }
        let near = nearest(text, words.iter().copied()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let words = listed(words.iter().copied());
        self.tell(&node.place, format!("`{path}` is {}; it must be one of {words}{near}", shown(node, &Value::Null)));
        None
    }

    fn number(&mut self, number: Value, node: &Node, schema: &Value, path: &KeyPath) -> Option<Value> {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let value = number.as_f64().unwrap_or(f64::NAN);
        if !value.is_finite()
            || bound("minimum").is_some_and(|low| value < low)
            || bound("maximum").is_some_and(|high| value > high)
        {
            return self.mismatch(node, schema, path);
        }
        if schema.get("format").is_some_and(|format| format == "uint32") && value > f64::from(u32::MAX) {
            self.tell(&node.place, format!("`{path}` is {}; it must be at most {}", shown(node, schema), u32::MAX));
            return None;
        }
        Some(number)
    }

    fn mismatch(&mut self, node: &Node, schema: &Value, path: &KeyPath) -> Option<Value> {
        self.tell(&node.place, format!("`{path}` is {}; it must be {}", shown(node, schema), expected(schema)));
        None
    }

    fn unknown(&mut self, key: &str, node: &Node, schema: &Value, path: &KeyPath) {
        let known = || properties(schema).into_iter().flat_map(|known| known.keys().map(String::as_str));
        let mut homes = Vec::new();
        homes_of(key, self.root, &KeyPath::default(), &mut homes);
        homes.retain(|home| *home != path.section());
        // What is further down in the same section is meant sooner than what is elsewhere.
        let section = path.section();
        let is_inside = |home: &&String| home.starts_with(section.trim_end_matches(']'));
        let home = homes.iter().find(is_inside).or(homes.first());
        // A wait that other programs have one name for has one for each of its parts here.
        let parts = ["start_ms", "idle_ms"];
        let is_of_parts = letters(key).starts_with("timeout") && parts.iter().all(|part| known().any(|known| known == *part));
        let hint = match (nearest(key, known()), home) {
            (Some(near), _) => format!("; did you mean `{near}`?"),
            (None, _) if is_of_parts => format!("; did you mean `{}`?", parts.join("` or `")),
            (None, Some(home)) => format!("; it belongs to {home}"),
            (None, None) => String::new(),
        };
        let place = if path.is_top() { "at the top level".to_owned() } else { format!("in {}", path.section()) };
        let separator = if hint.ends_with('?') { "" } else { ";" };
        self.tell(&node.place, format!("unknown key `{key}` {place}{hint}{separator} known: {}", listed(known())));
    }

    fn bases(&self, place: &Place) -> Bases<'_> {
        let folder = match place {
            Place::File { .. } => self.file_folder,
            Place::Variable(_) | Place::Flag(_) => self.working_directory,
        };
        Bases { folder, home: self.home }
    }

    fn tell(&mut self, place: &Place, text: String) {
        self.problems.push(Problem::new(place.clone(), text));
    }
}

/// Where a key that is unknown at its place would be known: the sections that have it, or the section that is meant by
/// another program's name for it (`mcpServers`).
fn homes_of(key: &str, schema: &Value, path: &KeyPath, homes: &mut Vec<String>) {
    for (name, child) in properties(schema).into_iter().flatten() {
        let path_of_child = path.key(name);
        let is_table = child.get("type").is_some_and(|kind| kind == "object");
        if name == key {
            homes.push(if is_table { path_of_child.section() } else { path.section() });
        } else if is_table && letters(&path_of_child.to_string()) == letters(key) {
            homes.push(path_of_child.section());
        }
        homes_of(key, child, &path_of_child, homes);
        if let Some(others) = child.get("additionalProperties") {
            homes_of(key, others, &path_of_child.key("NAME"), homes);
        }
    }
}

/// What a text from a variable stands for where its key asks for a number, a truth value or a list.
fn meant(node: &Node, kind: &str) -> Option<NodeValue> {
    let NodeValue::String(text) = &node.value else { return None };
    if !node.has_variables && !matches!(node.place, Place::Variable(_)) {
        return None;
    }
    let text = text.trim();
    match kind {
        "integer" => text.parse().ok().map(NodeValue::Integer),
        "number" => text.parse().ok().map(NodeValue::Float),
        "boolean" => text.parse().ok().map(NodeValue::Boolean),
        "array" => {
            let item = |text: &str| Node::new(NodeValue::String(text.to_owned()), node.place.clone());
            Some(NodeValue::Array(text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(item).collect()))
        }
        _ => None,
    }
}

/// A value whose form is not ours to know.
fn anything(value: &NodeValue) -> Option<Value> {
    Some(match value {
        NodeValue::String(text) | NodeValue::Other(text) => Value::from(text.as_str()),
        NodeValue::Integer(integer) => Value::from(*integer),
        NodeValue::Float(float) => Value::from(*float),
        NodeValue::Boolean(boolean) => Value::from(*boolean),
        NodeValue::Array(items) => items.iter().filter_map(|item| anything(&item.value)).collect(),
        NodeValue::Table(table) => {
            Value::Object(table.iter().filter_map(|(key, child)| Some((key.clone(), anything(&child.value)?))).collect())
        }
        NodeValue::Broken => return None,
    })
}

fn fits(value: &NodeValue, schema: &Value) -> bool {
    matches!(
        (schema.get("type").and_then(Value::as_str), value),
        (Some("string"), NodeValue::String(_))
            | (Some("object"), NodeValue::Table(_))
            | (Some("array"), NodeValue::Array(_))
            | (Some("boolean"), NodeValue::Boolean(_))
            | (Some("integer" | "number"), NodeValue::Integer(_))
            | (Some("number"), NodeValue::Float(_))
    )
}

/// A value as a message repeats it. What may be secret is named by its kind alone.
fn shown(node: &Node, schema: &Value) -> String {
    let hides = |format: &Value| ["password", "database", "seal-key"].iter().any(|secret| format == secret);
    let is_secret = node.has_variables || schema.get("format").is_some_and(hides);
    match &node.value {
        NodeValue::String(text) if is_secret && text.is_empty() => "empty".to_owned(),
        NodeValue::String(_) | NodeValue::Integer(_) if is_secret => "a value that is not shown".to_owned(),
        NodeValue::String(text) => {
            let text = without_secrets(text);
            match text.char_indices().nth(SHOWN_CHARS) {
                Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
                None => format!("{text:?}"),
            }
        }
        NodeValue::Integer(integer) => integer.to_string(),
        NodeValue::Float(float) => float.to_string(),
        NodeValue::Boolean(boolean) => boolean.to_string(),
        NodeValue::Other(text) => text.clone(),
        NodeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        NodeValue::Array(_) => "a list".to_owned(),
        NodeValue::Table(_) => "a table".to_owned(),
        NodeValue::Broken => "not readable".to_owned(),
    }
}

/// What a schema asks for, in words.
fn expected(schema: &Value) -> String {
    if let Some(Value::Array(choices)) = schema.get("anyOf") {
        return choices.iter().map(expected).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = words(schema) {
        return format!("one of {}", listed(words));
    }
    let bound = |key: &str, word: &str| schema.get(key).map(|bound| format!(" {word} {bound}")).unwrap_or_default();
    let bounds = format!("{}{}", bound("minimum", "from"), bound("maximum", "to"));
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => "a table".to_owned(),
        Some("array") => {
            let least = if schema.get("minItems").is_some() { " with at least one item" } else { "" };
            match schema.pointer("/items/type").and_then(Value::as_str) {
                Some("string") => format!("a list of strings{least}"),
                Some("object") => format!("a list of tables{least}"),
                Some(_) | None => format!("a list{least}"),
            }
        }
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => format!("a whole number{bounds}"),
        Some("number") => format!("a number{bounds}"),
        Some(_) | None => match schema.get("format").and_then(Value::as_str) {
            Some("glob") => "a glob, such as `filesystem__write*`".to_owned(),
            Some(_) | None => "a string".to_owned(),
        },
    }
}
