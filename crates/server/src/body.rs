//! Reading request bodies: bounded, JSON, with words that help where they are wrong.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::error::ApiError;
use crate::pace::{Unread, paced};
use crate::state::ServerOptions;

/// How long and how much a refused body is read on, so that the client gets to see the refusal.
const DRAIN_LIMIT_BYTES: u64 = 256 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(20);

/// Reads a whole body, as large and as slow as it may be.
///
/// # Errors
/// 413 where it is larger, 408 where it does not come or too slowly, 400 where it breaks off.
pub(crate) async fn read(headers: &HeaderMap, body: Body, options: &ServerOptions) -> Result<Bytes, ApiError> {
    read_at_most(options.body_limit_bytes, headers, body, options).await
}

/// The same for a body that may be no larger than this.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_at_most(
    limit_bytes: usize,
    headers: &HeaderMap,
    body: Body,
    options: &ServerOptions,
) -> Result<Bytes, ApiError> {
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(length) = length.filter(|length| *length > limit) {
        if !headers.contains_key(header::EXPECT) {
            drain(paced(body, options.body_bytes_per_second)).await;
        }
        return Err(too_large(Some(length), limit_bytes));
    }
    let mut stream = paced(body, options.body_bytes_per_second);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let chunk = match stream.next().await {
            None => break,
            Some(Ok(chunk)) => chunk,
            Some(Err(Unread::Slow(slow))) => return Err(slow.into()),
            Some(Err(Unread::Broken(error))) => {
                return Err(ApiError::bad_request("body_cut_off", format!("the request body broke off: {error}")));
            }
        };
        if first.is_empty() && rest.is_empty() {
            first = chunk;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        if rest.len().saturating_add(chunk.len()) > limit_bytes {
            drain(stream).await;
            return Err(too_large(None, limit_bytes));
        }
        rest.extend_from_slice(&chunk);
    }
    let whole = if rest.is_empty() { first } else { rest.freeze() };
    match u64::try_from(whole.len()).ok().filter(|length| *length > limit) {
        Some(length) => Err(too_large(Some(length), limit_bytes)),
        None => Ok(whole),
    }
}

/// That a body comes as it is.
///
/// # Errors
/// 415 where it says that it is encoded.
pub(crate) fn as_it_is(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(encoding) =
        headers.get(header::CONTENT_ENCODING).filter(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
    else {
        return Ok(());
    };
    let encoding = encoding.to_str().unwrap_or("(not text)");
    let detail = format!("the content encoding is `{encoding}`; send the body as it is");
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail))
}

/// Reads a body as JSON. An empty body is an empty object.
///
/// # Errors
/// 415 where it says that it is something else, or encoded, 400 where it is no JSON, 422 where a field is unknown or wrong; and those
/// of [`read`].
pub(crate) fn json<'a, T: Deserialize<'a>>(headers: &HeaderMap, body: &'a [u8]) -> Result<T, ApiError> {
    as_it_is(headers)?;
    if let Some(content_type) = headers.get(header::CONTENT_TYPE) {
        let content_type = content_type.to_str().unwrap_or("(not text)");
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if media_type != "application/json" && !media_type.ends_with("+json") {
            let detail = format!("the content type is `{content_type}`; send application/json");
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail));
        }
    }
    let body = if body.iter().all(u8::is_ascii_whitespace) { b"{}".as_slice() } else { body };
    if let Some(kind) = other_than_object(body) {
        return Err(ApiError::invalid(format!("the request body is {kind}; it must be an object")));
    }
    serde_json::from_slice(body).map_err(|error| {
        // To the library a number in the place of a word is no JSON.
        let is_json = error.is_data() || error.is_syntax() && serde_json::from_slice::<Value>(body).is_ok();
        if is_json {
            ApiError::invalid(format!("the request body is wrong: {}", wrong::<T>(body, &error)))
        } else {
            ApiError::bad_request("invalid_json", format!("the request body is not JSON: {error}"))
        }
    })
}

