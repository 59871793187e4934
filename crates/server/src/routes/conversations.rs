//! Conversations: created, listed, changed, deleted.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_core::{MessageId, Seq};
use turnwright_engine::search::Excerpt;
use turnwright_engine::{
    Conversation, ConversationChange, Engine, EngineError, NewConversation, Place, SettingsOverlay, StoreError, shown_name,
};

use super::idempotency::repeatable;
use super::json;
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Search, State, Whole, id, unknown_cursor};
use crate::openapi::{
    BodyRefused, Conditional, Conflicting, ConversationPath, IfMatch, IfNoneMatch, NotThere, Refused, RepeatableHeader,
};
use crate::report::newest_turn;
use crate::settings;
use crate::tag::{Conditions, Tag};

/// How many conversations a search looks at.
const MAX_SEARCHED: usize = 10_000;

/// Creates a conversation.
#[utoipa::path(
    post,
    path = "/conversations",
    operation_id = "createConversation",
    tag = "conversations",
    params(RepeatableHeader),
    request_body = api::ConversationRequest,
    responses((status = 201, description = "It is created.", body = api::Conversation, headers(("Location" = String, description = "Its address."))), Refused, BodyRefused, Conflicting)
)]
pub(super) async fn create(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let request: api::ConversationRequest = whole.json()?;
    let mut overlay = settings::overlay(state.engine(), request.model, request.settings)?;
    overlay.system_prompt = request.system_prompt.or(overlay.system_prompt);
    overlay.tools = request.tools.or(overlay.tools);
    let id = request.id.as_deref().map(id).transpose()?;
    let new = NewConversation { id, title: request.title, overlay, idempotency: repeatable(&whole, "conversations")? };
    let created = state.engine().create(new).await?;
    Ok(told_created(created))
}

fn told_created(created: Conversation) -> Response {
    let location = format!("/api/v1/conversations/{}", created.id);
    let mut response = json(StatusCode::CREATED, settings::conversation(created));
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Makes a conversation of what was said before a message, or of all that was said. The other stays as it is.
#[utoipa::path(
    post,
    path = "/conversations/{id}/fork",
    operation_id = "forkConversation",
    tag = "conversations",
    params(ConversationPath, RepeatableHeader),
    request_body = api::ForkRequest,
    responses((status = 201, description = "It is created.", body = api::Conversation, headers(("Location" = String, description = "Its address."))), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn fork(
    State(state): State,
    InConversation(conversation): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let request: api::ForkRequest = whole.json()?;
    let before: Option<MessageId> = request.at.as_deref().map(id).transpose()?;
    let new = NewConversation {
        id: request.id.as_deref().map(id).transpose()?,
        title: request.title,
        overlay: SettingsOverlay::default(),
        idempotency: repeatable(&whole, &format!("{conversation}/fork"))?,
    };
    let created = state.engine().fork(&conversation, before, new).await?;
    Ok(told_created(created))
}

/// What is looked for.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WordsQuery {
    /// Words to search for.
    q: Option<String>,
    /// `true` leaves out those that are not pinned; not beside `q`.
    #[param(value_type = Option<bool>)]
    pinned: Option<String>,
}

impl WordsQuery {
    /// The words that are searched for, where there are any.
    fn words(&self) -> Option<&str> {
        self.q.as_deref().filter(|q| !q.trim().is_empty())
    }

    fn is_for_pinned(&self) -> Result<bool, ApiError> {
        let is_for_pinned = flag("pinned", self.pinned.as_deref())?;
        if is_for_pinned && self.words().is_some() {
            return Err(ApiError::bad_request("invalid_query", "`pinned` and `q` are not asked for at once"));
        }
        Ok(is_for_pinned)
    }
}

/// What `true`, `false` and nothing mean in a query.
fn flag(name: &str, value: Option<&str>) -> Result<bool, ApiError> {
    match value {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            let detail = format!("{name} is `{}`, it must be `true` or `false`", shown_name(other));
            Err(ApiError::bad_request("invalid_query", detail))
        }
    }
}

