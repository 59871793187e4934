//! A place in a JSON value, and what was found there.

use std::collections::HashSet;
use std::fmt::{Display, Write};

use serde_json::Value;

/// A value and the way to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'p, 'v> {
    pub(crate) value: &'v Value,
    parent: Option<&'p At<'p, 'v>>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'v> At<'_, 'v> {
    pub(crate) fn root(value: &'v Value) -> Self {
        Self { value, parent: None, step: Step::Root }
    }

    /// The member with this name, where there is one.
    pub(crate) fn key<'c>(&'c self, key: &'c str) -> Option<At<'c, 'v>> {
        let value = self.value.as_object()?.get(key)?;
        Some(At { value, parent: Some(self), step: Step::Key(key) })
    }

    /// The member with this name, where there is one and it is not null.
    pub(crate) fn set<'c>(&'c self, key: &'c str) -> Option<At<'c, 'v>> {
        self.key(key).filter(|at| !at.value.is_null())
    }

    /// The items of a list; none where it is no list.
    pub(crate) fn items<'c>(&'c self) -> impl Iterator<Item = At<'c, 'v>> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().enumerate().map(|(index, value)| At { value, parent: Some(self), step: Step::Index(index) })
    }

    /// The members of an object; none where it is no object.
    pub(crate) fn members<'c>(&'c self) -> impl Iterator<Item = (&'v str, At<'c, 'v>)>
    where
        'v: 'c,
    {
        let members = self.value.as_object().into_iter().flatten();
        members.map(|(key, value)| (key.as_str(), At { value, parent: Some(self), step: Step::Key(key) }))
    }

    pub(crate) fn str(&self) -> Option<&'v str> {
        self.value.as_str()
    }

    /// The text of the member with this name; empty where there is none.
    pub(crate) fn str_of(&self, key: &str) -> &'v str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the member is there and not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some_and(|value| !value.is_null())
    }

    fn pointer(&self) -> String {
        let mut pointer = self.parent.map(At::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => {
                let _ = write!(pointer, "/{key}");
            }
            Step::Index(index) => {
                let _ = write!(pointer, "/{index}");
            }
        }
        pointer
    }
}

/// What an API would refuse.
#[derive(Debug, Default)]
pub(crate) struct Findings(pub(crate) Vec<String>);

impl Findings {
    pub(crate) fn refuse(&mut self, at: &At<'_, '_>, why: impl Display) {
        self.0.push(format!("{}: {why}", at.pointer()));
    }

    pub(crate) fn demand(&mut self, at: &At<'_, '_>, holds: bool, why: impl Display) {
        if !holds {
            self.refuse(at, why);
        }
    }

    /// An object with these keys and no others.
    pub(crate) fn keys(&mut self, at: &At<'_, '_>, required: &[&str], optional: &[&str]) {
        let Some(object) = at.value.as_object() else {
            return self.refuse(at, "an object is expected");
        };
        for key in required {
            if !object.contains_key(*key) {
                self.refuse(at, format_args!("`{key}` is missing"));
            }
        }
        for key in object.keys() {
            if !required.contains(&key.as_str()) && !optional.contains(&key.as_str()) {
                self.refuse(at, format_args!("unknown key `{key}`"));
            }
        }
    }

    pub(crate) fn text<'v>(&mut self, at: &At<'_, 'v>) -> &'v str {
        self.demand(at, at.value.is_string(), "a text is expected");
        at.str().unwrap_or_default()
    }

    pub(crate) fn filled<'v>(&mut self, at: &At<'_, 'v>) -> &'v str {
        let text = self.text(at);
        self.demand(at, !text.is_empty(), "the text is empty");
        text
    }

    pub(crate) fn text_of(&mut self, at: &At<'_, '_>, key: &str) {
        if let Some(at) = at.key(key) {
            self.text(&at);
        }
    }

    pub(crate) fn filled_of(&mut self, at: &At<'_, '_>, key: &str) {
        if let Some(at) = at.key(key) {
            self.filled(&at);
        }
    }

    pub(crate) fn tool_name_of(&mut self, at: &At<'_, '_>, key: &str) {
        if let Some(at) = at.key(key) {
            self.tool_name(&at);
        }
    }

    pub(crate) fn each_filled(&mut self, at: &At<'_, '_>) {
        for at in at.items() {
            self.filled(&at);
        }
    }