/// Which field of a body is wrong, and how. Reads the body once more, since looking where one is costs each that is right.
fn wrong<'a, T: Deserialize<'a>>(body: &'a [u8], error: &serde_json::Error) -> String {
    let read: Result<T, _> = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_slice(body));
    let path = read.err().map(|error| error.path().clone());
    let place = path.as_ref().map(ToString::to_string).filter(|place| place != ".");
    if error.is_syntax() {
        let found = path.and_then(|path| found_at(serde_json::from_slice(body).ok()?, &path));
        let found = found.as_ref().map_or("something else".into(), value_in_words);
        return format!("`{}` is {found}, which is none of the forms that it may have", place.as_deref().unwrap_or("a field"));
    }
    let (told, at) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    in_words(place.as_deref(), told.strip_suffix(&at).unwrap_or(&told))
}

/// The value to which a path leads.
fn found_at(mut body: Value, path: &Path) -> Option<Value> {
    for segment in path {
        body = match segment {
            Segment::Seq { index } => body.get_mut(index)?.take(),
            Segment::Map { key } => body.get_mut(key)?.take(),
            Segment::Enum { .. } | Segment::Unknown => return None,
        };
    }
    Some(body)
}

fn value_in_words(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => truth.to_string().into(),
        Value::Number(number) => format!("the number `{number}`").into(),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// What the library says of a field, in the words of JSON.
fn in_words(place: Option<&str>, told: &str) -> String {
    let place = place.map(|place| format!("`{place}`"));
    let wrong_type = told.strip_prefix("invalid type: ").or_else(|| told.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong_type.and_then(|told| told.rsplit_once(", expected ")) {
        let place = place.as_deref().unwrap_or("a field");
        return format!("{place} is {}, it must be {}", found_in_words(found), expected_in_words(expected));
    }
    let told =
        if told.starts_with("data did not match any variant") { "it has none of the forms that it may have" } else { told };
    place.map_or_else(|| told.to_owned(), |place| format!("{place}: {told}"))
}

fn found_in_words(found: &str) -> Cow<'_, str> {
    match found {
        "sequence" => "a list".into(),
        "map" => "an object".into(),
        other => match other.strip_prefix("integer ").or_else(|| other.strip_prefix("floating point ")) {
            Some(number) => format!("the number {number}").into(),
            None => match other.strip_prefix("boolean ") {
                Some(truth) => truth.into(),
                None if other.starts_with("string ") => format!("the {other}").into(),
                None => other.into(),
            },
        },
    }
}

fn expected_in_words(expected: &str) -> &str {
    match expected {
        "f32" | "f64" => "a number",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        "a borrowed string" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" | "map" => "an object",
        "string or map" => "a string or an object",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum ") => "an object",
        other => other,
    }
}

/// What a body of JSON is that is no object. A list would pass for the fields of an object in their order.
fn other_than_object(body: &[u8]) -> Option<&'static str> {
    if body.trim_ascii_start().first() == Some(&b'{') {
        return None;
    }
    Some(match serde_json::from_slice::<Value>(body).ok()? {
        Value::Array(_) => "an array",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a truth value",
        Value::Null => "null",
        Value::Object(_) => return None,
    })
}

