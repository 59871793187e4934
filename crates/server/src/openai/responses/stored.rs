//! The responses that are stored, by their names.

use http::StatusCode;
use turnwright_core::{ConversationId, Entry, Journal, MessageId, Seq, StoredEntry};
use turnwright_engine::{EngineError, NewConversation};

use super::developers::leave_later_out;
use super::object::{self, PREFIX};
use crate::error::ApiError;
use crate::openai::ids;
use crate::openai::track::Part;
use crate::state::ServerState;

/// The response of this name.
pub(crate) async fn found(state: &ServerState, id: &str) -> Result<(ConversationId, Part), ApiError> {
    let missing = || {
        let id: String = id.chars().take(200).collect();
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("there is no response `{id}`")).about("id")
    };
    let (conversation, after) = ids::read_answer(PREFIX, id).ok_or_else(missing)?;
    let look = |journal: &Journal| {
        let part = object::part(journal, after)?;
        let messages = object::messages(journal, &part);
        let is_hidden = !messages.is_empty() && messages.iter().all(|message| journal.is_hidden(*message));
        (!is_hidden).then_some(part)
    };
    match state.engine().look(&conversation, look).await {
        Ok(Some(part)) => Ok((conversation, part)),
        Ok(None) | Err(EngineError::NotFound { .. }) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}

/// What a request that goes on from a response brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Brings {
    /// What calls wait for: results, or decisions.
    WhatCallsWaitFor,
    /// Only what a person says.
    Words,
}

/// The conversation in which a response goes on: its own, or, where more was said there since, a new one that is the same up to
/// there.
pub(crate) async fn continued(state: &ServerState, previous: &str, brings: Brings) -> Result<ConversationId, ApiError> {
    match goes_on_in(state, previous, brings).await? {
        GoesOn::There(conversation, _) | GoesOn::InCopy(conversation) => Ok(conversation),
    }
}

/// Where a response goes on.
#[derive(Debug)]
pub(crate) enum GoesOn {
    /// In its own conversation, in which people said this last.
    There(ConversationId, Option<Seq>),
    /// In a new one, which is the same up to there.
    InCopy(ConversationId),
}

/// The same, with what people said last there.
pub(crate) async fn goes_on_in(state: &ServerState, previous: &str, brings: Brings) -> Result<GoesOn, ApiError> {
    let (conversation, part) = found(state, previous).await.map_err(|error| error.about("previous_response_id"))?;
    let look = |journal: &Journal| (said_since(journal, &part, brings), journal.newest_user());
    match state.engine().look(&conversation, look).await? {
        (Some(since), _) => {
            let copy = state.engine().fork(&conversation, Some(since), NewConversation::default()).await?;
            let id = copy.id.clone();
            leave_later_out(state, copy, (&conversation, part.after)).await?;
            Ok(GoesOn::InCopy(id))
        }
        (None, last) => Ok(GoesOn::There(conversation, last)),
    }
}

/// The first message after a response, where what goes on from it must not see that.
pub(crate) fn said_since(journal: &Journal, part: &Part, brings: Brings) -> Option<MessageId> {
    let (part, _) = object::newest_try(journal, part);
    let (end, since) = next_message(journal, &part);
    let is_of_newest_turn = journal.turn().is_none_or(|turn| turn.id() == part.turn);
    // What somebody else said while the model answered may stand before the answer.
    if let Some(followed) = object::followed_by(journal, &part).filter(|_| !is_of_newest_turn || brings == Brings::Words) {
        return Some(followed);
    }
    let since = since?;
    // What comes of decisions that people make elsewhere, the client knows by no other name.
    let is_known = || object::waited_for_client(journal, end);
    (!is_of_newest_turn || brings == Brings::Words && is_known()).then_some(since)
}

/// Whether the newest turn is the one that came after this response.
pub(crate) fn is_before_newest(journal: &Journal, part: &Part) -> bool {
    let (part, _) = object::newest_try(journal, part);
    let (_, next) = next_message(journal, &part);
    journal.turn().is_some_and(|newest| newest.id() != part.turn && next.is_some_and(|next| next.0 == newest.id().0))
}

/// The last message of a response, or what it begins after, and the message behind that.
fn next_message(journal: &Journal, part: &Part) -> (Seq, Option<MessageId>) {
    let end = object::messages(journal, part).last().map_or(part.after, |message: &MessageId| message.0);
    let is_message = |stored: &&StoredEntry| matches!(&*stored.entry, Entry::User(_) | Entry::Assistant(_));
    let next = journal.entries().iter().filter(is_message).find(|stored| stored.seq > end);
    (end, next.map(|next| MessageId(next.seq)))
}
