//! Secrets that were typed in with a server: kept sealed beside the sign-ins, so that what is stored of it holds none.
//!
//! What is stored has a reference in the place of each. Nobody is shown it, since whoever knows it could have the secret put
//! into another server.

use std::fmt::Write;
use std::io;

use serde_json::{Map, Value};
use turnwright_core::secrets::{OfPath, in_addresses};
use turnwright_mcp::TokenStore;

use super::stored::{is_written_out, looks_secret};

const BEFORE: &str = "${sealed:";
const AFTER: &str = "}";
/// The places of secrets: a table, and whether everything in it that has a secret's name is one, or this key alone.
const TABLES: [(&str, Option<&str>); 3] = [("env", None), ("headers", None), ("oauth", Some("client_secret"))];

/// The keys whose texts may be addresses with secrets in them.
pub(super) const ADDRESSES: [&str; 2] = ["url", "args"];

/// Why what is stored with secrets cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// A secret cannot be read at this moment; what is stored may be as it should.
    NotNow(String),
    /// It is wrong as it is stored.
    Wrong(String),
}

impl Unopened {
    /// A secret could not be read, for this reason.
    pub(crate) fn unread(error: &io::Error, text: String) -> Self {
        match error.kind() {
            // What is kept is there, and not what it should be.
            io::ErrorKind::InvalidData => Self::Wrong(text),
            _ => Self::NotNow(text),
        }
    }

    /// Why, for people.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::NotNow(why) | Self::Wrong(why) => why,
        }
    }
}

/// The name under which a secret is kept, where the text is a reference to one.
pub(crate) fn reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
    (name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(name)
}

/// Keeps a secret under a new name, and gives the reference to it.
pub(crate) async fn keep(secret: &str, tokens: &dyn TokenStore) -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let name = bytes.iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    });
    tokens.save(&name, secret).await?;
    Ok(format!("{BEFORE}{name}{AFTER}"))
}

/// Whether an address, or one of several, has a secret in it that is written out.
pub(super) fn has_secret_in_address(value: &Value) -> bool {
    match value {
        Value::String(text) => !secrets_in_addresses(text).is_empty(),
        Value::Array(values) => values.iter().any(has_secret_in_address),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn secrets_in_addresses(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    in_addresses(text, OfPath::Keys, |part| {
        if is_plain(part) {
            found.push(part.to_owned());
        }
        part.to_owned()
    });
    found
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains("${")
}

/// The texts of addresses.
fn addresses(config: &mut Map<String, Value>) -> impl Iterator<Item = &mut String> {
    let among = config.iter_mut().filter(|(key, _)| ADDRESSES.contains(&key.as_str()));
    among.flat_map(|(_, value)| match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter_mut().filter_map(as_text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    })
}

fn as_text(value: &mut Value) -> Option<&mut String> {
    if let Value::String(text) = value { Some(text) } else { None }
}

/// The names of the secrets that a text refers to.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(BEFORE).filter_map(|(at, _)| {
        let rest = text.get(at..)?;
        reference(rest.get(..=rest.find(AFTER)?)?)
    })
}

/// Puts a reference in the place of each secret that is written out, and keeps the secret.
pub(super) async fn seal(config: &mut Map<String, Value>, tokens: &dyn TokenStore) -> io::Result<()> {
    for (table, only) in TABLES {
        let Some(Value::Object(values)) = config.get_mut(table) else { continue };
        for (key, value) in values.iter_mut() {
            let is_secret = only.map_or_else(|| looks_secret(key), |only| only == key);
            if let Some(secret) = value.as_str().filter(|_| is_secret && is_written_out(value)) {
                *value = keep(secret, tokens).await?.into();
            }
        }
    }
    for text in addresses(config) {
        let mut kept = Vec::new();
        for secret in secrets_in_addresses(text) {
            kept.push(keep(&secret, tokens).await?);
        }
        let mut kept = kept.into_iter();
        let sealed = |part: &str| if is_plain(part) { kept.next() } else { None }.unwrap_or_else(|| part.to_owned());
        *text = in_addresses(text, OfPath::Keys, sealed);
    }
    Ok(())
}

