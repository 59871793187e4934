//! Calls that wait for a person.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::{CallId, ConversationId, Verdict};
use turnwright_engine::Choice;

use super::json;
use crate::error::ApiError;
use crate::extract::{InConversation, Params, Whole, id};
use crate::state::ServerState;
use crate::waiting::{waiting_call, waiting_question};

/// The calls of a conversation that wait.
pub(super) async fn list(State(state): State<ServerState>, InConversation(id): InConversation) -> Result<Response, ApiError> {
    let (waiting, questions) = (state.engine().waiting(&id).await?, state.engine().questions(&id).await?);
    let calls = waiting.into_iter().map(waiting_call).chain(questions.into_iter().map(waiting_question));
    let calls = calls.map(|call| api::Call { conversation_id: None, ..call }).collect();
    Ok(json(StatusCode::OK, api::List::whole(calls)))
}

/// The calls of all conversations that wait.
pub(super) async fn all(State(state): State<ServerState>) -> Result<Response, ApiError> {
    let (waiting, questions) = (state.engine().all_waiting().await?, state.engine().all_questions().await?);
    let calls = waiting.into_iter().map(waiting_call).chain(questions.into_iter().map(waiting_question)).collect();
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
