//! Documents that are looked up, those beside conversations, and what is remembered of the caller.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_engine::knowledge::{Beside, CollectionSize, FoundPiece, IndexedFile};
use turnwright_engine::{EngineError, StoreError};
use turnwright_host::{Knowledge, Memory, MemoryError};

use super::json;
use crate::attached::shown_name;
use crate::body::as_it_is;
use crate::error::ApiError;
use crate::extract::{InConversation, PageQuery, Params, Search, State, Undivided, Whole};
use crate::openapi::{BodyRefused, Conditional, FileBytes, IfMatch, IfNoneMatch, NotThere, Refused};
use crate::report::context_place;
use crate::state::ServerState;
use crate::tag::Tag;

/// The longest name of a document.
const MAX_NAME_BYTES: usize = 255;

fn knowledge(state: &ServerState) -> Result<&Knowledge, ApiError> {
    state.knowledge().ok_or_else(|| ApiError::not_found("knowledge here: it is switched off"))
}

fn memory(state: &ServerState) -> Result<&Memory, ApiError> {
    state.memory().ok_or_else(|| ApiError::not_found("memory here: it is switched off"))
}

fn unstored(error: StoreError) -> ApiError {
    EngineError::Store(error).into()
}

/// The folders of documents that are looked into for each message.
#[utoipa::path(
    get,
    path = "/knowledge",
    operation_id = "listKnowledge",
    tag = "knowledge",
    params(PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::Knowledge>), Refused)
)]
pub(super) async fn list(State(state): State, Search(page): Search<PageQuery>) -> Result<Response, ApiError> {
    let mut all = Vec::new();
    if let Some(knowledge) = state.knowledge() {
        for name in knowledge.names() {
            all.extend(knowledge.size(name).await.map_err(unstored)?.map(|size| folder(name, &size)));
        }
    }
    Ok(json(StatusCode::OK, page.part("knowledge", all, |folder: &api::Knowledge| folder.id.clone())?))
}

fn folder(name: &str, size: &CollectionSize) -> api::Knowledge {
    let CollectionSize { files, skipped, pieces, vectors, .. } = *size;
    api::Knowledge { id: name.to_owned(), files, skipped, pieces, vectors }
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    name: String,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Question {
    /// The question.
    #[param(value_type = String, required = true, min_length = 1)]
    q: Option<String>,
}

/// What the documents of a folder say to a question: what a message with it would be shown.
#[utoipa::path(
    get,
    path = "/knowledge/{name}/search",
    operation_id = "searchKnowledge",
    tag = "knowledge",
    params(("name" = String, Path, description = "The knowledge."), Question),
    responses((status = 200, description = "The pieces.", body = api::KnowledgeAnswer), Refused, NotThere)
)]
pub(super) async fn search(
    State(state): State,
    Params(named): Params<Named>,
    _: Undivided,
    Search(question): Search<Question>,
) -> Result<Response, ApiError> {
    let knowledge = knowledge(&state)?;
    let unknown = || ApiError::not_found(format!("knowledge `{}`", named.name));
    if !knowledge.names().any(|name| name == named.name) {
        return Err(unknown());
    }
    let question = question.q.filter(|question| !question.trim().is_empty());
    let question =
        question.ok_or_else(|| ApiError::bad_request("invalid_query", "q is missing or empty; it must be a question"))?;
    let answer = knowledge.search(&named.name, &question).await.map_err(unstored)?.ok_or_else(unknown)?;
    let data = answer.found.iter().map(|(name, found)| piece(name, found)).collect();
    Ok(json(StatusCode::OK, api::KnowledgeAnswer { data, next_cursor: None, has_more: false, notices: answer.notices }))
}

fn piece(name: &str, found: &FoundPiece) -> api::KnowledgePiece {
    api::KnowledgePiece {
        id: format!("piece_{}", found.id.0),
        knowledge: name.to_owned(),
        document: found.path.clone(),
        place: context_place(found.piece.place),
        heading: found.piece.heading.clone(),
        text: found.piece.text.clone(),
        version: found.hash.clone(),
    }
}

/// The documents beside a conversation.
#[utoipa::path(
    get,
    path = "/conversations/{id}/knowledge",
    operation_id = "listConversationDocuments",
    tag = "knowledge",
    params(("id" = String, Path, description = "The conversation."), PageQuery),
    responses((status = 200, description = "A page of them.", body = api::List<api::KnowledgeDocument>), Refused, NotThere)
)]
pub(super) async fn documents(
    State(state): State,
    InConversation(id): InConversation,
    Search(page): Search<PageQuery>,
) -> Result<Response, ApiError> {
    // Who may not see the conversation is told that there is none.
    state.engine().conversation(&id).await?;
    let files = knowledge(&state)?.attached(&id).await.map_err(unstored)?;
    let files = files.into_iter().map(document).collect();
    Ok(json(
        StatusCode::OK,
        page.part(&format!("conversations/{id}/knowledge"), files, |file: &api::KnowledgeDocument| file.id.clone())?,
    ))
}

