//! Files that people bring: taken as they come, in pieces, and given back so that no browser runs them.

use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use turnwright_api as api;
use turnwright_engine::artifacts::{Artifact, ArtifactHasher, Artifacts, Draft, PIECE_BYTES, Removal, is_artifact_id};
use turnwright_engine::{Engine, StoreError};

use super::idempotency::key;
use super::json;
use crate::attached::shown_name;
use crate::auth::Admitted;
use crate::body::{as_it_is, drain};
use crate::byte_range::Wanted;
use crate::error::ApiError;
use crate::extract::{Params, Search, State};
use crate::file_type::{self, Seems, TextCheck};
use crate::openapi::{BodyRefused, Conflicting, FileBytes, IfNoneMatch, NotThere, RangeHeaders, Refused, RepeatableHeader};
use crate::pace::{TooSlow, Unread, paced};
use crate::repeat::once_alike;
use crate::state::ServerState;
use crate::tag::is_known;
use crate::timestamp::timestamp;

/// How much a form may hold besides its file, in bytes.
const FORM_BYTES: usize = 64 * 1024;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UploadQuery {
    /// What people call the file, where the body is the file itself. Of a longer name the first 200 characters are kept.
    name: Option<String>,
}

/// A form with one file.
#[derive(Debug, utoipa::ToSchema)]
#[expect(dead_code, reason = "describes what the form holds")]
pub(super) struct UploadForm {
    /// The file.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Stores a file, as the body itself or as the field `file` of a form, which has one. It is what its bytes say: a PNG, JPEG, GIF or WebP
/// image, a PDF file, or text in UTF-8. The same file with the same name is stored once. What no message names is removed
/// after a day.
#[utoipa::path(
    post,
    path = "/artifacts",
    operation_id = "uploadArtifact",
    tag = "conversations",
    params(UploadQuery, RepeatableHeader),
    request_body(content((FileBytes = "application/octet-stream"), (UploadForm = "multipart/form-data"))),
    responses((status = 201, description = "It is stored.", body = api::Artifact, headers(("Location" = String, description = "Its address."))), Refused, BodyRefused, NotThere, Conflicting)
)]
pub(super) async fn upload(
    State(state): State,
    Search(query): Search<UploadQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    as_it_is(&head.headers)?;
    let key = key(&head.headers)?.map(str::to_owned);
    let declared = head.headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("(not text)").to_owned());
    let is_form = declared.as_deref().is_some_and(|declared| declared.to_ascii_lowercase().starts_with("multipart/form-data"));
    // The length is told before a body that will be refused is sent, where the client waits for that.
    let length = head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let length = length.filter(|_| head.headers.contains_key(header::EXPECT));
    let most = state.engine().limits().attachment_bytes;
    let pieces = paced(body, state.options().body_bytes_per_second);
    let extensions = head.extensions.clone();
    let (name, unfinished, read) = if is_form {
        let most = most.saturating_add(FORM_BYTES);
        if length.is_some_and(|length| length > most) {
            return Err(FormUnread::TooLarge { most }.into());
        }
        let mut request = Request::from_parts(head, Body::from_stream(bounded(pieces, most)));
        DefaultBodyLimit::disable().apply(&mut request);
        from_form(&state, request).await?
    } else {
        let name = query.name.unwrap_or_else(|| "file".to_owned());
        if let Some(length) = length.filter(|length| *length > most) {
            return Err(too_large(Some(length), most));
        }
        let pieces = pieces.map_err(|error| cut_off(&error));
        let (unfinished, read) = taken(&state, pieces, declared.as_deref()).await?;
        (file_name(&name), unfinished, read)
    };
    Admitted::confirmed(&state, &extensions).await?;
    let stored = kept(&state, key, name, unfinished, read).await?;
    let location = format!("/api/v1/artifacts/{}", stored.id);
    let mut response = json(StatusCode::CREATED, stored);
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Why a piece of a form is not there.
#[derive(Debug, thiserror::Error)]
enum FormUnread {
    #[error(transparent)]
    Unread(#[from] Unread),
    #[error("the form is more than {most} bytes, the limit for its file with all that is beside it")]
    TooLarge { most: usize },
}

impl From<FormUnread> for ApiError {
    fn from(unread: FormUnread) -> Self {
        match unread {
            FormUnread::Unread(unread) => cut_off(&unread),
            FormUnread::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "attachment_too_large", unread.to_string()).ending_connection()
            }
        }
    }
}

