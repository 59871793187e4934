//! Errors as problem documents (RFC 9457).

use serde::{Deserialize, Serialize};

/// The media type of a [`Problem`].
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Always `about:blank`: the code says what it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the status means, in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A stable word for programs, such as `not_found`.
    pub code: String,
    /// What is wrong and what would be right, for people.
    pub detail: String,
    /// The name that a model provider gave to the request that failed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Problem {
    /// A problem with this status.
    pub fn new(status: u16, title: &str, code: &str, detail: impl Into<String>) -> Self {
        let kind = "about:blank".to_owned();
        Self { kind, title: title.to_owned(), status, code: code.to_owned(), detail: detail.into(), request_id: None }
    }
}
