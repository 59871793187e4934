//! Reads the MCP server lists of other programs.
//!
//! Four shapes: `mcpServers` (Claude Desktop, Claude Code, Cursor and others), `servers` as an object (VS Code, with
//! `inputs`), `servers` as an array (`config/mcp-servers.json`, where `id` is the name), and `extensions` in YAML (goose).
//! Strings come out as they are written; [`translate`] brings them into our own form, or the host expands them. Nothing is
//! ever imported as an approval.

mod comments;
mod goose;
mod translate;

use std::path::Path;

use serde_json::{Map, Value};
use turnwright_core::nearest;

pub use translate::{Expansions, ImportedInput, Known, TranslateError, Translated, translate, variable_of};

/// What a file lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Import {
    /// The servers, in the file's order.
    pub servers: Vec<ImportedServer>,
    /// What the file asks a person for.
    pub inputs: Vec<ImportedInput>,
    /// The servers that could not be taken over at all, each with the reason, for the person who imports.
    pub left_out: Vec<String>,
    /// What else could not be taken over, and why.
    pub problems: Vec<String>,
}

/// A server as another program knows it. No string is expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedServer {
    /// Its name: the key, or the `id`.
    pub name: String,
    /// Its title for people, where it has one beside its name.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it may run.
    pub enabled: bool,
    /// The most time of a call in all, in milliseconds, where it says so.
    pub total_ms: Option<u64>,
    /// How it is reached.
    pub transport: ImportedTransport,
}

/// How an imported server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedTransport {
    /// A child process.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables added to the inherited ones, in the file's order.
        env: Vec<(String, String)>,
        /// A file of more variables.
        env_file: Option<String>,
        /// Where it runs.
        cwd: Option<String>,
    },
    /// An HTTP endpoint.
    Http {
        /// Its address.
        url: String,
        /// Headers of each request, in the file's order.
        headers: Vec<(String, String)>,
    },
}

/// A file that is no list of servers.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not JSON, not even with comments and trailing commas.
    #[error("the file is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// It is not YAML.
    #[error("the file is not YAML: {0}")]
    NotYaml(String),
    /// It has none of the known shapes.
    #[error(
        "the file lists no servers: an object `mcpServers` or `servers`, or an array `servers`, or goose's `extensions`, is needed"
    )]
    NoServers,
}

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON, with comments and trailing commas.
    Json,
    /// YAML, goose's.
    Yaml,
}

/// What a file of this name is written in.
pub fn form_of(file: &Path) -> Form {
    let is_yaml = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("yaml") || end.eq_ignore_ascii_case("yml"));
    if is_yaml { Form::Yaml } else { Form::Json }
}

/// Reads a file's text that is written in this form.
///
/// # Errors
/// As [`read`].
pub fn read_as(form: Form, text: &str) -> Result<Import, ImportError> {
    match form {
        Form::Json => read(text),
        Form::Yaml => goose::read(text),
    }
}

/// Reads a file's text, JSON.
///
/// # Errors
/// [`ImportError`]. A single bad entry is no error: it is left out and named in [`Import::left_out`].
pub fn read(text: &str) -> Result<Import, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => serde_json::from_str(&comments::strip(text))?,
    };
    let Value::Object(mut file) = value else { return Err(ImportError::NoServers) };
    let mut import = Import::default();
    match file.remove("mcpServers").or_else(|| file.remove("servers")) {
        Some(Value::Object(servers)) => {
            for (name, entry) in servers {
                import.take(name, entry);
            }
        }
        Some(Value::Array(servers)) => {
            for (index, entry) in servers.into_iter().enumerate() {
                match entry.get("id").or_else(|| entry.get("name")).and_then(Value::as_str) {
                    Some(name) => import.take(name.to_owned(), entry),
                    None => import.left_out.push(format!("entry {} has no `id`", index + 1)),
                }
            }
        }
        _ => return Err(ImportError::NoServers),
    }
    if let Some(Value::Array(inputs)) = file.remove("inputs") {
        import.inputs = inputs.into_iter().filter_map(input).collect();
    }
    Ok(import)
}

/// Something that a file asks for; `None` where it has no name.
fn input(entry: Value) -> Option<ImportedInput> {
    let Value::Object(mut entry) = entry else { return None };
    let options = entry.get("options").and_then(Value::as_array).into_iter().flatten();
    let options = options.filter_map(|option| option.as_str().or_else(|| option.get("value")?.as_str()).map(str::to_owned));
    Some(ImportedInput {
        options: options.collect(),
        is_password: entry.get("password") == Some(&Value::Bool(true)),
        default: text(&mut entry, "default"),
        description: text(&mut entry, "description"),
        id: text(&mut entry, "id")?,
    })
}

