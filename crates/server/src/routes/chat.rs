//! Saying something, stopping, trying again.

use axum::response::Response;
use http::StatusCode;
use turnwright_api as api;
use turnwright_engine::{Answers, Beneath, EngineError, KeptBy, NewMessage, OnWaiting, Sent, SettingsOverlay};

use super::idempotency::repeatable;
use super::json;
use super::streams::{UiQuery, stream_of};
use crate::attached::Attached;
use crate::error::ApiError;
use crate::extract::{InConversation, Search, State, Whole, id};
use crate::open_stream::OpenStream;
use crate::openapi::{BodyRefused, Conflicting, ConversationPath, Limited, NotAnswered, NotThere, Refused, RepeatableHeader};
use crate::report::{self, turn_report};
use crate::settings;
use crate::ui::{Begin, UiVersion};

/// Runs a turn and answers when it is over or waits for a person, or streams it.
#[utoipa::path(
    post,
    path = "/conversations/{id}/chat",
    operation_id = "chat",
    tag = "turns",
    params(ConversationPath, UiQuery, RepeatableHeader),
    request_body = api::ChatRequest,
    responses((status = 200, description = "What came of it: whole, or as it comes.", content((api::ChatAnswer = "application/json"), (serde_json::Value = "text/event-stream"))), Refused, BodyRefused, NotThere, Conflicting, NotAnswered, Limited)
)]
pub(super) async fn chat(
    State(state): State,
    InConversation(id): InConversation,
    Search(query): Search<UiQuery>,
    whole: Whole,
) -> Result<Response, ApiError> {
    let request: api::ChatRequest = whole.json()?;
    let is_streamed = request.stream || whole.accepts_event_stream();
    let stream = is_streamed.then(|| OpenStream::of(&state)).transpose()?;
    let version = query.version(UiVersion::V7)?;
    let mut content = settings::content(request.content)?;
    let attached = Attached::resolve(&state, &mut content).await?;
    let message = NewMessage {
        content,
        overlay: settings::overlay(state.engine(), request.model, request.settings)?,
        on_waiting: on_waiting(request.on_waiting),
        answers: Answers::default(),
        kept_by: KeptBy::Servers,
        create: true,
        conversation: SettingsOverlay::default(),
        replaces: None,
        beneath: Beneath::Conversation,
        idempotency: repeatable(&whole, &format!("{id}/chat"))?,
        known_as: None,
        denies_questions: is_streamed && cannot_ask(version),
        ..NewMessage::text("")
    };
    // Apart, so that a stream that waits for its first words does not keep the room that sending takes.
    let sent = Box::pin(state.engine().send(&id, message)).await?;
    attached.keep(&state, &id).await;
    if let Some(stream) = stream {
        return stream_of(&state, id, sent.turn_id, (version, begin_of(&sent)), stream).await;
    }
    state.engine().wait(&id, sent.turn_id).await.map_err(ApiError::of_turn)?;
    let journal = state.engine().journal(&id).await?;
    let turn = turn_report(&journal, &id, sent.turn_id, state.engine().configured_policy());
    let turn = turn.ok_or_else(|| ApiError::not_found(format_args!("turn `{}`", sent.turn_id)))?;
    let user_message = report::message(&journal, sent.message_id);
    let assistant_message = report::answer_to(&journal, sent.turn_id, sent.message_id);
    let (success, message) = in_words(&turn, assistant_message.as_ref());
    Ok(json(StatusCode::OK, api::ChatAnswer { success, user_message, assistant_message, message, turn }))
}

/// Stores a message; its turn runs on.
#[utoipa::path(
    post,
    path = "/conversations/{id}/messages",
    operation_id = "sendMessage",
    tag = "turns",
    params(ConversationPath, RepeatableHeader),
    request_body = api::MessageRequest,
    responses((status = 202, description = "It is stored.", body = api::MessageAccepted), Refused, BodyRefused, NotThere, Conflicting, NotAnswered, Limited)
)]
pub(super) async fn store(State(state): State, InConversation(id): InConversation, whole: Whole) -> Result<Response, ApiError> {
    let request: api::MessageRequest = whole.json()?;
    let mut content = settings::content(request.content)?;
    let attached = Attached::resolve(&state, &mut content).await?;
    let message = NewMessage {
        content,
        overlay: settings::overlay(state.engine(), request.model, request.settings)?,
        on_waiting: on_waiting(request.on_waiting),
        answers: Answers::default(),
        kept_by: KeptBy::Servers,
        create: false,
        conversation: SettingsOverlay::default(),
        replaces: None,
        beneath: Beneath::Conversation,
        idempotency: repeatable(&whole, &format!("{id}/messages"))?,
        known_as: None,
        denies_questions: false,
        ..NewMessage::text("")
    };
    let sent = state.engine().send(&id, message).await.map_err(|error| match error {
        EngineError::NotFound { .. } => {
            let what = format!(
                "there is no conversation `{id}`; POST /api/v1/conversations makes one, and a message to \
                 /api/v1/conversations/{id}/chat makes this one"
            );
            ApiError::new(StatusCode::NOT_FOUND, "not_found", what)
        }
        error => error.into(),
    })?;
    attached.keep(&state, &id).await;
    let answer = api::MessageAccepted {
        message_id: sent.message_id.to_string(),
        turn_id: sent.turn_id.to_string(),
        turn_status: sent.state.as_str().to_owned(),
    };
    Ok(json(StatusCode::ACCEPTED, answer))
}