fn document(file: IndexedFile) -> api::KnowledgeDocument {
    api::KnowledgeDocument { id: file.path, bytes: file.bytes, version: file.hash }
}

#[derive(Debug, Deserialize)]
pub(super) struct NamedDocument {
    document: String,
}

/// Puts a document beside a conversation: for each message of it, what the document says to it is looked up.
#[utoipa::path(
    put,
    path = "/conversations/{id}/knowledge/{document}",
    operation_id = "putConversationDocument",
    tag = "knowledge",
    params(("id" = String, Path, description = "The conversation."), ("document" = String, Path, description = "The document's name, such as `guide.md`.")),
    request_body(content = FileBytes, content_type = "application/octet-stream", description = "Text, Markdown, HTML or PDF."),
    responses((status = 200, description = "It.", body = api::KnowledgeDocument), Refused, BodyRefused, NotThere)
)]
pub(super) async fn attach(
    State(state): State,
    InConversation(id): InConversation,
    Params(named): Params<NamedDocument>,
    whole: Whole,
) -> Result<Response, ApiError> {
    as_it_is(&whole.headers)?;
    let created_at_ms = state.engine().conversation(&id).await?.created_at_ms;
    let name = named.document;
    // Browsers take `.` and `..` out of an address.
    let is_path = matches!(name.as_str(), "." | "..");
    if name.is_empty() || name.len() > MAX_NAME_BYTES || shown_name(&name) != name || is_path {
        let detail = format!(
            "the document's name must be 1 to {MAX_NAME_BYTES} bytes without control characters, those that change the direction of writing too, not `.` or `..`"
        );
        return Err(ApiError::invalid(detail).about("document"));
    }
    let (knows, file, bytes) = (knowledge(&state)?.clone(), name.clone(), whole.body.to_vec());
    let beside = Beside { conversation: id.clone(), created_at_ms };
    let attached = async move { knows.attach(&beside, &file, bytes).await };
    let put = state.engine().carry_through(attached).await?.map_err(unstored)?;
    let put = put.ok_or_else(|| ApiError::not_found(format!("conversation `{id}`")))?;
    let file = put.map_err(|why| ApiError::invalid(format!("`{name}` cannot be looked up: {why}")))?;
    Ok(json(StatusCode::OK, document(file)))
}

/// Takes a document away from a conversation. What messages were shown of it stays.
#[utoipa::path(
    delete,
    path = "/conversations/{id}/knowledge/{document}",
    operation_id = "deleteConversationDocument",
    tag = "knowledge",
    params(("id" = String, Path, description = "The conversation."), ("document" = String, Path, description = "The document's name.")),
    responses((status = 204, description = "It is gone."), Refused, NotThere)
)]
pub(super) async fn detach(
    State(state): State,
    InConversation(id): InConversation,
    Params(named): Params<NamedDocument>,
) -> Result<Response, ApiError> {
    state.engine().conversation(&id).await?;
    if !knowledge(&state)?.detach(&id, &named.document).await.map_err(unstored)? {
        return Err(ApiError::not_found(format!("document `{}`", named.document)));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What is remembered of the caller. Models are shown it in each conversation.
#[utoipa::path(
    get,
    path = "/memory",
    operation_id = "getMemory",
    tag = "knowledge",
    params(IfNoneMatch),
    responses((status = 200, description = "It, with its `ETag`.", body = api::Memory), (status = 304, description = "The client has it."), Refused, NotThere)
)]
pub(super) async fn remembered(State(state): State, headers: HeaderMap) -> Result<Response, ApiError> {
    let text = memory(&state)?.read(state.caller().user()).await.map_err(unstored)?;
    let told = api::Memory { text };
    Ok(Tag::of_all(&told).answer(&headers, &told))
}

/// Changes what is remembered of the caller. With `If-Match`, only where nobody changed it since.
#[utoipa::path(
    put,
    path = "/memory",
    operation_id = "putMemory",
    tag = "knowledge",
    params(IfMatch),
    request_body = api::Memory,
    responses((status = 200, description = "It, with its `ETag`.", body = api::Memory), Refused, BodyRefused, NotThere, Conditional)
)]
pub(super) async fn remember(State(state): State, whole: Whole) -> Result<Response, ApiError> {
    let wanted: api::Memory = whole.json()?;
    let user = state.caller().user();
    let mut refused = None;
    let may = |now: &str| match Tag::of_all(&api::Memory { text: now.to_owned() }).must_match(&whole.headers) {
        Ok(()) => true,
        Err(error) => {
            refused = Some(error);
            false
        }
    };
    match memory(&state)?.write(user, &wanted.text, may).await {
        Ok(text) => {
            let told = api::Memory { text };
            Ok(Tag::of_all(&told).on(json(StatusCode::OK, &told)))
        }
        Err(MemoryError::Store(error)) => Err(unstored(error)),
        Err(error @ MemoryError::TooLong { .. }) => Err(ApiError::invalid(error.to_string()).about("text")),
        Err(error @ (MemoryError::Changed | MemoryError::NotThere)) => {
            let changed = || ApiError::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", error.to_string());
            Err(refused.unwrap_or_else(changed))
        }
    }
}
