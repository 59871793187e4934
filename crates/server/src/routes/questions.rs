//! Answers to what tools ask of people.

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::{AnswerAction, CallId, ConversationId, ElicitationId};
use turnwright_engine::{EngineError, Reply};

use super::json;
use crate::error::ApiError;
use crate::extract::{Params, State, Whole, id};
use crate::openapi::{BodyRefused, Conflicting, NotThere, Refused, RepeatableHeader};
use crate::repeat::{CutOff, once_in_journal};
use crate::state::ServerState;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The conversation's name.
    #[param(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    id: String,
    /// The question's name, such as `question_13_0_0`, or that of the call that asks.
    #[param(pattern = "^(question|call)(_[0-9]{1,9}){2,3}$")]
    question: String,
}

/// Answers a question, once.
#[utoipa::path(
    post,
    path = "/conversations/{id}/questions/{question}/answer",
    operation_id = "answerQuestion",
    tag = "approvals",
    params(Named, RepeatableHeader),
    request_body = api::AnswerRequest,
    responses((status = 200, description = "It is answered.", body = api::AnswerReceipt), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn answer(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let conversation: ConversationId = id(&named.id)?;
    let request: api::AnswerRequest = whole.json()?;
    let action = match request.action {
        api::AnswerAction::Accept => AnswerAction::Accept,
        api::AnswerAction::Decline => AnswerAction::Decline,
        api::AnswerAction::Cancel => AnswerAction::Cancel,
    };
    let route = format!("questions/{}/answer", named.question);
    // A call's name stands for whatever it asks by then.
    let cut_off = match named.question.parse::<CallId>() {
        Ok(call) => CutOff::WhileUnanswered(conversation.clone(), call),
        Err(_) => CutOff::Again,
    };
    let (there, within, asked) = (state.clone(), conversation.clone(), super::asked(&whole)?);
    let answer = async move {
        let question = question(&there, &within, &named.question).await?;
        let reply = Reply { content: request.content, ..Reply::of(action) };
        let content = there.engine().answer(&within, question, reply).await?;
        Ok(api::AnswerReceipt { id: question.to_string(), action: request.action, content })
    };
    Ok(json(StatusCode::OK, once_in_journal(&state, asked, (&conversation, &route), cut_off, answer).await?))
}

/// The question of this name; a call's name stands for the one question that it asks.
async fn question(state: &ServerState, conversation: &ConversationId, name: &str) -> Result<ElicitationId, ApiError> {
    let Ok(call) = name.parse::<CallId>() else { return id(name) };
    let mut questions = state.engine().questions(conversation).await?;
    questions.retain(|question| question.call == call);
    match questions.as_slice() {
        [only] => Ok(only.id),
        [] => Err(EngineError::NotWaiting { call, why: "it asks nothing, or has its answer".to_owned() }.into()),
        several => {
            let names: Vec<_> = several.iter().map(|question| question.id.to_string()).collect();
            Err(ApiError::invalid(format!("`{call}` asks several things: {}", names.join(", "))))
        }
    }
}