/// Conversations, the newest first. `q` finds those that have all its words in one message, or in their title or name. A page goes
/// on where the one before ended, whatever became of the conversations on that; what has a new entry meanwhile goes to the front,
/// where whoever begins anew finds it.
#[utoipa::path(
    get,
    path = "/conversations",
    operation_id = "listConversations",
    tag = "conversations",
    params(PageQuery, WordsQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::Conversation>), Refused)
)]
pub(super) async fn list(
    State(state): State,
    Search(page): Search<PageQuery>,
    Search(words): Search<WordsQuery>,
) -> Result<Response, ApiError> {
    let limit = page.limit()?;
    let after = page.cursor.as_deref().map(|cursor| cursor.parse().map_err(|_| unknown_cursor(cursor))).transpose()?;
    let (engine, most) = (state.engine(), limit.saturating_add(1));
    let plain = |found: Vec<Conversation>| found.into_iter().map(|conversation| (conversation, None)).collect();
    let found = match (words.words(), state.texts()) {
        _ if words.is_for_pinned()? => engine.pinned(after.as_ref(), most).await.map(plain),
        (Some(q), Some(texts)) => engine.search(&**texts, q, after.as_ref(), most).await,
        (Some(q), None) => search(engine, q, after, most).await.map(plain),
        (None, _) => engine.conversations(after.as_ref(), most).await.map(plain),
    };
    let page = api::List::page(found?, limit, |(found, _)| found.place().to_string());
    let told = |(found, excerpt): (Conversation, Option<Excerpt>)| api::Conversation {
        excerpt: excerpt.map(|Excerpt { message, text }| api::Excerpt { message_id: message.to_string(), text }),
        ..settings::conversation(found)
    };
    let data = page.data.into_iter().map(told).collect();
    Ok(json(StatusCode::OK, api::List { data, next_cursor: page.next_cursor, has_more: page.has_more }))
}

