//! Responses.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json as value};
use turnwright_api::openai::{OpenAiError, ResponsesRequest, WireResponse};
use turnwright_core::{ConversationId, Journal, Seq};
use turnwright_engine::{EngineError, OnWaiting, WatchFrom, shown_name};

use super::{Named, body, name};
use crate::error::ApiError;
use crate::extract::{Params, Search, State, Whole};
use crate::open_stream::OpenStream;
use crate::openai::again::Again;
use crate::openai::begin::{self, Ask, begin};
use crate::openai::error::failure_of;
use crate::openai::history::History;
use crate::openai::items::items;
use crate::openai::models;
use crate::openai::responses::client::Client;
use crate::openai::responses::developers::joined;
use crate::openai::responses::kept;
use crate::openai::responses::object;
use crate::openai::responses::remembered::Remembered;
use crate::openai::responses::stored::found;
use crate::openai::responses::{Form, ResponseFold};
use crate::openai::settings::OurTools;
use crate::openai::track::Part;
use crate::openapi::openai::{OpenAiRefused, OpenAiTurnRefused};
use crate::openapi::{ConversationHeader, RepeatableHeader};
use crate::routes::idempotency::asked_where_named;
use crate::routes::json;
use crate::sse::{self, Fold};
use crate::state::ServerState;

mod choices;

