//! OpenAI's error object: the shape of every refusal under `/v1`.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use turnwright_api::openai::{OpenAiError, OpenAiErrorBody};
use turnwright_core::{ProviderFailure, ProviderFailureKind};

use super::chunk::json;
use crate::error::ApiError;

/// Gives what the routes refuse the shape that their clients read.
pub(crate) async fn in_their_shape(request: Request, next: Next) -> Response {
    refusal(next.run(request).await)
}

/// A refusal in OpenAI's shape; any other response as it is.
pub(crate) fn refusal(mut response: Response) -> Response {
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    let status = status_of(&error);
    let body = serde_json::to_vec(&object(&error)).unwrap_or_default();
    let mut told = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    for name in [header::CONNECTION, header::RETRY_AFTER, header::ALLOW, header::WWW_AUTHENTICATE] {
        if let Some(value) = response.headers().get(&name) {
            told.headers_mut().insert(name, value.clone());
        }
    }
    told.headers_mut().extend(
        response
            .headers()
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("x-"))
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    if error.is_final() {
        told.headers_mut().insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
    }
    told
}

/// What is wrong with a request is 400 with OpenAI, also where it is well-formed.
fn status_of(error: &ApiError) -> StatusCode {
    match error.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    }
}

fn object(error: &ApiError) -> OpenAiError {
    OpenAiError { error: body_of(error) }
}

/// What is said of an error.
pub(super) fn body_of(error: &ApiError) -> OpenAiErrorBody {
    let kind = match status_of(error) {
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::CONFLICT => "conflict_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    OpenAiErrorBody {
        message: error.to_string(),
        kind: kind.to_owned(),
        param: error.param().map(str::to_owned),
        code: Some(error.code().to_owned()),
    }
}

/// The frame that ends a stream where something went wrong.
pub(crate) fn stream_error(out: &mut Vec<u8>, error: &ApiError) {
    out.extend_from_slice(b"data: ");
    json(out, &object(error));
    out.extend_from_slice(b"\n\n");
}

/// A turn that failed. Clients must not send it again by themselves: its tools ran, and it is kept.
pub(crate) fn failure_of(failure: Option<&ProviderFailure>, reason: Option<&str>) -> ApiError {
    use ProviderFailureKind as K;
    let (status, code) = match failure.map(|failure| failure.kind) {
        Some(K::RateLimit) => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        Some(K::Quota) => (StatusCode::TOO_MANY_REQUESTS, "insufficient_quota"),
        Some(K::ContextLength) => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
        Some(K::ContentFilter) => (StatusCode::BAD_REQUEST, "content_filter"),
        Some(K::InvalidRequest | K::TooLarge | K::Limit) => (StatusCode::BAD_REQUEST, "upstream_refused"),
        Some(K::NotFound) => (StatusCode::NOT_FOUND, "model_not_found"),
        Some(K::Timeout) => (StatusCode::GATEWAY_TIMEOUT, "upstream_timeout"),
        Some(K::Overloaded) => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
        Some(K::Auth | K::Permission | K::Server | K::Connect | K::CutOff | K::Malformed | K::Unavailable) => {
            (StatusCode::BAD_GATEWAY, "upstream_error")
        }
        None => (StatusCode::INTERNAL_SERVER_ERROR, "turn_failed"),
    };
    let error = ApiError::new(status, code, reason.unwrap_or("the turn failed")).made_final().in_a_providers_words();
    // Whoever says it anew, as another turn, may as well wait for as long as the provider asks.
    match failure.and_then(|failure| failure.retry_after_ms) {
        Some(ms) => error.worth_repeating_in(u32::try_from(ms.div_ceil(1_000)).unwrap_or(u32::MAX)),
        None => error,
    }
}
