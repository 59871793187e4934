//! The messages of a conversation.

use std::collections::HashMap;

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use turnwright_api as api;
use turnwright_core::{ConversationId, Journal, MessageId, prompt};
use turnwright_engine::Extent;
use turnwright_host::export::{self, ExportForm, UnknownForm};
use utoipa::openapi::schema::{AnyOf, AnyOfBuilder};
use utoipa::openapi::{RefOr, Schema};

use super::json;
use super::streams::UiQuery;
use super::ui_history::as_told;
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Params, Search, State, id, unknown_cursor};
use crate::openapi::{Conflicting, ConversationPath, NotThere, Refused};
use crate::report::messages_after;
use crate::ui::UiVersion;

/// Which form the messages are wanted in; ours where none is named.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Form {
    /// `openai`, `anthropic`, `gemini`, `ai-sdk` or `ai-sdk-ui`; ours where absent.
    #[param(pattern = "^(openai|anthropic|gemini|ai-sdk|ai-sdk-ui)$")]
    format: Option<String>,
}

/// Oldest first, as they were stored: what somebody said while an answer was on its way stands before that answer, which had not seen
/// it. In the form of another, where one is named, each answer stands behind what it saw, and a page is cut between steps alone, so it
/// may hold more than `limit` messages where a step has many results; `limit` counts messages of the plain form.
#[utoipa::path(
    get,
    path = "/conversations/{id}/messages",
    operation_id = "listMessages",
    tag = "conversations",
    params(ConversationPath, PageQuery, Form, UiQuery),
    responses((status = 200, description = "A page of them; with `format`, an `ExportedPage` in its place.", body = MessagePage), Refused, NotThere)
)]
pub(super) async fn list(
    State(state): State,
    InConversation(conversation): InConversation,
    Search(page): Search<PageQuery>,
    Search(form): Search<Form>,
    Search(ui): Search<UiQuery>,
) -> Result<Response, ApiError> {
    let limit = page.limit()?;
    let version = ui.version(UiVersion::V7)?;
    if let Some(name) = &form.format {
        let form = name.parse().map_err(|error: UnknownForm| ApiError::bad_request("invalid_query", error.to_string()))?;
        let journal = state.engine().journal(&conversation).await?;
        if let Some(turn) = journal.turn() {
            state.heard().hear(&conversation, turn.id());
        }
        let mut page = exported(&journal, form, &page, limit)?;
        if form == ExportForm::AiSdkUi {
            page.data = as_told(&state, &conversation, &journal, page.data, version).await?;
        }
        return Ok(json(StatusCode::OK, page));
    }
    let cursor = page.cursor.as_deref();
    // One more tells whether there are more.
    let wanted = limit.saturating_add(1);
    let part = |journal: &Journal, extent| {
        messages_after(journal, cursor, wanted).filter(|found| found.len() == wanted || extent == Extent::Whole)
    };
    let part = state.engine().look_at_beginning(&conversation, part).await?;
    let part = part.ok_or_else(|| unknown_cursor(cursor.unwrap_or_default()))?;
    Ok(json(StatusCode::OK, api::List::page(part, limit, |message| message.id.clone())))
}

/// Describes a page of messages: ours, or in the form that was asked for.
pub(super) struct MessagePage;

impl utoipa::PartialSchema for MessagePage {
    fn schema() -> RefOr<Schema> {
        let pages =
            [<api::List<api::Message> as utoipa::PartialSchema>::schema(), <ExportedPage as utoipa::PartialSchema>::schema()];
        let any = pages.into_iter().fold(AnyOf::builder(), AnyOfBuilder::item);
        RefOr::T(Schema::AnyOf(any.build()))
    }
}

impl utoipa::ToSchema for MessagePage {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        <api::List<api::Message> as utoipa::ToSchema>::schemas(schemas);
        <ExportedPage as utoipa::ToSchema>::schemas(schemas);
    }
}

/// A page of a conversation in the form of another.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ExportedPage {
    /// The messages.
    #[schema(value_type = Vec<Object>)]
    data: Vec<Box<RawValue>>,
    /// What to give as `cursor` to get the next page; null on the last one.
    next_cursor: Option<String>,
    /// Whether there is a next page.
    has_more: bool,
    /// The system prompt, where it is no message in this form.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

fn exported(journal: &Journal, form: ExportForm, page: &PageQuery, limit: usize) -> Result<ExportedPage, ApiError> {
    let messages = prompt::history(journal);
    let pieces = export::pieces(form, &messages);
    let skipped = match &page.cursor {
        None => 0,
        Some(cursor) => {
            let places: HashMap<MessageId, usize> = prompt::order(journal).zip(0..).collect();
            // What it names may be hidden by now: it has its place still.
            let last = cursor.parse().ok().and_then(|last: MessageId| places.get(&last));
            let last = last.ok_or_else(|| unknown_cursor(cursor))?;
            pieces.partition_point(|piece| places.get(&piece.last).is_some_and(|place| place <= last))
        }
    };
    let rest = pieces.get(skipped..).unwrap_or_default();
    let mut weight = 0_usize;
    let fitting = rest.iter().take_while(|piece| {
        weight = weight.saturating_add(piece.weight);
        weight <= limit
    });
    let taken = rest.get(..fitting.count().max(1)).unwrap_or(rest);
    let has_more = taken.len() < rest.len();
    let range = match (taken.first(), taken.last()) {
        (Some(first), Some(last)) => first.range.start..last.range.end,
        (None, _) | (_, None) => 0..0,
    };
    let system = journal.turn().and_then(|turn| turn.settings().system_prompt.as_deref()).filter(|_| skipped == 0);
    Ok(ExportedPage {
        data: export::export(form, system, &export::History { messages: &messages, range, turns: journal.turns() }),
        next_cursor: taken.last().filter(|_| has_more).map(|piece| piece.last.to_string()),
        has_more,
        system: system.filter(|_| !form.holds_system()).map(str::to_owned),
    })
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The conversation's name.
    #[param(pattern = "^[A-Za-z0-9._:-]{1,128}$")]
    id: String,
    /// The message's name, such as `msg_3`.
    #[param(pattern = "^msg_[1-9][0-9]{0,17}$")]
    message: String,
}

/// A deletion is an entry that hides.
#[utoipa::path(
    delete,
    path = "/conversations/{id}/messages/{message}",
    operation_id = "hideMessage",
    tag = "conversations",
    params(Named),
    responses(
        (status = 204, description = "It is shown no more, to people or to models."),
        (status = 422, description = "It is the result of a call, which goes with the message that made it.", body = api::Problem, content_type = "application/problem+json"),
        Refused, NotThere, Conflicting
    )
)]
pub(super) async fn hide(State(state): State, Params(named): Params<Named>) -> Result<StatusCode, ApiError> {
    let conversation: ConversationId = id(&named.id)?;
    let message: MessageId = id(&named.message)?;
    state.engine().hide(&conversation, message).await?;
    Ok(StatusCode::NO_CONTENT)
}