/// The keys with the secrets in their places.
///
/// # Errors
/// Which one is not there any more, or cannot be read.
pub(super) async fn opened(config: &Map<String, Value>, tokens: &dyn TokenStore) -> Result<Map<String, Value>, Unopened> {
    let mut opened = config.clone();
    for (table, _) in TABLES {
        let Some(Value::Object(values)) = opened.get_mut(table) else { continue };
        for (key, value) in values.iter_mut() {
            let Some(name) = value.as_str().and_then(reference) else { continue };
            let secret = tokens.load(name).await;
            let unread = |error| Unopened::unread(&error, format!("its secret `{table}.{key}` cannot be read: {error}"));
            let lost = || Unopened::Wrong(format!("its secret `{table}.{key}` is not kept here; set it again"));
            *value = secret.map_err(unread)?.ok_or_else(lost)?.into();
        }
    }
    for text in addresses(&mut opened) {
        let names: Vec<String> = references(text).map(str::to_owned).collect();
        for name in names {
            let secret = tokens.load(&name).await;
            let unread = |error| Unopened::unread(&error, format!("a secret of its address cannot be read: {error}"));
            let lost = || Unopened::Wrong("a secret of its address is not kept here; set it again".to_owned());
            let secret = secret.map_err(unread)?.ok_or_else(lost)?;
            *text = text.replace(&format!("{BEFORE}{name}{AFTER}"), &secret);
        }
    }
    Ok(opened)
}

/// The places of the secrets of `before` that `after` has too, such as `headers.X-Key`.
pub(super) fn kept(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let known = names(before);
    let is_known = |value: &Value| value.as_str().and_then(reference).is_some_and(|name| known.contains(&name));
    let tables = TABLES.iter().filter_map(|(table, _)| Some((table, after.get(*table)?.as_object()?)));
    tables
        .flat_map(|(table, values)| {
            values.iter().filter(|(_, value)| is_known(value)).map(move |(key, _)| format!("{table}.{key}"))
        })
        .collect()
}

/// The keys as if no secret were typed in.
pub(super) fn without_references(config: &Map<String, Value>) -> Map<String, Value> {
    let mut plain = config.clone();
    for name in names(config) {
        let reference = format!("{BEFORE}{name}{AFTER}");
        plain.values_mut().for_each(|value| replace(value, &reference));
    }
    plain
}

fn replace(value: &mut Value, reference: &str) {
    match value {
        Value::String(text) => *text = text.replace(reference, ""),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, reference)),
        Value::Object(keys) => keys.values_mut().for_each(|value| replace(value, reference)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Forgets the secrets of `before` that `after` does not have.
pub(super) async fn forget(before: &Map<String, Value>, after: &Map<String, Value>, tokens: &dyn TokenStore) {
    let kept = names(after);
    for name in names(before).into_iter().filter(|name| !kept.contains(name)) {
        if let Err(error) = tokens.remove(name).await {
            tracing::warn!(%error, "a secret that is not needed any more stays where it is, sealed");
        }
    }
}

fn names(config: &Map<String, Value>) -> Vec<&str> {
    let values = TABLES.iter().filter_map(|(table, _)| config.get(*table)?.as_object()).flat_map(Map::values);
    let of_tables = values.filter_map(|value| reference(value.as_str()?));
    let texts = ADDRESSES.iter().filter_map(|key| config.get(*key)).flat_map(|value| match value {
        Value::Array(values) => values.iter().collect(),
        value => vec![value],
    });
    of_tables.chain(texts.filter_map(Value::as_str).flat_map(references)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwright_mcp::FileTokens;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn what_is_stored_holds_no_secret_and_what_runs_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = FileTokens::new(folder.path());
        let typed = map(json!({
            "command": "server", "args": ["--db", "postgres://me:sesame@host/${NAME}", "--quiet"],
            "url": "http://me:sesame@host/mcp?key=sesame&other=${OTHER}&last=sesame",
            "env": {"API_KEY": "sesame", "OTHER_KEY": "${OTHER}", "LEVEL": "info", "EMPTY_KEY": ""},
            "headers": {"Authorization": "Bearer sesame"},
            "oauth": {"client_id": "sesame-id", "client_secret": "sesame"}
        }));
        let mut stored = typed.clone();
        seal(&mut stored, &tokens).await.unwrap();
        let text = Value::Object(stored.clone()).to_string();
        assert_eq!(text.matches("sesame").count(), 1, "{text}");
        assert_eq!(opened(&stored, &tokens).await.unwrap(), typed);

        let mut after = stored.clone();
        after.shift_remove("headers");
        after.shift_remove("url");
        forget(&stored, &after, &tokens).await;
        let left = opened(&after, &tokens).await.unwrap();
        assert_eq!((left.get("env"), left.get("args")), (typed.get("env"), typed.get("args")));
        let mut address = stored.clone();
        address.retain(|key, _| key == "url");
        let why = "a secret of its address is not kept here; set it again";
        assert_eq!(opened(&address, &tokens).await, Err(Unopened::Wrong(why.to_owned())));
        let why = "its secret `headers.Authorization` is not kept here; set it again";
        assert_eq!(opened(&stored, &tokens).await, Err(Unopened::Wrong(why.to_owned())));
    }

    #[test]
    fn a_reference_names_nothing_else_than_a_secret() {
        assert!(reference("${sealed:00112233445566778899aabbccddeeff}").is_some());
        for text in ["${sealed:../../../../etc/passwd00000000000}", "${sealed:}", "${API_KEY}", "sealed"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }
}
