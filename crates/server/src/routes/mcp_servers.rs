//! MCP servers: listed, added, changed, removed, started and stopped while the others run on.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Map, Value};
use turnwright_api as api;
use turnwright_engine::SourceState;
use turnwright_engine::accounts::Scope;
use turnwright_host::{Asked, McpChangeError, McpServers, McpStatus, NewMcpServer, Owner};

use super::idempotency::asked;
use super::installation::{tool, with_set_aside};
use super::json;
use crate::auth::not_allowed;
use crate::error::ApiError;
use crate::extract::{PageQuery, Params, Search, State, Whole};
use crate::openapi::{BodyRefused, Conditional, Conflicting, IfMatch, IfNoneMatch, NotThere, Refused, RepeatableHeader};
use crate::repeat::{Keeps, once};
use crate::state::ServerState;
use crate::tag::{Conditions, Tag};
use crate::timestamp::timestamp;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The server's name.
    id: String,
}

/// The MCP servers, from the configuration and added while running.
#[utoipa::path(
    get,
    path = "/mcp/servers",
    operation_id = "listMcpServers",
    tag = "mcp",
    params(PageQuery),
    responses((status = 200, description = "A page of them, by name.", body = api::List<api::McpServer>), Refused, NotThere)
)]
pub(super) async fn list(State(state): State, Search(query): Search<PageQuery>) -> Result<Response, ApiError> {
    let all = state.servers()?.all().await.map_err(McpChangeError::from)?;
    let list: api::List<api::McpServer> =
        query.part("mcp/servers", all.into_iter().map(told).collect(), |server: &api::McpServer| server.id.clone())?;
    Ok(json(StatusCode::OK, list))
}

/// Adds a server; what it is reached by is looked at before anything is stored.
#[utoipa::path(
    post,
    path = "/mcp/servers",
    operation_id = "addMcpServer",
    tag = "mcp",
    params(RepeatableHeader),
    request_body = api::McpServerRequest,
    responses((status = 201, description = "It is added.", body = api::McpServer, headers(("Location" = String, description = "Its address."))), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn add(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::McpServerRequest = whole.json()?;
    let asked = asked(&whole)?;
    let owner = owner(&state, request.owner.as_deref())?.unwrap_or_else(|| default_owner(&state));
    let name = request.name.clone().filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| ApiError::invalid("the server has no `name`"))?;
    let config = keys(request);
    may_declare(&state, &config)?;
    let warnings = warnings(&config);
    let location = format!("/api/v1/mcp/servers/{}", encoded(&name));
    let servers = state.servers()?;
    // The server knows it too: it may be stored, and that its answer was given may not be.
    let known = asked.clone().map(|(key, fingerprint)| Asked { key: format!("{}\t{key}", servers.user()), fingerprint });
    let made = async move {
        let added = servers.add(NewMcpServer { name, owner, config, asked: known }).await?;
        Ok(api::McpServer { warnings, ..told(added) })
    };
    let mut response = json(StatusCode::CREATED, once(&state, asked, "mcp/servers", Keeps::Answer, made).await?);
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// One MCP server.
#[utoipa::path(
    get,
    path = "/mcp/servers/{id}",
    operation_id = "getMcpServer",
    tag = "mcp",
    params(Named, IfNoneMatch),
    responses((status = 200, description = "It.", body = api::McpServer), (status = 304, description = "The client has it."), Refused, NotThere)
)]
pub(super) async fn show(State(state): State, Params(named): Params<Named>, headers: HeaderMap) -> Result<Response, ApiError> {
    let found = told(state.servers()?.one(&named.id).await?);
    Ok(tag(&found).answer(&headers, &found))
}

/// What a server is known by: what can be changed of it, and how it is doing.
fn tag(told: &api::McpServer) -> Tag {
    Tag::of(&(&told.owner, told.enabled, &told.transport, &told.config), told)
}

