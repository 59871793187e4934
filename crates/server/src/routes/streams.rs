//! Streams: engine events as they are, and as an AI SDK UI message stream.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use turnwright_core::{Control, ConversationId, Entry, Journal, Seq, StoredEntry, TurnId};
use turnwright_engine::{Watch, WatchFrom};

use crate::error::ApiError;
use crate::extract::{InConversation, Search, State};
use crate::feed::Feed;
use crate::offered::offered_in;
use crate::open_stream::OpenStream;
use crate::openapi::{ConversationPath, Limited, NotThere, Refused};
use crate::sse;
use crate::state::ServerState;
use crate::ui::{Begin, UiFold, UiVersion, turns_of};

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

/// Where a message's stream goes on.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct MessagePosition {
    /// The id of the last chunk seen; the header `Last-Event-ID` counts more.
    #[serde(alias = "last_event_id")]
    #[param(pattern = "^([0-9]{1,18}|)$")]
    after: Option<String>,
}

impl MessagePosition {
    /// The position that the client names, in the header or here.
    pub(super) fn named(&self, headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
        match named(headers, self.after.as_deref()) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| no_position(text)),
        }
    }
}

/// The position that the client names in the header, else in the query.
fn named<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> Option<&'a str> {
    headers.get("last-event-id").map(|value| value.to_str().unwrap_or("(not text)")).or(query)
}

fn no_position(text: &str) -> ApiError {
    ApiError::bad_request("invalid_position", format!("`{text}` is no position; give the id of the last event seen"))
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
    let from = match named(&headers, position.after.as_deref()) {
        None | Some("") => WatchFrom::After(None),
        Some("now") => WatchFrom::Now,
        Some(text) => WatchFrom::After(Seq::new(text.parse().map_err(|_| no_position(text))?)),
    };
    let feed = match from {
        WatchFrom::After(seq) => Feed::after(seq),
        WatchFrom::Now => Feed::default(),
    };
    let stream = OpenStream::of(&state)?;
    if let WatchFrom::After(Some(after)) = from {
        must_be_there(after.get(), state.engine().look(&id, Journal::last_seq).await?)?;
    }
    Ok(sse::response(state.engine().watch(&id, from).await?, feed, stream).await)
}

/// The message of the open turn, 204 where no turn is open; or what follows on a position, 204 where nothing does.
///
/// Without a position it is told from its beginning. With `Last-Event-ID` or `after` what follows is told of the message that
/// the position is in, also where its turn has ended; where all of that was told, the next turn's message from its beginning.
/// A stream that begins with `start` tells a message from its beginning. One that begins with `reset-step` goes on in the one
/// that the client has: what it has of the last step goes, and is told again. Clients of the AI SDK before 7 cannot drop a
/// step: they are told the message from its beginning.
#[utoipa::path(
    get,
    path = "/conversations/{id}/stream",
    operation_id = "watchMessage",
    tag = "turns",
    params(ConversationPath, UiQuery, MessagePosition),
    responses((status = 200, description = "An AI SDK UI message stream; the id of each chunk is a position to come back to.", body = serde_json::Value, content_type = "text/event-stream"), (status = 204, description = "No turn is open, or nothing follows on the position."), Refused, NotThere, Limited)
)]
pub(super) async fn stream(
    State(state): State,
    InConversation(id): InConversation,
    Search(query): Search<UiQuery>,
    Search(position): Search<MessagePosition>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    resume(&state, id, query.version(UiVersion::V7)?, position.named(&headers)?).await
}

/// What [`stream`] answers.
pub(super) async fn resume(
    state: &ServerState,
    id: ConversationId,
    version: UiVersion,
    position: Option<u64>,
) -> Result<Response, ApiError> {
    let journal = state.engine().journal(&id).await?;
    let told = match position {
        None => journal.open_turn().map(|turn| (turn.id(), Begin::Turn)),
        Some(position) => follows(&journal, position)?,
    };
    match told {
        Some((turn, Begin::After(_))) if version < UiVersion::V7 => {
            stream_of(state, id, turn, (version, Begin::Turn), OpenStream::of(state)?).await
        }
        Some((turn, begin)) => stream_of(state, id, turn, (version, begin), OpenStream::of(state)?).await,
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Refuses a position that a client names and the journal has not.
fn must_be_there(position: u64, last: Option<Seq>) -> Result<(), ApiError> {
    let last = last.map_or(0, Seq::get);
    if position <= last {
        return Ok(());
    }
    Err(ApiError::bad_request("unknown_position", format!("position {position} is after the last entry, {last}")))
}

/// The message that is told to whoever saw the stream up to a position; `None` where nothing follows.
fn follows(journal: &Journal, position: u64) -> Result<Option<(TurnId, Begin)>, ApiError> {
    must_be_there(position, journal.last_seq())?;
    let last = journal.last_seq().map_or(0, Seq::get);
    let turns = turns_of(journal);
    let next = turns.partition_point(|turn| turn.0.get() <= position);
    let in_turn = next.checked_sub(1).and_then(|at| turns.get(at)).zip(Seq::new(position));
    if let Some((turn, after)) = in_turn {
        let is_over = match journal.turn().filter(|newest| newest.id() == *turn) {
            Some(newest) if newest.ended().is_none() => newest.is_suspended() && position == last,
            _ => ended_at(journal, *turn).is_some_and(|end| end <= after),
        };
        if !is_over {
            return Ok(Some((*turn, Begin::After(after))));
        }
    }
    Ok(turns.get(next).map(|turn| (*turn, Begin::Turn)))
}

/// The last entry that ended a turn.
fn ended_at(journal: &Journal, turn: TurnId) -> Option<Seq> {
    let is_end =
        |stored: &&StoredEntry| matches!(&*stored.entry, Entry::Control(Control::Ended { turn: of, .. }) if *of == turn);
    journal.turn_entries(turn).filter(is_end).last().map(|stored| stored.seq)
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
        at => state.engine().look(&id, |journal| offered_in(journal, turn, at)).await?,
    };
    let watch: Watch = state.engine().watch(&id, WatchFrom::After(Seq::new(turn.0.get().saturating_sub(1)))).await?;
    state.heard().hear(&id, turn);
    let mut response = sse::response(watch, UiFold::new(id, turn, version, begin, offered), stream).await;
    response.headers_mut().insert(HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1"));
    Ok(response)
}
