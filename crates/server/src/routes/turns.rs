//! The turns of a conversation, each as a person's message and the chunks that told what came of it.
//!
//! A client of the UI message stream has one reader for what was and for what happens.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use turnwright_core::{ContentBlock, Entry, Journal, MessageId, Seq, TurnId};
use turnwright_engine::WatchFrom;
use utoipa::ToSchema;

use super::json;
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Search, State, unknown_cursor};
use crate::offered::offered_in;
use crate::openapi::{ConversationPath, NotThere, Refused};
use crate::report::turn_status;
use crate::timestamp::timestamp;
use crate::ui::{Begin, UiVersion, chunks_of, turns_of};

/// A part of the turns.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToldTurns {
    /// The turns, oldest first.
    data: Vec<ToldTurn>,
    /// What to give as `cursor` to get the turns before these; null where there are none.
    next_cursor: Option<String>,
    /// Whether there are turns before these.
    has_more: bool,
}

/// A turn as the stream tells it.
#[derive(Debug, Serialize, ToSchema)]
struct ToldTurn {
    /// Its id.
    id: String,
    /// How it ended, `running`, or `suspended`.
    status: String,
    /// When it began.
    created_at: String,
    /// The message that began it.
    message_id: String,
    /// What the person said, in blocks as MCP has them; null where it was deleted.
    #[schema(value_type = Option<Vec<Object>>)]
    content: Option<Vec<ContentBlock>>,
    /// The chunks of the UI message stream, up to now.
    #[schema(value_type = Vec<Object>)]
    chunks: Vec<Box<RawValue>>,
}

/// The newest turns, or the newest before the one that `cursor` names; oldest first within the answer.
#[utoipa::path(
    get,
    path = "/conversations/{id}/turns",
    operation_id = "listTurns",
    tag = "turns",
    params(ConversationPath, PageQuery),
    responses((status = 200, description = "A page of them, the newest page first.", body = ToldTurns), Refused, NotThere)
)]
pub(super) async fn list(
    State(state): State,
    InConversation(conversation): InConversation,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let limit = page.limit()?;
    let journal = state.engine().journal(&conversation).await?;
    let mut all = turns_of(&journal);
    // What it names may be hidden by now.
    let before = page.cursor.as_deref().map(|cursor| {
        let found = cursor.parse().ok().filter(|turn: &TurnId| all.contains(turn));
        found.ok_or_else(|| unknown_cursor(cursor))
    });
    let before = before.transpose()?;
    all.retain(|turn| is_shown(&journal, *turn));
    let end = before.map_or(all.len(), |before| all.partition_point(|turn| *turn < before));
    let begin = end.saturating_sub(limit);
    let part = all.get(begin..end).unwrap_or_default();
    let Some(first) = part.first() else {
        return Ok(json(StatusCode::OK, ToldTurns { data: Vec::new(), next_cursor: None, has_more: false }));
    };
    let from = WatchFrom::After(Seq::new(first.0.get().saturating_sub(1)));
    let frame = state.engine().watch(&conversation, from).await?.next().await;
    let events = frame.map_or_else(|| Arc::from([]), |frame| frame.events);
    let mut data = Vec::with_capacity(part.len());
    for (at, turn) in (begin..).zip(part) {
        let Some(stored) = journal.entry(turn.0) else { continue };
        let Entry::User(message) = &*stored.entry else { continue };
        let message_id = MessageId(turn.0);
        let next = all.get(at.saturating_add(1)).copied();
        data.push(ToldTurn {
            id: turn.to_string(),
            status: turn_status(&journal, *turn).to_owned(),
            created_at: timestamp(stored.at_ms),
            message_id: message_id.to_string(),
            content: (!journal.is_hidden(message_id)).then(|| message.content.clone()),
            chunks: chunks_of(
                &conversation,
                *turn,
                next,
                &events,
                offered_in(&journal, *turn, turn.0),
                (UiVersion::V7, |_| Begin::Turn),
            ),
        });
    }
    let has_more = begin > 0;
    Ok(json(StatusCode::OK, ToldTurns { data, next_cursor: has_more.then(|| first.to_string()), has_more }))
}

/// Whether anything of a turn is shown: of one that was said otherwise, or answered anew, nothing is.
fn is_shown(journal: &Journal, turn: TurnId) -> bool {
    journal.turn_entries(turn).any(|stored| {
        matches!(*stored.entry, Entry::User(_) | Entry::Assistant(_)) && !journal.is_hidden(MessageId(stored.seq))
    })
}
