//! The tools of a conversation, in the form of mcp-open-client.
//!
//! A conversation offers all tools until somebody names one: from then on it offers those that are named. One that is offered no
//! more goes alone: the others stay, also those that are not there at the moment.

use std::sync::Arc;

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use turnwright_api as api;
use turnwright_core::{ConversationId, ToolDefinition};
use turnwright_engine::chosen_tools::{with, without};
use turnwright_engine::{ChosenTools, ConversationChange, EngineError, SettingsOverlay, StoreError, qualified};

use super::installation::{tool, with_set_aside};
use super::{asked, json};
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Search, State, Whole};
use crate::openapi::{
    BodyRefused, Conditional, Conflicting, ConversationPath, IfMatch, IfNoneMatch, NotThere, Refused, RepeatableHeader,
};
use crate::repeat::once_in;
use crate::state::ServerState;
use crate::tag::Tag;

/// What the conversation offers.
#[utoipa::path(
    get,
    path = "/conversations/{id}/tools",
    operation_id = "listEnabledTools",
    tag = "tools",
    params(ConversationPath, PageQuery, IfNoneMatch),
    responses((status = 200, description = "A page of them.", body = api::List<api::ConversationTool>), (status = 304, description = "The client has them."), Refused, NotThere)
)]
pub(super) async fn enabled(
    State(state): State,
    InConversation(id): InConversation,
    Search(page): Search<PageQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let chosen = state.engine().conversation(&id).await?.overlay.tools;
    let tools = conversation_tools(&state, &id).await?.into_iter().filter(|tool| tool.enabled).collect();
    let list = page.part(&format!("conversations/{id}/tools"), tools, named)?;
    Ok(Tag::of(&chosen, &list).answer(&headers, &list))
}

/// What can be offered: the tools of all servers that run or are started by a call, none of those that somebody stopped.
#[utoipa::path(
    get,
    path = "/conversations/{id}/tools/available",
    operation_id = "listAvailableTools",
    tag = "tools",
    params(ConversationPath, PageQuery),
    responses((status = 200, description = "A page of them, and all that cannot be offered.", body = api::ToolList<api::ConversationTool>), Refused, NotThere)
)]
pub(super) async fn available(
    State(state): State,
    InConversation(id): InConversation,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let tools = conversation_tools(&state, &id).await?;
    Ok(json(StatusCode::OK, with_set_aside(&state, page.part(&format!("conversations/{id}/tools/available"), tools, named)?)))
}

fn named(tool: &api::ConversationTool) -> String {
    tool.tool.id.clone()
}

/// Offers a tool. The first one that is named makes the list; before, all tools are offered.
#[utoipa::path(
    post,
    path = "/conversations/{id}/tools",
    operation_id = "enableTool",
    tag = "tools",
    params(ConversationPath, IfMatch, RepeatableHeader),
    request_body = api::ToolName,
    responses((status = 201, description = "It is offered.", body = api::ConversationTool), Refused, BodyRefused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn enable(
    State(state): State,
    InConversation(id): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let choice: api::ToolName = whole.json()?;
    let definition = find(&state, &choice).await?;
    let name = definition.name.clone();
    let (asked, conversation) = (asked(&whole)?, id.clone());
    let made = {
        let state = state.clone();
        async move {
            let and_this = |tools: Option<Vec<String>>| with(&name, tools.unwrap_or_default());
            change(&state, &id, &whole.headers, and_this).await?;
            Ok(api::ConversationTool { tool: tool(&state, &definition), enabled: true })
        }
    };
    Ok(json(StatusCode::CREATED, once_in(&state, asked, (&conversation, "tools"), made).await?))
}

/// Offers a tool no more, also one that is not there at the moment where the list names it. Named in the body, or in the query
/// as `server_id` and `tool_name`.
#[utoipa::path(
    delete,
    path = "/conversations/{id}/tools",
    operation_id = "disableTool",
    tag = "tools",
    params(ConversationPath, Named, IfMatch),
    request_body = Option<api::ToolName>,
    responses((status = 204, description = "It is offered no more."), Refused, BodyRefused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn disable(
    State(state): State,
    InConversation(id): InConversation,
    Search(query): Search<Named>,
    whole: Whole,
) -> Result<StatusCode, ApiError> {
    let choice = match (query.server_id, query.tool_name) {
        (Some(server_id), Some(tool_name)) if whole.is_empty() => api::ToolName { server_id, tool_name },
        _ => whole.json()?,
    };
    let name = match find(&state, &choice).await {
        Ok(definition) => definition.name.clone(),
        Err(missing) => {
            let name = qualified(&choice.server_id, &choice.tool_name);
            let named = state.engine().conversation(&id).await?.overlay.tools;
            if named.is_some_and(|named| named.contains(&name)) { name } else { return Err(missing) }
        }
    };
    let defaults = state.engine().defaults().tools.clone();
    let all = || defaults.clone().unwrap_or_else(|| vec!["*".to_owned()]);
    change(&state, &id, &whole.headers, |tools| without(&name, tools.unwrap_or_else(all))).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Named {
    /// The server, where the body does not name it.
    server_id: Option<String>,
    /// The tool's name at its server.
    tool_name: Option<String>,
}

async fn conversation_tools(state: &ServerState, id: &ConversationId) -> Result<Vec<api::ConversationTool>, ApiError> {
    let conversation = state.engine().conversation(id).await?;
    let chosen = conversation.overlay.over(&state.engine().defaults()).tools.map(|globs| ChosenTools::of(&globs));
    let tools = state.engine().tools().await;
    let is_in = |name: &str| chosen.as_ref().is_none_or(|chosen| chosen.has(name));
    let told = tools.iter().map(|found| api::ConversationTool { tool: tool(state, found), enabled: is_in(&found.name) });
    Ok(told.collect())
}

async fn find(state: &ServerState, choice: &api::ToolName) -> Result<Arc<ToolDefinition>, ApiError> {
    let tools = state.engine().tools_of(&choice.server_id).await;
    let found = tools.into_iter().find(|tool| tool.tool == choice.tool_name);
    found.ok_or_else(|| {
        let detail =
            format!("there is no tool `{}` of `{}`; GET /api/v1/tools lists what there is", choice.tool_name, choice.server_id);
        ApiError::new(StatusCode::NOT_FOUND, "not_found", detail)
    })
}

async fn change(
    state: &ServerState,
    id: &ConversationId,
    headers: &HeaderMap,
    change: impl Fn(Option<Vec<String>>) -> Vec<String>,
) -> Result<(), ApiError> {
    let _changing = state.changing_settings().lock().await;
    loop {
        let of = state.engine().conversation(id).await?;
        Tag::of(&of.overlay.tools, &()).must_match(headers)?;
        let overlay = SettingsOverlay { tools: Some(change(of.overlay.tools.clone())), ..of.overlay.clone() };
        let change = ConversationChange { title: None, overlay: Some(overlay), of: Some(of) };
        match state.engine().update(id, change).await {
            // Another server was first: where that is a reason to refuse it, the condition tells.
            Err(EngineError::Store(StoreError::Changed { .. })) => {}
            changed => return changed.map(drop).map_err(ApiError::from),
        }
    }
}
