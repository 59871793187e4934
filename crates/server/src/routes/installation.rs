//! What there is over all conversations: tools, models, and whether the server is well.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use turnwright_api as api;
use turnwright_core::ToolDefinition;
use turnwright_engine::nodes::{Condition, Trouble};
use turnwright_engine::{ModelInfo, SetAside, SourceState};

use super::json;
use super::providers::provider;
use crate::error::ApiError;
use crate::extract::{PageQuery, Search, State, Undivided};
use crate::metrics::CONTENT_TYPE;
use crate::openai::models::listed;
use crate::openapi::Refused;
use crate::state::ServerState;

/// All tools of all servers.
#[utoipa::path(
    get,
    path = "/tools",
    operation_id = "listTools",
    tag = "tools",
    params(PageQuery),
    responses((status = 200, description = "A page of them, and all that cannot be offered.", body = api::ToolList<api::Tool>), Refused)
)]
pub(super) async fn tools(State(state): State, Search(page): Search<PageQuery>) -> Result<Response, ApiError> {
    let tools = state.engine().tools().await.iter().map(|definition| tool(&state, definition)).collect();
    let page = page.part("tools", tools, |tool: &api::Tool| tool.id.clone())?;
    Ok(json(StatusCode::OK, with_set_aside(&state, page)))
}

/// A page of tools, and those that cannot be offered.
pub(super) fn with_set_aside<T>(state: &ServerState, list: api::List<T>) -> api::ToolList<T> {
    let told = |aside: SetAside| {
        let SetAside { source, tool, reason, definition } = aside;
        api::SetAsideTool { server_id: source, tool_name: tool, reason, definition }
    };
    let set_aside = state.engine().tools_set_aside().into_iter().map(told).collect();
    api::ToolList { list, set_aside }
}

/// All providers are asked at once.
#[utoipa::path(
    get,
    path = "/models",
    operation_id = "listModels",
    tag = "installation",
    responses((status = 200, description = "They, and the providers that did not answer.", body = api::Models), Refused)
)]
pub(super) async fn models(State(state): State, _: Undivided) -> Response {
    let default = state.engine().defaults().model.clone();
    let mut answer = api::Models { data: Vec::new(), next_cursor: None, has_more: false, unavailable: Vec::new() };
    for (provider, models) in listed(state.engine()).await {
        match models {
            Ok(models) => answer.data.extend(models.into_iter().map(|found| {
                let is_default = default.provider() == provider.as_str() && default.model() == found.id;
                model(&provider, found, is_default)
            })),
            Err(message) => {
                answer.unavailable.push(api::UnavailableProvider { provider, message });
            }
        }
    }
    json(StatusCode::OK, answer)
}

/// The endpoints that answer, by name. None of them is asked.
#[utoipa::path(
    get,
    path = "/providers",
    operation_id = "listProviders",
    tag = "installation",
    params(PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::Provider>), Refused)
)]
pub(super) async fn providers(State(state): State, Search(page): Search<PageQuery>) -> Result<Response, ApiError> {
    let page = page.part("providers", state.engine().providers().names(), Clone::clone)?;
    let data = page.data.into_iter().map(|name| provider(&state, name)).collect();
    Ok(json(StatusCode::OK, api::List { data, next_cursor: page.next_cursor, has_more: page.has_more }))
}

/// A model as the API tells it.
fn model(provider: &str, found: ModelInfo, is_default: bool) -> api::Model {
    let facts = found.facts;
    api::Model {
        id: format!("{provider}/{}", found.id),
        provider: provider.to_owned(),
        is_default,
        model: found.id,
        description: found.description,
        context_window: facts.context_window,
        max_output_tokens: facts.max_output_tokens,
        images: facts.images,
        documents: facts.documents,
        tools: facts.tools,
        reasoning: facts.reasoning.map(|style| style.as_str().to_owned()),
        prices: facts.prices.map(|prices| api::Prices {
            input: prices.input,
            cached_input: prices.cached_input,
            cache_write: prices.cache_write,
            output: prices.output,
            long_prompts: prices.long_prompts.map(|long| api::LongPromptPrices {
                over_input_tokens: long.over_input_tokens,
                input: long.input,
                cached_input: long.cached_input,
                cache_write: long.cache_write,
                output: long.output,
            }),
        }),
    }
}

