//! Conversations from elsewhere, as entries that a journal takes.
//!
//! [`read`] recognises a file by its shape: OpenAI's messages, and the exports of ChatGPT, Claude, Open WebUI and LibreChat.
//! Each form has a module that reads it into a draft; `draft` makes whole steps of it, each call with a result. What a file
//! holds and a journal cannot is counted by name in [`ImportedConversation::left_out`], never dropped in silence.

mod chatgpt;
mod citations;
mod claude;
mod content;
mod details;
mod draft;
mod foreign;
mod kept;
mod librechat;
mod open_webui;
mod openai;
mod time;
mod tree;

use std::collections::BTreeMap;

use serde_json::Value;
use turnwright_core::{Entry, TurnSettings};

use crate::{json, outcome_mark};
use draft::Draft;

/// What a file held.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Its conversations, in its order.
    pub conversations: Vec<ImportedConversation>,
    /// How many things in it are no conversation, or one in which nothing is said, by what they are.
    pub left_out: LeftOut,
}

/// What was not taken, or not as it was: how often, by its name.
pub type LeftOut = BTreeMap<String, usize>;

/// A conversation, ready to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedConversation {
    /// Where it comes from, such as `chatgpt`.
    pub source: &'static str,
    /// Its name there.
    pub id: Option<String>,
    /// Its title there.
    pub title: Option<String>,
    /// What the model was told before it.
    pub system_prompt: Option<String>,
    /// Whether it was pinned there.
    pub pinned: bool,
    /// When it began, in milliseconds since 1970 UTC.
    pub created_at_ms: Option<u64>,
    /// A whole journal from its first place on: every turn has its end, every call its result.
    pub entries: Vec<Entry>,
    /// When each entry happened, in milliseconds since 1970 UTC, as far as the file says.
    pub times_ms: Vec<Option<u64>>,
    /// How many messages of people and models it holds.
    pub messages: usize,
    /// What was not taken, or not as it was.
    pub left_out: LeftOut,
}

/// A file that holds no conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; what can be read are OpenAI's messages and the JSON exports of ChatGPT, Claude, Open WebUI and LibreChat")]
pub struct ImportError {
    what: String,
}

impl ImportError {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

/// Reads a file. `settings` are those that its turns are stored with; a system prompt of the file's goes before theirs.
///
/// # Errors
/// [`ImportError`], where there is no conversation in it.
pub fn read(bytes: &[u8], settings: &TurnSettings) -> Result<Imported, ImportError> {
    let mut left_out = LeftOut::new();
    let mut conversations = Vec::new();
    for draft in drafts(&parse(bytes)?, &mut left_out)? {
        match draft.build(settings) {
            Some(conversation) => conversations.push(conversation),
            None => *left_out.entry("a conversation in which nothing is said".to_owned()).or_default() += 1,
        }
    }
    if conversations.is_empty() {
        return Err(ImportError::new("nothing is said in the file"));
    }
    Ok(Imported { conversations, left_out })
}

/// The text of a result that failed, as [`read`] knows it again among OpenAI's messages, which have no other place for that.
pub fn failed_result(mut text: String) -> String {
    outcome_mark::put_on(&mut text, true);
    text
}

fn parse(bytes: &[u8]) -> Result<Value, ImportError> {
    if bytes.starts_with(b"PK") {
        return Err(ImportError::new("the file is a zip archive: unpack it and import its conversations.json"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        ImportError::new(format!("the file is not UTF-8 text: byte {} does not fit", error.valid_up_to().saturating_add(1)))
    })?;
    if text.trim().is_empty() {
        return Err(ImportError::new("the file is empty"));
    }
    json::value(text).or_else(|error| lines(text).unwrap_or_else(|| Err(not_json(&error, error.line()))))
}

/// One JSON value per line, as collections of conversations are kept; `None` where the first line is none.
fn lines(text: &str) -> Option<Result<Value, ImportError>> {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let mut values = vec![json::value(lines.next()?.0).ok()?];
    for (line, number) in lines {
        match json::value(line) {
            Ok(value) => values.push(value),
            Err(error) => return Some(Err(not_json(&error, number))),
        }
    }
    (values.len() > 1).then(|| Ok(Value::Array(values)))
}

/// Says what is wrong in which line of the file.
fn not_json(error: &serde_json::Error, line: usize) -> ImportError {
    let said = error.to_string();
    if said.contains("recursion limit") {
        return ImportError::new("the file is nested too deeply to be read (LibreChat: export it without `Recursive`)");
    }
    let place = format!(" at line {} column {}", error.line(), error.column());
    let what = said.strip_suffix(&place).unwrap_or(&said);
    ImportError::new(format!("the file is not JSON: {what} at line {line} column {}", error.column()))
}

fn drafts(value: &Value, left_out: &mut LeftOut) -> Result<Vec<Draft>, ImportError> {
    if let Some(draft) = draft(value)? {
        return Ok(vec![draft]);
    }
    let list = value.as_array().or_else(|| value.get("conversations")?.as_array());
    let list = list.ok_or_else(|| ImportError::new("the file is JSON, and no conversation"))?;
    let mut drafts = Vec::new();
    for value in list {
        match draft(value)? {
            Some(draft) => drafts.push(draft),
            None => *left_out.entry("a thing that is no conversation".to_owned()).or_default() += 1,
        }
    }
    if drafts.is_empty() { Err(ImportError::new("there is no conversation in the file")) } else { Ok(drafts) }
}

/// The conversation that a value is, by its shape.
fn draft(value: &Value) -> Result<Option<Draft>, ImportError> {
    if value.get("mapping").is_some_and(Value::is_object) {
        return Ok(Some(chatgpt::read(value)));
    }
    if let Some(messages) = value.get("chat_messages").and_then(Value::as_array) {
        return Ok(Some(claude::read(value, messages)));
    }
    if let Some(chat) = open_webui::chat(value) {
        return Ok(Some(open_webui::read(value, chat)));
    }
    if let Some(messages) = librechat::messages(value) {
        return Ok(Some(librechat::read(value, messages)));
    }
    let Some(messages) = openai::messages(value) else { return Ok(None) };
    match foreign::form(messages) {
        Some(form) => Err(ImportError::new(format!("these are {form}; export with --format openai"))),
        None => Ok(Some(openai::read(value, messages))),
    }
}

/// A text member that is not blank.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().filter(|text| !text.trim().is_empty())
}

/// A list member; empty where there is none.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