/// The pieces of a form up to `most` bytes of all its fields; what is more is read to no end.
fn bounded(
    pieces: impl Stream<Item = Result<Bytes, Unread>> + Send + Unpin + 'static,
    most: usize,
) -> impl Stream<Item = Result<Bytes, FormUnread>> + Send + 'static {
    futures_util::stream::unfold(Some((pieces, most)), move |rest| async move {
        let (mut pieces, room) = rest?;
        let piece = match pieces.next().await? {
            Ok(piece) => piece,
            Err(unread) => return Some((Err(unread.into()), None)),
        };
        if let Some(room) = room.checked_sub(piece.len()) {
            return Some((Ok(piece), Some((pieces, room))));
        }
        drain(pieces).await;
        Some((Err(FormUnread::TooLarge { most }), None))
    })
}

/// The one file of a form: its field with the name `file`, or with a file's name.
async fn from_form(state: &ServerState, request: Request) -> Result<(String, Unfinished, Read), ApiError> {
    let wrong = |what: String| ApiError::bad_request("invalid_form", format!("the form is wrong: {what}"));
    let unread = |error: MultipartError| refused_behind(&error).unwrap_or_else(|| wrong(error.body_text()));
    let mut form = Multipart::from_request(request, &()).await.map_err(|error| wrong(error.body_text()))?;
    let mut file: Option<(String, Unfinished, Read)> = None;
    while let Some(field) = form.next_field().await.map_err(unread)? {
        if field.name() != Some("file") && field.file_name().is_none() {
            continue;
        }
        let name = file_name(field.file_name().unwrap_or("file"));
        if let Some((first, unfinished, _)) = file {
            unfinished.remove().await;
            drain(field).await;
            let detail =
                format!("the form has the files `{first}` and `{name}`, and one is taken; send each in a request of its own");
            return Err(ApiError::invalid(detail));
        }
        let declared = field.content_type().map(str::to_owned);
        let (unfinished, read) = taken(state, field.map_err(|error| cut_off(&error)), declared.as_deref()).await?;
        file = Some((name, unfinished, read));
    }
    file.ok_or_else(|| ApiError::invalid("the form has no field `file`"))
}

/// What is being stored, and no file yet. Where it is let go, also since whoever sends it is gone, its bytes are removed; those of a
/// process that was killed are removed later.
struct Unfinished {
    engine: Engine,
    artifacts: Arc<dyn Artifacts>,
    at_ms: u64,
    /// Nothing, once it is a file's or removed.
    draft: Option<Draft>,
}

impl Unfinished {
    async fn begin(state: &ServerState) -> Result<Self, ApiError> {
        let (engine, artifacts) = (state.engine().clone(), state.artifacts()?.clone());
        let at_ms = engine.clock().now_ms();
        let begun = async move {
            let draft = Some(artifacts.begin_artifact(at_ms).await?);
            Ok::<_, StoreError>(Self { engine, artifacts, at_ms, draft })
        };
        Ok(state.engine().carry_through(begun).await??)
    }

