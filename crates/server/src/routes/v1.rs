//! OpenAI's APIs: what their clients ask for, answered by turns of ours.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{any, get};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;

use super::{described_routes, no_method, no_such_route};
use crate::error::ApiError;
use crate::extract::Whole;
use crate::openai::activity::ToolActivity;
use crate::openai::begin::{Begun, CONVERSATION_HEADER};
use crate::openai::error::in_their_shape;
use crate::state::ServerState;

mod chat;
mod models;
mod responses;

described_routes! {
    routes, routes_description:
    chat::complete;
    responses::create;
    responses::show, responses::remove;
    responses::cancel;
    responses::input_items;
    models::list;
}

/// What is under `/v1`, described.
pub(super) fn description() -> OpenApiRouter<ServerState> {
    routes_description().routes(utoipa_axum::routes!(models::show))
}

/// The routes under `/v1`. Whatever is refused there is refused in OpenAI's shape.
pub(super) fn router() -> Router<ServerState> {
    routes()
        // Else they would be taken for names of responses.
        .route("/responses/compact", any(not_there))
        .route("/responses/input_tokens", any(not_there))
        // A model's name has slashes, which clients send as they are.
        .route("/models/{*id}", get(models::show))
        .fallback(not_there)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(in_their_shape))
}

async fn not_there(State(state): State<ServerState>, request: Request) -> ApiError {
    no_such_route(&state, &format!("/v1{}", request.uri().path()))
}

/// How tool activity is shown, where the request says.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct ActivityQuery {
    /// `hidden`, `reasoning`, `content` or `details`; the header `X-Turnwright-Tool-Activity` counts more.
    #[param(pattern = "^(hidden|reasoning|content|details)$")]
    tool_activity: Option<String>,
}

/// The same in the head of the request.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what `tool_activity` reads")]
struct ActivityHeader {
    /// `hidden`, `reasoning`, `content` or `details`: how tool activity is shown.
    #[param(rename = "X-Turnwright-Tool-Activity", pattern = "^(hidden|reasoning|content|details)$")]
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

/// The body of a request, of which every field may be missing. Where it is wrong, `can_be_read` tells which of its fields is.
fn body<'a, T: Deserialize<'a>>(whole: &'a Whole, can_be_read: impl Fn(&str) -> bool) -> Result<T, ApiError> {
    whole.json().map_err(|error: ApiError| {
        let fields: Option<Map<String, Value>> = serde_json::from_slice(&whole.body).ok();
        let is_wrong = |(name, value): &(String, Value)| !can_be_read(&json!({name.as_str(): value}).to_string());
        match fields.into_iter().flatten().find(is_wrong) {
            Some((name, _)) => error.about(name),
            None => error,
        }
    })
}

/// Names the conversation and the turn in the head of a response.
fn name(response: &mut Response, begun: &Named) {
    let headers = response.headers_mut();
    let named = [(CONVERSATION_HEADER, &begun.conversation), ("x-turnwright-turn", &begun.turn), (LEFT_OUT, &begun.left_out)];
    for (header, value) in named.into_iter().filter(|(_, value)| !value.is_empty()) {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(header), value);
        }
    }
}

/// What the head of a response names.
struct Named {
    conversation: String,
    turn: String,
    /// The kinds of tools that the request names and that nobody here runs.
    left_out: String,
}

/// The header that names those.
const LEFT_OUT: &str = "x-turnwright-left-out";

impl Named {
    fn of(begun: &Begun) -> Self {
        let (conversation, turn) = (begun.conversation.to_string(), begun.part.turn.to_string());
        Self { conversation, turn, left_out: String::new() }
    }

    fn leaving_out(mut self, kinds: &[String]) -> Self {
        self.left_out = kinds.join(", ");
        if !kinds.is_empty() {
            tracing::debug!(conversation = %self.conversation, kinds = self.left_out, "tools that nobody here runs were left out");
        }
        self
    }
}
