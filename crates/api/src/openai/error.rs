//! OpenAI's error object.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of every answer under `/v1` that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenAiError {
    /// What went wrong.
    pub error: OpenAiErrorBody,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenAiErrorBody {
    /// For people.
    pub message: String,
    /// `invalid_request_error | permission_error | not_found_error | conflict_error | rate_limit_error | server_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The field that is wrong, where one is.
    pub param: Option<String>,
    /// One stable word.
    pub code: Option<String>,
}