    /// Removes it.
    async fn remove(mut self) {
        if let Some(draft) = self.draft.take() {
            removed(&*self.artifacts, draft).await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(draft) = self.draft.take() else { return };
        let artifacts = self.artifacts.clone();
        self.engine.carry_out(async move { removed(&*artifacts, draft).await });
    }
}

async fn removed(artifacts: &dyn Artifacts, draft: Draft) {
    if let Err(error) = artifacts.drop_draft(draft).await {
        tracing::warn!(%error, "a file that was refused is removed later");
    }
}

/// Takes a file piece by piece; nothing of it stays where it is refused or breaks off.
async fn taken(
    state: &ServerState,
    pieces: impl Stream<Item = Result<Bytes, ApiError>> + Send,
    declared: Option<&str>,
) -> Result<(Unfinished, Read), ApiError> {
    let unfinished = Unfinished::begin(state).await?;
    let mut pieces = std::pin::pin!(pieces);
    match read(state, &unfinished, pieces.as_mut(), declared).await {
        Ok(read) => Ok((unfinished, read)),
        Err(error) => {
            unfinished.remove().await;
            drain(pieces).await;
            Err(error)
        }
    }
}

/// Makes what was taken a file. A key stands for the file: what it is is known when all of it came. Under the key is no more than the
/// file's id, and it is made whenever it comes: it is the same file, which may have been removed since.
async fn kept(
    state: &ServerState,
    key: Option<String>,
    name: String,
    mut unfinished: Unfinished,
    Read { hasher, media_type, bytes }: Read,
) -> Result<api::Artifact, ApiError> {
    let owner = state.caller().user().clone();
    let id = hasher.id(&owner, &name, &media_type);
    let asked = key.map(|key| (key, id.clone()));
    // Let go where the key is another file's.
    once_alike(state, asked, (None, "artifacts"), std::future::ready(Ok(id.clone()))).await?;
    let artifact = Artifact { id, owner, name, media_type, bytes, created_at_ms: unfinished.at_ms };
    let kept = async move {
        let keeper = unfinished.artifacts.clone();
        if let Some(draft) = unfinished.draft.take() {
            keeper.finish_artifact(draft, artifact.clone()).await?;
        }
        // The one that was there, where it was.
        Ok::<_, StoreError>(told(keeper.artifact(&artifact.owner, &artifact.id).await?.unwrap_or(artifact)))
    };
    Ok(state.engine().carry_through(kept).await??)
}

/// What was found out while a file was stored.
struct Read {
    hasher: ArtifactHasher,
    media_type: String,
    bytes: u64,
}

async fn read(
    state: &ServerState,
    unfinished: &Unfinished,
    mut pieces: std::pin::Pin<&mut (impl Stream<Item = Result<Bytes, ApiError>> + Send)>,
    declared: Option<&str>,
) -> Result<Read, ApiError> {
    let most = state.engine().limits().attachment_bytes;
    let (mut hasher, mut check) = (ArtifactHasher::default(), TextCheck::default());
    let (mut held, mut size, mut index) = (Vec::new(), 0_usize, 0_u32);
    let mut seems: Option<Seems> = None;
    loop {
        let next = pieces.next().await.transpose()?;
        let is_last = next.is_none();
        let bytes = next.unwrap_or_default();
        size = size.saturating_add(bytes.len());
        if size > most {
            return Err(too_large(None, most));
        }
        hasher.update(&bytes);
        held.extend_from_slice(&bytes);
        while held.len() >= PIECE_BYTES || (is_last && !held.is_empty()) {
            let rest = held.split_off(held.len().min(PIECE_BYTES));
            let piece = std::mem::replace(&mut held, rest);
            let seems = match &seems {
                Some(seems) => seems,
                None => seems.insert(file_type::of(&piece, declared)?),
            };
            if matches!(seems, Seems::Text { .. }) && !check.takes(&piece) {
                return Err(seems.no_text());
            }
            if let Some(draft) = unfinished.draft {
                unfinished.artifacts.put_piece(draft, index, piece).await?;
            }
            index = index.saturating_add(1);
        }
        if is_last {
            break;
        }
    }
    let media_type = match seems {
        Some(Seems::Of(media_type)) => media_type.to_owned(),
        Some(Seems::Text { media_type, .. }) if check.is_whole() => media_type,
        // Where other encodings have a letter, UTF-8 may begin one that never ends.
        Some(seems @ Seems::Text { .. }) => return Err(seems.no_text()),
        None => return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "attachment_empty", "the file is empty")),
    };
    Ok(Read { hasher, media_type, bytes: u64::try_from(size).unwrap_or(u64::MAX) })
}

