//! Several messages in one request, as revision 2025-03-26 alone has them, and what is no message at all.
//!
//! <https://modelcontextprotocol.io/specification/2025-03-26/basic/transports>: servers must take batches, and may answer
//! with one stream of events, in which each answer stands by itself.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use turnwright_engine::number_that_would_change;

/// The revision that has batches, and the one that a client means that names none.
const WITH_BATCHES: &str = "2025-03-26";
/// The most messages of a batch.
const MAX_MESSAGES: usize = 100;

const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;

/// What was posted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Posted {
    /// One message, or nothing that is one.
    One,
    /// A batch.
    Many(Vec<Value>),
    /// A batch that is not taken, and why.
    Refused(String),
}

/// Looks whether a request holds several messages.
pub(super) fn posted(body: &[u8], headers: &HeaderMap) -> Posted {
    if body.trim_ascii_start().first() != Some(&b'[') {
        return Posted::One;
    }
    let Ok(messages) = serde_json::from_slice::<Vec<Value>>(body) else { return Posted::One };
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    if version.is_some_and(|version| version != WITH_BATCHES) {
        return Posted::Refused(format!("batches are of {WITH_BATCHES} alone; send each message by itself"));
    }
    let is_opening = |message: &Value| message["method"] == "initialize";
    match messages.len() {
        0 => Posted::Refused("the batch is empty".to_owned()),
        count if count > MAX_MESSAGES => {
            Posted::Refused(format!("the batch has {count} messages, limit {MAX_MESSAGES}; send them in several"))
        }
        _ if messages.iter().any(is_opening) => Posted::Refused("`initialize` must not be part of a batch".to_owned()),
        _ => changed_number_of_many(body).map_or(Posted::Many(messages), Posted::Refused),
    }
}

/// A message that calls a tool, as far as it is looked at.
#[derive(Deserialize)]
struct Calling<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The error for a call whose arguments have a number that would be another once it is read; its tool would be called with that.
pub(super) fn changed_number(body: &[u8]) -> Option<Value> {
    let (id, why) = changed_number_of(body)?;
    Some(error(INVALID_PARAMS, &why, &id))
}

fn changed_number_of(message: &[u8]) -> Option<(Value, String)> {
    let calling: Calling<'_> = serde_json::from_slice(message).ok()?;
    if calling.method != "tools/call" {
        return None;
    }
    let given: Arguments<'_> = serde_json::from_str(calling.params?.get()).ok()?;
    Some((calling.id, number_that_would_change(given.arguments?.get())?))
}

fn changed_number_of_many(body: &[u8]) -> Option<String> {
    let messages: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
    messages.into_iter().find_map(|message| changed_number_of(message.get().as_bytes())).map(|(_, why)| why)
}

/// The error for a body that is no message: its status, and what is said.
pub(super) fn no_message(body: &[u8]) -> (StatusCode, Value) {
    match serde_json::from_slice::<Value>(body) {
        Ok(message) => (StatusCode::BAD_REQUEST, error(INVALID_REQUEST, "this is no JSON-RPC message", &id_of(&message))),
        Err(why) => (StatusCode::BAD_REQUEST, error(PARSE_ERROR, &format!("this is not JSON: {why}"), &Value::Null)),
    }
}

/// An error of the protocol.
pub(super) fn error(code: i32, message: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A message as an event of a stream.
pub(super) fn event(message: &[u8]) -> Bytes {
    Bytes::from([b"event: message\ndata: ", message, b"\n\n"].concat())
}

fn id_of(message: &Value) -> Value {
    let id = &message["id"];
    if id.is_string() || id.is_number() { id.clone() } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_a_number_that_would_be_another_is_refused_by_its_id() {
        let call =
            |number: &str| format!(r#"{{"id":7,"method":"tools/call","params":{{"name":"t","arguments":{{"at":{number}}}}}}}"#);
        let why = "the number 123456789012345678901 in the arguments cannot be passed on as it is: \
                   whole numbers go from -9223372036854775808 to 18446744073709551615";
        let large = call("123456789012345678901");
        assert_eq!(changed_number(large.as_bytes()), Some(error(INVALID_PARAMS, why, &json!(7))));
        for other in [call("18446744073709551615"), call("1e300"), large.replace("tools/call", "prompts/get"), "[".to_owned()] {
            assert_eq!(changed_number(other.as_bytes()), None, "{other}");
        }
        let batch = format!("[{},{large}]", call("1"));
        assert_eq!(posted(batch.as_bytes(), &HeaderMap::new()), Posted::Refused(why.to_owned()));
    }

    #[test]
    fn a_batch_is_taken_from_clients_of_the_revision_that_has_them() {
        let of =
            |version: &'static str| HeaderMap::from_iter([("mcp-protocol-version".parse().unwrap(), version.parse().unwrap())]);
        let two = br#" [{"id": 1}, 2] "#;
        let taken = Posted::Many(vec![json!({"id": 1}), json!(2)]);
        assert_eq!((posted(two, &HeaderMap::new()), posted(two, &of("2025-03-26"))), (taken.clone(), taken));
        let refused = |body: &str, headers: &HeaderMap| match posted(body.as_bytes(), headers) {
            Posted::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        let late = "batches are of 2025-03-26 alone; send each message by itself";
        assert_eq!(refused("[{}]", &of("2025-11-25")), late);
        assert_eq!(refused("[]", &HeaderMap::new()), "the batch is empty");
        let many = json!(vec![json!({}); 101]).to_string();
        assert_eq!(refused(&many, &HeaderMap::new()), "the batch has 101 messages, limit 100; send them in several");
        let opening = r#"[{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]"#;
        assert_eq!(refused(opening, &HeaderMap::new()), "`initialize` must not be part of a batch");
        assert_eq!([posted(b"{}", &HeaderMap::new()), posted(b"[", &HeaderMap::new())], [Posted::One, Posted::One]);
    }

    #[test]
    fn what_is_no_message_is_named_as_that() {
        let (status, error) = no_message(br#"{"id": "a"}"#);
        assert_eq!((status, &error["id"], &error["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("a"), &json!(-32600)));
        let (status, error) = no_message(b"<html>");
        assert_eq!((status, &error["id"], &error["error"]["code"]), (StatusCode::BAD_REQUEST, &Value::Null, &json!(-32700)));
    }
}
