//! Refusals without secrets: what went wrong is told in words of others, who may repeat what they were given.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header;

use crate::state::ServerState;

/// The longest refusal that is looked at, in bytes; ours are far shorter.
const MAX_BYTES: usize = 1 << 20;

/// Takes secrets out of answers that say that something went wrong.
pub(crate) async fn hidden(state: &ServerState, request: &mut Request, next: Next) -> Response {
    let response = next.run(std::mem::take(request)).await;
    let is_refusal = response.status().is_client_error() || response.status().is_server_error();
    let secrets = state.engine().secrets().now();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.to_str().unwrap_or_default();
        kind.starts_with("application/json") || kind.starts_with("application/problem+json")
    });
    if !is_refusal || !is_json || secrets.is_empty() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_BYTES).await else {
        head.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(head, Body::empty());
    };
    let text = String::from_utf8_lossy(&bytes);
    let told = secrets.hide(&text).into_owned();
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(told))
}