/// What is left of a file's name: no folders, nothing that a terminal or a header would trip over or that makes it look like another.
fn file_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = shown_name(name).chars().take(200).collect();
    let name = name.trim();
    if name.is_empty() || name == "." || name == ".." { "file".to_owned() } else { name.to_owned() }
}

fn too_large(length: Option<usize>, most: usize) -> ApiError {
    let size = length.map_or_else(|| format!("more than {most} bytes"), |length| format!("{length} bytes"));
    let detail = format!("the file is {size}, the limit is {most} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "attachment_too_large", detail).ending_connection()
}

fn cut_off(error: &(dyn Error + 'static)) -> ApiError {
    refused_behind(error).unwrap_or_else(|| ApiError::bad_request("body_cut_off", format!("the file broke off: {error}")))
}

/// What is told of a body that is too slow, or of a form that is too large, where that is behind a failure.
fn refused_behind(error: &(dyn Error + 'static)) -> Option<ApiError> {
    if let Some(slow) = TooSlow::behind(error) {
        return Some(slow.into());
    }
    let mut behind = Some(error);
    while let Some(error) = behind {
        if let Some(FormUnread::TooLarge { most }) = error.downcast_ref() {
            return Some(FormUnread::TooLarge { most: *most }.into());
        }
        behind = error.source();
    }
    None
}

fn told(artifact: Artifact) -> api::Artifact {
    api::Artifact {
        id: artifact.id,
        name: artifact.name,
        media_type: artifact.media_type,
        bytes: artifact.bytes,
        created_at: timestamp(artifact.created_at_ms),
    }
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Named {
    /// The file's id.
    #[param(pattern = "^art_[0-9a-f]{32}$")]
    id: String,
}

/// A file's bytes, or with the header `Range: bytes=FIRST-LAST` a part of them. Browsers show images and save everything else; nothing of
/// it runs.
#[utoipa::path(
    get,
    path = "/artifacts/{id}",
    operation_id = "getArtifact",
    tag = "conversations",
    params(Named, RangeHeaders, IfNoneMatch),
    responses((status = 200, description = "They, with their own type.", content((FileBytes = "*/*"))), (status = 206, description = "The part that `Range` asks for.", content((FileBytes = "*/*"))), (status = 304, description = "The client has them."), (status = 416, description = "There is no such part; `Content-Range` says how many bytes there are.", body = api::Problem, content_type = "application/problem+json"), Refused, NotThere)
)]
pub(super) async fn show(State(state): State, Params(named): Params<Named>, headers: HeaderMap) -> Result<Response, ApiError> {
    let artifacts = state.artifacts()?.clone();
    let found = found(&state, &named.id).await?;
    // What an id names never changes.
    let tag = format!("\"{}\"", found.id);
    let is_known = is_known(&headers, &tag);
    let wanted = if is_known { Wanted::Whole } else { Wanted::of(&headers, &tag, found.bytes) };
    let mut response = match wanted {
        Wanted::Whole if is_known => StatusCode::NOT_MODIFIED.into_response(),
        Wanted::Whole => bytes_of(artifacts, &found, 0, found.bytes).into_response(),
        Wanted::Part(from, to) => (StatusCode::PARTIAL_CONTENT, bytes_of(artifacts, &found, from, to)).into_response(),
        Wanted::Nothing => {
            let detail = format!("the file has {} bytes; that part is behind its end", found.bytes);
            ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "no_such_part", detail).into_response()
        }
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::ACCEPT_RANGES, "bytes");
    if wanted == Wanted::Nothing {
        set(header::CONTENT_RANGE, &format!("bytes */{}", found.bytes));
        return Ok(response);
    }
    set(header::ETAG, &tag);
    set(header::CACHE_CONTROL, "private, max-age=86400, immutable");
    if !is_known {
        let (from, to) = match wanted {
            Wanted::Part(from, to) => (from, to),
            Wanted::Whole | Wanted::Nothing => (0, found.bytes),
        };
        if matches!(wanted, Wanted::Part(..)) {
            set(header::CONTENT_RANGE, &format!("bytes {from}-{}/{}", to.saturating_sub(1), found.bytes));
        }
        let is_image = found.media_type.starts_with("image/");
        let media_type = if found.media_type.starts_with("text/") {
            format!("{}; charset=utf-8", found.media_type)
        } else {
            found.media_type.clone()
        };
        set(header::CONTENT_TYPE, &media_type);
        set(header::CONTENT_LENGTH, &to.saturating_sub(from).to_string());
        set(header::CONTENT_DISPOSITION, &disposition(if is_image { "inline" } else { "attachment" }, &found.name));
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox; frame-ancestors 'none'");
        set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    }
    Ok(response)
}

/// Removes a file that no message holds.
#[utoipa::path(
    delete,
    path = "/artifacts/{id}",
    operation_id = "deleteArtifact",
    tag = "conversations",
    params(Named),
    responses((status = 204, description = "It is gone."), Refused, NotThere, Conflicting)
)]
pub(super) async fn remove(State(state): State, Params(named): Params<Named>) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::not_found(format_args!("artifact `{}`", named.id));
    match state.artifacts()?.remove_artifact(state.caller().user(), &named.id).await? {
        Removal::Removed => Ok(StatusCode::NO_CONTENT),
        Removal::Missing => Err(missing()),
        Removal::InUse => {
            let detail = "a conversation holds it; it goes with the conversation";
            Err(ApiError::new(StatusCode::CONFLICT, "in_use", detail))
        }
    }
}

