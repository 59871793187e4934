//! The routes.

mod ag_ui;
mod artifacts;
mod calls;
mod chat;
mod conversations;
mod described;
mod history;
mod idempotency;
mod installation;
mod login;
mod mcp_endpoint;
mod mcp_features;
mod mcp_servers;
mod page;
mod questions;
mod rules;
mod streams;
mod tool_call;
mod tools;
mod turns;
mod ui_chat;
mod usage;
mod users;
mod v1;

pub(crate) use idempotency::asked;

use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::StatusCode;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::identify;
use crate::door::people_only;
use crate::error::ApiError;
use crate::metrics::requests::named;
use crate::openapi::{Frame, described_by};
use crate::state::ServerState;

/// All routes, each for callers who may use it.
pub fn router(state: ServerState) -> Router {
    let (described, _) = described().split_for_parts();
    described
        .nest("/v1", v1::router())
        .route("/api/chat", post(ui_chat::chat))
        .route("/api/chat/{id}/stream", get(ui_chat::resume))
        .route("/mcp", any(mcp_endpoint::answer))
        .route("/ag-ui", post(ag_ui::run))
        .route("/openapi.json", get(described::document))
        .route("/docs", get(described::page))
        .route("/docs/{file}", get(described::file))
        .route("/login", get(login::page).post(login::enter))
        .route("/login/oidc", get(login::identity::leave_for))
        .route("/login/callback", get(login::identity::come_back))
        .route("/logout", post(login::leave))
        .route("/", get(page::page))
        .route("/page/{*path}", get(page::file))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(people_only))
        .layer(from_fn_with_state(state.clone(), identify))
        .layer(from_fn_with_state(state.clone(), named))
        .with_state(state)
}

/// The OpenAPI document of the routes under `/api/v1` and of those that tell whether the server is well.
pub fn openapi() -> utoipa::openapi::OpenApi {
    described_by(described().split_for_parts().1)
}

/// The routes that describe themselves.
fn described() -> OpenApiRouter<ServerState> {
    let api = OpenApiRouter::new()
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(conversations::show, conversations::change, conversations::delete))
        .routes(routes!(history::list, chat::store))
        .routes(routes!(history::hide))
        .routes(routes!(chat::chat))
        .routes(routes!(streams::events))
        .routes(routes!(streams::stream))
        .routes(routes!(turns::list))
        .routes(routes!(artifacts::upload))
        .routes(routes!(artifacts::show, artifacts::remove))
        .routes(routes!(chat::cancel))
        .routes(routes!(chat::retry))
        .routes(routes!(conversations::fork))
        .routes(routes!(calls::list))
        .routes(routes!(calls::decide))
        .routes(routes!(questions::answer))
        .routes(routes!(tools::enabled, tools::enable, tools::disable))
        .routes(routes!(tools::available))
        .routes(routes!(calls::all))
        .routes(routes!(rules::list, rules::add))
        .routes(routes!(rules::remove))
        .routes(routes!(rules::explain))
        .routes(routes!(mcp_servers::list, mcp_servers::add))
        .routes(routes!(mcp_servers::show, mcp_servers::change, mcp_servers::remove))
        .routes(routes!(mcp_servers::start))
        .routes(routes!(mcp_servers::stop))
        .routes(routes!(mcp_servers::restart))
        .routes(routes!(mcp_servers::tools))
        .routes(routes!(mcp_servers::approve))
        .routes(routes!(mcp_servers::logs))
        .routes(routes!(mcp_features::resources))
        .routes(routes!(mcp_features::read))
        .routes(routes!(mcp_features::templates))
        .routes(routes!(mcp_features::prompts))
        .routes(routes!(mcp_features::prompt))
        .routes(routes!(mcp_features::complete))
        .routes(routes!(installation::tools))
        .routes(routes!(tool_call::call))
        .routes(routes!(installation::models))
        .routes(routes!(login::me))
        .routes(routes!(users::tokens, users::make_own))
        .routes(routes!(users::revoke))
        .routes(routes!(users::list, users::add))
        .routes(routes!(users::show, users::change, users::remove))
        .routes(routes!(users::token_for))
        .routes(routes!(users::link))
        .routes(routes!(installation::providers))
        .routes(routes!(usage::usage));
    OpenApiRouter::with_openapi(Frame::openapi())
        .nest("/api/v1", api)
        .routes(routes!(installation::healthy))
        .routes(routes!(installation::ready))
        .routes(routes!(installation::metrics))
}

async fn no_route(request: Request) -> ApiError {
    no_such_route(request.uri().path())
}

fn no_such_route(path: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", format!("there is no route `{path}`; the API is under /api/v1"))
}

async fn no_method(request: Request) -> ApiError {
    let (method, path) = (request.method(), request.uri().path());
    let detail = format!("`{path}` does not answer to {method}; the Allow header lists what it answers to");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

pub(crate) fn json<T: serde::Serialize>(status: StatusCode, value: T) -> Response {
    (status, Json(value)).into_response()
}
