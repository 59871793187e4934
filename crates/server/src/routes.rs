//! The routes.

mod calls;
mod chat;
mod conversations;
mod history;
mod installation;
mod mcp_endpoint;
mod mcp_features;
mod mcp_servers;
mod page;
mod questions;
mod streams;
mod tools;
mod ui_chat;

use axum::extract::Request;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use axum::{Json, Router};
use http::StatusCode;

use crate::error::ApiError;
use crate::guard::local_only;
use crate::state::ServerState;

/// All routes, for programs on this machine.
pub fn router(state: ServerState) -> Router {
    let api = Router::new()
        .route("/conversations", post(conversations::create).get(conversations::list))
        .route("/conversations/{id}", get(conversations::show).patch(conversations::change).delete(conversations::delete))
        .route("/conversations/{id}/messages", get(history::list).post(chat::store))
        .route("/conversations/{id}/messages/{message}", delete(history::hide))
        .route("/conversations/{id}/chat", post(chat::chat))
        .route("/conversations/{id}/events", get(streams::events))
        .route("/conversations/{id}/stream", get(streams::stream))
        .route("/conversations/{id}/cancel", post(chat::cancel))
        .route("/conversations/{id}/retry", post(chat::retry))
        .route("/conversations/{id}/calls", get(calls::list))
        .route("/conversations/{id}/calls/{call}/decision", post(calls::decide))
        .route("/conversations/{id}/questions/{question}/answer", post(questions::answer))
        .route("/conversations/{id}/tools", get(tools::enabled).post(tools::enable).delete(tools::disable))
        .route("/conversations/{id}/tools/available", get(tools::available))
        .route("/approvals", get(calls::all))
        .route("/mcp/servers", get(mcp_servers::list).post(mcp_servers::add))
        .route("/mcp/servers/{id}", get(mcp_servers::show).patch(mcp_servers::change).delete(mcp_servers::remove))
        .route("/mcp/servers/{id}/start", post(mcp_servers::start))
        .route("/mcp/servers/{id}/stop", post(mcp_servers::stop))
        .route("/mcp/servers/{id}/restart", post(mcp_servers::restart))
        .route("/mcp/servers/{id}/tools", get(mcp_servers::tools))
        .route("/mcp/servers/{id}/tools/{tool}/approve", post(mcp_servers::approve))
        .route("/mcp/servers/{id}/logs", get(mcp_servers::logs))
        .route("/mcp/servers/{id}/resources", get(mcp_features::resources))
        .route("/mcp/servers/{id}/resources/read", post(mcp_features::read))
        .route("/mcp/servers/{id}/resource_templates", get(mcp_features::templates))
        .route("/mcp/servers/{id}/prompts", get(mcp_features::prompts))
        .route("/mcp/servers/{id}/prompts/get", post(mcp_features::prompt))
        .route("/mcp/servers/{id}/complete", post(mcp_features::complete))
        .route("/tools", get(installation::tools))
        .route("/models", get(installation::models));
    Router::new()
        .nest("/api/v1", api)
        .route("/api/chat", post(ui_chat::chat))
        .route("/api/chat/{id}/stream", get(ui_chat::resume))
        .route("/mcp", any(mcp_endpoint::answer))
        .route("/healthz", get(installation::healthy))
        .route("/readyz", get(installation::ready))
        .route("/", get(page::page))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(local_only))
        .with_state(state)
}

async fn no_route(request: Request) -> ApiError {
    let path = request.uri().path();
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", format!("there is no route `{path}`; the API is under /api/v1"))
}

async fn no_method(request: Request) -> ApiError {
    let (method, path) = (request.method(), request.uri().path());
    let detail = format!("`{path}` does not answer to {method}; the Allow header lists what it answers to");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

fn json<T: serde::Serialize>(status: StatusCode, value: T) -> Response {
    (status, Json(value)).into_response()
}
