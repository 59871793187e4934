//! What MCP servers have besides tools: resources, prompts, completion.

use std::collections::HashSet;
use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::ToolErrorKind;
use turnwright_engine::ToolError;
use turnwright_host::{CompletionOf, McpServer, Shelf};

use super::json;
use crate::error::ApiError;
use crate::extract::{PageQuery, Params, Search, State, Whole};
use crate::openapi::{BodyRefused, NotAnswered, NotThere, Refused, Unusable};
use crate::state::ServerState;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The server's name.
    pub(super) id: String,
}

/// The page that is asked for of what a server lists, in the order of names; what it lists twice is told once.
fn page<T: serde::Serialize>(
    query: &PageQuery,
    (server, what): (&Named, &str),
    all: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &String,
) -> Result<Response, ApiError> {
    let mut seen = HashSet::new();
    let all: Vec<T> = all.filter(|one| seen.insert(name(one).clone())).collect();
    let list = query.part(&format!("mcp/servers/{}/{what}", server.id), all, |one| name(one).clone())?;
    Ok(json(StatusCode::OK, list))
}

/// The resources that a server lists.
#[utoipa::path(
    get,
    path = "/mcp/servers/{id}/resources",
    operation_id = "listMcpResources",
    tag = "mcp",
    params(Named, PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::McpResource>), Refused, NotThere, NotAnswered, Unusable)
)]
pub(super) async fn resources(
    State(state): State,
    Params(named): Params<Named>,
    Search(query): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let shelf = shelf(&state, &named).await?;
    let told = shelf.resources.iter().cloned().map(|resource| api::McpResource {
        uri: resource.uri,
        name: resource.name,
        title: resource.title,
        description: resource.description,
        mime_type: resource.mime_type,
        size: resource.size,
        annotations: resource.annotations,
    });
    page(&query, (&named, "resources"), told, |one| &one.uri)
}

/// The families of resources that a server has.
#[utoipa::path(
    get,
    path = "/mcp/servers/{id}/resource_templates",
    operation_id = "listMcpResourceTemplates",
    tag = "mcp",
    params(Named, PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::McpResourceTemplate>), Refused, NotThere, NotAnswered, Unusable)
)]
pub(super) async fn templates(
    State(state): State,
    Params(named): Params<Named>,
    Search(query): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let shelf = shelf(&state, &named).await?;
    let told = shelf.templates.iter().cloned().map(|template| api::McpResourceTemplate {
        uri_template: template.uri_template,
        name: template.name,
        title: template.title,
        description: template.description,
        mime_type: template.mime_type,
    });
    page(&query, (&named, "resource_templates"), told, |one| &one.uri_template)
}

/// The prompts that a server has for people.
#[utoipa::path(
    get,
    path = "/mcp/servers/{id}/prompts",
    operation_id = "listMcpPrompts",
    tag = "mcp",
    params(Named, PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::McpPrompt>), Refused, NotThere, NotAnswered, Unusable)
)]
pub(super) async fn prompts(
    State(state): State,
    Params(named): Params<Named>,
    Search(query): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let shelf = shelf(&state, &named).await?;
    let told = shelf.prompts.iter().cloned().map(|prompt| api::McpPrompt {
        name: prompt.name,
        title: prompt.title,
        description: prompt.description,
        arguments: prompt
            .arguments
            .into_iter()
            .map(|argument| api::McpPromptArgument {
                name: argument.name,
                description: argument.description,
                required: argument.is_required,
            })
            .collect(),
    });
    page(&query, (&named, "prompts"), told, |one| &one.name)
}

/// The content of a resource, which need not be listed.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/resources/read",
    operation_id = "readMcpResource",
    tag = "mcp",
    params(Named),
    request_body = api::McpReadRequest,
    responses((status = 200, description = "It.", body = api::McpContents), Refused, BodyRefused, NotThere, NotAnswered)
)]
pub(super) async fn read(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let api::McpReadRequest { uri } = whole.json()?;
    let contents = server(&state, &named)?.read_resource(&uri).await.map_err(refused)?;
    let told = contents.into_iter().map(|part| api::McpContent {
        uri: part.uri,
        mime_type: part.mime_type,
        text: part.text,
        blob: part.blob,
    });
    Ok(json(StatusCode::OK, api::McpContents { contents: told.collect() }))
}

/// What a prompt comes to with these arguments.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/prompts/get",
    operation_id = "getMcpPrompt",
    tag = "mcp",
    params(Named),
    request_body = api::McpPromptRequest,
    responses((status = 200, description = "Its messages.", body = api::McpPromptMessages), Refused, BodyRefused, NotThere, NotAnswered)
)]
pub(super) async fn prompt(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let api::McpPromptRequest { name, arguments } = whole.json()?;
    let prompt = server(&state, &named)?.prompt(&name, &arguments).await.map_err(refused)?;
    let told = prompt
        .messages
        .into_iter()
        .map(|said| api::McpPromptMessage { role: said.role, content: serde_json::to_value(said.content).unwrap_or_default() });
    Ok(json(StatusCode::OK, api::McpPromptMessages { description: prompt.description, messages: told.collect() }))
}

/// How the value of an argument may go on.
#[utoipa::path(
    post,
    path = "/mcp/servers/{id}/complete",
    operation_id = "completeMcpArgument",
    tag = "mcp",
    params(Named),
    request_body = api::McpCompleteRequest,
    responses((status = 200, description = "Suggestions.", body = api::McpCompletion), Refused, BodyRefused, NotThere, NotAnswered)
)]
pub(super) async fn complete(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let api::McpCompleteRequest { of, argument, context } = whole.json()?;
    let of = match of {
        api::McpReference::Prompt { name } => CompletionOf::Prompt(name),
        api::McpReference::Resource { uri } => CompletionOf::Template(uri),
    };
    let server = server(&state, &named)?;
    let completion = server.complete(&of, &argument.name, &argument.value, &context.arguments).await.map_err(refused)?;
    Ok(json(StatusCode::OK, api::McpCompletion { values: completion.values, has_more: completion.has_more }))
}

pub(super) fn server(state: &ServerState, named: &Named) -> Result<Arc<McpServer>, ApiError> {
    let found = state.resources().and_then(|resources| resources.named(&named.id));
    let is_for = |server: &Arc<McpServer>| server.config().owner.as_ref().is_none_or(|owner| owner == state.caller().user());
    let found = found.filter(is_for);
    found.ok_or_else(|| ApiError::not_found(format!("MCP server `{}`", named.id)))
}

async fn shelf(state: &ServerState, named: &Named) -> Result<Arc<Shelf>, ApiError> {
    server(state, named)?.shelf().await.map_err(refused)
}

/// What was refused or failed at the MCP server, in the words of this API.
pub(super) fn refused(error: ToolError) -> ApiError {
    let (status, code) = match error.kind {
        ToolErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found"),
        ToolErrorKind::InvalidArguments => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request"),
        ToolErrorKind::Timeout => (StatusCode::GATEWAY_TIMEOUT, "mcp_timeout"),
        ToolErrorKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "mcp_unavailable"),
        ToolErrorKind::PermissionDenied
        | ToolErrorKind::ExecutionFailed
        | ToolErrorKind::Cancelled
        | ToolErrorKind::Interrupted => (StatusCode::BAD_GATEWAY, "mcp_failed"),
    };
    // What is said of a server that does not answer is for models; why it does not, for people.
    let detail = match error.diagnostic {
        Some(reason) if error.kind == ToolErrorKind::Unavailable => format!("the MCP server does not answer: {reason}"),
        Some(_) | None => error.model_text,
    };
    ApiError::new(status, code, detail)
}
