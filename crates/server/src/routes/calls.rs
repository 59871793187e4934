//! Calls that wait for a person.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::{CallId, ConversationId, Verdict};
use turnwright_engine::{Choice, WaitingCall};

use super::json;
use crate::error::ApiError;
use crate::extract::{InConversation, Params, Whole, id};
use crate::state::ServerState;

/// The calls of a conversation that wait.
pub(super) async fn list(State(state): State<ServerState>, InConversation(id): InConversation) -> Result<Response, ApiError> {
    let waiting = state.engine().waiting(&id).await?;
    let calls = waiting.into_iter().map(|call| api::Call { conversation_id: None, ..told(call) }).collect();
    Ok(json(StatusCode::OK, api::List::whole(calls)))
}

/// The calls of all conversations that wait.
pub(super) async fn all(State(state): State<ServerState>) -> Result<Response, ApiError> {
    let calls = state.engine().all_waiting().await?.into_iter().map(told).collect();
    Ok(json(StatusCode::OK, api::List::whole(calls)))
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    id: String,
    call: String,
}

/// Decides about a call, once.
pub(super) async fn decide(
    State(state): State<ServerState>,
    Params(named): Params<Named>,
    whole: Whole,
) -> Result<Response, ApiError> {
    let conversation: ConversationId = id(&named.id)?;
    let call: CallId = id(&named.call)?;
    let request: api::DecisionRequest = whole.json()?;
    let verdict = match request.decision {
        api::DecisionVerdict::Allow => Verdict::Allow,
        api::DecisionVerdict::Deny => Verdict::Deny,
        api::DecisionVerdict::Happened => Verdict::Happened,
        api::DecisionVerdict::RunAgain => Verdict::RunAgain,
        api::DecisionVerdict::Skip => Verdict::Skip,
    };
    let choice = Choice { verdict, arguments: request.arguments, reason: request.reason };
    state.engine().decide(&conversation, call, choice).await?;
    Ok(json(StatusCode::OK, api::DecisionAnswer { id: call.to_string(), decision: request.decision }))
}

fn told(waiting: WaitingCall) -> api::Call {
    api::Call {
        id: waiting.call.to_string(),
        conversation_id: Some(waiting.conversation.to_string()),
        name: waiting.name,
        arguments: waiting.arguments,
        reason: waiting.reason.as_str().to_owned(),
        rule: waiting.rule,
    }
}