/// Runs a turn as a response, streamed or whole, or begins one. The header `X-Turnwright-Conversation`, `conversation` or
/// `metadata.conversation_id` names the conversation in which it goes on, as `previous_response_id` does; the answer has that header.
#[utoipa::path(
    post,
    path = "/responses",
    operation_id = "createResponse",
    tag = "openai",
    params(ConversationHeader, RepeatableHeader),
    request_body = ResponsesRequest,
    responses((status = 200, description = "The response: whole, as it is so far where it runs in the background, or as events.", content((WireResponse = "application/json"), (serde_json::Value = "text/event-stream"))), OpenAiRefused, OpenAiTurnRefused)
)]
pub(super) async fn create(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: ResponsesRequest = body(&whole, |one| serde_json::from_str::<ResponsesRequest>(one).is_ok())?;
    let again = Some(Again::of(&state, "v1/responses", &whole));
    choices::refuse(&request)?;
    let model = models::named(state.engine(), request.model.as_deref()).await?;
    let mut history = History::of(items(&request.input)?);
    // They hold for their own response; what the items say stays with the conversation.
    history.instructions = request.instructions.clone();
    let system = joined([request.instructions.clone(), history.system.clone()]);
    let (overlay, left_out) = choices::overlay(&state, &request, system, model).await?;
    let previous = request.previous_response_id.clone();
    if previous.is_some() && request.conversation.as_ref().is_some_and(|conversation| !conversation.is_null()) {
        return Err(exclusive());
    }
    let conversation = if previous.is_some() { None } else { named(&state, &whole, &request).await? };
    let idempotency = asked_where_named(&whole)?.map(|(key, fingerprint)| (format!("v1/responses {key}"), fingerprint));
    let is_streamed = request.stream == Some(true);
    let stream = is_streamed.then(|| OpenStream::of(&state)).transpose()?;
    let says_all = previous.is_none() && conversation.is_none();
    let is_named = conversation.is_some() && request.conversation.as_ref().is_none_or(Value::is_null);
    // No client of this API answers what is asked before its last message.
    let on_waiting = OnWaiting::Deny;
    // Which of ours are meant, `tools` says.
    let our_tools = if request.tools.is_some() { OurTools::AreAsSaid } else { OurTools::StayAsTheyWere };
    let ask = Ask { conversation, previous, history, overlay, our_tools, idempotency, known_as: None, on_waiting, again };
    let begun = begin(&state, ask).await;
    let begun = begun.map_err(about_input);
    let begun = begun.map_err(|error| if is_named { begin::about_named(error, &whole.headers) } else { error })?;
    let names = Named::of(&begun).leaving_out(&left_out);
    let (conversation, part) = (begun.conversation, begun.part);
    let stream = match stream {
        // Before anything else is waited for, so that what comes meanwhile is told in its order.
        Some(stream) => Some((state.engine().watch(&conversation, from(&part)).await?, stream)),
        None => None,
    };
    let object = object_of(&state, &conversation, &part).await?;
    let said = kept::said(&request, &object);
    let said = kept::keep(&state, (&conversation, part.after), said).await?;
    let form = if is_streamed { Form::Streamed } else { Form::Whole };
    let remembered = says_all.then(|| Remembered { history: begun.history, known: state.known().clone() });
    let object = kept::with(object, &said);
    let fold = ResponseFold::new(conversation.clone(), part.clone(), begun.offered, object, form);
    let fold = fold.decided_with(&state.options().command_flags).told_to(Client::of(&whole.headers)).remembering(remembered);
    let mut response = if let Some((watch, stream)) = stream {
        sse::response(watch, fold, stream).await
    } else if request.background == Some(true) {
        json(StatusCode::OK, so_far(&state, &conversation, &part, fold).await?.response())
    } else {
        match over(&state, &conversation, &part, fold).await {
            Ok(response) => json(StatusCode::OK, response),
            Err(error) => error.into_response(),
        }
    };
    name(&mut response, &names);
    Ok(response)
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct InPath {
    /// The response's name.
    id: String,
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ShowQuery {
    /// `true` for its events.
    stream: Option<String>,
    /// The `sequence_number` of the last event that the client has.
    #[param(pattern = "^[0-9]{0,18}$")]
    starting_after: Option<String>,
}

/// A response as it is now, or its stream from the beginning or after the number that the client has.
#[utoipa::path(
    get,
    path = "/responses/{id}",
    operation_id = "showResponse",
    tag = "openai",
    params(InPath, ShowQuery),
    responses((status = 200, description = "The response, or its events.", content((WireResponse = "application/json"), (serde_json::Value = "text/event-stream"))), (status = 429, description = "As many of your streams are open as may.", body = OpenAiError), OpenAiRefused)
)]
pub(super) async fn show(
    State(state): State,
    Params(InPath { id }): Params<InPath>,
    Search(query): Search<ShowQuery>,
) -> Result<Response, ApiError> {
    let (conversation, part) = found(&state, &id).await?;
    let wrong = |what: String| ApiError::invalid(format!("`starting_after` {what}")).about("starting_after");
    let seen = query.starting_after.as_deref().filter(|number| !number.is_empty());
    let seen = seen.map(|number| number.parse::<u64>().map_err(|_| wrong(format!("is `{number}`, it must be a number"))));
    let seen = seen.transpose()?;
    if query.stream.as_deref() == Some("true") {
        let fold = told(&state, &conversation, &part, Form::Streamed).await?;
        let is_hidden = |journal: &Journal| object::messages(journal, &part).iter().any(|message| journal.is_hidden(*message));
        let is_less = state.engine().look(&conversation, is_hidden).await?;
        if let Some(seen) = seen.filter(|_| !is_less) {
            let known = told(&state, &conversation, &part, Form::Streamed).await?;
            if let Some(last) = so_far(&state, &conversation, &part, known).await?.last_number().filter(|last| seen > *last) {
                return Err(wrong(format!("is {seen}, and the last event of `{id}` has the number {last}")));
            }
        }
        let fold = match seen {
            Some(seen) => fold.starting_after(seen).hidden_in_part(is_less),
            None => fold,
        };
        let stream = OpenStream::of(&state)?;
        return Ok(sse::response(state.engine().watch(&conversation, from(&part)).await?, fold, stream).await);
    }
    let fold = told(&state, &conversation, &part, Form::Whole).await?;
    Ok(json(StatusCode::OK, so_far(&state, &conversation, &part, fold).await?.response()))
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ItemsQuery {
    /// The item that the client has last.
    after: Option<String>,
    /// How many, 1 to 100; 20 unless said.
    #[param(pattern = "^([1-9][0-9]?|100)$")]
    limit: Option<String>,
    /// `desc`, the newest first, or `asc`.
    #[param(pattern = "^(asc|desc)$")]
    order: Option<String>,
}

/// What a response answers, the newest first unless the client wants it otherwise.
#[utoipa::path(
    get,
    path = "/responses/{id}/input_items",
    operation_id = "listResponseInput",
    tag = "openai",
    params(InPath, ItemsQuery),
    responses((status = 200, description = "Its items.", body = serde_json::Value), OpenAiRefused)
)]
pub(super) async fn input_items(
    State(state): State,
    Params(InPath { id }): Params<InPath>,
    Search(query): Search<ItemsQuery>,
) -> Result<Response, ApiError> {
    let (conversation, part) = found(&state, &id).await?;
    let given = query.limit.as_deref().unwrap_or("20");
    let limit =
        given.parse::<usize>().ok().filter(|limit| (1..=100).contains(limit)).ok_or_else(|| {
            ApiError::invalid(format!("`limit` is `{}`, it must be 1 to 100", shown_name(given))).about("limit")
        })?;
    let mut items = state.engine().look(&conversation, |journal| object::input_items(journal, &conversation, &part)).await?;
    match query.order.as_deref() {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(other) => {
            let what = format!("`order` is `{}`, it must be asc or desc", shown_name(other));
            return Err(ApiError::invalid(what).about("order"));
        }
    }
    let name = |item: &Value| item.get("id").and_then(Value::as_str).map(str::to_owned);
    if let Some(after) = &query.after {
        let at = items.iter().position(|item| name(item).as_ref() == Some(after));
        let at = at.ok_or_else(|| ApiError::invalid(format!("there is no item `{after}` in it")).about("after"))?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    let (first, last) = (items.first().and_then(name), items.last().and_then(name));
    Ok(json(
        StatusCode::OK,
        value!({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}),
    ))
}

/// Hides what a response said and what it answered, from people and models.
#[utoipa::path(
    delete,
    path = "/responses/{id}",
    operation_id = "deleteResponse",
    tag = "openai",
    params(InPath),
    responses((status = 200, description = "It is hidden.", body = serde_json::Value), (status = 409, description = "Its turn is not over.", body = OpenAiError), OpenAiRefused)
)]
pub(super) async fn remove(State(state): State, Params(InPath { id }): Params<InPath>) -> Result<Response, ApiError> {
    let (conversation, part) = found(&state, &id).await?;
    let look = |journal: &Journal| {
        let is_open = journal.open_turn().is_some_and(|turn| turn.id() == part.turn);
        if is_open { Err(object::is_newest(journal, &part)) } else { Ok(object::messages(journal, &part)) }
    };
    let messages = state.engine().look(&conversation, look).await?.map_err(|is_newest| {
        // The model needs what it said there for as long as the turn goes on.
        let what = if is_newest {
            "the response is not over; cancel it first"
        } else {
            "the turn of the response goes on in a later one; cancel that first"
        };
        ApiError::new(StatusCode::CONFLICT, "turn_open", what)
    })?;
    for message in messages {
        state.engine().hide(&conversation, message).await?;
    }
    Ok(json(StatusCode::OK, value!({"id": id, "object": "response", "deleted": true})))
}