/// Changes the keys that the body names; null takes a key away (RFC 7396).
#[utoipa::path(
    patch,
    path = "/mcp/servers/{id}",
    operation_id = "changeMcpServer",
    tag = "mcp",
    params(Named, IfMatch),
    request_body = api::McpServerRequest,
    responses((status = 200, description = "It, changed.", body = api::McpServer), Refused, BodyRefused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn change(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let request: api::McpServerRequest = whole.json()?;
    if request.name.as_ref().is_some_and(|name| *name != named.id) {
        return Err(ApiError::invalid("a server keeps its name; add it under the other name and remove this one"));
    }
    let owner = owner(&state, request.owner.as_deref())?;
    let config = keys(request);
    may_declare(&state, &config)?;
    let warnings = warnings(&config);
    let servers = state.servers()?;
    // What is asked again below, where it is changed: what is wrong is told better here.
    if Conditions::is_any(&whole.headers) {
        tag(&told(servers.one(&named.id).await?)).must_match(&whole.headers)?;
    }
    let is_seen = |now| tag(&told(now)).must_match(&whole.headers).is_ok();
    let changed = told(servers.change(&named.id, &config, owner, is_seen).await?);
    Ok(tag(&changed).on(json(StatusCode::OK, api::McpServer { warnings, ..changed })))
}

/// Stops and removes a server that was added while running.
#[utoipa::path(
    delete,
    path = "/mcp/servers/{id}",
    operation_id = "removeMcpServer",
    tag = "mcp",
    params(Named, IfMatch),
    responses((status = 204, description = "It is gone."), Refused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn remove(
    State(state): State,
    Params(named): Params<Named>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let servers = state.servers()?;
    if Conditions::is_any(&headers) {
        tag(&told(servers.one(&named.id).await?)).must_match(&headers)?;
    }
    servers.remove(&named.id, |now| tag(&told(now)).must_match(&headers).is_ok()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Starts a server that does not run.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/start",
    operation_id = "startMcpServer",
    tag = "mcp",
    params(Named),
    responses((status = 200, description = "It, as it is now.", body = api::McpServer), Refused, NotThere, Conflicting)
)]
pub(super) async fn start(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, told(state.servers()?.start(&named.id).await?)))
}

/// Stops a server; its calls end.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/stop",
    operation_id = "stopMcpServer",
    tag = "mcp",
    params(Named),
    responses((status = 200, description = "It, as it is now.", body = api::McpServer), Refused, NotThere, Conflicting)
)]
pub(super) async fn stop(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, told(state.servers()?.stop(&named.id).await?)))
}

/// Stops a server and starts it again.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/restart",
    operation_id = "restartMcpServer",
    tag = "mcp",
    params(Named),
    responses((status = 200, description = "It, as it is now.", body = api::McpServer), Refused, NotThere, Conflicting)
)]
pub(super) async fn restart(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, told(state.servers()?.restart(&named.id).await?)))
}

/// Begins a sign-in at a server.
///
/// A person opens the address in a browser on the machine of this server, to which it comes back. The server is started anew then;
/// its state says when that is.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/sign_in",
    operation_id = "signInAtMcpServer",
    tag = "mcp",
    params(Named),
    responses((status = 200, description = "It is waited for, for five minutes.", body = api::McpSignIn), Refused, NotThere, Conflicting)
)]
pub(super) async fn sign_in(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    let address = state.servers()?.sign_in(&named.id).await?;
    Ok(json(StatusCode::OK, api::McpSignIn { address }))
}

/// The tools that it offers, and those that it cannot.
#[utoipa::path(
    get,
    path = "/mcp/servers/{id}/tools",
    operation_id = "listMcpServerTools",
    tag = "mcp",
    params(Named, PageQuery),
    responses((status = 200, description = "A page of them, and all that cannot be offered.", body = api::ToolList<api::Tool>), Refused, NotThere)
)]
pub(super) async fn tools(
    State(state): State,
    Params(named): Params<Named>,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    state.servers()?.one(&named.id).await?;
    let tools = state.engine().tools_of(&named.id).await.iter().map(|definition| tool(&state, definition)).collect();
    let mut list = with_set_aside(
        &state,
        page.part(&format!("mcp/servers/{}/tools", named.id), tools, |tool: &api::Tool| tool.id.clone())?,
    );
    list.set_aside.retain(|tool| tool.server_id == named.id);
    Ok(json(StatusCode::OK, list))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct NamedTool {
    /// The server's name.
    id: String,
    /// The tool's name at its server.
    tool: String,
}

/// A person agrees to what a tool is now.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/tools/{tool}/approve",
    operation_id = "approveMcpTool",
    tag = "mcp",
    params(NamedTool),
    request_body = Option<api::ToolAgreement>,
    responses((status = 200, description = "The tools whose new definition counts now.", body = api::List<String>), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn approve(State(state): State, Params(named): Params<NamedTool>, whole: Whole) -> Result<Response, ApiError> {
    let api::ToolAgreement { definition } = whole.json()?;
    let agreed = state.servers()?.agree(&named.id, Some(&named.tool), definition.as_deref()).await?;
    Ok(json(StatusCode::OK, api::List::whole(agreed)))
}

/// Its last lines in this process, oldest first.
#[utoipa::path(
    get,
    path = "/mcp/servers/{id}/logs",
    operation_id = "listMcpServerLogs",
    tag = "mcp",
    params(Named, PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::McpLogLine>), Refused, NotThere)
)]
pub(super) async fn logs(
    State(state): State,
    Params(named): Params<Named>,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let lines = in_time(state.servers()?.logs(&named.id).await?, |line| line.at_ms);
    let page = page.part(&format!("mcp/servers/{}/logs", named.id), lines, |(name, _)| name.clone())?;
    let data = page.data.into_iter().map(|(_, line)| api::McpLogLine {
        timestamp: timestamp(line.at_ms),
        origin: line.origin.as_str().to_owned(),
        text: line.text,
    });
    Ok(json(StatusCode::OK, api::List { data: data.collect(), next_cursor: page.next_cursor, has_more: page.has_more }))
}

