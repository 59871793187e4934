//! What a request says, in the place where it goes on: in one append, or in a copy where another request was there first.

use std::sync::Arc;

use turnwright_core::{ContentBlock, ConversationId, Journal, Seq, TurnId};
use turnwright_engine::{Answers, Beneath, ClientResult, Engine, EngineError, Joins, KeptBy, NewMessage, OnWaiting};

use super::begin::{Ask, Begun, begun, brings, of_conversation, where_there};
use super::known::Fingerprint;
use super::responses::developers::ADDED;
use super::responses::stored::{GoesOn, goes_on_in};
use super::track::Part;
use crate::error::ApiError;
use crate::state::ServerState;

/// Where something is said.
pub(super) enum Place {
    /// In a conversation that is made for it.
    New(ConversationId),
    /// In the one that is named, which is made where it is not there.
    Named(ConversationId),
    /// In one that is there.
    There(ConversationId),
    /// The same, where nothing was said there since this message of a person's; [`is_overtaken`] otherwise.
    Next(ConversationId, Seq),
    /// The same, with what the client's tools gave.
    Given(ConversationId, Vec<ClientResult>),
    /// The same, with what is decided about what waits there, and what the client's tools gave: all of it, or nothing is said.
    Beside(ConversationId, Answers, Vec<ClientResult>),
}

/// Stores what is said there, and what it comes to.
pub(super) async fn say(
    state: &ServerState,
    place: Place,
    ask: &Ask,
    content: Vec<ContentBlock>,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    if content.is_empty() {
        return Err(ApiError::invalid("the user's message is empty; say something").about("messages"));
    }
    let is_new = matches!(place, Place::New(_));
    let (mut on_waiting, mut answers, mut given, mut only_after) = (ask.on_waiting, Answers::default(), Vec::new(), None);
    let (conversation, create) = match place {
        Place::New(conversation) | Place::Named(conversation) => (conversation, true),
        Place::There(conversation) => (conversation, false),
        Place::Next(conversation, last) => {
            only_after = Some(last);
            (conversation, false)
        }
        Place::Given(conversation, results) => {
            given = results;
            (conversation, false)
        }
        Place::Beside(conversation, decided, results) => {
            (on_waiting, answers, given) = (OnWaiting::Hold, decided, results);
            (conversation, false)
        }
    };
    let overlay = if is_new { ask.overlay.clone() } else { ask.for_the_rest(state, &conversation).await? };
    let mut message = NewMessage {
        content,
        overlay,
        on_waiting,
        answers,
        given,
        joins: Joins::Anew,
        only_after,
        kept_by: KeptBy::Servers,
        create,
        conversation: of_conversation(ask),
        replaces: None,
        beneath: Beneath::Conversation,
        idempotency: ask.idempotency.clone(),
        known_as: None,
        beside: ask.adds_to_chain().map(|system| (ADDED, system.to_owned())),
        denies_questions: false,
    };
    let sent = loop {
        if let Some(name) = &ask.known_as {
            match name.known(state.engine(), &conversation).await? {
                Ok(known) => message.known_as = Some(known),
                // Another request said it meanwhile.
                Err(sent) => {
                    let part = Part { turn: sent.turn_id, after: sent.message_id.0, calls: Vec::new() };
                    return begun(state, conversation, part, history).await;
                }
            }
        }
        match state.engine().send(&conversation, message.clone()).await {
            Err(EngineError::SaidMeanwhile) if only_after.is_none() => tokio::task::yield_now().await,
            sent => break sent?,
        }
    };
    let part = Part { turn: sent.turn_id, after: sent.message_id.0, calls: Vec::new() };
    if is_new {
        return Ok(Begun { conversation, part, offered: Arc::from([]), history });
    }
    // The same request may have said it at the same moment, in a copy of its own.
    let conversation = match &ask.idempotency {
        Some((key, fingerprint)) => {
            state.engine().said_before(key, fingerprint).await?.map_or(conversation, |(conversation, _)| conversation)
        }
        None => conversation,
    };
    begun(state, conversation, part, history).await
}

/// Says it after a response in its conversation, or in a copy, where another request went on with that.
pub(super) async fn say_after(
    state: &ServerState,
    previous: &str,
    ask: &Ask,
    users: Vec<ContentBlock>,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    loop {
        let (conversation, last) = match goes_on_in(state, previous, brings(ask)).await? {
            GoesOn::There(conversation, Some(last)) => (conversation, last),
            GoesOn::There(conversation, None) | GoesOn::InCopy(conversation) => {
                return say(state, Place::There(conversation), ask, users, history).await;
            }
        };
        match say(state, Place::Next(conversation, last), ask, users.clone(), history.clone()).await {
            Err(error) if is_overtaken(&error) => {}
            said => return said,
        }
    }
}

/// What people said last in this turn, where it is the newest. It was known at this time, in milliseconds since 1970 UTC: what began
/// since is another of the same name, whose first was deleted.
pub(super) async fn last_of_newest(
    engine: &Engine,
    conversation: &ConversationId,
    (turn, known_at_ms): (TurnId, u64),
) -> Result<Option<Seq>, ApiError> {
    let look = |journal: &Journal| {
        let began_before = journal.entry(turn.0).is_some_and(|first| first.at_ms <= known_at_ms);
        let is_newest = journal.turn().is_some_and(|newest| newest.id() == turn);
        (is_newest && began_before).then(|| journal.newest_user())?
    };
    Ok(where_there(engine.look(conversation, look).await)?.flatten())
}

/// Whether somebody else said something where this was to come next.
pub(super) fn is_overtaken(error: &ApiError) -> bool {
    error.code() == "conflict"
}
