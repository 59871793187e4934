//! The endpoint for MCP clients. The protocol has its own methods, headers and errors, which are not this server's.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;

use crate::error::ApiError;
use crate::extract::State;

/// Answers one request of an MCP client.
pub(super) async fn answer(State(state): State, request: Request) -> Result<Response, ApiError> {
    let Some(endpoint) = state.mcp() else { return Err(super::no_route(request).await) };
    Ok(endpoint.http().answer(request).await.map(Body::new))
}
