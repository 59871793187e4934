//! Errors as problem documents (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a [`Problem`].
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// What is wrong with single fields of what was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The field's name.
    pub field: String,
    /// What is wrong, as the end of a sentence that begins with the field.
    pub message: String,
}

impl Problem {
    /// A problem with this status.
    pub fn new(status: u16, title: &str, code: &str, detail: impl Into<String>) -> Self {
        let kind = "about:blank".to_owned();
        let (title, code, detail) = (title.to_owned(), code.to_owned(), detail.into());
        Self { kind, title, status, code, detail, request_id: None, errors: Vec::new() }
    }
}
