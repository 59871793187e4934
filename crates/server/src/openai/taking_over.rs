//! A history that a client brings, in a conversation that goes on with it: taken over, or begun with what was taken over before.

use http::StatusCode;
use turnwright_core::{ContentBlock, ConversationId, Entry, Journal, Seq};
use turnwright_engine::{Engine, EngineError, NewConversation, StoreError, WholeJournal};
use turnwright_host::import;

use super::begin::{Ask, Begun, begun, begun_before, of_conversation};
use super::history::Said;
use super::known::{Fingerprint, TakenOver};
use super::responses::object::turn_of;
use super::saying::{Place, is_overtaken, say};
use super::track::Part;
use super::written;
use crate::error::ApiError;
use crate::state::ServerState;

/// What of a history is in the conversation now.
#[derive(Debug, Clone, Copy, Default)]
struct TakenIn {
    /// What a person said last in it.
    newest_user: Option<Seq>,
    /// Its last entry, where the same request took it over before.
    before: Option<Seq>,
}

/// Says it in a conversation into which its history is taken over.
pub(super) async fn say_in_copy(
    state: &ServerState,
    mut conversation: ConversationId,
    ask: &Ask,
    users: Vec<ContentBlock>,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    loop {
        let TakenIn { newest_user, before } = take_over(state, &conversation, ask).await?;
        if users.is_empty() {
            return take_up(state, conversation, ask, before, history).await;
        }
        // Where the client named it, it is meant whoever says something there.
        let next = newest_user.filter(|_| ask.conversation.is_none());
        let place = match next {
            Some(last) => Place::Next(conversation.clone(), last),
            None => Place::There(conversation.clone()),
        };
        match say(state, place, ask, users.clone(), history.clone()).await {
            // Another process took it for a conversation that says the same, before anything was said here.
            Err(error) if next.is_some() && is_overtaken(&error) => {
                if let Some(begun) = begun_before(state, ask, &users, &history).await? {
                    return Ok(begun);
                }
                conversation = Engine::new_id()?;
            }
            said => return said,
        }
    }
}

/// Takes the history that the client brings over into a new conversation.
async fn take_over(state: &ServerState, conversation: &ConversationId, ask: &Ask) -> Result<TakenIn, ApiError> {
    let unreadable = |what: String| ApiError::invalid(what).about("messages");
    let written = || written::list(ask.history.before_users()).map_err(|error| unreadable(error.to_string()));
    let settings = ask.overlay.over(&state.engine().defaults());
    let known = state.known().fingerprint(state.engine().user());
    let (taken, bytes) = if let Some(beginning) = ask.history.written_before_users() {
        (known.of_history(&beginning.to_ne_bytes(), &settings), None)
    } else {
        let bytes = written()?;
        (known.of_history(&bytes, &settings), Some(bytes))
    };
    if let Some(taken_in) = branch(state, conversation, ask, &taken).await? {
        return Ok(taken_in);
    }
    for item in ask.history.before_users() {
        if let Said::User(content) = &item.said {
            state.engine().admits(content).map_err(|error| ApiError::from(error).about("messages"))?;
        }
    }
    let bytes = bytes.map_or_else(written, Ok)?;
    let read = import::read(&bytes, &settings).map_err(|error| unreadable(error.to_string()))?;
    let Some(read) = read.conversations.into_iter().next() else { return Ok(TakenIn::default()) };
    let place = |count: usize| u64::try_from(count).ok().and_then(Seq::new);
    let last = place(read.entries.len());
    let newest_user = read.entries.iter().rposition(|entry| matches!(entry, Entry::User(_)));
    let newest_user = newest_user.and_then(|at| place(at.saturating_add(1)));
    let whole = WholeJournal {
        conversation: new_conversation(conversation, ask),
        created_at_ms: None,
        entries: read.entries,
        times_ms: Vec::new(),
    };
    match state.engine().import(whole).await {
        Ok(_) => {
            if let Some(last) = last {
                state.known().taken_over(&taken, TakenOver { conversation: conversation.clone(), last, newest_user });
            }
            Ok(TakenIn { newest_user, before: None })
        }
        // The same request came before.
        Err(EngineError::Exists { .. } | EngineError::Store(StoreError::Exists { .. })) if ask.idempotency.is_some() => {
            Ok(TakenIn { newest_user, before: last })
        }
        // It was not there for the caller: it is somebody else's.
        Err(EngineError::Exists { id }) if ask.conversation.is_some() => {
            Err(ApiError::not_found(format_args!("conversation `{id}`")))
        }
        Err(error) => Err(error.into()),
    }
}

fn new_conversation(conversation: &ConversationId, ask: &Ask) -> NewConversation {
    NewConversation { id: Some(conversation.clone()), title: None, overlay: of_conversation(ask), idempotency: None }
}

/// Begins a conversation with what was taken over before and is the same to the letter, where there is such a thing.
async fn branch(
    state: &ServerState,
    conversation: &ConversationId,
    ask: &Ask,
    taken: &Fingerprint,
) -> Result<Option<TakenIn>, ApiError> {
    let Some((of, known_at_ms)) = state.known().find_taken_over(taken) else { return Ok(None) };
    let new = new_conversation(conversation, ask);
    match state.engine().branch(&of.conversation, (of.last, known_at_ms), new).await {
        Ok(_) => Ok(Some(TakenIn { newest_user: of.newest_user, before: None })),
        // It was deleted meanwhile; or this one is there already, which is told as where it is taken over.
        Err(
            EngineError::NotFound { .. }
            | EngineError::Invalid { .. }
            | EngineError::Exists { .. }
            | EngineError::Store(StoreError::Gone { .. } | StoreError::Exists { .. }),
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Goes on with a turn that was taken over: its tools ran elsewhere and no model has seen what they gave. Where the same request took
/// it over `before`, up to that entry, it goes on once.
pub(super) async fn take_up(
    state: &ServerState,
    conversation: ConversationId,
    ask: &Ask,
    before: Option<Seq>,
    history: Fingerprint,
) -> Result<Begun, ApiError> {
    if let Some(after) = before {
        let look = |journal: &Journal| journal.last_seq().filter(|last| *last > after).and_then(|_| turn_of(journal, after));
        if let Some(turn) = state.engine().look(&conversation, look).await? {
            return begun(state, conversation, Part { turn, after, calls: Vec::new() }, history).await;
        }
    }
    if state.engine().look(&conversation, Journal::last_seq).await?.is_none() {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_request", "nothing is said").about("messages"));
    }
    let sent = state.engine().retry_once(&conversation, ask.overlay.clone(), ask.idempotency.clone()).await?;
    begun(state, conversation, Part { turn: sent.turn_id, after: sent.message_id.0, calls: Vec::new() }, history).await
}
