//! Secrets that are written as a table that says where they are: `{ file = "/run/secrets/key" }`, `{ env = "KEY" }`,
//! `{ keyring = "service/name" }`. The same as `"${file:/run/secrets/key}"` and its like.

use serde_json::Value;

use super::Problem;
use super::document::{LeftOut, Node, NodeValue};
use super::expand::expand;
use super::key_path::KeyPath;
use super::schema::properties;
use crate::Environment;

/// Puts values in the place of such tables, wherever the schema asks for a secret.
pub(crate) struct SecretTables<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) problems: &'a mut Vec<Problem>,
    /// Servers that are left out since a value of theirs is not there.
    pub(crate) aside: &'a mut Vec<LeftOut>,
}

impl SecretTables<'_> {
    pub(crate) fn resolve(&mut self, node: &mut Node, schema: &Value, path: &KeyPath) {
        if is_secret(schema) {
            if let Some(written) = as_variable(&node.value) {
                self.put(node, &written, path);
            }
            return;
        }
        let known = self.aside.len();
        match &mut node.value {
            NodeValue::Table(table) => {
                let (properties, others) = (properties(schema), schema.get("additionalProperties"));
                for (key, child) in table {
                    if let Some(schema) = properties.and_then(|known| known.get(key)).or(others) {
                        self.resolve(child, schema, &path.key(key));
                    }
                }
            }
            NodeValue::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    items.iter_mut().enumerate().for_each(|(at, item)| self.resolve(item, schema, &path.index(at)));
                }
            }
            NodeValue::String(_)
            | NodeValue::Integer(_)
            | NodeValue::Float(_)
            | NodeValue::Boolean(_)
            | NodeValue::Other(_)
            | NodeValue::Broken => {}
        }
        if path.is_mcp_server() && self.aside.len() > known {
            node.value = NodeValue::Broken;
        }
    }

    fn put(&mut self, node: &mut Node, written: &str, path: &KeyPath) {
        match expand(written, self.environment) {
            Ok(expanded) => {
                node.value = NodeValue::String(expanded.text);
                node.has_variables = true;
            }
            Err(error) => {
                node.value = NodeValue::Broken;
                match path.server() {
                    Some(server) => {
                        let text = format!("`{path}`: {error}; until then this server is left out");
                        self.aside.push(LeftOut { server: server.to_owned(), problem: Problem::new(node.place.clone(), text) });
                    }
                    None => self.problems.push(Problem::new(node.place.clone(), format!("`{path}`: {error}"))),
                }
            }
        }
    }
}

/// Whether there is a table where the schema asks for a secret, or in its place a text with a variable: what this machine has would be put in.
pub(super) fn takes_from_here(value: &Value, schema: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Object(_) if is_secret(schema) => true,
        Value::Object(keys) => keys.iter().any(|(key, value)| {
            let of_key = properties(schema).and_then(|known| known.get(key)).or(schema.get("additionalProperties"));
            key.contains("${") || takes_from_here(value, of_key.unwrap_or(&Value::Null))
        }),
        Value::Array(items) => items.iter().any(|item| takes_from_here(item, schema.get("items").unwrap_or(&Value::Null))),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

pub(super) fn is_secret(schema: &Value) -> bool {
    let is = |key: &str, wanted: &[&str]| schema.get(key).and_then(Value::as_str).is_some_and(|found| wanted.contains(&found));
    is("type", &["string"]) && is("format", &["password", "database", "seal-key"])
}

/// The variable that a table with one key stands for.
fn as_variable(value: &NodeValue) -> Option<String> {
    let NodeValue::Table(table) = value else { return None };
    let mut entries = table.iter();
    let (Some((key, Node { value: NodeValue::String(written), .. })), None) = (entries.next(), entries.next()) else {
        return None;
    };
    match key.as_str() {
        "file" | "keyring" => Some(format!("${{{key}:{written}}}")),
        "env" => Some(format!("${{{written}}}")),
        _ => None,
    }
}
