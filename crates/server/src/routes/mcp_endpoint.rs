//! The endpoint for MCP clients. The protocol has its own methods, headers and errors, which are not this server's.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;

use crate::error::ApiError;
use crate::extract::State;
use crate::pace::paced;

/// Answers one request of an MCP client.
pub(super) async fn answer(State(state): State, request: Request) -> Result<Response, ApiError> {
    let Some(endpoint) = state.mcp() else { return Err(super::no_route(request).await) };
    let request = request.map(|body| Body::from_stream(paced(body, state.options().body_bytes_per_second)));
    Ok(endpoint.http().answer(request).await.map(Body::new))
}