/// Stops a turn. Acknowledged once stored.
#[utoipa::path(
    post,
    path = "/conversations/{id}/cancel",
    operation_id = "cancelTurn",
    tag = "turns",
    params(ConversationPath),
    request_body = api::CancelRequest,
    responses((status = 202, description = "The stop is stored.", body = api::TurnAccepted), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn cancel(
    State(state): State,
    InConversation(conversation): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let request: api::CancelRequest = whole.json()?;
    let turn = request.turn_id.as_deref().map(id).transpose()?;
    let turn = state.engine().cancel(&conversation, turn).await?;
    let answer = api::TurnAccepted { turn_id: turn.to_string(), turn_status: "cancelling".to_owned() };
    Ok(json(StatusCode::ACCEPTED, answer))
}

/// Takes the last turn up again.
#[utoipa::path(
    post,
    path = "/conversations/{id}/retry",
    operation_id = "retryTurn",
    tag = "turns",
    params(ConversationPath, RepeatableHeader),
    request_body = api::RetryRequest,
    responses((status = 202, description = "It goes on.", body = api::TurnAccepted), Refused, BodyRefused, NotThere, Conflicting, NotAnswered, Limited)
)]
pub(super) async fn retry(
    State(state): State,
    InConversation(conversation): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let request: api::RetryRequest = whole.json()?;
    let overlay = settings::overlay(state.engine(), request.model, request.settings)?;
    let key = repeatable(&whole, &format!("{conversation}/retry"))?;
    let turn = state.engine().retry_once(&conversation, overlay, key).await?.turn_id;
    let answer = api::TurnAccepted { turn_id: turn.to_string(), turn_status: "running".to_owned() };
    Ok(json(StatusCode::ACCEPTED, answer))
}

/// Where the stream of a message that was sent begins.
pub(super) fn begin_of(sent: &Sent) -> Begin {
    if sent.message_id.0 == sent.turn_id.0 { Begin::Turn } else { Begin::Join(sent.message_id.0) }
}

/// Whether a client knows no approvals: what would have to be asked about is denied.
pub(super) fn cannot_ask(version: UiVersion) -> bool {
    version < UiVersion::V6
}

pub(super) fn on_waiting(choice: api::OnWaiting) -> OnWaiting {
    match choice {
        api::OnWaiting::Hold => OnWaiting::Hold,
        api::OnWaiting::Deny => OnWaiting::Deny,
    }
}

/// Whether a turn went well, and what became of it in one sentence.
fn in_words(turn: &api::TurnReport, answer: Option<&api::Message>) -> (bool, String) {
    let is_empty = answer.is_some_and(|answer| {
        let says_nothing = |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
        says_nothing(&answer.content) && says_nothing(&answer.refusal)
    });
    let failure = || turn.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
    match turn.status.as_str() {
        "completed" if is_empty => (true, "The model ended with an empty answer".to_owned()),
        "completed" => (true, "Chat completed successfully".to_owned()),
        "suspended" => (true, "The turn waits for a decision".to_owned()),
        "step_limit" => (true, "The step limit of this turn is reached".to_owned()),
        "cancelled" => (false, "The turn was stopped".to_owned()),
        "stopped" if turn.stop_summary.is_some() => {
            (false, format!("The turn was stopped: {}", turn.stop_summary.as_deref().unwrap_or_default()))
        }
        "stopped" => (false, format!("The turn was stopped: {}", turn.stop.as_deref().unwrap_or("no reason known"))),
        "failed" => (false, format!("The turn failed: {}", failure())),
        status => (false, format!("The turn is {status}")),
    }
}
