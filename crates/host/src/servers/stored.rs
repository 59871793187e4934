//! A server that was added while the host ran, as it is stored: its keys as they were written, variables not put in.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use turnwright_core::UserId;
use turnwright_engine::Document;

use super::sealed;
use crate::config::{MASK, argument_without_secrets, without_secrets_and_keys};

/// The kind of its documents; the key is the server's name.
pub(crate) const KIND: &str = "mcp_server";

const VERSION: u32 = 1;

/// Whose server it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Everyone's.
    Everyone,
    /// One user's.
    User(UserId),
}

/// What stands for everyone; no user has this id.
const EVERYONE: &str = "everyone";

impl Owner {
    /// The owner in one word: `everyone`, or the user's id.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Everyone => EVERYONE,
            Self::User(user) => user.as_str(),
        }
    }

    /// The one user whose it is.
    pub fn user(&self) -> Option<&UserId> {
        match self {
            Self::Everyone => None,
            Self::User(user) => Some(user),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == EVERYONE {
            return Ok(Self::Everyone);
        }
        word.parse().map(Self::User).map_err(serde::de::Error::custom)
    }
}

/// A request that may come again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// What the client calls it, with whose request it is: nobody else's request is this one.
    pub key: String,
    /// A hash of what it asked for.
    pub fingerprint: String,
}

impl Asked {
    /// The key as its client wrote it, which has no tab.
    pub(super) fn written(&self) -> &str {
        self.key.rsplit('\t').next().unwrap_or_default()
    }
}

/// What is stored of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(super) version: u32,
    pub(crate) owner: Owner,
    /// The keys of `[mcp.servers.NAME]`.
    pub(crate) config: Map<String, Value>,
    /// Where relative paths start.
    pub(crate) folder: PathBuf,
    /// The request that added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Asked>,
    /// Whether whoever gave its address may reach no other than a member.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_kept_outside: bool,
}

impl Stored {
    pub(crate) fn new(owner: Owner, config: Map<String, Value>, folder: PathBuf, asked: Option<Asked>) -> Self {
        Self { version: VERSION, owner, config, folder, asked, is_kept_outside: false }
    }

    pub(crate) fn read(document: &Document) -> Result<Self, String> {
        let stored: Self =
            serde_json::from_str(&document.body).map_err(|error| format!("what is stored of it is damaged: {error}"))?;
        if stored.version > VERSION {
            return Err("a newer version of Turnwright stored it".to_owned());
        }
        Ok(stored)
    }

    /// Whether it is there and not to be used.
    pub(super) fn is_switched_off(&self) -> bool {
        self.config.get("enabled") == Some(&Value::Bool(false))
    }

    pub(crate) fn document(&self, name: &str) -> Result<Document, serde_json::Error> {
        Ok(Document { key: name.to_owned(), body: serde_json::to_string(self)? })
    }
}

/// Keys as people are shown them: a value that may be secret only where it is a reference.
pub(crate) fn shown(config: &Map<String, Value>) -> Map<String, Value> {
    let text = |text: &str| Value::from(without_secrets_and_keys(text));
    let show = |(key, value): (&String, &Value)| {
        let value = match (key.as_str(), value) {
            ("env" | "headers", Value::Object(pairs)) => {
                Value::Object(pairs.iter().map(|(name, value)| (name.clone(), masked(value))).collect())
            }
            ("oauth", Value::Object(oauth)) => {
                let secret = |key: &str, value: &Value| if key == "client_secret" { masked(value) } else { value.clone() };
                Value::Object(oauth.iter().map(|(key, value)| (key.clone(), secret(key, value))).collect())
            }
            (_, Value::String(written)) => text(written),
            ("args", Value::Array(args)) => arguments(args),
            (_, value) => value.clone(),
        };
        (key.clone(), value)
    };
    config.iter().map(show).collect()
}

/// Arguments as people are shown them: what follows a name of a secret is one, as where a server is named by its command line.
fn arguments(args: &[Value]) -> Value {
    let before = std::iter::once("").chain(args.iter().map(|arg| arg.as_str().unwrap_or_default()));
    let shown = args.iter().zip(before).map(|(arg, before)| match arg.as_str() {
        Some(written) if is_written_out(arg) => argument_without_secrets(before, written).into(),
        Some(reference) => without_secrets_and_keys(reference).into(),
        None => arg.clone(),
    });
    shown.collect()
}

