//! Calls that wait for a person.

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::{ApprovalId, CallId, ConversationId, Verdict};
use turnwright_engine::{About, Choice};

use super::json;
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Params, Search, State, Whole, id};
use crate::openapi::{BodyRefused, Conflicting, ConversationPath, NotThere, Refused, RepeatableHeader};
use crate::repeat::{CutOff, once_in_journal};
use crate::rules::{may_reach, remember, remembered_rule};
use crate::waiting::{waiting_call, waiting_question};

/// The calls of a conversation that wait.
#[utoipa::path(
    get,
    path = "/conversations/{id}/calls",
    operation_id = "listWaitingCalls",
    tag = "approvals",
    params(ConversationPath, PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::Call>), Refused, NotThere)
)]
pub(super) async fn list(
    State(state): State,
    InConversation(id): InConversation,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    let (waiting, questions) = (state.engine().waiting(&id).await?, state.engine().questions(&id).await?);
    let calls = waiting.into_iter().map(waiting_call).chain(questions.into_iter().map(waiting_question));
    let calls = calls.map(|call| api::Call { conversation_id: None, ..call }).collect();
    Ok(json(StatusCode::OK, page.part(&format!("conversations/{id}/calls"), calls, |call: &api::Call| call.id.clone())?))
}

/// The calls of all conversations that wait, by conversation.
#[utoipa::path(
    get,
    path = "/approvals",
    operation_id = "listApprovals",
    tag = "approvals",
    params(PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::Call>), Refused)
)]
pub(super) async fn all(State(state): State, Search(page): Search<PageQuery>) -> Result<Response, ApiError> {
    let (waiting, questions) = (state.engine().all_waiting().await?, state.engine().all_questions().await?);
    let calls = waiting.into_iter().map(waiting_call).chain(questions.into_iter().map(waiting_question)).collect();
    // What is decided about between two pages is gone from the list.
    let name = |call: &api::Call| format!("{}/{}", call.conversation_id.as_deref().unwrap_or_default(), call.id);
    Ok(json(StatusCode::OK, page.part("approvals", calls, name)?))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The conversation's name.
    #[param(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    id: String,
    /// The call's name, such as `call_13_0`.
    #[param(pattern = "^call_[1-9][0-9]{0,17}_[0-9]{1,9}$")]
    call: String,
}

/// Decides about a call, once.
#[utoipa::path(
    post,
    path = "/conversations/{id}/calls/{call}/decision",
    operation_id = "decideCall",
    tag = "approvals",
    params(Named, RepeatableHeader),
    request_body = api::DecisionRequest,
    responses((status = 200, description = "It is decided.", body = api::DecisionAnswer), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn decide(State(state): State, Params(named): Params<Named>, whole: Whole) -> Result<Response, ApiError> {
    let conversation: ConversationId = id(&named.id)?;
    let call: CallId = id(&named.call)?;
    let request: api::DecisionRequest = whole.json()?;
    let about = about(call, request.approval_id.as_deref())?;
    let verdict = match request.decision {
        api::DecisionVerdict::Allow => Verdict::Allow,
        api::DecisionVerdict::Deny => Verdict::Deny,
        api::DecisionVerdict::Happened => Verdict::Happened,
        api::DecisionVerdict::RunAgain => Verdict::RunAgain,
        api::DecisionVerdict::Skip => Verdict::Skip,
    };
    let choice = Choice { verdict, arguments: request.arguments, reason: request.reason };
    let remember = request.remember.map(remember).transpose()?;
    if let Some(remember) = &remember {
        may_reach(state.caller(), remember.scope)?;
    }
    let (engine, said) = (state.engine().clone(), request.decision);
    let (within, asked) = (conversation.clone(), super::asked(&whole)?);
    let decide = async move {
        let decided = engine.decide_and_remember(&within, about, choice, remember).await?;
        let also =
            decided.also.iter().map(|(call, verdict)| api::AlsoDecided { id: call.to_string(), decision: told(*verdict) });
        let also = also.collect();
        let remembered = decided.remembered.as_ref().map(remembered_rule);
        Ok(api::DecisionAnswer { id: call.to_string(), decision: said, remembered, also })
    };
    let route = format!("calls/{call}/decision");
    // A question that is named is this one and no later one.
    let is_named = request.approval_id.is_some();
    let cut_off = if is_named { CutOff::Again } else { CutOff::WhileUndecided(conversation.clone(), call) };
    Ok(json(StatusCode::OK, once_in_journal(&state, asked, (&conversation, &route), cut_off, decide).await?))
}

/// What is decided about: the question, where it is named.
fn about(call: CallId, asked: Option<&str>) -> Result<About, ApiError> {
    let Some(named) = asked else { return Ok(About::Call(call)) };
    let asked: ApprovalId = id(named)?;
    if asked.call != call {
        return Err(ApiError::invalid(format!("`{named}` is no question about `{call}`")));
    }
    Ok(About::Question(asked))
}

fn told(verdict: Verdict) -> api::DecisionVerdict {
    match verdict {
        Verdict::Allow => api::DecisionVerdict::Allow,
        Verdict::Deny => api::DecisionVerdict::Deny,
        Verdict::Happened => api::DecisionVerdict::Happened,
        Verdict::RunAgain => api::DecisionVerdict::RunAgain,
        Verdict::Skip => api::DecisionVerdict::Skip,
    }
}