    /// One of these words.
    pub(crate) fn word(&mut self, at: &At<'_, '_>, words: &[&str]) {
        let fits = at.str().is_some_and(|word| words.contains(&word));
        self.demand(at, fits, format_args!("{} is none of {}", at.value, words.join(", ")));
    }

    pub(crate) fn word_of(&mut self, at: &At<'_, '_>, key: &str, words: &[&str]) {
        if let Some(at) = at.key(key) {
            self.word(&at, words);
        }
    }

    pub(crate) fn boolean(&mut self, at: &At<'_, '_>, key: &str) {
        if let Some(at) = at.key(key) {
            self.demand(&at, at.value.is_boolean(), "true or false is expected");
        }
    }

    pub(crate) fn integer(&mut self, at: &At<'_, '_>, key: &str, least: i64) {
        if let Some(at) = at.key(key) {
            let fits = at.value.as_i64().is_some_and(|number| number >= least);
            self.demand(&at, fits, format_args!("a whole number of at least {least} is expected"));
        }
    }

    pub(crate) fn number(&mut self, at: &At<'_, '_>, key: &str, least: f64, most: f64) {
        if let Some(at) = at.key(key) {
            let fits = at.value.as_f64().is_some_and(|number| (least..=most).contains(&number));
            self.demand(&at, fits, format_args!("a number from {least} to {most} is expected"));
        }
    }

    pub(crate) fn list(&mut self, at: &At<'_, '_>) {
        self.demand(at, at.value.as_array().is_some_and(|list| !list.is_empty()), "a list that is not empty is expected");
    }

    /// A text whose every character is allowed, at most `most` of them.
    pub(crate) fn spelled<'v>(&mut self, at: &At<'_, 'v>, most: usize, what: &str, fits: impl Fn(u8) -> bool) -> &'v str {
        let text = self.text(at);
        let is_right = (1..=most).contains(&text.len()) && text.bytes().all(fits);
        self.demand(at, is_right, format_args!("`{text}` is no {what}"));
        text
    }

    /// A tool name of OpenAI and of those who follow it: `[a-zA-Z0-9_-]{1,64}`.
    pub(crate) fn tool_name<'v>(&mut self, at: &At<'_, 'v>) -> &'v str {
        self.spelled(at, 64, "tool name", is_word)
    }

    /// A text of JSON that is an object.
    pub(crate) fn arguments(&mut self, at: &At<'_, '_>) {
        let object = serde_json::from_str::<serde_json::Map<String, Value>>(self.text(at));
        self.demand(at, object.is_ok(), "the arguments are not the text of a JSON object");
    }

    pub(crate) fn base64(&mut self, at: &At<'_, '_>) {
        let text = self.filled(at);
        self.demand(at, is_base64(text), "not standard base64");
    }

    /// `data:TYPE;base64,…` whose type is right, or an address on the web.
    pub(crate) fn data_url(&mut self, at: &At<'_, '_>, kinds: &[&str], web: Web) {
        let url = self.text(at);
        if web == Web::Allowed && (url.starts_with("https://") || url.starts_with("http://")) {
            return;
        }
        let Some((kind, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
            return self.refuse(at, "neither a data URL nor an address");
        };
        self.demand(at, kinds.contains(&kind), format_args!("`{kind}` is none of {}", kinds.join(", ")));
        self.demand(at, !data.is_empty() && is_base64(data), "the data is not standard base64");
        self.demand(at, sniffed(data).is_none_or(|real| real == kind), format_args!("the bytes are no {kind}"));
    }

    pub(crate) fn unique<'v>(&mut self, at: &At<'_, 'v>, seen: &mut HashSet<&'v str>, what: &str) {
        if let Some(text) = at.str() {
            self.demand(at, seen.insert(text), format_args!("{what} `{text}` is there twice"));
        }
    }
}

/// Whether an address on the web may stand where data may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Web {
    Allowed,
    Refused,
}

pub(crate) const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// `[A-Za-z0-9_-]`.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

pub(crate) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// What the first bytes of an image say that it is.
pub(crate) fn sniffed(base64: &str) -> Option<&'static str> {
    let signs = [("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("JVBERi", "application/pdf")];
    let is_webp = base64.starts_with("UklGR") && base64.get(12..16) == Some("RUJQ");
    let known = signs.iter().find(|(sign, _)| base64.starts_with(sign)).map(|(_, kind)| *kind);
    known.or(is_webp.then_some("image/webp"))
}
