//! Circles of references that no argument ends: `a` is what `b` is, which is what `a` is.
//!
//! A validator goes around a circle through a property or an item as far as the arguments go. Where each step is about the
//! same value it would go around forever, so that such a circle is opened.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// Keywords whose schemas are about the same value, besides `$ref`.
const SAME: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Opens every such circle: the references that close one are taken out.
pub(super) fn cut(definitions: &mut Map<String, Value>) {
    let names: Vec<String> = definitions.keys().cloned().collect();
    let edges: HashMap<&str, Vec<String>> = definitions.iter().map(|(name, schema)| (name.as_str(), same(schema))).collect();
    let mut closing: HashSet<(String, String)> = HashSet::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for name in &names {
        search(name, &edges, &mut seen, &mut closing);
    }
    drop(edges);
    if closing.is_empty() {
        return;
    }
    for (name, schema) in definitions.iter_mut() {
        open(schema, &|target| closing.contains(&(name.clone(), target.to_owned())));
    }
}

/// Depth first without recursion: a chain may be as long as there are definitions.
fn search<'e>(
    from: &'e str,
    edges: &'e HashMap<&'e str, Vec<String>>,
    seen: &mut HashSet<&'e str>,
    closing: &mut HashSet<(String, String)>,
) {
    if !seen.insert(from) {
        return;
    }
    let mut way: Vec<(&str, usize)> = vec![(from, 0)];
    let mut on_way: HashSet<&str> = HashSet::from([from]);
    while let Some((at, next)) = way.pop() {
        let Some(target) = edges.get(at).and_then(|targets| targets.get(next)) else {
            on_way.remove(at);
            continue;
        };
        way.push((at, next + 1));
        if on_way.contains(target.as_str()) {
            closing.insert((at.to_owned(), target.clone()));
        } else if let Some((target, _)) = edges.get_key_value(target.as_str())
            && seen.insert(target)
        {
            on_way.insert(target);
            way.push((target, 0));
        }
    }
}

/// The definitions that a schema refers to for the same value.
fn same(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(schema, &mut |reference| found.push(reference.to_owned()));
    found
}

fn visit(schema: &Value, tell: &mut dyn FnMut(&str)) {
    let Some(object) = schema.as_object() else { return };
    if let Some(name) = object.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/")) {
        tell(name);
    }
    for key in SAME {
        match object.get(key) {
            Some(Value::Array(items)) => items.iter().for_each(|item| visit(item, tell)),
            Some(item) => visit(item, tell),
            None => {}
        }
    }
}

fn open(schema: &mut Value, is_closing: &dyn Fn(&str) -> bool) {
    let Some(object) = schema.as_object_mut() else { return };
    let name = object.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"));
    if name.is_some_and(is_closing) {
        object.shift_remove("$ref");
    }
    for key in SAME {
        match object.get_mut(key) {
            Some(Value::Array(items)) => items.iter_mut().for_each(|item| open(item, is_closing)),
            Some(item) => open(item, is_closing),
            None => {}
        }
    }
}
