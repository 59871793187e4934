//! From a line of a server's standard output to messages of the protocol.
//!
//! Servers print what they should not: log lines, text glued before a message, batches, answers without `jsonrpc`, with
//! both or neither of `result` and `error`. Each of these is a call that never returns for who is strict. A line that plainly
//! is one message is parsed once and nothing else.

use memchr::memmem;
use rmcp::model::{NumberOrString, RequestId};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::mended::mended;
use super::shallow;

/// A message from the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Response { id: RequestId, result: Value },
    Error { id: Option<RequestId>, code: i32, message: String, data: Option<Value> },
    Request { id: RequestId, method: String, params: Option<Value> },
    Notification { method: String, params: Option<Value> },
}

/// What a line was besides its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remark {
    /// Nothing to say.
    Clean,
    /// It holds no message.
    Noise,
    /// So many bytes of other text stood before its message.
    Glued(usize),
    /// Its message was nested too deeply and is there without what lies too deep.
    Cut,
    /// It is an answer that cannot be read; its call was failed.
    Unreadable,
}

/// JSON-RPC's code for what is wrong inside the other side.
pub(crate) const INTERNAL_ERROR: i32 = -32603;
/// The method of a request that cannot be parsed.
const UNREADABLE: &str = "unreadable";

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    jsonrpc: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// Hands every message of `line` to `take`.
pub(crate) fn read(line: &[u8], mut take: impl FnMut(Message)) -> Remark {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.first() == Some(&b'{')
        && let Ok(envelope) = serde_json::from_slice::<Envelope>(line)
    {
        return match message(envelope) {
            Some(message) => {
                take(message);
                Remark::Clean
            }
            None => Remark::Noise,
        };
    }
    if line.is_empty() {
        return Remark::Clean;
    }
    read_sloppy(line, take)
}

/// An answer in place of one that was too long to be taken.
pub(crate) fn too_long(head: &[u8], tail: &[u8], length: u64, limit: usize) -> Option<Message> {
    let id = id_in_head(head).or_else(|| id_in_tail(tail))?;
    let message = format!("the answer is {length} bytes, limit {limit}: ask for less");
    Some(Message::Error { id: Some(id), code: INTERNAL_ERROR, message, data: None })
}

fn read_sloppy(line: &[u8], mut take: impl FnMut(Message)) -> Remark {
    let text = String::from_utf8_lossy(line);
    let of_line = mended(text.as_bytes());
    let whole = of_line.as_deref().unwrap_or(text.as_bytes());
    if let Ok(value) = serde_json::from_slice::<Value>(whole) {
        let mut found = false;
        each(value, &mut |message| {
            found = true;
            take(message);
        });
        return if found { Remark::Clean } else { Remark::Noise };
    }
    if let Some(value) = shallow::cut(whole).and_then(|cut| serde_json::from_slice(&cut).ok()) {
        let mut found = false;
        each(value, &mut |message| {
            found = true;
            take(message);
        });
        return if found { Remark::Cut } else { Remark::Noise };
    }
    for start in [r#"{"jsonrpc""#, r#"{ "jsonrpc""#, r#"{"id""#, r#"{"result""#, r#"{"method""#] {
        let Some(at) = memmem::find(text.as_bytes(), start.as_bytes()) else { continue };
        let Some(rest) = text.get(at..) else { continue };
        let of_rest = mended(rest.as_bytes());
        let rest = of_rest.as_deref().unwrap_or(rest.as_bytes());
        let Some(Ok(value)) = serde_json::Deserializer::from_slice(rest).into_iter::<Value>().next() else { continue };
        let mut found = false;
        each(value, &mut |message| {
            found = true;
            take(message);
        });
        if found {
            return Remark::Glued(at);
        }
    }
    match unreadable(line) {
        Some(message) => {
            take(message);
            Remark::Unreadable
        }
        None => Remark::Noise,
    }
}

