//! Values that are used but never shown.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// What stands for a secret wherever it is shown.
pub(crate) const MASK: &str = "***";

/// A value that is shown as `***`, both as `Debug` and serialized; an empty one is shown as empty.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `value` from being shown.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for whoever sends it where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn shown(&self) -> &'static str {
        if self.is_empty() { "" } else { MASK }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "password" })
    }
}

/// A text without what may be secret in its URLs: `postgres://user:***@host/name`, `https://***@host/v1?key=***`. Over
/// HTTP a user's name may be a token. All else stays as it is.
pub(crate) fn without_secrets(text: &str) -> String {
    let word = |word: &str| {
        let url = word.trim_end();
        url_without_secrets(url) + word.get(url.len()..).unwrap_or_default()
    };
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

/// Before the scheme may stand something else, such as the name of an option.
fn url_without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let split = |text, at: Option<usize>| str::split_at_checked(text, at.unwrap_or(text.len())).unwrap_or((text, ""));
    let (before, after) = split(rest, rest.find(['?', '#']));
    let (authority, path) = split(before, before.find('/'));
    let lower = scheme.to_ascii_lowercase();
    let is_http = lower.ends_with("http") || lower.ends_with("https");
    let authority = match authority.rsplit_once('@') {
        Some((_, host)) if is_http => format!("{MASK}@{host}"),
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
            None => authority.to_owned(),
        },
        None => authority.to_owned(),
    };
    let query = match after.strip_prefix('?') {
        Some(query) => format!("?{}", query.split('&').map(masked).collect::<Vec<_>>().join("&")),
        None if after.len() > 1 => format!("#{MASK}"),
        None => after.to_owned(),
    };
    format!("{scheme}://{authority}{path}{query}")
}

/// One parameter of a query; its name stays, its value may be a key.
fn masked(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((_, "")) => parameter.to_owned(),
        Some((name, _)) => format!("{name}={MASK}"),
        None if parameter.is_empty() => String::new(),
        None => MASK.to_owned(),
    }
}
