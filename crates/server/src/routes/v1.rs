//! OpenAI's APIs: what their clients ask for, answered by turns of ours.

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::{no_method, no_route};
use crate::error::ApiError;
use crate::openai::activity::ToolActivity;
use crate::openai::begin::{Begun, CONVERSATION_HEADER};
use crate::openai::error::in_their_shape;
use crate::state::ServerState;

mod chat;
mod models;
mod responses;

/// The routes under `/v1`. Whatever is refused there is refused in OpenAI's shape.
pub(super) fn router() -> Router<ServerState> {
    Router::new()
        .route("/chat/completions", post(chat::complete))
        .route("/responses", post(responses::create))
        .route("/responses/{id}", get(responses::show).delete(responses::remove))
        .route("/responses/{id}/cancel", post(responses::cancel))
        .route("/responses/{id}/input_items", get(responses::input_items))
        .route("/models", get(models::list))
        .route("/models/{*id}", get(models::show))
        .fallback(|request: Request| no_route(request))
        .method_not_allowed_fallback(|request: Request| no_method(request))
        .layer(from_fn(in_their_shape))
}

/// How tool activity is shown, where the request says.
#[derive(Debug, Default, Deserialize)]
struct ActivityQuery {
    tool_activity: Option<String>,
}

/// The header that says how tool activity is shown.
const ACTIVITY_HEADER: &str = "x-turnwright-tool-activity";

fn tool_activity(state: &ServerState, headers: &HeaderMap, query: &ActivityQuery) -> Result<ToolActivity, ApiError> {
    let header = headers.get(ACTIVITY_HEADER).map(|value| value.to_str().unwrap_or("(not text)"));
    let Some(name) = header.or(query.tool_activity.as_deref()) else { return Ok(state.options().tool_activity) };
    ToolActivity::named(name).ok_or_else(|| {
        let what = format!("the tool activity is `{name}`, it must be hidden, reasoning, content or details");
        ApiError::bad_request("invalid_tool_activity", what).about("tool_activity")
    })
}

/// Names the conversation, the turn and the answer in the head of a response.
fn name(response: &mut Response, begun: &Named) {
    let headers = response.headers_mut();
    let named = [(CONVERSATION_HEADER, &begun.conversation), ("x-turnwright-turn", &begun.turn), ("x-request-id", &begun.id)];
    for (header, value) in named {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(header), value);
        }
    }
}

/// What the head of a response names.
struct Named {
    conversation: String,
    turn: String,
    id: String,
}

impl Named {
    fn of(begun: &Begun, prefix: &str) -> Self {
        Self {
            conversation: begun.conversation.to_string(),
            turn: begun.part.turn.to_string(),
            id: crate::openai::ids::answer_id(prefix, &begun.conversation, begun.part.after),
        }
    }
}
