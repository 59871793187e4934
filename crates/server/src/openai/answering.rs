//! Requests that bring what calls wait for, with more of what was said than is new: which conversation goes on with that. Clients that run a
//! loop of tools say in each round all since it began, and name the place where it began, or leave the calls out.

use turnwright_core::{ConversationId, Journal};

use super::begin::{Ask, brings, where_there};
use super::buried::answered;
use super::given::{is_of_newest, none_waits};
use super::history::Said;
use super::ids;
use super::responses::stored::{Brings, continued, found, is_before_newest, said_since};
use crate::error::ApiError;
use crate::state::ServerState;

/// The conversation whose newest turn made all the calls that the request answers at its end, of those that it may mean: the one that it
/// names, the one that the calls name, or the one of a response that stands before that turn. `None` where there is no such, and where it
/// answers nothing.
///
/// # Errors
/// 404, where there is no such response; where the store fails.
pub(crate) async fn conversation_of(state: &ServerState, ask: &Ask) -> Result<Option<ConversationId>, ApiError> {
    let mut conversation = ask.conversation.clone();
    let mut calls = Vec::new();
    for item in &ask.history.fresh {
        if !matches!(item.said, Said::Result { .. } | Said::Approval { .. }) {
            continue;
        }
        let Some((call, held)) = answered(item) else { return Ok(None) };
        if held.is_some() && conversation.is_some() && held != conversation {
            return Ok(None);
        }
        conversation = held.or(conversation);
        calls.push(call);
    }
    if calls.is_empty() {
        return Ok(None);
    }
    let previous = match &ask.previous {
        Some(previous) => {
            let (of, part) = found(state, previous).await.map_err(|error| error.about("previous_response_id"))?;
            if conversation.as_ref().is_some_and(|conversation| *conversation != of) {
                return Ok(None);
            }
            conversation = Some(of);
            Some(part)
        }
        None => None,
    };
    let Some(conversation) = conversation else { return Ok(None) };
    let look = |journal: &Journal| {
        let follows = previous.as_ref().is_none_or(|part| is_before_newest(journal, part));
        follows && calls.iter().all(|call| is_of_newest(journal, *call))
    };
    let is_it = where_there(state.engine().look(&conversation, look).await)?.unwrap_or_default();
    Ok(is_it.then_some(conversation))
}

/// The conversation in which a response goes on with what the request brings, see [`continued`]. Nothing is copied for what is brought for
/// calls that say where they were made: no copy has them.
///
/// # Errors
/// 404, where there is no such response; 400, where it brings results alone, and more was said since the response.
pub(crate) async fn goes_on_from(
    state: &ServerState,
    ask: &Ask,
    previous: &str,
    is_silent: bool,
) -> Result<ConversationId, ApiError> {
    let decides = ask.history.approvals().next().is_some();
    if !(decides || is_silent) || !says_where(ask) {
        return continued(state, previous, brings(ask)).await;
    }
    let (conversation, part) = found(state, previous).await.map_err(|error| error.about("previous_response_id"))?;
    let look = |journal: &Journal| said_since(journal, &part, Brings::WhatCallsWaitFor).is_some();
    if !decides && state.engine().look(&conversation, look).await? {
        return Err(none_waits(ask, &conversation));
    }
    Ok(conversation)
}

/// Whether the request answers calls, and says of all of them where they were made.
fn says_where(ask: &Ask) -> bool {
    let asked = ask.history.approvals().map(|(_, request, ..)| ids::read_request(request).map(|(_, held)| held));
    let called = ask.history.results().map(|gave| ids::read_call(gave.call).map(|(_, held)| held));
    let mut answers = asked.chain(called).peekable();
    answers.peek().is_some() && answers.all(|read| read.is_none_or(|held| held.is_some()))
}
