//! A call by hand: of a tool that somebody tries, or of one that reads what a decision is about.

use axum::response::Response;
use http::StatusCode;
use serde_json::Value;
use turnwright_api as api;
use turnwright_core::{Outcome, ToolResult};

use super::{asked, json};
use crate::error::ApiError;
use crate::extract::{State, Whole};
use crate::openapi::{BodyRefused, Conflicting, NotThere, Refused, RepeatableHeader};
use crate::repeat::{Keeps, once};
use crate::settings::approve;

/// Its name among the keys.
const ROUTE: &str = "tools/call";

/// Runs a tool once, outside of any conversation. Rules that deny hold. Nothing of it is stored but, with an
/// `Idempotency-Key`, the answer.
#[utoipa::path(
    post,
    path = "/tools/call",
    operation_id = "callTool",
    tag = "tools",
    params(RepeatableHeader),
    request_body = api::ToolCallRequest,
    responses((status = 200, description = "What came of it, failures too.", body = api::ToolCallAnswer), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn call(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::ToolCallRequest = whole.json()?;
    let mode = approve(request.approve.unwrap_or(api::Approve::ReadOnly));
    let engine = state.engine().clone();
    let asked = asked(&whole)?;
    let key = asked.as_ref().map(|(key, _)| format!("{ROUTE} {key}"));
    let called = async move {
        let (name, arguments) = (&request.name, request.arguments.as_deref().unwrap_or("{}"));
        let result = match key {
            Some(key) => Box::pin(engine.call_tool_as(&key, name, arguments, mode)).await?,
            None => Box::pin(engine.call_tool(name, arguments, mode)).await?,
        };
        Ok(api::ToolCallAnswer {
            outcome: outcome(&result).to_owned(),
            is_error: result.outcome.is_error(),
            content: content(&result),
            structured_content: result.structured_content,
            duration_ms: result.duration_ms,
        })
    };
    Ok(json(StatusCode::OK, once(&state, asked, ROUTE, Keeps::Answer, called).await?))
}

/// How a call ended, in one word.
pub(super) fn outcome(result: &ToolResult) -> &'static str {
    match result.outcome {
        Outcome::Success => "success",
        Outcome::Denied => "denied",
        Outcome::Error(kind) => kind.as_str(),
    }
}

/// What a call gave, as MCP writes content.
pub(super) fn content(result: &ToolResult) -> Vec<Value> {
    result.content.iter().map(|block| serde_json::to_value(block).unwrap_or_default()).collect()
}
