//! What the provider says went wrong.

use serde::Deserialize;
use serde_json::Value;
use turnwright_core::{ProviderFailure, ProviderFailureKind};

use crate::dialect::ErrorResponse;
use crate::failure;

/// What a response with an error status says.
pub(super) fn of_response(response: &ErrorResponse<'_>) -> ProviderFailure {
    let is_hopeless = (response.header)("retry-after").is_none();
    with_details(failure::of_response(response), response.body, is_hopeless)
}

/// What an error in a stream, or in a body with a success status, says.
pub(super) fn of_event(data: &str) -> ProviderFailure {
    let kind = serde_json::from_str::<Value>(data).ok();
    let kind = kind.as_ref().and_then(|value| value.pointer("/error/type")).and_then(Value::as_str);
    let failure = match kind.and_then(status) {
        Some(status) => failure::of_response(&ErrorResponse { status, header: &|_| None, body: data.as_bytes() }),
        None => failure::of_event(data),
    };
    with_details(failure, data.as_bytes(), true)
}

/// The status that an error of this type has.
fn status(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "conflict_error" => 409,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Adds what the error's `details` say: a spending limit comes as a rate limit that no waiting ends.
fn with_details(failure: ProviderFailure, body: &[u8], is_hopeless: bool) -> ProviderFailure {
    #[derive(Deserialize)]
    struct Body {
        error: Said,
    }
    #[derive(Deserialize)]
    struct Said {
        details: Details,
    }
    #[derive(Deserialize)]
    struct Details {
        error_code: String,
    }
    let Ok(Body { error: Said { details: Details { error_code } } }) = serde_json::from_slice(body) else { return failure };
    let is_spent = failure.status == Some(429) && is_hopeless && error_code.contains("spend_limit");
    let kind = if is_spent { ProviderFailureKind::Quota } else { failure.kind };
    ProviderFailure { kind, code: Some(error_code), ..failure }
}
