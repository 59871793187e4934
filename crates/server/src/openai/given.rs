//! Results of a client's tools that a request brings: whose calls they answer, and whether these wait for them.

use turnwright_core::{CallId, ConversationId, Journal, MessageId, QuestionReason, Turn};
use turnwright_engine::{ClientResult, Engine, EngineError, shown_name};

use super::begin::Ask;
use super::ids;
use super::responses::object::messages;
use super::responses::stored::found;
use crate::error::ApiError;
use crate::state::ServerState;

/// The results that the request brings, and the conversation of their calls, where they are calls of ours.
pub(crate) fn given(ask: &Ask) -> Option<(ConversationId, Vec<ClientResult>)> {
    let mut conversation = ask.conversation.clone();
    let mut results = Vec::new();
    for gave in ask.history.results() {
        let (call, held) = ids::read_call(gave.call)?;
        if let Some(held) = held {
            if conversation.as_ref().is_some_and(|named| *named != held) {
                return None;
            }
            conversation = Some(held);
        }
        results.push(gave.to(call));
    }
    if results.is_empty() { None } else { Some((conversation?, results)) }
}

/// Whether a call was made in the newest turn.
pub(super) fn is_of_newest(journal: &Journal, call: CallId) -> bool {
    let is_known = |turn: &Turn| turn.call(call).is_some() || journal.result(call).is_some();
    journal.turn().is_some_and(|turn| call.message > turn.id().0 && is_known(turn))
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
        let is_ours = results.iter().all(|result| is_of_newest(journal, result.call));
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

/// The refusal of results of calls that do not wait there.
pub(crate) fn none_waits(ask: &Ask, conversation: &ConversationId) -> ApiError {
    let calls: Vec<String> = ask.history.results().map(|gave| format!("`{}`", shown_name(gave.call))).collect();
    let what = format!("there are results for {}, of which none waits in conversation `{conversation}`", calls.join(", "));
    ApiError::invalid(what).about("messages")
}

/// A call that its client gave another result before.
pub(crate) fn given_otherwise(journal: &Journal, results: &[ClientResult]) -> Option<CallId> {
    results.iter().find(|given| given.is_other_than_in(journal)).map(|given| given.call)
}

/// What a request says of calls that were given results before.
#[derive(Debug)]
pub(crate) enum GivenBefore {
    /// The same.
    Same(ConversationId, Vec<CallId>),
    /// Something else, of which another conversation comes.
    Other(ConversationId, Vec<ClientResult>),
}

/// What a request that goes on from an older response than the newest says of its calls, which were given results before; `None` where not
/// all of them were, and where that is seen by what the request goes on with.
///
/// # Errors
/// 404, where there is no such response; 400, where it brings other results for calls that the response does not hold.
pub(crate) async fn before(state: &ServerState, ask: &Ask, previous: &str) -> Result<Option<GivenBefore>, ApiError> {
    let Some((conversation, results)) = given(ask) else { return Ok(None) };
    let (of, part) = found(state, previous).await.map_err(|error| error.about("previous_response_id"))?;
    if of != conversation {
        return Ok(None);
    }
    let look = |journal: &Journal| {
        let newest = journal.turn()?.id();
        let is_older = results.iter().all(|result| result.call.message < newest.0);
        if !results.iter().all(|result| result.is_waited_for_in(journal)) {
            return None;
        }
        let known = results.iter().map(|result| Some(result.is_same(journal.result(result.call)?)));
        let are_same = known.collect::<Option<Vec<bool>>>()?.into_iter().all(|is_same| is_same);
        let told = messages(journal, &part);
        let is_told = results.iter().all(|result| told.contains(&MessageId(result.call.message)));
        if are_same { is_older.then_some(Ok(true)) } else { Some(is_told.then_some(false).ok_or(())) }
    };
    match state.engine().look(&conversation, look).await? {
        None => Ok(None),
        Some(Ok(true)) => Ok(Some(GivenBefore::Same(conversation, results.iter().map(|result| result.call).collect()))),
        Some(Ok(false)) => Ok(Some(GivenBefore::Other(conversation, results))),
        Some(Err(())) => {
            let what = format!("the request brings other results than were given, of calls that `{previous}` does not hold");
            Err(ApiError::invalid(what).about("messages"))
        }
    }
}
