//! Pages that MCP servers have for the calls of their tools (MCP Apps): opening one, what it calls, and the frame around it.

use axum::response::{Html, IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::ConversationId;
use turnwright_engine::{Engine, PageCall, PageCalled};
use turnwright_host::Domains;

use super::json;
use super::mcp_features::{Named, refused, server};
use super::tool_call::{content, outcome};
use crate::apps::{ROUTE, is_for_frames, place, place_of_frame, policy, sifted};
use crate::error::ApiError;
use crate::extract::{Params, Search, State, Whole, id};
use crate::openapi::{BodyRefused, Conflicting, NotAnswered, NotThere, Refused, RepeatableHeader};
use crate::repeat::{Keeps, once};

/// A page of a server, ready to be shown; `apps_off` where there is no second origin to show it in.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/apps/open",
    operation_id = "openMcpApp",
    tag = "mcp",
    params(Named),
    request_body = api::McpAppRequest,
    responses((status = 200, description = "It.", body = api::McpApp), Refused, BodyRefused, NotThere, NotAnswered, Conflicting)
)]
pub(super) async fn open(
    State(state): State,
    Params(named): Params<Named>,
    uri: Uri,
    whole: Whole,
) -> Result<Response, ApiError> {
    let api::McpAppRequest { uri: address } = whole.json()?;
    // First: what is another's is not there, whatever else holds.
    let server = server(&state, &named)?;
    let place = place(state.site(), &uri, &whole.headers, state.client()).map_err(|why| {
        ApiError::new(StatusCode::CONFLICT, "apps_off", format!("pages of MCP servers are not shown here: {why}"))
    })?;
    let page = server.app_page(&address).await.map_err(refused)?;
    let (allowed, refused) = sifted(&page.domains, &place);
    let reaches: Vec<String> = {
        let lists = [&allowed.connect, &allowed.resource, &allowed.frame, &allowed.base_uri];
        let mut all: Vec<String> = lists.into_iter().flatten().cloned().collect();
        all.sort();
        all.dedup();
        all
    };
    tracing::info!(server = named.id, address, reaches = reaches.join(" "), refused = refused.join(" "), "a page is opened");
    let lists = [
        ("connect", &allowed.connect),
        ("resource", &allowed.resource),
        ("frame", &allowed.frame),
        ("base_uri", &allowed.base_uri),
    ];
    // Nothing in origins has to be escaped in a query.
    let query = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .fold(format!("page={}", place.page), |query, (name, list)| format!("{query}&{name}={}", list.join(",")));
    let answer = api::McpApp {
        html: page.html,
        frame: format!("{}{}{ROUTE}?{query}", place.frames, state.site().path),
        reaches,
        refused,
        permissions: page.permissions.into_iter().map(|permission| permission.as_str().to_owned()).collect(),
        prefers_border: page.prefers_border,
    };
    Ok(json(StatusCode::OK, answer))
}

/// Makes a call that a page of this server asks for, of its tools that are for pages, as the rules say. Nothing is stored
/// but, with an `Idempotency-Key`, the answer.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/apps/call",
    operation_id = "callForMcpApp",
    tag = "mcp",
    params(Named, RepeatableHeader),
    request_body = api::McpAppCallRequest,
    responses((status = 200, description = "What came of it.", body = api::McpAppCallAnswer), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn call(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let request: api::McpAppCallRequest = whole.json()?;
    let source = server(&state, &named)?.config().name.clone();
    let conversation = request.conversation_id.as_deref().map(id).transpose()?;
    let route = format!("mcp/servers/{source}/apps/call");
    let asked = super::asked(&whole)?;
    let key = asked.as_ref().map(|(key, _)| format!("{route} {key}"));
    let called = called(state.engine().clone(), (source, key), conversation, request);
    Ok(json(StatusCode::OK, once(&state, asked, &route, Keeps::Answer, called).await?))
}

async fn called(
    engine: Engine,
    (source, key): (String, Option<String>),
    conversation: Option<ConversationId>,
    request: api::McpAppCallRequest,
) -> Result<api::McpAppCallAnswer, ApiError> {
    let asked = PageCall {
        source: &source,
        tool: &request.tool,
        arguments: request.arguments.as_deref().unwrap_or("{}"),
        conversation: conversation.as_ref(),
        is_allowed: request.allowed,
        key: key.as_deref(),
    };
    let name = turnwright_engine::qualified(asked.source, asked.tool);
    Ok(match Box::pin(engine.call_for_page(asked)).await? {
        PageCalled::Asks { rule } => api::McpAppCallAnswer {
            name,
            outcome: "asks".to_owned(),
            is_error: false,
            content: Vec::new(),
            structured_content: None,
            rule: Some(rule),
            duration_ms: None,
        },
        PageCalled::Came(result) => api::McpAppCallAnswer {
            name,
            outcome: outcome(&result).to_owned(),
            is_error: result.outcome.is_error(),
            content: content(&result),
            structured_content: result.structured_content,
            rule: None,
            duration_ms: result.duration_ms,
        },
    })
}

/// What a frame is asked for with.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    /// The origin of our page.
    page: String,
    #[serde(default)]
    connect: String,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    frame: String,
    #[serde(default)]
    base_uri: String,
}

/// The frame around a page of a server. Answered by the name of frames alone, to whoever asks: it knows nothing.
pub(super) async fn frame(
    State(state): State,
    uri: Uri,
    headers: HeaderMap,
    Search(asked): Search<Asked>,
) -> Result<Response, ApiError> {
    let place = place_of_frame(state.site(), &uri, &headers, &asked.page)
        .filter(|_| is_for_frames(state.site(), &uri, &headers))
        .ok_or_else(|| ApiError::bad_request("invalid_query", "`page` must be the origin of the page of this server"))?;
    let list = |text: &str| text.split(',').filter(|origin| !origin.is_empty()).map(str::to_owned).collect();
    let wanted = Domains {
        connect: list(&asked.connect),
        resource: list(&asked.resource),
        frame: list(&asked.frame),
        base_uri: list(&asked.base_uri),
    };
    let (allowed, refused) = sifted(&wanted, &place);
    if let Some(origin) = refused.first() {
        let shown: String = origin.chars().take(100).collect();
        let detail = format!("{shown:?} is no origin that a page may reach; it must be like `https://cdn.example.org`");
        return Err(ApiError::bad_request("invalid_query", detail));
    }
    let policy = HeaderValue::from_str(&policy(&allowed, &place))
        .map_err(|_| ApiError::bad_request("invalid_query", "the origins make no policy"))?;
    // Of an origin there is nothing to escape in a script.
    let html = include_str!("frame.html").replace("PAGE", &place.page);
    let mut response = Html(html).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_DNS_PREFETCH_CONTROL, HeaderValue::from_static("off"));
    headers.insert("origin-agent-cluster", HeaderValue::from_static("?1"));
    Ok(response)
}
