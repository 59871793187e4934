//! The effective configuration as text: what `config show` prints.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::key_path::{KeyPath, quoted};
use super::secret::{MASK, argument_without_secrets, without_secrets, without_secrets_and_keys};
use super::{EndpointOrigin, Loaded};

/// TOML that would be read again as the same configuration, but for the secrets. Each value has its place beside it.
pub(crate) fn show(loaded: &Loaded) -> String {
    let mut config = loaded.config.clone();
    config.max_steps = Some(config.max_steps());
    config.settings.max_steps = None;
    config.data_dir = Some(loaded.data_dir.clone());
    let mut text = String::new();
    if let Some(file) = &loaded.file {
        line(&mut text, format_args!("# {}", file.display()));
    }
    if let Ok(Value::Object(mut top)) = serde_json::to_value(&config) {
        if let (Some(database), Some(Value::Object(storage))) = (&config.storage.database, top.get_mut("storage")) {
            storage.insert("database".to_owned(), without_secrets(database.expose()).into());
        }
        table(loaded, &top, &KeyPath::default(), &mut text);
    }
    for endpoint in &loaded.endpoints {
        if let EndpointOrigin::Variable(variable) = &endpoint.origin {
            let (name, dialect, url) = (quoted(&endpoint.name), endpoint.dialect, without_secrets(&endpoint.base_url));
            line(&mut text, format_args!("\n# [providers.{name}] found by {variable}: {dialect} at {url}"));
        }
    }
    text
}

/// The values of a table, then the tables in it, each under its header.
fn table(loaded: &Loaded, table: &Map<String, Value>, path: &KeyPath, text: &mut String) {
    let (mut tables, mut lists) = (Vec::new(), Vec::new());
    for (key, value) in table {
        let path = path.key(key);
        match value {
            Value::Object(child) => tables.push((path, child)),
            Value::Array(items) if is_list_of_tables(value) => lists.push((path, items)),
            _ if is_nothing(value) => {}
            _ => {
                let from =
                    loaded.written.get(&path.to_string()).map_or("default".to_owned(), |written| written.place.to_string());
                line(text, format_args!("{} = {}  # {from}", quoted(key), literal(loaded, value, &path)));
            }
        }
    }
    for (path, child) in tables {
        if child.values().any(|value| !value.is_object() && !is_list_of_tables(value) && !is_nothing(value)) {
            line(text, format_args!("\n{}", path.section()));
        }
        self::table(loaded, child, &path, text);
    }
    for (path, items) in lists {
        for (index, item) in items.iter().enumerate() {
            let path = path.index(index);
            line(text, format_args!("\n{}", path.section()));
            for (key, value) in item.as_object().into_iter().flatten().filter(|(_, value)| !is_nothing(value)) {
                line(text, format_args!("{} = {}", quoted(key), literal(loaded, value, &path.key(key))));
            }
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn is_list_of_tables(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(Value::is_object))
}

/// A value on its line. Arguments that came from variables may be secrets, as may passwords in URLs.
fn literal(loaded: &Loaded, value: &Value, path: &KeyPath) -> String {
    match value {
        Value::String(text) => {
            let name = path.to_string();
            let is_argument = name.starts_with("mcp.servers.") && name.contains(".args[");
            if is_argument && loaded.written.get(&name).is_some_and(|written| written.has_variables) {
                return Value::from(MASK).to_string();
            }
            // Of these the path may be one too, as that of a webhook is.
            let has_keys = name.starts_with("mcp.servers.") || name.starts_with("notify.");
            basic(&if has_keys { without_secrets_and_keys(text) } else { without_secrets(text) })
        }
        Value::Array(items) if is_arguments(path) => {
            let before = std::iter::once("").chain(items.iter().map(|item| item.as_str().unwrap_or_default()));
            let items = items.iter().zip(before).enumerate().map(|(index, (item, before))| {
                let path = path.index(index);
                let has_variables = loaded.written.get(&path.to_string()).is_some_and(|written| written.has_variables);
                match item.as_str().filter(|_| !has_variables) {
                    Some(argument) => basic(&argument_without_secrets(before, argument)),
                    None => literal(loaded, item, &path),
                }
            });
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().enumerate().map(|(index, item)| literal(loaded, item, &path.index(index)));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let pairs = table.iter().filter(|(_, value)| !is_nothing(value));
            let pairs = pairs.map(|(key, value)| format!("{} = {}", quoted(key), literal(loaded, value, &path.key(key))));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Whether that is what a server is started with.
fn is_arguments(path: &KeyPath) -> bool {
    let name = path.to_string();
    name.strip_prefix("mcp.servers.").and_then(|rest| rest.strip_suffix(".args")).is_some()
}

/// A text as TOML writes it: a JSON string is a basic string.
fn basic(text: &str) -> String {
    Value::String(text.replace("${", "$${")).to_string()
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
