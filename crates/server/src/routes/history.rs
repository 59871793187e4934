//! The messages of a conversation.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::{ConversationId, MessageId};

use super::json;
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Params, Search, id};
use crate::report::messages;
use crate::state::ServerState;

/// Oldest first.
pub(super) async fn list(
    State(state): State<ServerState>,
    InConversation(conversation): InConversation,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let limit = page.limit()?;
    let all = messages(&state.engine().journal(&conversation).await?);
    let skipped = match &page.cursor {
        None => 0,
        Some(cursor) => {
            let found = all.iter().position(|message| message.id == *cursor);
            let unknown = || ApiError::bad_request("invalid_cursor", format!("`{cursor}` is no cursor of this list"));
            found.ok_or_else(unknown)?.saturating_add(1)
        }
    };
    let part = all.into_iter().skip(skipped).take(limit.saturating_add(1)).collect();
    Ok(json(StatusCode::OK, api::List::page(part, limit, |message| message.id.clone())))
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    id: String,
    message: String,
}

/// A deletion is an entry that hides.
pub(super) async fn hide(State(state): State<ServerState>, Params(named): Params<Named>) -> Result<StatusCode, ApiError> {
    let conversation: ConversationId = id(&named.id)?;
    let message: MessageId = id(&named.message)?;
    state.engine().hide(&conversation, message).await?;
    Ok(StatusCode::NO_CONTENT)
}
