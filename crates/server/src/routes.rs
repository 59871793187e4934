//! The routes.

mod ag_ui;
mod apps;
mod artifacts;
mod calls;
mod chat;
mod compacting;
mod conversations;
mod described;
mod history;
mod idempotency;
mod installation;
mod knowledge;
mod login;
mod mcp_endpoint;
mod mcp_features;
mod mcp_servers;
mod page;
mod providers;
mod questions;
mod rules;
mod starting;
mod streams;
mod tool_call;
mod tools;
mod turns;
mod ui_chat;
mod ui_history;
mod ui_said_again;
mod usage;
mod users;
mod v1;

pub(crate) use idempotency::{asked, fingerprint, hash_of};
pub(crate) use starting::starting;

use axum::extract::{MatchedPath, Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use http::{Method, StatusCode};
use utoipa::OpenApi;
use utoipa_axum::PathItemExt as _;
use utoipa_axum::router::OpenApiRouter;

use crate::apps::ROUTE;
use crate::auth::{identify, told};
use crate::base_path::below;
use crate::cors;
use crate::door::people_only;
use crate::error::ApiError;
use crate::forwarded::believe;
use crate::hidden::hidden;
use crate::metrics::requests::named;
use crate::openai::error::refusal;
use crate::openapi::{Frame, described_by};
use crate::refused::Reader;
use crate::state::ServerState;

/// Makes, of a list of handlers, the routes at which they answer and, apart from them, the description of these routes.
///
/// Both take path and method from the handler's `#[utoipa::path]`. They are apart because a server needs the routes at
/// every start and never the description: the document is in the repository, see [`openapi`].
macro_rules! described_routes {
    ($(#[$doc:meta])* $routes:ident, $description:ident: $($($module:ident::$handler:ident),+;)+) => {
        $(#[$doc])*
        fn $routes() -> Router<ServerState> {
            let router = Router::new();
            $($(let router = utoipa_axum::paste! { $crate::routes::hang::<$module::[<__path_ $handler>], _, _>(router, &$module::$handler) };)+)+
            router
        }

        fn $description() -> OpenApiRouter<ServerState> {
            OpenApiRouter::new()$(.routes(utoipa_axum::routes!($($module::$handler),+)))+
        }
    };
}
use described_routes;

/// Adds the handler where its description `P` says.
fn hang<P, H, T>(router: Router<ServerState>, handler: &H) -> Router<ServerState>
where
    P: utoipa::Path,
    H: Handler<T, ServerState>,
    T: 'static,
{
    let methods =
        P::methods().iter().fold(MethodRouter::new(), |methods, method| methods.on(method.to_method_filter(), handler.clone()));
    router.route(&P::path(), methods)
}

described_routes! {
    /// What is under `/api/v1`.
    api, api_description:
    conversations::create, conversations::list;
    conversations::show, conversations::change, conversations::delete;
    history::list, chat::store;
    history::hide;
    chat::chat;
    streams::events;
    streams::stream;
    turns::list;
    artifacts::upload;
    artifacts::show, artifacts::remove;
    chat::cancel;
    chat::retry;
    compacting::show, compacting::compact;
    compacting::undo;
    conversations::fork;
    calls::list;
    calls::decide;
    questions::answer;
    tools::enabled, tools::enable, tools::disable;
    tools::available;
    knowledge::list;
    knowledge::search;
    knowledge::documents;
    knowledge::attach, knowledge::detach;
    knowledge::remembered, knowledge::remember;
    calls::all;
    rules::list, rules::add;
    rules::remove;
    rules::explain;
    mcp_servers::list, mcp_servers::add;
    mcp_servers::show, mcp_servers::change, mcp_servers::remove;
    mcp_servers::start;
    mcp_servers::stop;
    mcp_servers::restart;
    mcp_servers::sign_in;
    mcp_servers::tools;
    mcp_servers::approve;
    mcp_servers::logs;
    mcp_features::resources;
    mcp_features::read;
    mcp_features::templates;
    mcp_features::prompts;
    mcp_features::prompt;
    mcp_features::complete;
    apps::open;
    apps::call;
    installation::tools;
    tool_call::call;
    installation::models;
    login::me;
    users::tokens, users::make_own;
    users::revoke;
    users::list, users::add;
    users::show, users::change, users::remove;
    users::token_for;
    users::link;
    installation::providers;
    providers::show, providers::add, providers::remove;
    usage::usage;
    usage::of_users;
}

described_routes! {
    /// Whether the server is well.
    health, health_description:
    installation::healthy;
    installation::ready;
    installation::metrics;
}

described_routes! {
    /// What pages ask that are made with other kits.
    pages, pages_description:
    ui_chat::chat;
    ui_chat::resume;
    ag_ui::run;
}

described_routes! {
    /// What MCP clients ask.
    mcp, mcp_description:
    mcp_endpoint::send, mcp_endpoint::listen, mcp_endpoint::leave;
}

/// All routes, each for callers who may use it.
pub fn router(state: ServerState) -> Router {
    let path = state.site().path.clone();
    let cors = cors::layer(&state.site().allowed_origins);
    let routes = health()
        .merge(pages())
        .merge(mcp())
        .nest("/api/v1", api())
        .nest("/v1", v1::router())
        .route("/openapi.json", get(described::document))
        .route("/docs", get(described::page))
        .route("/docs/{file}", get(described::file))
        .route("/login", get(login::page).post(login::enter))
        .route("/login/oidc", get(login::identity::leave_for))
        .route("/login/callback", get(login::identity::come_back))
        .route("/logout", post(login::leave))
        .route(ROUTE, get(apps::frame))
        .route("/", get(page::page))
        .route("/page/{*path}", get(page::file))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(state.clone(), enter))
        .with_state(state);
    let routes = below(path, routes);
    // Outermost: a browser asks before it sends what shows who asks.
    match cors {
        Some(layer) => routes.layer(layer),
        None => routes,
    }
}

/// The OpenAPI document of all routes that answer programs, from the code; what the messages at `/mcp` mean is described by the
/// Model Context Protocol.
///
/// `openapi.json` in this crate's folder is kept the same by a test, and is what a server hands out.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let routes = OpenApiRouter::with_openapi(Frame::openapi())
        .nest("/api/v1", api_description())
        .nest("/v1", v1::description())
        .merge(pages_description())
        .merge(mcp_description())
        .merge(health_description());
    described_by(routes.split_for_parts().1)
}

/// What every request goes through, and its answer on the way back. One layer: each costs a box and a copy of the route. What is done
/// with the request borrows it: each that took it would keep room for it twice until its answer.
async fn enter(State(state): State<ServerState>, mut request: Request, next: Next) -> Response {
    let auth = state.options().auth;
    let believed = believe(&state, &mut request);
    named(&state, &mut request, async |request| {
        let reader = Reader::of(request);
        let response = match believed {
            Err(error) => told(error, &std::mem::take(request).into_parts().0),
            Ok(()) => {
                identify(&state, request, async |request| {
                    people_only(auth, request, async |request| hidden(&state, request, next).await).await
                })
                .await
            }
        };
        match reader {
            Some(reader) => reader.told(state.site(), auth, response),
            None => response,
        }
    })
    .await
}

async fn no_route(State(state): State<ServerState>, request: Request) -> Response {
    let path = request.uri().path();
    let error = no_such_route(&state, path).into_response();
    // Whoever asks for one of these reads errors as OpenAI writes them.
    if path.starts_with("/v1/") || of_openai(path).is_some() { refusal(error) } else { error }
}

/// The route of OpenAI's API that a path looks for at another place than it is.
fn of_openai(path: &str) -> Option<&str> {
    let route = path.trim_end_matches('/').trim_start_matches('/');
    let route = route.strip_prefix("api/").unwrap_or(route);
    let route = route.strip_prefix("v1/").unwrap_or(route);
    ["chat/completions", "responses", "models", "completions", "embeddings"].contains(&route).then_some(route)
}

/// `path` is as the routes know it.
fn no_such_route(state: &ServerState, path: &str) -> ApiError {
    let base = &state.site().path;
    let is_there = match of_openai(path) {
        Some("chat/completions" | "responses" | "models") if path.starts_with("/v1/") => {
            "it is one without the slash at its end"
        }
        Some("chat/completions" | "responses" | "models") => "the base URL of OpenAI's API is /v1",
        _ if path.starts_with("/v1/") => "of OpenAI's API /v1 has chat/completions, responses and models alone",
        Some(_) => "OpenAI's API is under /v1, and has chat/completions, responses and models alone",
        None => "the API is under /api/v1",
    };
    let is_there = is_there.replacen('/', &format!("{base}/"), 1);
    ApiError::new(StatusCode::NOT_FOUND, "no_such_route", format!("there is no route `{base}{path}`; {is_there}"))
}

async fn no_method(State(state): State<ServerState>, request: Request) -> Response {
    // Which methods there are the `Allow` header says, here as below.
    if request.method() == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let (method, path) = (request.method(), request.uri().path());
    // A router that is nested sees what is below it alone.
    let route = request.extensions().get::<MatchedPath>().map_or(path, MatchedPath::as_str);
    let is_below = |nest: &&str| route.starts_with(nest) && !path.starts_with(nest);
    let nest = ["/api/v1/", "/v1/"].into_iter().find(is_below).unwrap_or("/").trim_end_matches('/');
    let path = format!("{}{nest}{path}", state.site().path);
    let detail = format!("`{path}` does not answer to {method}; the Allow header lists what it answers to");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail).into_response()
}

pub(crate) fn json<T: serde::Serialize>(status: StatusCode, value: T) -> Response {
    (status, Json(value)).into_response()
}
