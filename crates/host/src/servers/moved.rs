//! What was given for a server where it was reached before, and does not go along to where it is reached from now on.

use serde_json::{Map, Value};
use url::Url;

use super::McpChangeError;
use super::sealed;

/// What decides which of a server's calls run without a person.
const DECLARATIONS: [&str; 2] = ["trust_annotations", "tools"];

/// Refuses a server that is reached elsewhere from now on, by another program or at another origin, where it would bring along secrets
/// that nobody typed in for that, or what its tools are taken for, unless whoever asks may declare that.
pub(super) fn may_move(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    may_declare: bool,
) -> Result<(), McpChangeError> {
    if !is_elsewhere(before, after) {
        return Ok(());
    }
    let kept = sealed::kept(before, after);
    if let Some(first) = kept.first() {
        let all = kept.join("`, `");
        return Err(McpChangeError::Invalid(format!(
            "`{all}` was typed in for where the server was reached before: give `{first}` again with the new address, or null to leave it out"
        )));
    }
    let is_said = |key: &&str| match after.get(*key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Object(tools)) => !tools.is_empty(),
        Some(_) => true,
    };
    match DECLARATIONS.iter().find(|key| is_said(key)) {
        Some(key) if !may_declare => Err(McpChangeError::NotAllowed(format!(
            "`{key}` was said of the server where it was reached before, and decides what runs without a person: who may approve can \
             change its address"
        ))),
        Some(_) | None => Ok(()),
    }
}

fn is_elsewhere(before: &Map<String, Value>, after: &Map<String, Value>) -> bool {
    ["command", "image"].iter().any(|key| before.get(*key) != after.get(*key))
        || origin(before.get("url")) != origin(after.get("url"))
}

/// Scheme, host and port of an address; of what is none, all of it.
fn origin(url: Option<&Value>) -> Option<String> {
    let text = url?.as_str()?;
    Some(Url::parse(text).map_or_else(|_| text.to_owned(), |url| url.origin().ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SEALED: &str = "${sealed:00112233445566778899aabbccddeeff}";

    fn moves(before: &Value, after: &Value, may_declare: bool) -> Result<(), String> {
        let keys = |value: &Value| value.as_object().unwrap().clone();
        may_move(&keys(before), &keys(after), may_declare).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_goes_to_the_origin_for_which_it_was_typed_in_alone() {
        let at = |url: &str, key: Value| json!({"url": url, "headers": {"X-Key": key, "X-Team": "blue"}});
        let before = at("https://a.example/mcp", SEALED.into());
        for same in ["https://a.example/mcp/v2", "https://A.example:443/"] {
            assert_eq!(moves(&before, &at(same, SEALED.into()), true), Ok(()), "{same}");
        }
        for other in ["https://b.example/mcp", "http://a.example/mcp", "https://a.example:444/mcp", "not an address"] {
            let refused = moves(&before, &at(other, SEALED.into()), true).unwrap_err();
            assert!(refused.starts_with("`headers.X-Key` was typed in for"), "{other}: {refused}");
            assert_eq!(moves(&before, &at(other, "new".into()), true), Ok(()), "{other}");
        }
        let command = json!({"command": "server", "headers": {"X-Key": SEALED}});
        assert!(moves(&before, &command, true).is_err());
    }

    #[test]
    fn what_tools_are_taken_for_is_said_anew_by_who_may() {
        let at = |url: &str, tools: Value| json!({"url": url, "tools": tools});
        let before = at("https://a.example/mcp", json!({"look": {"read_only": true}}));
        let moved = at("https://b.example/mcp", json!({"look": {"read_only": true}}));
        assert!(moves(&before, &moved, false).unwrap_err().starts_with("`tools` was said of the server"));
        assert_eq!(moves(&before, &moved, true), Ok(()));
        assert_eq!(moves(&before, &at("https://b.example/mcp", json!({})), false), Ok(()));
        assert_eq!(moves(&before, &at("https://a.example/other", json!({"look": {"read_only": true}})), false), Ok(()));
        let trusted = json!({"url": "https://b.example", "trust_annotations": true});
        assert!(moves(&json!({"url": "https://a.example", "trust_annotations": true}), &trusted, false).is_err());
    }
}
