//! A summary in the place of a conversation's beginning: what models are shown of it, by people's own wish.

use axum::response::Response;
use http::StatusCode;
use turnwright_api as api;
use turnwright_engine::Compaction;

use super::idempotency::repeatable;
use super::{asked, json};
use crate::error::ApiError;
use crate::extract::{InConversation, State, Whole};
use crate::openapi::{BodyRefused, Conflicting, ConversationPath, Limited, NotAnswered, NotThere, Refused, RepeatableHeader};
use crate::repeat::{once_alike, once_in};
use crate::settings;

/// Tells whether models are shown a summary of this conversation's beginning.
#[utoipa::path(
    get,
    path = "/conversations/{id}/compact",
    operation_id = "showCompaction",
    tag = "conversations",
    params(ConversationPath),
    responses((status = 200, description = "What is shown.", body = api::CompactionReport), Refused, NotThere)
)]
pub(super) async fn show(State(state): State, InConversation(conversation): InConversation) -> Result<Response, ApiError> {
    let shown = state.engine().compaction(&conversation).await?;
    Ok(json(StatusCode::OK, report(shown)))
}

/// Has the beginning of the conversation put into a summary, which models are shown in its place from here on. Nothing is
/// deleted. Waits for the summary: a model may take minutes over it.
#[utoipa::path(
    post,
    path = "/conversations/{id}/compact",
    operation_id = "compactConversation",
    tag = "conversations",
    params(ConversationPath, RepeatableHeader),
    request_body = api::CompactRequest,
    responses((status = 200, description = "The summary is stored.", body = api::CompactionReport), Refused, BodyRefused, NotThere, Conflicting, NotAnswered, Limited)
)]
pub(super) async fn compact(
    State(state): State,
    InConversation(conversation): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let request: api::CompactRequest = whole.json()?;
    let model = settings::overlay(state.engine(), request.model, api::Settings::default())?.model;
    let (engine, id) = (state.engine().clone(), conversation.clone());
    let idempotency = repeatable(&whole, &format!("{conversation}/compact"))?;
    let made = async move { Ok(report(Some(engine.compact_once(&id, model, idempotency).await?))) };
    Ok(json(StatusCode::OK, once_alike(&state, asked(&whole)?, (Some(&conversation), "compact"), made).await?))
}

/// Takes the newest summary back: models are shown again what it stood for, or the summary before it.
#[utoipa::path(
    post,
    path = "/conversations/{id}/compact/undo",
    operation_id = "undoCompaction",
    tag = "conversations",
    params(ConversationPath, RepeatableHeader),
    responses((status = 200, description = "What is shown now.", body = api::CompactionReport), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn undo(
    State(state): State,
    InConversation(conversation): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let (engine, id) = (state.engine().clone(), conversation.clone());
    // Where nobody knows whether it was taken back, a second time would take back the one before it.
    let undone = async move { Ok(report(engine.uncompact(&id).await?)) };
    Ok(json(StatusCode::OK, once_in(&state, asked(&whole)?, (&conversation, "compact/undo"), undone).await?))
}

fn report(shown: Option<Compaction>) -> api::CompactionReport {
    let summary = shown.map(|shown| api::Summary {
        seq: shown.seq.get(),
        through: shown.through.get(),
        text: shown.summary,
        model: shown.model.map(|model| model.to_string()),
    });
    api::CompactionReport { summary }
}