/// The conversations whose title or id holds the words of `q`, the newest first.
async fn search(engine: &Engine, q: &str, mut after: Option<Place>, limit: usize) -> Result<Vec<Conversation>, EngineError> {
    let words: Vec<String> = q.split_whitespace().map(str::to_lowercase).collect();
    let mut found = Vec::new();
    let mut seen = 0;
    while seen < MAX_SEARCHED {
        let page = engine.conversations(after.as_ref(), PageQuery::MAX).await?;
        seen = seen.saturating_add(page.len());
        let is_last = page.len() < PageQuery::MAX;
        after = page.last().map(Conversation::place);
        found.extend(page.into_iter().filter(|conversation| {
            let title = conversation.title.as_deref().unwrap_or_default().to_lowercase();
            words.iter().all(|word| title.contains(word) || conversation.id.as_str().to_lowercase().contains(word))
        }));
        if is_last || found.len() >= limit {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// One conversation, with its newest turn.
#[utoipa::path(
    get,
    path = "/conversations/{id}",
    operation_id = "getConversation",
    tag = "conversations",
    params(ConversationPath, IfNoneMatch),
    responses((status = 200, description = "It.", body = api::Conversation), (status = 304, description = "The client has it."), Refused, NotThere)
)]
pub(super) async fn show(
    State(state): State,
    InConversation(id): InConversation,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let conversation = state.engine().conversation(&id).await?;
    let journal = state.engine().journal(&id).await?;
    let answer = api::Conversation {
        last_seq: journal.last_seq().map(Seq::get),
        turn: newest_turn(&journal),
        ..settings::conversation(conversation)
    };
    Ok(tag(&answer).answer(&headers, &answer))
}

/// What a conversation is known by: what can be changed of it, and the rest.
fn tag(told: &api::Conversation) -> Tag {
    Tag::of(&(&told.title, &told.model, &told.system_prompt, &told.settings, &told.tools, told.pinned), told)
}

/// Changes what is named: absent fields stay, null ones go (RFC 7396).
#[utoipa::path(
    patch,
    path = "/conversations/{id}",
    operation_id = "changeConversation",
    tag = "conversations",
    params(ConversationPath, IfMatch),
    request_body = api::ConversationPatch,
    responses((status = 200, description = "It, changed.", body = api::Conversation), Refused, BodyRefused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn change(
    State(state): State,
    InConversation(id): InConversation,
    whole: Whole,
) -> Result<Response, ApiError> {
    let mut patch: api::ConversationPatch = whole.json()?;
    let title = match std::mem::take(&mut patch.title) {
        api::Patch::Keep => None,
        api::Patch::Clear => Some(None),
        api::Patch::Set(title) => Some(Some(title)),
    };
    let _changing = state.changing_settings().lock().await;
    loop {
        let before = state.engine().conversation(&id).await?;
        let seen = tag(&settings::conversation(before.clone()));
        let overlay = settings::patched(state.engine(), before.overlay.clone(), patch.clone())?;
        if let Some(problem) = overlay.problem_since(&before.overlay) {
            return Err(ApiError::invalid(problem));
        }
        // What is wrong with the request itself is told first.
        seen.must_match(&whole.headers)?;
        let overlay = (overlay != before.overlay).then_some(overlay);
        let change = ConversationChange { title: title.clone(), overlay, of: Some(before) };
        match state.engine().update(&id, change).await {
            // Another server was first: where that is a reason to refuse it, the condition tells.
            Err(EngineError::Store(StoreError::Changed { .. })) => {}
            after => {
                let after = settings::conversation(after?);
                return Ok(tag(&after).on(json(StatusCode::OK, after)));
            }
        }
    }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PurgeQuery {
    /// `true` overwrites what is deleted wherever the database still has it: in its log, its indexes and its free space.
    #[param(value_type = Option<bool>)]
    purge: Option<String>,
}

impl PurgeQuery {
    fn is_asked_for(&self) -> Result<bool, ApiError> {
        flag("purge", self.purge.as_deref())
    }
}

/// Deletes a conversation with all that was said in it and the files that it alone holds.
#[utoipa::path(
    delete,
    path = "/conversations/{id}",
    operation_id = "deleteConversation",
    tag = "conversations",
    params(ConversationPath, PurgeQuery, IfMatch),
    responses((status = 204, description = "It is gone."), Refused, NotThere, Conflicting, Conditional)
)]
pub(super) async fn delete(
    State(state): State,
    InConversation(id): InConversation,
    Search(query): Search<PurgeQuery>,
    headers: HeaderMap,
) -> Result<StatusCode, ApiError> {
    let is_purged = query.is_asked_for()?;
    let changing = state.changing_settings().lock().await;
    let mut owed = None;
    loop {
        let before = state.engine().conversation(&id).await?;
        tag(&settings::conversation(before.clone())).must_match(&headers)?;
        if is_purged && owed.is_none() {
            owed = Some(state.engine().owe_erasure().await?);
        }
        let deleted = if Conditions::is_any(&headers) {
            state.engine().delete_unchanged(&before).await
        } else {
            state.engine().delete(&id).await
        };
        match deleted {
            // Somebody else was first: whether that is a reason to refuse it, the condition tells.
            Err(EngineError::Store(StoreError::Changed { .. })) => {}
            deleted => break deleted?,
        }
    }
    // To overwrite it takes as long as the database is large, and others have settings to change.
    drop((changing, owed));
    if let Some(upkeep) = state.upkeep().filter(|_| is_purged).cloned() {
        let engine = state.engine().clone();
        let erased = state.engine().carry_through(async move { engine.erase(&*upkeep).await }).await?;
        let gone = format!("conversation `{id}` is gone, and what was left of it is not overwritten yet");
        erased.map_err(|error| ApiError::from(error).told_after(&gone))?;
    }
    Ok(StatusCode::NO_CONTENT)
}
