//! Chat Completions.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use turnwright_api::openai::{ChatCompletion, ChatCompletionRequest};
use turnwright_core::{ModelRef, Seq, ToolDefinition};
use turnwright_engine::{OnWaiting, SettingsOverlay, Watch, WatchFrom};

use super::{ActivityHeader, ActivityQuery, Named, body, name, tool_activity};
use crate::error::ApiError;
use crate::extract::{Search, State, Whole};
use crate::open_stream::OpenStream;
use crate::openai::again::Again;
use crate::openai::begin::{self, Ask, Begun, begin};
use crate::openai::chat::{Asked, ChatFold};
use crate::openai::chunk::TellsUsage;
use crate::openai::history::History;
use crate::openai::settings::OurTools;
use crate::openai::stops::Stops;
use crate::openai::{models, settings};
use crate::openapi::openai::{OpenAiRefused, OpenAiTurnRefused};
use crate::openapi::{ConversationHeader, RepeatableHeader};
use crate::routes::idempotency::asked_where_named;
use crate::routes::json;
use crate::sse::{self, Fold};
use crate::state::ServerState;

/// Runs a turn as a chat completion, streamed or whole. The header `X-Turnwright-Conversation`, or `metadata.conversation_id`, names the
/// conversation in which it goes on; the answer has that header.
#[utoipa::path(
    post,
    path = "/chat/completions",
    operation_id = "createChatCompletion",
    tag = "openai",
    params(ActivityQuery, ActivityHeader, ConversationHeader, RepeatableHeader),
    request_body = ChatCompletionRequest<'static>,
    responses((status = 200, description = "The answer: whole, or as `chat.completion.chunk` objects as it comes.", content((ChatCompletion = "application/json"), (serde_json::Value = "text/event-stream"))), OpenAiRefused, OpenAiTurnRefused)
)]
pub(super) async fn complete(
    State(state): State,
    Search(query): Search<ActivityQuery>,
    whole: Whole,
) -> Result<Response, ApiError> {
    let activity = tool_activity(&state, &whole.headers, &query)?;
    let request: ChatCompletionRequest<'_> =
        body(&whole, |one| serde_json::from_str::<ChatCompletionRequest<'_>>(one).is_ok())?;
    let again = Some(Again::of(&state, "v1/chat", &whole));
    refuse(&request)?;
    let model = models::named(state.engine(), request.model.as_deref()).await?;
    let known = state.known();
    let (items, beginnings) = known.seen().read(known.fingerprint(state.engine().user()), &request.messages)?;
    let history = History { beginnings, ..History::of(items) };
    let stops = Stops::of(request.stop.as_ref())?;
    let overlay = overlay(&state, &request, &history, model.clone()).await?;
    let has_form = overlay.output.is_some();
    let conversation = begin::named(&whole.headers, request.metadata.as_ref())?;
    let idempotency = asked_where_named(&whole)?.map(|(key, fingerprint)| (format!("v1/chat {key}"), fingerprint));
    let stream = (request.stream == Some(true)).then(|| OpenStream::of(&state)).transpose()?;
    let is_named = conversation.is_some();
    // No client of this API answers what is asked before its last message.
    let on_waiting = OnWaiting::Deny;
    // Nothing but `tool_choice` narrows ours.
    let our_tools = OurTools::AreAsSaid;
    let ask = Ask { conversation, previous: None, history, overlay, our_tools, idempotency, known_as: None, on_waiting, again };
    let begun = begin(&state, ask).await;
    let begun = begun.map_err(|error| if is_named { begin::about_named(error, &whole.headers) } else { error })?;
    let tells_usage = match request.stream_options.and_then(|options| options.include_usage) {
        Some(true) => TellsUsage::AtItsEnd,
        Some(false) | None => TellsUsage::Never,
    };
    let named = Named::of(&begun);
    let before = WatchFrom::After(Seq::new(begun.part.after.get().saturating_sub(1)));
    let Begun { conversation, part, offered, history } = begun;
    let asked = Asked {
        conversation: conversation.clone(),
        part: part.clone(),
        model: model.to_string(),
        offered,
        activity,
        tells_usage,
        history,
        stops,
        has_form,
        command_flags: state.options().command_flags.clone(),
        known: state.known().clone(),
    };
    let mut response = if let Some(stream) = stream {
        let watch = state.engine().watch(&conversation, before).await?;
        sse::response(watch, ChatFold::streamed(asked), stream).await
    } else {
        // What is told while it happens would be put together again: it is told at once when it is over.
        match state.engine().watch_once_settled(&conversation, part.turn, before).await {
            Ok(watch) => whole_answer(watch, asked).await.unwrap_or_else(IntoResponse::into_response),
            Err(error) => ApiError::of_turn(error).made_final().into_response(),
        }
    };
    name(&mut response, &named);
    Ok(response)
}

async fn whole_answer(mut watch: Watch, asked: Asked) -> Result<Response, ApiError> {
    let mut fold = ChatFold::whole(asked);
    while !fold.is_done() {
        let Some(frame) = watch.next().await else { return Err(ApiError::of_watch(&watch)) };
        fold.fold(&frame, &mut Vec::new());
    }
    Ok(json(StatusCode::OK, fold.completion()?))
}

/// Refuses what a client would miss in the answer.
fn refuse(request: &ChatCompletionRequest<'_>) -> Result<(), ApiError> {
    let unsupported = settings::unsupported;
    if request.messages.is_empty() {
        return Err(ApiError::invalid("`messages` is empty").about("messages"));
    }
    if let Some(n) = request.n.filter(|n| *n != 1) {
        return Err(unsupported("n", &format!("is {n}, it must be 1: a turn has one answer")));
    }
    if request.modalities.iter().flatten().any(|kind| kind != "text") {
        return Err(unsupported("modalities", "can hold `text` alone"));
    }
    if request.logprobs == Some(true) {
        return Err(unsupported("logprobs", "are not told here"));
    }
    if request.functions.is_some() {
        return Err(unsupported("functions", "were replaced by `tools`"));
    }
    Ok(())
}

async fn overlay(
    state: &ServerState,
    request: &ChatCompletionRequest<'_>,
    history: &History,
    model: ModelRef,
) -> Result<SettingsOverlay, ApiError> {
    let clients = client_tools(request)?;
    let choice = request.tool_choice.as_ref();
    let choosable = settings::choosable(state.engine(), choice, &clients).await;
    let chosen = settings::tool_choice(choice, &choosable)?;
    let overlay = SettingsOverlay {
        model: Some(model),
        system_prompt: history.system.clone(),
        temperature: request.temperature,
        max_output_tokens: request.max_completion_tokens.or(request.max_tokens),
        reasoning_effort: settings::effort("reasoning_effort", request.reasoning_effort.as_deref())?,
        tools: chosen.narrow_ours(None),
        // They are all that the client has for what follows: it may be another that goes on with the turn.
        client_tools: Some(chosen.narrow(clients)),
        tool_choice: chosen.choice,
        parallel_calls: request.parallel_tool_calls,
        output: settings::output("response_format", request.response_format.as_ref())?,
        ..SettingsOverlay::default()
    };
    let tokens = if request.max_completion_tokens.is_some() { "max_completion_tokens" } else { "max_tokens" };
    settings::check(&overlay, tokens)?;
    Ok(overlay)
}

fn client_tools(request: &ChatCompletionRequest<'_>) -> Result<Vec<Arc<ToolDefinition>>, ApiError> {
    let read = request.tools.iter().flatten().enumerate().map(|(at, tool)| {
        let place = format!("tools[{at}]");
        match &tool.function {
            Some(function) if tool.kind == "function" => {
                let place = format!("{place}.function");
                settings::tool(&place, &function.name, function.description.clone(), function.parameters.clone())
            }
            Some(_) | None => {
                let what = format!("`{place}` is of type `{}`; only functions are taken here", tool.kind);
                Err(ApiError::bad_request("unsupported_value", what).about(place))
            }
        }
    });
    let read: Vec<_> = read.collect::<Result<_, _>>()?;
    settings::named_once(&read)?;
    Ok(read)
}
