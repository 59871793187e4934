//! Approval rules: those that hold, and what they would make of a call.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::ConversationId;
use turnwright_engine::NewRule;

use super::idempotency::repeatable;
use super::{asked, json};
use crate::error::ApiError;
use crate::extract::{PageQuery, Params, Search, State, Whole, id};
use crate::openapi::{BodyRefused, Conflicting, IfNoneMatch, NotThere, Refused, RepeatableHeader};
use crate::repeat::once_alike;
use crate::rules::{configured_rule, explanation, may_reach, remembered_rule, scope, text};
use crate::settings::approve;
use crate::tag::Tag;

/// The rules of the configuration and those that were remembered.
#[utoipa::path(
    get,
    path = "/approvals/rules",
    operation_id = "listRules",
    tag = "approvals",
    params(PageQuery, IfNoneMatch),
    responses((status = 200, description = "A page of them, those of the configuration first.", body = api::List<api::Rule>), (status = 304, description = "The client has them."), Refused)
)]
pub(super) async fn list(
    State(state): State,
    Search(page): Search<PageQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let configured =
        state.engine().configured_rules().into_iter().zip(1..).map(|(rule, number)| configured_rule((number, rule)));
    let remembered = state.engine().rules().await;
    let rules = configured.chain(remembered.iter().map(remembered_rule)).collect();
    // Those of the configuration first, which have no time.
    let place = |rule: &api::Rule| format!("{} {}", rule.created_at.as_deref().unwrap_or("0"), rule.id);
    let list: api::List<api::Rule> = page.part("approvals/rules", rules, place)?;
    Ok(Tag::of_all(&list).answer(&headers, &list))
}

/// Remembers a rule.
#[utoipa::path(
    post,
    path = "/approvals/rules",
    operation_id = "addRule",
    tag = "approvals",
    params(RepeatableHeader),
    request_body = api::RuleRequest,
    responses((status = 201, description = "It holds.", body = api::Rule), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn add(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::RuleRequest = whole.json()?;
    let conversation = request.conversation_id.as_deref().map(id::<ConversationId>).transpose()?;
    let rule = text(request.tool, request.when, request.action)?;
    let scope = scope(request.scope)?;
    may_reach(state.caller(), scope)?;
    let new = NewRule { scope, conversation, rule, idempotency: repeatable(&whole, "approvals/rules")? };
    let (engine, of) = (state.engine().clone(), new.conversation.clone());
    if let Some(of) = &of {
        engine.conversation(of).await?;
    }
    let made = async move { Ok(remembered_rule(&engine.add_rule(new).await?)) };
    let place = (of.as_ref(), "approvals/rules");
    Ok(json(StatusCode::CREATED, once_alike(&state, asked(&whole)?, place, made).await?))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The rule's name, such as `rule_3f9a0c41d2`.
    #[param(pattern = "^(rule|configuration)_[0-9a-f]{1,32}$")]
    rule: String,
}

/// Forgets a remembered rule. What it has decided stays decided.
#[utoipa::path(
    delete,
    path = "/approvals/rules/{rule}",
    operation_id = "removeRule",
    tag = "approvals",
    params(Named),
    responses((status = 204, description = "It holds no more."), Refused, NotThere, Conflicting)
)]
pub(super) async fn remove(State(state): State, Params(named): Params<Named>) -> Result<Response, ApiError> {
    let number = named.rule.strip_prefix("configuration_").and_then(|number| number.parse::<usize>().ok());
    if number.is_some_and(|number| (1..=state.engine().configured_rules().len()).contains(&number)) {
        let detail = "this rule is written in the configuration file, and only there can it be removed";
        return Err(ApiError::new(StatusCode::CONFLICT, "rule_configured", detail));
    }
    let rules = state.engine().rules().await;
    if let Some(rule) = rules.iter().find(|rule| rule.id == named.rule) {
        may_reach(state.caller(), rule.reach.scope())?;
    }
    state.engine().remove_rule(&named.rule).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Says beforehand what would happen to a call, and by which rule.
#[utoipa::path(
    post,
    path = "/approvals/explain",
    operation_id = "explainCall",
    tag = "approvals",
    request_body = api::ExplainRequest,
    responses((status = 200, description = "What would happen.", body = api::Explanation), Refused, BodyRefused, NotThere)
)]
pub(super) async fn explain(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::ExplainRequest = whole.json()?;
    let conversation = request.conversation_id.as_deref().map(id::<ConversationId>).transpose()?;
    let approve = request.approve.map(approve);
    let arguments = request.arguments.as_deref().unwrap_or("{}");
    let explained = state.engine().explain(conversation.as_ref(), approve, &request.tool, arguments).await?;
    Ok(json(StatusCode::OK, explanation(explained)))
}