/// The process answers.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "isHealthy",
    tag = "installation",
    responses((status = 200, description = "It does.", body = api::Health), Refused)
)]
pub(super) async fn healthy() -> Response {
    json(StatusCode::OK, api::Health { status: "ok".to_owned() })
}

/// How long the store may take to say that it stores: a probe waits for a second.
const STORING: Duration = Duration::from_millis(500);

/// Something can be stored at this moment, and turns may begin.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "isReady",
    tag = "installation",
    responses((status = 200, description = "It does; `degraded` says what it does without.", body = api::Readiness), Refused)
)]
pub(super) async fn ready(State(state): State) -> Result<Response, ApiError> {
    if state.engine().is_draining() {
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "the server is ending; ask another one"));
    }
    let not_ready = |reason: String| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", reason);
    match tokio::time::timeout(STORING, state.engine().can_store()).await {
        Ok(Ok(())) => {}
        // A probe asks without a token: where the database is and why it fails is for the log alone.
        Ok(Err(error)) => {
            let told = format!("nothing can be stored: {}", error.for_clients());
            return Err(not_ready(told).logged_as(format!("nothing can be stored: {error}")));
        }
        Err(_) => return Err(not_ready(format!("nothing was stored within {} ms", STORING.as_millis()))),
    }
    let (nodes, degraded): (_, Vec<String>) = match state.engine().nodes() {
        Condition::Alone => (None, Vec::new()),
        Condition::Connected { nodes, troubles } => (nodes, troubles.into_iter().map(told).collect()),
        Condition::Unreachable { reason } => {
            let what = format!(
                "NATS cannot be reached ({reason}): turns run where they are asked for, and what other nodes drive is seen once \
                 it is stored"
            );
            (None, vec![what])
        }
    };
    let status = if degraded.is_empty() { "ready" } else { "degraded" };
    let nodes = nodes.map(|count| u64::try_from(count).unwrap_or(u64::MAX));
    Ok(json(StatusCode::OK, api::Readiness { status: status.to_owned(), nodes, degraded }))
}

/// What follows from something that is wrong among nodes.
fn told(trouble: Trouble) -> String {
    match trouble {
        Trouble::Full { most } => format!(
            "the queue of turns is full ({most}, `[nats] queue`): further turns run where they are asked for, whatever room there is \
             elsewhere"
        ),
        Trouble::Silent => "the queue of turns does not answer: turns run where they are asked for".to_owned(),
        Trouble::OtherQueue => {
            "this database is used by nodes that share turns over another NATS cluster or prefix, too: what they drive is \
             seen here once it is stored; name the same `[nats] url` and `prefix` for all"
                .to_owned()
        }
    }
}

/// Counts and measures of this process, for Prometheus (`OpenMetrics` 1.0 text).
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "installation",
    responses(
        (status = 200, description = "They.", body = String, content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        Refused
    )
)]
pub(super) async fn metrics(State(state): State) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], state.metrics().told(state.engine())).into_response()
}

/// A tool as the API tells it.
pub(super) fn tool(state: &ServerState, definition: &ToolDefinition) -> api::Tool {
    let source = state.engine().sources().iter().find(|source| source.name() == definition.source).cloned();
    let server_state = source.map_or(SourceState::Stopped, |source| source.state());
    let face = state.engine().tool_face(&definition.name);
    api::Tool {
        id: definition.name.clone(),
        server_id: definition.source.clone(),
        tool_name: definition.tool.clone(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.clone(),
        output_schema: face.output_schema.clone(),
        annotations: definition.annotations.clone(),
        icons: face.icons.iter().map(icon).collect(),
        visibility: face.visibility.as_list().iter().map(ToString::to_string).collect(),
        app: face.app.clone(),
        read_only: definition.declared.read_only,
        server_state: server_state.as_str().to_owned(),
    }
}

pub(super) fn icon(icon: &turnwright_engine::Icon) -> api::Icon {
    let turnwright_engine::Icon { src, mime_type, sizes, theme } = icon.clone();
    api::Icon { src, mime_type, sizes, theme }
}