async fn found(state: &ServerState, id: &str) -> Result<Artifact, ApiError> {
    let missing = || ApiError::not_found(format_args!("artifact `{}`", id.chars().take(80).collect::<String>()));
    if !is_artifact_id(id) {
        return Err(missing());
    }
    state.artifacts()?.artifact(state.caller().user(), id).await?.ok_or_else(missing)
}

/// The bytes from `from` up to `to`, read as the client takes them.
fn bytes_of(artifacts: Arc<dyn Artifacts>, artifact: &Artifact, from: u64, to: u64) -> Body {
    let (owner, id) = (artifact.owner.clone(), artifact.id.clone());
    let size = PIECE_BYTES as u64;
    let pieces = futures_util::stream::try_unfold(from, move |at| {
        let (artifacts, owner, id) = (artifacts.clone(), owner.clone(), id.clone());
        async move {
            let Some(index) = (at < to).then(|| u32::try_from(at / size).ok()).flatten() else { return Ok(None) };
            let piece = artifacts.piece(&owner, &id, index).await.map_err(std::io::Error::other)?;
            let Some(piece) = piece.map(Bytes::from) else { return Ok(None) };
            let counted = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(piece.len());
            let part = piece.slice(counted(at % size)..counted((at % size).saturating_add(to - at)));
            let after = at.saturating_add(part.len() as u64);
            Ok::<_, std::io::Error>((!part.is_empty()).then_some((part, after)))
        }
    });
    Body::from_stream(pieces)
}

/// A name in a header: plain for old clients, whole for the others (RFC 6266, RFC 8187).
fn disposition(kind: &str, name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|sign| if sign.is_ascii_graphic() && !matches!(sign, '"' | '\\' | '%') || sign == ' ' { sign } else { '_' })
        .collect();
    let mut whole = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            whole.push(char::from(byte));
        } else {
            use std::fmt::Write;
            // Writing to memory does not fail.
            let _ = write!(whole, "%{byte:02X}");
        }
    }
    format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{whole}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_last_part_and_breaks_no_header() {
        let table = [
            ("../../etc/passwd", "passwd"),
            ("C:\\dir\\a b.png", "a b.png"),
            ("a\r\nX: y", "aX: y"),
            ("..", "file"),
            ("a\u{202e}gnp.exe", "agnp.exe"),
            ("\u{2066}.\u{2069}.\u{200f}", "file"),
            ("", "file"),
        ];
        for (name, expected) in table {
            assert_eq!(file_name(name), expected);
        }
        let expected = "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%C3%9Fc.txt";
        assert_eq!(disposition("attachment", "a\"bßc.txt"), expected);
    }
}