/// What stands in the variables, headers and addresses as it is, and not as a reference: the paths of those values.
pub(crate) fn literal_secrets(config: &Map<String, Value>) -> Vec<String> {
    let within =
        |table: &'static str| config.get(table).and_then(Value::as_object).into_iter().flatten().map(move |pair| (table, pair));
    let literal = |(table, (name, value)): (&str, (&String, &Value))| {
        (is_written_out(value) && looks_secret(name)).then(|| format!("{table}.{name}"))
    };
    let addresses = sealed::ADDRESSES.iter().filter(|key| config.get(**key).is_some_and(sealed::has_secret_in_address));
    let named = within("env").chain(within("headers")).filter_map(literal);
    named.chain(addresses.map(|key| (*key).to_owned())).collect()
}

/// Whether a value of this name is a secret by convention.
pub(crate) fn looks_secret(name: &str) -> bool {
    const WORDS: [&str; 9] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION", "COOKIE", "PAT"];
    let name = name.to_ascii_uppercase();
    name.split(['_', '-']).any(|part| WORDS.iter().any(|word| part == *word || (word.len() > 3 && part.ends_with(word))))
}

fn masked(value: &Value) -> Value {
    let is_sealed = value.as_str().is_some_and(|text| sealed::reference(text).is_some());
    if is_sealed || is_written_out(value) { MASK.into() } else { value.clone() }
}

/// Whether a value stands in the keys as it is, and not as a reference.
pub(super) fn is_written_out(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty() && !text.contains("${"))
}

/// What became of `before` by a change in the form of RFC 7396. Where the change repeats what is shown in place of a secret,
/// or of an address that has one, that stays.
pub(crate) fn changed(before: &Map<String, Value>, change: &Map<String, Value>) -> Map<String, Value> {
    let mut after = before.clone();
    let told = shown(before);
    for (key, value) in change {
        match value {
            Value::Null => drop(after.shift_remove(key)),
            Value::Object(change) => {
                let empty = Map::new();
                let table = before.get(key).and_then(Value::as_object).unwrap_or(&empty);
                after.insert(key.clone(), Value::Object(changed(table, change)));
            }
            Value::String(text) if text == MASK && before.contains_key(key) => {}
            repeated if told.get(key) == Some(repeated) => {}
            value => drop(after.insert(key.clone(), value.clone())),
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn secrets_are_shown_as_references_or_not_at_all_and_survive_being_sent_back() {
        let config = map(json!({
            "command": "server", "args": ["--db", "postgres://me:word@host/name"],
            "env": {"API_KEY": "sk-1", "OTHER": "${OTHER}", "EMPTY": ""}
        }));
        let told = map(json!({
            "command": "server", "args": ["--db", "postgres://me:***@host/name"],
            "env": {"API_KEY": "***", "OTHER": "${OTHER}", "EMPTY": ""}
        }));
        assert_eq!(shown(&config), told);
        assert_eq!(literal_secrets(&config), ["env.API_KEY", "args"]);
        let change = map(json!({"env": {"API_KEY": "***", "OTHER": null, "NEW": "1"}, "args": null}));
        let after = map(json!({"command": "server", "env": {"API_KEY": "sk-1", "EMPTY": "", "NEW": "1"}}));
        assert_eq!(changed(&config, &change), after);
    }

    #[test]
    fn an_address_that_is_sent_back_as_it_was_shown_keeps_its_secrets() {
        let config = map(json!({"url": "http://me:word@host/mcp?key=word", "args": ["--db", "postgres://me:word@host/name"]}));
        let told = map(json!({"url": "http://***@host/mcp?key=***", "args": ["--db", "postgres://me:***@host/name"]}));
        assert_eq!(shown(&config), told);
        assert_eq!(literal_secrets(&config), ["url", "args"]);
        assert_eq!(changed(&config, &told), config);
        let other = map(json!({"url": "http://host/other"}));
        assert_eq!(changed(&config, &other).get("url"), other.get("url"));
    }

    #[test]
    fn arguments_that_are_secrets_by_their_name_are_shown_as_references_or_not_at_all() {
        let args = |args: &[&str]| map(json!({"command": "server", "args": args}));
        let config = args(&[
            "--key=sk-1234567890",
            "--token",
            "word-of-passing",
            "--key=${KEY}",
            "--token",
            "${TOKEN}",
            "--port=8080",
            "x",
        ]);
        let told = args(&["--key=***", "--token", "***", "--key=${KEY}", "--token", "${TOKEN}", "--port=8080", "x"]);
        assert_eq!(shown(&config), told);
        assert_eq!(changed(&config, &told), config);
    }

    #[test]
    fn names_of_secrets_are_known_by_their_words() {
        for name in ["OPENAI_API_KEY", "x-api-key", "Authorization", "GITHUB_PAT", "AUTHTOKEN", "DB_PASSWORD"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["PATH", "LOG_LEVEL", "MONKEY", "PATTERN", "Accept"] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
