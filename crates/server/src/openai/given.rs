//! Results of a client's tools that a request brings: whose calls they answer, and whether these wait for them.

use turnwright_core::{CallId, ContentBlock, ConversationId, Journal, QuestionReason, text_of};
use turnwright_engine::{ClientResult, Engine, EngineError};

use super::begin::Ask;
use super::ids;
use super::responses::stored::found;
use crate::error::ApiError;
use crate::state::ServerState;

/// The results that the request brings, and the conversation of their calls, where they are calls of ours.
pub(crate) fn given(ask: &Ask) -> Option<(ConversationId, Vec<ClientResult>)> {
    let mut conversation = ask.conversation.clone();
    let mut results = Vec::new();
    for (call, content) in ask.history.results() {
        let (call, held) = ids::read_call(call)?;
        if let Some(held) = held {
            if conversation.as_ref().is_some_and(|named| *named != held) {
                return None;
            }
            conversation = Some(held);
        }
        let content = if content.is_empty() { vec![ContentBlock::text("")] } else { content.to_vec() };
        results.push(ClientResult { call, content, is_error: false });
    }
    if results.is_empty() { None } else { Some((conversation?, results)) }
}

/// Whether the calls that are answered are of the newest turn: else the client goes on from an older place.
pub(crate) async fn goes_on(
    engine: &Engine,
    conversation: &ConversationId,
    results: &[ClientResult],
    must_be_all: bool,
) -> Result<bool, ApiError> {
    let look = |journal: &Journal| -> Result<bool, Vec<CallId>> {
        let Some(turn) = journal.turn() else { return Ok(false) };
        let is_known = |call: CallId| turn.call(call).is_some() || journal.result(call).is_some();
        let is_ours = results.iter().all(|result| result.call.message > turn.id().0 && is_known(result.call));
        let Some(newest) = results.iter().map(|result| result.call.message).max().filter(|_| is_ours) else { return Ok(false) };
        let is_given = |call: CallId| results.iter().any(|result| result.call == call);
        let waits = turn.waiting().filter(|(call, question)| {
            question.reason == QuestionReason::ClientTool && call.id.message == newest && !is_given(call.id)
        });
        let missing: Vec<CallId> = waits.map(|(call, _)| call.id).collect();
        if must_be_all && !missing.is_empty() { Err(missing) } else { Ok(true) }
    };
    match engine.look(conversation, look).await {
        Err(EngineError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(Ok(goes_on)) => Ok(goes_on),
        Ok(Err(missing)) => {
            let missing: Vec<String> = missing.into_iter().map(|call| ids::call_id(conversation, call)).collect();
            let what = format!("these tool calls have no result: {}", missing.join(", "));
            Err(ApiError::invalid(what).about("messages"))
        }
    }
}

/// The calls that a request answers again which goes on from an older response, where they were given the same before: what came of
/// that is its answer. `None` where it says something else.
///
/// # Errors
/// 400, where they were given something else; 404, where there is no such response.
pub(crate) async fn before(
    state: &ServerState,
    ask: &Ask,
    previous: &str,
) -> Result<Option<(ConversationId, Vec<CallId>)>, ApiError> {
    let Some((conversation, results)) = given(ask) else { return Ok(None) };
    let (of, _) = found(state, previous).await.map_err(|error| error.about("previous_response_id"))?;
    if of != conversation {
        return Ok(None);
    }
    let look = |journal: &Journal| {
        let newest = journal.turn()?.id();
        let known = results.iter().map(|result| {
            let known = journal.result(result.call).filter(|_| result.call.message < newest.0)?;
            Some(text_of(&known.content) == text_of(&result.content))
        });
        known.collect::<Option<Vec<bool>>>()
    };
    match state.engine().look(&conversation, look).await? {
        None => Ok(None),
        Some(are_same) if are_same.iter().all(|same| *same) => {
            Ok(Some((conversation, results.iter().map(|result| result.call).collect())))
        }
        Some(_) => {
            let what = "brings another result of a call than it was given, and more was said since; fork the conversation to go on otherwise";
            Err(ApiError::invalid(format!("the request {what}")).about("messages"))
        }
    }
}