/// Lines with names in their order: when each came, by a clock that never goes back, and its number in that millisecond.
fn in_time<T>(lines: Vec<T>, at_ms: impl Fn(&T) -> u64) -> Vec<(String, T)> {
    let (mut latest_ms, mut number) = (0, 0_usize);
    let name = |line: T| {
        number = if at_ms(&line) > latest_ms { 0 } else { number.saturating_add(1) };
        latest_ms = latest_ms.max(at_ms(&line));
        (format!("{latest_ms}_{number}"), line)
    };
    lines.into_iter().map(name).collect()
}

/// The keys of a request, wherever it gives them.
fn keys(request: api::McpServerRequest) -> Map<String, Value> {
    let mut keys = request.config;
    keys.extend(request.keys);
    keys
}

/// What a server's tools are taken for decides what runs without a person: only who may decide says it.
fn may_declare(state: &ServerState, config: &Map<String, Value>) -> Result<(), ApiError> {
    let decides = ["trust_annotations", "tools"].iter().any(|key| config.contains_key(*key));
    if decides && !state.caller().may(Scope::Approve) { Err(not_allowed(state.caller(), Scope::Approve)) } else { Ok(()) }
}

fn owner(state: &ServerState, word: Option<&str>) -> Result<Option<Owner>, ApiError> {
    let user = state.caller().user();
    match word {
        None => Ok(None),
        Some("everyone") => Ok(Some(Owner::Everyone)),
        Some("me") => Ok(Some(Owner::User(user.clone()))),
        Some(id) if id == user.as_str() => Ok(Some(Owner::User(user.clone()))),
        Some(other) => {
            let other: String = other.chars().take(80).collect();
            Err(ApiError::invalid(format!("`{other}` is not you: the owner is `everyone` or `me`")))
        }
    }
}

/// Whose a server is where nobody says: everyone's where an admin adds it, else who adds it has it alone.
fn default_owner(state: &ServerState) -> Owner {
    if state.caller().may(Scope::Admin) { Owner::Everyone } else { Owner::User(state.caller().user().clone()) }
}

fn warnings(config: &Map<String, Value>) -> Vec<String> {
    let warn = |path: String| {
        format!(
            "`{path}` is kept sealed in the data directory; a reference such as `${{NAME}}` in its place is put in at each start"
        )
    };
    McpServers::literal_secrets(config).into_iter().map(warn).collect()
}

/// A text as a part of a path or a query.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn told(status: McpStatus) -> api::McpServer {
    let reason = match &status.state {
        SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } => Some(reason.clone()),
        SourceState::Starting | SourceState::Ready | SourceState::Stopped | SourceState::Disabled => None,
    };
    api::McpServer {
        id: status.name.clone(),
        owner: status.owner.as_ref().map(|owner| owner.as_str().to_owned()),
        editable: status.is_added,
        origin: status.origin,
        enabled: status.is_enabled,
        transport: status.transport,
        state: status.state.as_str().to_owned(),
        reason,
        protocol: status.agreed.map(|agreed| api::McpProtocol {
            version: agreed.version,
            because: agreed.ground.as_str().to_owned(),
            server: agreed.server,
        }),
        tools: status.tools,
        set_aside: status.quarantined,
        config: status.config,
        warnings: Vec::new(),
        name: status.name,
    }
}

impl From<McpChangeError> for ApiError {
    fn from(error: McpChangeError) -> Self {
        let (status, code) = match error {
            McpChangeError::Store(error) => return turnwright_engine::EngineError::Store(error).into(),
            McpChangeError::NotFound(_) | McpChangeError::NoTool(_) => (StatusCode::NOT_FOUND, "not_found"),
            McpChangeError::Exists(_) => (StatusCode::CONFLICT, "exists"),
            McpChangeError::OfFile { .. } => (StatusCode::CONFLICT, "of_file"),
            McpChangeError::Changed(_) => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
            McpChangeError::NotAllowed(_) => (StatusCode::FORBIDDEN, "not_allowed"),
            McpChangeError::Disabled(_) => (StatusCode::CONFLICT, "disabled"),
            McpChangeError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request"),
            McpChangeError::KeyReused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused"),
        };
        Self::new(status, code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::in_time;

    #[test]
    fn lines_are_named_by_when_they_came_also_where_the_clock_was_set_back() {
        let named = in_time(vec![7, 7, 9, 8, 10], |at_ms| *at_ms);
        let places: Vec<&str> = named.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["7_0", "7_1", "9_0", "9_1", "10_0"]);
    }
}
