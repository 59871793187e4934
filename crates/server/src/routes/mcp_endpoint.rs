//! The endpoint for MCP clients. The protocol has its own methods, headers and errors, which are not this server's.

mod forms;

use std::sync::{Arc, OnceLock};

use axum::BoxError;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future, stream};
use http::{Method, StatusCode, header};
use turnwright_api::Problem;
use turnwright_engine::EngineError;

use self::forms::{McpHeaders, McpLastEvent, McpMessage, McpMethodHeaders, McpRefusal};
use crate::auth::Admitted;
use crate::error::ApiError;
use crate::extract::State;
use crate::open_stream::OpenStream;
use crate::openapi::Refused;
use crate::pace::{Unread, paced};
use crate::state::ServerState;

/// Takes a message of an MCP client: opens a session, asks for something, or answers. Clients accept both `application/json` and
/// `text/event-stream`.
#[utoipa::path(
    post,
    path = "/mcp",
    operation_id = "mcpSend",
    tag = "mcp",
    params(McpHeaders, McpMethodHeaders),
    request_body = McpMessage,
    responses(
        Refused,
        (status = 200, description = "What comes of it: one answer, or events up to it.", content((McpMessage = "application/json"), (serde_json::Value = "text/event-stream")), headers(("Mcp-Session-Id" = String, description = "The session, where this opened one."))),
        (status = 202, description = "It is taken, and has no answer."),
        (status = 400, description = "It is no message, or a header does not fit it.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 404, description = "The session is over, there is no such method, or nothing is served here.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 405, description = "Not in this revision of the protocol.", body = McpRefusal, content_type = "application/json"),
        (status = 408, description = "The body does not come, or not fast enough.", body = Problem, content_type = "application/problem+json"),
        (status = 406, description = "`Accept` does not name both `application/json` and `text/event-stream`.", body = McpRefusal, content_type = "application/json"),
        (status = 413, description = "The message is too long.", body = McpRefusal, content_type = "application/json"),
        (status = 415, description = "The body is not of the type `application/json`.", body = McpRefusal, content_type = "application/json"),
        (status = 500, description = "What is stored is damaged, or the session failed.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 503, description = "As many sessions are open as may, the store does not answer, or the server is shutting down. Worth repeating.", content((McpRefusal = "application/json"), (Problem = "application/problem+json")))
    )
)]
pub(super) async fn send(state: State, request: Request) -> Result<Response, ApiError> {
    answer(state, request).await
}

/// What the server says and asks of its own accord, as events. Clients accept `text/event-stream`. Not from 2026-07-28 on.
#[utoipa::path(
    get,
    path = "/mcp",
    operation_id = "mcpListen",
    tag = "mcp",
    params(McpHeaders, McpLastEvent),
    responses(
        Refused,
        (status = 200, description = "Its events, as they come.", body = serde_json::Value, content_type = "text/event-stream"),
        (status = 400, description = "A header is missing or wrong.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 404, description = "The session is over, or nothing is served here.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 405, description = "Not in this revision of the protocol.", body = McpRefusal, content_type = "application/json"),
        (status = 406, description = "`Accept` does not name `text/event-stream`.", body = McpRefusal, content_type = "application/json"),
        (status = 429, description = "As many of your streams are open as may. Worth repeating.", body = Problem, content_type = "application/problem+json"),
        (status = 500, description = "What is stored is damaged, or the session failed.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 503, description = "As many sessions are open as may, the store does not answer, or the server is shutting down. Worth repeating.", content((McpRefusal = "application/json"), (Problem = "application/problem+json")))
    )
)]
pub(super) async fn listen(state: State, request: Request) -> Result<Response, ApiError> {
    answer(state, request).await
}

/// Ends a session. Its calls that run are cancelled.
#[utoipa::path(
    delete,
    path = "/mcp",
    operation_id = "mcpLeave",
    tag = "mcp",
    params(McpHeaders),
    responses(
        Refused,
        (status = 204, description = "It is over."),
        (status = 400, description = "A header is missing or wrong.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 404, description = "There is no such session, or nothing is served here.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 405, description = "Not in this revision of the protocol.", body = McpRefusal, content_type = "application/json"),
        (status = 500, description = "What is stored is damaged, or the session failed.", content((McpRefusal = "application/json"), (Problem = "application/problem+json"))),
        (status = 503, description = "As many sessions are open as may, the store does not answer, or the server is shutting down. Worth repeating.", content((McpRefusal = "application/json"), (Problem = "application/problem+json")))
    )
)]
pub(super) async fn leave(state: State, request: Request) -> Result<Response, ApiError> {
    answer(state, request).await
}

async fn answer(State(state): State, request: Request) -> Result<Response, ApiError> {
    let Some(endpoint) = state.mcp() else { return Err(super::no_such_route(&state, request.uri().path())) };
    let refused: Arc<OnceLock<ApiError>> = Arc::default();
    let request = if request.method() == Method::POST { watched(&state, request, &refused) } else { request };
    // Clients open one of their own accord for each session; what they ask is answered by as many as there are questions.
    let is_lasting = request.method() == Method::GET;
    let stream = if is_lasting { OpenStream::of(&state)? } else { OpenStream::of_answer(&state)? };
    let answer = endpoint.http().answer(request).await.map(Body::new);
    if let Some(error) = refused.get() {
        // What the protocol says of a body that broke off does not hold for one that does not come, or comes too late.
        return Err(error.clone());
    }
    // A session that cannot be gone on with since this server ends is none that failed.
    if answer.status() == StatusCode::INTERNAL_SERVER_ERROR && state.engine().is_draining() {
        return Err(EngineError::ShuttingDown.into());
    }
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let are_events = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    Ok(if are_events { answer.map(|body| stream.around(body)) } else { answer })
}

/// The request with a body that ends in a failure where it comes too slowly, or its caller may not come in any more once it is there:
/// that is `refused` then.
fn watched(state: &ServerState, request: Request, refused: &Arc<OnceLock<ApiError>>) -> Request {
    let (head, body) = request.into_parts();
    // A body ends with the first.
    let (slow, gone) = (refused.clone(), refused.clone());
    let pieces = paced(body, state.options().body_bytes_per_second).inspect_err(move |unread| {
        if let Unread::Slow(found) = unread {
            let _ = slow.set(ApiError::from(*found));
        }
    });
    let (state, extensions) = (state.clone(), head.extensions.clone());
    let end = stream::once(async move {
        let error = Admitted::confirmed(&state, &extensions).await.err()?;
        let _ = gone.set(error.clone());
        Some(Err::<Bytes, BoxError>(error.into()))
    });
    let whole = pieces.map_err(BoxError::from).chain(end.filter_map(future::ready));
    Request::from_parts(head, Body::from_stream(whole))
}