impl Import {
    fn take(&mut self, name: String, entry: Value) {
        if self.servers.iter().any(|server| server.name == name) {
            return self.problems.push(format!("`{name}` is there twice: the first one is kept"));
        }
        let Value::Object(mut entry) = entry else { return self.left_out.push(format!("`{name}` is no object")) };
        for (key, why) in [("autoApprove", "approvals are never imported"), ("alwaysAllow", "approvals are never imported")] {
            if entry.contains_key(key) {
                self.problems.push(format!("`{key}` of `{name}` was left out: {why}"));
            }
        }
        let switched = switch(&entry, "enabled").and_then(|enabled| Ok((enabled, switch(&entry, "disabled")?)));
        let enabled = match switched {
            Ok((enabled, disabled)) => enabled.unwrap_or(true) && !disabled.unwrap_or(false),
            Err(why) => return self.left_out.push(format!("`{name}` was left out: {why}")),
        };
        let title = text(&mut entry, "name").filter(|title| *title != name);
        let description = text(&mut entry, "description");
        let total_ms = entry.get("total_ms").and_then(Value::as_u64).filter(|total| *total > 0);
        let unknown = unknown_keys(&entry);
        let transport = match self.transport(&name, &mut entry) {
            Ok(Some(transport)) => transport,
            Ok(None) => {
                let why = format!("it has neither a `command` nor a `url`{unknown}");
                return self.left_out.push(format!("`{name}` was left out: {why}"));
            }
            Err(why) => return self.left_out.push(format!("`{name}` was left out: {why}")),
        };
        if let ImportedTransport::Http { url, .. } = &transport
            && let Some(scheme) = strange_scheme(url)
        {
            let why = format!("its address begins with `{scheme}://`, and must begin with http:// or https://");
            return self.left_out.push(format!("`{name}` was left out: {why}"));
        }
        self.servers.push(ImportedServer { name, title, description, enabled, total_ms, transport });
    }

    /// How a server is reached; `None` where it does not say so. A program is not started with other arguments, variables or
    /// headers than it was meant to have: what cannot be taken over leaves the server out.
    fn transport(&mut self, name: &str, entry: &mut Map<String, Value>) -> Result<Option<ImportedTransport>, String> {
        if let Some(command) = text(entry, "command") {
            let args = strings("args", entry.remove("args"))?;
            let env = self.pairs(name, "env", entry.remove("env"))?;
            let env_file = text(entry, "envFile");
            return Ok(Some(ImportedTransport::Stdio { command, args, env, env_file, cwd: text(entry, "cwd") }));
        }
        let url = text(entry, "url").or_else(|| text(entry, "serverUrl")).or_else(|| text(entry, "httpUrl"));
        let Some(url) = url else { return Ok(None) };
        Ok(Some(ImportedTransport::Http { url, headers: self.pairs(name, "headers", entry.remove("headers"))? }))
    }

    fn pairs(&mut self, name: &str, key: &str, value: Option<Value>) -> Result<Vec<(String, String)>, String> {
        let values = match value {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Object(values)) => values,
            Some(_) => return Err(format!("its `{key}` is no object")),
        };
        let mut pairs = Vec::new();
        for (variable, value) in values {
            if value.is_null() {
                // Nothing was meant to be there.
                self.problems.push(format!("a value in `{key}` of `{name}` was left out: it is no string"));
                continue;
            }
            let value = string(value).ok_or_else(|| format!("a value in its `{key}` is no string"))?;
            pairs.push((variable, value));
        }
        Ok(pairs)
    }
}

fn strings(key: &str, value: Option<Value>) -> Result<Vec<String>, String> {
    let values = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(values)) => values,
        Some(_) => return Err(format!("its `{key}` is no array")),
    };
    let taken = |value| string(value).ok_or_else(|| format!("a value in its `{key}` is no string"));
    values.into_iter().map(taken).collect()
}

/// Numbers and switches are common where strings are meant.
fn string(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What an entry has beside the keys that are read here: the end of a sentence, empty where there is nothing. Programs have
/// keys of their own, so this is told only where something is missing.
fn unknown_keys(entry: &Map<String, Value>) -> String {
    const KNOWN: [&str; 19] = [
        "command",
        "args",
        "env",
        "envFile",
        "cwd",
        "url",
        "serverUrl",
        "httpUrl",
        "headers",
        "type",
        "transport",
        "id",
        "name",
        "description",
        "enabled",
        "disabled",
        "total_ms",
        "autoApprove",
        "alwaysAllow",
    ];
    let unknown = entry.keys().filter(|key| !KNOWN.contains(&key.as_str()));
    let told = unknown.map(|key| match nearest(key, KNOWN) {
        Some(near) => format!("; `{key}` is unknown (did you mean `{near}`?)"),
        None => format!("; `{key}` is unknown"),
    });
    told.collect()
}

/// The scheme of an address by which no server is reached, where it is written out.
fn strange_scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once("://")?;
    let is_written_out = scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'));
    let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (is_written_out && !is_known).then_some(scheme)
}

/// A switch, also where it is written as a text or a number; `None` where it is not there. What may switch a server off is not guessed.
fn switch(entry: &Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    let Some(value) = entry.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    match string(value.clone()).map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        Some(_) | None => Err(format!("its `{key}` is {value}; it must be true or false")),
    }
}

fn text(entry: &mut Map<String, Value>, key: &str) -> Option<String> {
    match entry.remove(key) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