/// What stands for a message that cannot be parsed: whoever waits for it, here or there, must not wait for ever.
fn unreadable(line: &[u8]) -> Option<Message> {
    let has = |key: &[u8]| memmem::find(line, key).is_some();
    let id = line.starts_with(b"{").then(|| id_in_head(line))??;
    if at_top(line, b"\"method\":").is_some() {
        // No method has this name: the server is told so.
        return Some(Message::Request { id, method: UNREADABLE.to_owned(), params: None });
    }
    let message = "the answer could not be parsed".to_owned();
    (has(b"\"result\"") || has(b"\"error\"")).then_some(Message::Error {
        id: Some(id),
        code: INTERNAL_ERROR,
        message,
        data: None,
    })
}

/// The messages of a value; more than one in a batch (2025-03-26).
fn each(value: Value, take: &mut dyn FnMut(Message)) {
    match value {
        Value::Array(batch) => batch.into_iter().for_each(|value| each(value, take)),
        Value::Object(mut object) => {
            let envelope = Envelope {
                jsonrpc: object.get("jsonrpc").map(|_| serde::de::IgnoredAny),
                id: object.remove("id"),
                method: object.remove("method").and_then(|method| method.as_str().map(str::to_owned)),
                params: object.remove("params"),
                result: object.remove("result"),
                error: object.remove("error"),
            };
            message(envelope).into_iter().for_each(take);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn message(envelope: Envelope) -> Option<Message> {
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let id = id.and_then(request_id);
    Some(match (method, id, error, result) {
        (Some(method), Some(id), ..) => Message::Request { id, method, params },
        (Some(method), None, ..) => Message::Notification { method, params },
        // An error wins over a result that came with it.
        (None, id, Some(error), _) if id.is_some() || jsonrpc.is_some() => failure(id, error),
        (None, Some(id), None, Some(result)) => Message::Response { id, result },
        (None, Some(id), None, None) if jsonrpc.is_some() => {
            let message = "the answer has neither result nor error".to_owned();
            Message::Error { id: Some(id), code: INTERNAL_ERROR, message, data: None }
        }
        // A log line that happens to be JSON.
        (None, ..) => return None,
    })
}

fn failure(id: Option<RequestId>, error: Value) -> Message {
    let mut error = match error {
        Value::Object(error) => error,
        other => Map::from_iter([("message".to_owned(), other)]),
    };
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok()).unwrap_or(INTERNAL_ERROR);
    let message = match error.remove("message") {
        Some(Value::String(message)) => message,
        Some(other) if !other.is_null() => other.to_string(),
        Some(_) | None => "no reason given".to_owned(),
    };
    Message::Error { id, code, message, data: error.remove("data") }
}

fn request_id(id: Value) -> Option<RequestId> {
    match id {
        Value::Number(number) => number.as_i64().map(NumberOrString::Number),
        Value::String(text) => Some(NumberOrString::String(text.into())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The message's own id in its beginning: a key `id` of the outermost object, not of one within.
fn id_in_head(head: &[u8]) -> Option<RequestId> {
    value_after_key(at_top(head, b"\"id\":")?).map(|(id, _)| id)
}

/// The message from a key of the outermost object on.
fn at_top<'a>(head: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    for (at, byte) in head.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' if depth == 1 && head.get(at..).is_some_and(|rest| rest.starts_with(key)) => return head.get(at..),
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The message's own id in its end: the last key `id` with nothing nested behind it but the end of the message.
fn id_in_tail(tail: &[u8]) -> Option<RequestId> {
    let (id, rest) = value_after_key(tail.get(memmem::rfind(tail, b"\"id\":")?..)?)?;
    let rest = rest.trim_ascii().strip_suffix(b"}")?;
    rest.iter().all(|byte| !matches!(byte, b'{' | b'}' | b'[' | b']')).then_some(id)
}

fn value_after_key(piece: &[u8]) -> Option<(RequestId, &[u8])> {
    let value = piece.get(b"\"id\":".len()..)?;
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Value>();
    let id = request_id(values.next()?.ok()?)?;
    Some((id, value.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests;
