//! Streams: engine events as they are, and as an AI SDK UI message stream.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use turnwright_core::{ConversationId, Seq, TurnId};
use turnwright_engine::{EngineError, Watch, WatchFrom};

use crate::error::ApiError;
use crate::extract::{InConversation, Search, State};
use crate::feed::Feed;
use crate::open_stream::OpenStream;
use crate::openapi::{ConversationPath, Limited, NotThere, Refused};
use crate::sse;
use crate::state::ServerState;
use crate::ui::{Begin, UiFold, UiVersion};

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UiQuery {
    /// The client's version of the AI SDK: 5, 6 or 7.
    #[param(pattern = "^[567]$")]
    ui: Option<String>,
}

impl UiQuery {
    /// The client's version, as far as it says.
    pub(super) fn version(&self, default: UiVersion) -> Result<UiVersion, ApiError> {
        let Some(ui) = &self.ui else { return Ok(default) };
        let unknown = || ApiError::bad_request("invalid_query", format!("ui is `{ui}`, it must be 5, 6 or 7"));
        UiVersion::of(ui).ok_or_else(unknown)
    }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Position {
    /// The id of the last event seen, or `now`; the header `Last-Event-ID` counts more. From the beginning where absent.
    #[serde(alias = "last_event_id")]
    #[param(pattern = "^([0-9]{1,18}|now|)$")]
    after: Option<String>,
}

/// Engine events, from after the position that the client names, or from the beginning.
#[utoipa::path(
    get,
    path = "/conversations/{id}/events",
    operation_id = "watchEvents",
    tag = "turns",
    params(ConversationPath, Position),
    responses((status = 200, description = "Engine events; the id of each is a position to come back to.", body = serde_json::Value, content_type = "text/event-stream"), Refused, NotThere, Limited)
)]
pub(super) async fn events(
    State(state): State,
    InConversation(id): InConversation,
    Search(position): Search<Position>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("(not text)"));
    let from = match header.or(position.after.as_deref()) {
        None | Some("") => WatchFrom::After(None),
        Some("now") => WatchFrom::Now,
        Some(text) => {
            let after = text.parse().map_err(|_| {
                ApiError::bad_request(
                    "invalid_position",
                    format!("`{text}` is no position; give the id of the last event seen"),
                )
            })?;
            WatchFrom::After(Seq::new(after))
        }
    };
    let stream = OpenStream::of(&state)?;
    let watch = state.engine().watch(&id, from).await.map_err(|error| match error {
        EngineError::Invalid { what } => ApiError::bad_request("unknown_position", what),
        error => error.into(),
    })?;
    Ok(sse::response(watch, Feed::default(), stream).await)
}

/// The message of the open turn from its beginning; 204 where no turn is open.
#[utoipa::path(
    get,
    path = "/conversations/{id}/stream",
    operation_id = "watchMessage",
    tag = "turns",
    params(ConversationPath, UiQuery),
    responses((status = 200, description = "An AI SDK UI message stream.", body = serde_json::Value, content_type = "text/event-stream"), (status = 204, description = "No turn is open."), Refused, NotThere, Limited)
)]
pub(super) async fn stream(
    State(state): State,
    InConversation(id): InConversation,
    Search(query): Search<UiQuery>,
) -> Result<Response, ApiError> {
    resume(&state, id, query.version(UiVersion::V7)?).await
}

/// The message of the open turn from its beginning; 204 where no turn is open.
pub(super) async fn resume(state: &ServerState, id: ConversationId, version: UiVersion) -> Result<Response, ApiError> {
    let open = state.engine().journal(&id).await?.open_turn().map(turnwright_core::Turn::id);
    match open {
        Some(turn) => stream_of(state, id, turn, (version, Begin::Turn), OpenStream::of(state)?).await,
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// The message of `turn` as a stream.
pub(super) async fn stream_of(
    state: &ServerState,
    id: ConversationId,
    turn: TurnId,
    (version, begin): (UiVersion, Begin),
    stream: OpenStream,
) -> Result<Response, ApiError> {
    // A conversation's first turn tells itself what is offered.
    let offered = match turn.0 {
        Seq::FIRST => Arc::from([]),
        _ => state.engine().journal(&id).await?.offered().clone(),
    };
    let watch: Watch = state.engine().watch(&id, WatchFrom::After(Seq::new(turn.0.get().saturating_sub(1)))).await?;
    let mut response = sse::response(watch, UiFold::new(id, turn, version, begin, offered), stream).await;
    response.headers_mut().insert(HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1"));
    Ok(response)
}