/// Stops the turn of a response, where it is open and has not gone on from there.
#[utoipa::path(
    post,
    path = "/responses/{id}/cancel",
    operation_id = "cancelResponse",
    tag = "openai",
    params(InPath),
    responses((status = 200, description = "The response as it was left.", body = WireResponse), OpenAiRefused)
)]
pub(super) async fn cancel(State(state): State, Params(InPath { id }): Params<InPath>) -> Result<Response, ApiError> {
    let (conversation, part) = found(&state, &id).await?;
    // One that the turn has gone on from is over, whatever comes of that.
    if state.engine().look(&conversation, |journal| object::is_newest(journal, &part)).await? {
        match state.engine().cancel(&conversation, Some(part.turn)).await {
            Ok(_) => {
                state.engine().wait(&conversation, part.turn).await?;
            }
            Err(EngineError::NoOpenTurn { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let fold = told(&state, &conversation, &part, Form::Whole).await?;
    Ok(json(StatusCode::OK, so_far(&state, &conversation, &part, fold).await?.response()))
}

/// Two that say where it goes on.
fn exclusive() -> ApiError {
    let what = "`previous_response_id` and `conversation` both say where the request goes on; send one of them";
    ApiError::bad_request("mutually_exclusive_parameters", what).about("previous_response_id")
}

/// What is wrong with the messages, by the names that this API has for them.
fn about_input(error: ApiError) -> ApiError {
    let Some(place) = error.param().and_then(|param| param.strip_prefix("messages")) else { return error };
    let param = match place.strip_suffix(".tool_call_id") {
        Some(item) => format!("input{item}.call_id"),
        None => format!("input{place}"),
    };
    error.about(param)
}

/// The entries that a part is told from.
fn from(part: &Part) -> WatchFrom {
    WatchFrom::After(Seq::new(part.after.get().saturating_sub(1)))
}

async fn object_of(state: &ServerState, conversation: &ConversationId, part: &Part) -> Result<WireResponse, ApiError> {
    let settings = state.engine().look(conversation, |journal| object::settings(journal, part.turn)).await?;
    let settings = settings.ok_or_else(|| ApiError::not_found(format_args!("turn `{}`", part.turn)))?;
    Ok(object::object(conversation, part, &settings))
}

/// A response that was asked for before.
async fn told(state: &ServerState, conversation: &ConversationId, part: &Part, form: Form) -> Result<ResponseFold, ApiError> {
    let said = kept::kept(state, conversation, part.after).await?;
    let object = kept::with(object_of(state, conversation, part).await?, &said);
    let offered = state.engine().look(conversation, |journal| object::offered_to(journal, part)).await?;
    let fold = ResponseFold::new(conversation.clone(), part.clone(), offered, object, form);
    Ok(fold.decided_with(&state.options().command_flags))
}

/// What is known of a response now.
async fn so_far(
    state: &ServerState,
    conversation: &ConversationId,
    part: &Part,
    mut fold: ResponseFold,
) -> Result<ResponseFold, ApiError> {
    let mut watch = state.engine().watch(conversation, from(part)).await?;
    if let Some(frame) = watch.next().await {
        fold.fold(&frame, &mut Vec::new());
    }
    Ok(fold)
}

/// The response once it is over. Where its turn failed, that is told as a failure.
async fn over(
    state: &ServerState,
    conversation: &ConversationId,
    part: &Part,
    mut fold: ResponseFold,
) -> Result<WireResponse, ApiError> {
    // What is told while it happens would be put together again: it is told at once when it is over.
    let settled = state.engine().watch_once_settled(conversation, part.turn, from(part)).await;
    let mut watch = settled.map_err(|error| ApiError::of_turn(error).made_final())?;
    while !fold.is_done() {
        let Some(frame) = watch.next().await else { return Err(ApiError::of_watch(&watch)) };
        fold.fold(&frame, &mut Vec::new());
    }
    match fold.failure() {
        Some((failure, reason)) => Err(failure_of(failure, reason)),
        None => Ok(fold.response()),
    }
}

/// The conversation that a request names.
async fn named(state: &ServerState, whole: &Whole, request: &ResponsesRequest) -> Result<Option<ConversationId>, ApiError> {
    let field = match &request.conversation {
        None | Some(Value::Null) => return begin::named(&whole.headers, request.metadata.as_ref()),
        Some(Value::String(id)) => Some(id.as_str()),
        Some(other) => other.get("id").and_then(Value::as_str),
    };
    let missing = |id: &str| {
        let id: String = id.chars().take(200).collect();
        let what = format!("there is no conversation `{id}`; POST /api/v1/conversations makes one");
        ApiError::new(StatusCode::NOT_FOUND, "not_found", what).about("conversation")
    };
    let Some(id) = field else {
        return Err(ApiError::invalid("`conversation` must be a name, or an object with an `id`").about("conversation"));
    };
    let conversation: ConversationId = id.parse().map_err(|_| missing(id))?;
    match state.engine().conversation(&conversation).await {
        Ok(_) => Ok(Some(conversation)),
        Err(EngineError::NotFound { .. }) => Err(missing(id)),
        Err(error) => Err(error.into()),
    }
}
