//! The endpoint for MCP clients. The protocol has its own methods, headers and errors, which are not this server's.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures_util::TryStreamExt;

use crate::error::ApiError;
use crate::extract::State;
use crate::pace::{TooSlow, Unread, paced};

/// Answers one request of an MCP client.
pub(super) async fn answer(State(state): State, request: Request) -> Result<Response, ApiError> {
    let Some(endpoint) = state.mcp() else { return Err(super::no_route(request).await) };
    let slow: Arc<OnceLock<TooSlow>> = Arc::default();
    let found = slow.clone();
    let request = request.map(|body| {
        let pieces = paced(body, state.options().body_bytes_per_second);
        Body::from_stream(pieces.inspect_err(move |unread| {
            if let Unread::Slow(slow) = unread {
                // A body ends with the first.
                let _ = found.set(*slow);
            }
        }))
    });
    let answer = endpoint.http().answer(request).await;
    match slow.get() {
        // What the protocol says of a body that broke off does not hold for one that does not come.
        Some(slow) => Err(ApiError::from(*slow)),
        None => Ok(answer.map(Body::new)),
    }
}
