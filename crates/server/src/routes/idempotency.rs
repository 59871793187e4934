//! Requests that may be sent again: the same key stands for the same request, which is carried out once.

use std::fmt::Write;

use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::extract::Whole;
use crate::openai::begin::CONVERSATION_HEADER;

/// The longest idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// The request's idempotency key, made unique by its `route` and a space before it, with a hash of what was asked.
pub(super) fn repeatable(whole: &Whole, route: &str) -> Result<Option<(String, String)>, ApiError> {
    Ok(asked(whole)?.map(|(key, fingerprint)| (format!("{route} {key}"), fingerprint)))
}

/// The request's idempotency key as the client wrote it, with a hash of what was asked.
pub(crate) fn asked(whole: &Whole) -> Result<Option<(String, String)>, ApiError> {
    let Some(key) = key(&whole.headers)? else { return Ok(None) };
    Ok(Some((key.to_owned(), fingerprint(whole))))
}

/// As [`asked`], where a header may say in which conversation it is asked: in another one it is another request.
pub(super) fn asked_where_named(whole: &Whole) -> Result<Option<(String, String)>, ApiError> {
    let asked = asked(whole)?;
    let Some(named) = whole.headers.get(CONVERSATION_HEADER) else { return Ok(asked) };
    let both = [named.as_bytes(), b"\n", &whole.body].concat();
    Ok(asked.map(|(key, _)| (key, hash_of(&both))))
}

/// A hash of what was asked.
pub(crate) fn fingerprint(whole: &Whole) -> String {
    hash_of(&whole.body)
}

/// Bytes, in a hash.
pub(crate) fn hash_of(bytes: &[u8]) -> String {
    let mut fingerprint = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to memory does not fail.
        let _ = write!(fingerprint, "{byte:02x}");
    }
    fingerprint
}

/// The request's idempotency key as the client wrote it.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all("idempotency-key").into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    let more = values.count();
    let wrong = match value.to_str() {
        _ if more > 0 => format!("stands there {} times, it must stand there once", more + 1),
        Ok(key) if (1..=MAX_KEY_BYTES).contains(&key.len()) && !key.contains('\t') => return Ok(Some(key)),
        Ok(key) if !key.contains('\t') => format!("has {} characters, it must have 1 to {MAX_KEY_BYTES}", key.len()),
        _ => "holds other characters than the visible ones of ASCII".to_owned(),
    };
    Err(ApiError::bad_request("invalid_idempotency_key", format!("the header `Idempotency-Key` {wrong}")))
}
