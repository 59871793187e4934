//! `ETag`s of what can be configured, and the conditions of requests on them (RFC 9110, section 13).
//!
//! A tag has two parts: what is configured, and with it what else the representation tells, such as how a turn stands. Both
//! tell whether a client has what it would be sent. For a change the first part counts alone: that a turn went on meanwhile
//! is no reason to refuse a change of the settings that somebody read before.

use std::fmt::Write;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::routes::json;

/// What a representation is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    configured: String,
    whole: String,
}

impl Tag {
    /// The tag of a representation, of which `configured` is what can be changed.
    pub(crate) fn of(configured: &impl Serialize, whole: &impl Serialize) -> Self {
        Self { configured: hash(configured), whole: hash(whole) }
    }

    /// The tag of a representation all of which can be changed.
    pub(crate) fn of_all(whole: &impl Serialize) -> Self {
        Self::of(whole, whole)
    }

    fn text(&self) -> String {
        format!("\"{}-{}\"", self.configured, self.whole)
    }

    /// Whether a change may be made, see [`Conditions::allow`].
    ///
    /// # Errors
    /// Those of [`Conditions::of`] and [`Conditions::allow`].
    pub(crate) fn must_match(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        Conditions::of(headers)?.allow(Some(self))
    }

    /// Whether one of these is the tag of what is configured so, whatever else it tells.
    fn is_configured_in(&self, tags: &[String]) -> bool {
        let begins = format!("\"{}-", self.configured);
        tags.iter().any(|tag| tag.starts_with(&begins))
    }

    /// The representation with its tag, or 304 where the client has it.
    pub(crate) fn answer(&self, headers: &HeaderMap, whole: impl Serialize) -> Response {
        self.on(if is_known(headers, &self.text()) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            json(StatusCode::OK, whole)
        })
    }

    /// A response with this tag.
    pub(crate) fn on(&self, mut response: Response) -> Response {
        if let Ok(tag) = HeaderValue::from_str(&self.text()) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// What a change depends on: `If-Match` and `If-None-Match`.
#[derive(Debug)]
pub(crate) struct Conditions {
    seen: Option<Seen>,
    unseen: Option<Seen>,
}

#[derive(Debug)]
enum Seen {
    /// `*`: whatever there is.
    Anything,
    OneOf(Vec<String>),
}

impl Conditions {
    /// Those of a request.
    ///
    /// # Errors
    /// 400, where tags stand beside a `*`.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let read = |name: &HeaderName, shown: &str| match listed(headers, name) {
            None => Ok(None),
            Some(tags) if !tags.iter().any(|tag| tag == "*") => Ok(Some(Seen::OneOf(tags))),
            Some(tags) if tags.len() == 1 => Ok(Some(Seen::Anything)),
            Some(_) => {
                let what = format!("`*` stands alone in {shown}, without tags beside it");
                Err(ApiError::bad_request("invalid_header", what))
            }
        };
        Ok(Self { seen: read(&header::IF_MATCH, "If-Match")?, unseen: read(&header::IF_NONE_MATCH, "If-None-Match")? })
    }

    /// Whether the request has any.
    pub(crate) fn is_any(headers: &HeaderMap) -> bool {
        headers.contains_key(header::IF_MATCH) || headers.contains_key(header::IF_NONE_MATCH)
    }

    /// Whether what has this tag may be changed, or, where nothing is there, may be made: the client saw what there is, or does not
    /// say what it saw.
    ///
    /// # Errors
    /// 412, where it saw something else.
    pub(crate) fn allow(&self, there: Option<&Tag>) -> Result<(), ApiError> {
        let is_seen = match (&self.seen, there) {
            (None, _) | (Some(Seen::Anything), Some(_)) => true,
            (Some(_), None) => false,
            (Some(Seen::OneOf(tags)), Some(there)) => there.is_configured_in(tags),
        };
        let is_unseen = match (&self.unseen, there) {
            (None, _) | (Some(_), None) => true,
            (Some(Seen::Anything), Some(_)) => false,
            (Some(Seen::OneOf(tags)), Some(there)) => {
                let strong: Vec<String> = tags.iter().map(|tag| tag.trim_start_matches("W/").to_owned()).collect();
                !there.is_configured_in(&strong)
            }
        };
        let detail = match there {
            _ if is_seen && is_unseen => return Ok(()),
            None => "nothing is there; leave If-Match out".to_owned(),
            Some(there) if is_seen => format!("it is there, and its ETag is {}", there.text()),
            Some(there) => format!("it was changed since: its ETag is {} now; read it again", there.text()),
        };
        Err(ApiError::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", detail))
    }
}

/// Whether the client says that it has what is known by this tag (`If-None-Match`).
pub(crate) fn is_known(headers: &HeaderMap, own: &str) -> bool {
    let known = listed(headers, &header::IF_NONE_MATCH).unwrap_or_default();
    known.iter().any(|tag| tag == "*" || tag.trim_start_matches("W/") == own)
}

/// The tags that a header lists; `None` where it is not there. What is no text matches nothing.
fn listed(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<String>> {
    if !headers.contains_key(name) {
        return None;
    }
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    Some(values.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect())
}

/// 64 bits of the SHA-256 of what it is as JSON, in hexadecimal digits.
pub(crate) fn hash(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut written = String::with_capacity(16);
    for byte in Sha256::digest(&text).iter().take(8) {
        // Writing to memory does not fail.
        let _ = write!(written, "{byte:02x}");
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_change_asks_for_what_is_configured_alone_and_a_reader_for_everything() {
        let (seen, now) = (Tag::of(&"settings", &"before"), Tag::of(&"settings", &"after"));
        let other = Tag::of(&"others", &"after");
        let table = [
            (seen.text(), true),
            (format!("\"x\", {}", now.text()), true),
            ("*".to_owned(), true),
            (other.text(), false),
            (format!("W/{}", now.text()), false),
            (String::new(), false),
        ];
        for (condition, expected) in table {
            assert_eq!(now.must_match(&headers(header::IF_MATCH, &condition)).is_ok(), expected, "{condition}");
        }
        assert!(now.must_match(&HeaderMap::new()).is_ok());
        let both = now.must_match(&headers(header::IF_MATCH, "W/\"x\", *")).unwrap_err();
        assert_eq!((both.status().as_u16(), both.code()), (400, "invalid_header"));
        let unseen = |condition: &str, there: Option<&Tag>| {
            let conditions = Conditions::of(&headers(header::IF_NONE_MATCH, condition));
            conditions.and_then(|conditions| conditions.allow(there)).map_err(|error| error.status().as_u16())
        };
        let weak = format!("W/{}", seen.text());
        let table = [
            ("*", Some(&now), Err(412)),
            ("*", None, Ok(())),
            (&weak, Some(&now), Err(412)),
            (&weak, Some(&other), Ok(())),
            (&weak, None, Ok(())),
            ("*, \"x\"", None, Err(400)),
        ];
        for (condition, there, expected) in table {
            assert_eq!(unseen(condition, there), expected, "{condition} {there:?}");
        }
        let status = |tag: &Tag| now.answer(&headers(header::IF_NONE_MATCH, &tag.text()), "x").status().as_u16();
        assert_eq!((status(&now), status(&seen)), (304, 200));
        // In whatever header of several, and however it is written.
        let mut several = headers(header::IF_NONE_MATCH, "\"x\"");
        several.append(header::IF_NONE_MATCH, HeaderValue::from_static("\"y\",W/\"own\""));
        assert_eq!(["\"own\"", "\"ow\"", "\"x\""].map(|own| is_known(&several, own)), [true, false, true]);
    }
}