fn too_large(length: Option<u64>, limit_bytes: usize) -> ApiError {
    let size = length.map_or_else(|| format!("more than {limit_bytes} bytes"), |length| format!("{length} bytes"));
    let detail = format!("the request body is {size}, the limit is {limit_bytes} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail).ending_connection()
}

/// Reads on and throws away: a client that is still sending would see a broken connection instead of the answer.
pub(crate) async fn drain<E>(mut stream: impl Stream<Item = Result<Bytes, E>> + Unpin) {
    let all = async {
        let mut read = 0_u64;
        while let Some(Ok(chunk)) = stream.next().await {
            read = read.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            if read > DRAIN_LIMIT_BYTES {
                return;
            }
        }
    };
    if tokio::time::timeout(DRAIN_TIME, all).await.is_err() {
        tracing::debug!("a refused request body did not end in time");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use futures_util::stream;
    use http::HeaderMap;
    use turnwright_api as api;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_refused_body_is_read_on_for_a_while_and_so_far_and_no_longer() {
        let piece = Bytes::from(vec![0; 1 << 20]);
        let mut read = 0;
        drain(stream::iter(0..).map(|_| Ok::<_, Error>(piece.clone())).inspect(|_| read += 1)).await;
        assert_eq!(read, (DRAIN_LIMIT_BYTES >> 20) + 1);
        // A byte each second would hold the connection as long as it comes.
        let mut trickles = Box::pin(stream::repeat(Bytes::from_static(b"x")).then(async |byte| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, Error>(byte)
        }));
        drain(trickles.as_mut()).await;
        assert!(trickles.next().await.is_some());
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "what is read is not looked at")]
    struct Lists {
        #[serde(default)]
        messages: Vec<Vec<bool>>,
    }

    fn told<'a, T: Deserialize<'a> + std::fmt::Debug>(body: &'a str) -> String {
        json::<T>(&HeaderMap::new(), body.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_body_that_is_encoded_is_refused_with_the_encoding() {
        for (encoding, is_taken) in [("gzip", false), ("identity", true), ("Identity", true)] {
            let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, encoding.parse().unwrap())]);
            let read = json::<Lists>(&headers, br#"{"messages":[]}"#);
            assert_eq!(read.is_ok(), is_taken, "{encoding}");
            if let Err(error) = read {
                assert_eq!(error.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
                assert_eq!(error.to_string(), "the content encoding is `gzip`; send the body as it is");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_the_field_and_in_the_words_of_json() {
        let conversation = |body: &'static str| told::<api::ConversationRequest>(body);
        let table = [
            (r#"{"title":5}"#, "`title` is the number `5`, it must be a string"),
            (r#"{"settings":{"temperature":"hot"}}"#, "`settings.temperature` is the string \"hot\", it must be a number"),
            (
                r#"{"settings":{"max_output_tokens":-1}}"#,
                "`settings.max_output_tokens` is the number `-1`, it must be a whole number from 0 to 4294967295",
            ),
            (r#"{"settings":7}"#, "`settings` is the number `7`, it must be an object"),
        ];
        for (body, expected) in table {
            assert_eq!(conversation(body), format!("the request body is wrong: {expected}"));
        }
        let unknown = conversation(r#"{"titel":"x"}"#);
        assert!(unknown.contains("unknown field `titel`"), "{unknown}");
        for (body, place) in [
            (r#"{"decision":"allow","remember":"galaxy"}"#, "remember"),
            (r#"{"decision":"allow","remember":{"scope":"galaxy"}}"#, "remember"),
        ] {
            let scopes = "`galaxy` is no scope; there are `turn`, `conversation`, `user` and `everyone`";
            let expected = format!("the request body is wrong: `{place}`: {scopes}");
            assert_eq!(told::<api::DecisionRequest>(body), expected);
        }
        let once: api::DecisionRequest =
            json(&HeaderMap::new(), br#"{"decision":"allow","remember":"once"}"#).expect("a scope of one decision");
        assert_eq!(once.remember, None);
        for (value, found) in [("true", "`true`"), ("5", "a number"), ("[]", "a list")] {
            let forms = "`once`, a scope (`turn`, `conversation`, `user`, `everyone`) or an object";
            let expected = format!("the request body is wrong: `remember` is {found}, it must be {forms}");
            let body = format!(r#"{{"decision":"allow","remember":{value}}}"#);
            assert_eq!(told::<api::DecisionRequest>(&body), expected);
        }
        for (value, found) in
            [("null", "null"), ("5", "the number `5`"), ("{}", "an object"), ("[]", "a list"), ("true", "true")]
        {
            let expected = |place: &str| {
                format!("the request body is wrong: `{place}` is {found}, which is none of the forms that it may have")
            };
            assert_eq!(told::<api::DecisionRequest>(&format!(r#"{{"decision":{value}}}"#)), expected("decision"));
            if value != "null" {
                let body = format!(r#"{{"content":"x","settings":{{"approve":{value}}}}}"#);
                assert_eq!(told::<api::MessageRequest>(&body), expected("settings.approve"));
            }
        }
        let lists = |body: &'static str| told::<Lists>(body);
        assert_eq!(
            lists(r#"{"messages":"hi"}"#),
            "the request body is wrong: `messages` is the string \"hi\", it must be a list"
        );
        let deep = "the request body is wrong: `messages[1][0]` is an object, it must be true or false";
        assert_eq!(lists(r#"{"messages":[[true],[{}]]}"#), deep);
    }
}
