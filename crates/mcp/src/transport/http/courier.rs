//! `rmcp`'s HTTP client made honest: each request it posts ends, with an answer of its own or with an error.
//!
//! Alone it waits for ever where a server takes a request and sends nothing, or answers with an error that names no
//! request. It also recovers a lost session only where the server says so with 404, and then sends calls again by itself.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use reqwest::Client;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::post::Post;
use super::{HttpError, raw};
use crate::login::{Account, too_little};
use crate::transport::Wire;
use crate::transport::cleaner::INTERNAL_ERROR;

/// Where nobody says how large an event may be.
const MAX_EVENT_BYTES: usize = 16 << 20;
/// The longest event that is looked through for an error without an id; results may be long, such errors are short.
const MAX_REFUSAL_BYTES: usize = 16 << 10;
/// How often a list is asked for again, how far apart, and the longest pause that a server may ask for.
const MAX_RETRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Characters of a server's page that are repeated to people.
const MAX_PAGE_CHARS: usize = 200;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Courier {
    pub(super) client: Client,
    /// Who we are at the server.
    pub(super) account: Option<Arc<Account>>,
    /// Learns which session it is.
    pub(super) wire: Arc<Wire>,
}

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Posted = Result<StreamableHttpPostResponse, HttpError>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// What a posted request is, as far as its answer is judged by it.
struct Asked {
    id: RequestId,
    kind: Kind,
    /// Its result goes past `rmcp`'s types.
    is_read_here: bool,
    has_session: bool,
    max_event_bytes: usize,
    wire: Arc<Wire>,
}

/// What asking once more would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It changes nothing at the server.
    Repeatable,
    /// Whether it was run matters: it may have changed something.
    Call,
    Other,
}

impl Asked {
    fn of(post: &Post, wire: &Arc<Wire>) -> Option<Self> {
        let JsonRpcMessage::Request(request) = &post.message else { return None };
        let kind = match request.request {
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) | ClientRequest::ListToolsRequest(_) => {
                Kind::Repeatable
            }
            // In whatever form: as a task it has no type of its own.
            _ if request.request.method() == "tools/call" => Kind::Call,
            _ => Kind::Other,
        };
        Some(Self {
            id: request.id.clone(),
            kind,
            is_read_here: post.is_read_here(),
            has_session: post.session.is_some(),
            max_event_bytes: post.max_event_bytes,
            wire: Arc::clone(wire),
        })
    }

    /// The error that a refusal which names no request is where it tells of a session that the server forgot. A call was
    /// certainly not run only where it says so in the words of those who look for the session: `session` is also what the
    /// server's tool may have lost elsewhere.
    fn without_session(&self, text: &str) -> Option<HttpError> {
        if !self.has_session || !is_about_session(text) {
            return None;
        }
        if self.kind != Kind::Call || is_lost_session(text) {
            return Some(StreamableHttpError::SessionExpired);
        }
        let words = first_chars(text);
        self.wire.condemn(&format!("it may not know our session any more: {words}"));
        Some(StreamableHttpError::UnexpectedServerResponse(words.into()))
    }

    fn failed(&self, message: String) -> ServerJsonRpcMessage {
        JsonRpcMessage::error(ErrorData::new(ErrorCode(INTERNAL_ERROR), message, None), Some(self.id.clone()))
    }

    /// What came of it, so that it ends.
    fn judged(self, posted: Posted) -> Posted {
        let posted = match posted {
            Err(StreamableHttpError::ResponseBodyTooLarge { max_size }) => {
                return Ok(StreamableHttpPostResponse::Json(self.failed(too_long(max_size)), None));
            }
            posted => posted?,
        };
        match posted {
            StreamableHttpPostResponse::Accepted => {
                let answer = self.failed("it took the request and sent no answer (HTTP 202)".to_owned());
                Ok(StreamableHttpPostResponse::Json(answer, None))
            }
            StreamableHttpPostResponse::Json(message, session) => {
                Ok(StreamableHttpPostResponse::Json(self.answered(message)?, session))
            }
            StreamableHttpPostResponse::Sse(events, session) => {
                let limit = self.max_event_bytes;
                let events = events.map(move |event| match event {
                    Ok(event) => {
                        let event = raw::wrapped(with_id(event, &self.id), Some(&self.id));
                        Ok(if self.is_read_here { raw::answered(event) } else { event })
                    }
                    Err(error) if is_too_long(&error) => {
                        let failed = serde_json::to_string(&self.failed(too_long(limit)));
                        Ok(Sse { data: failed.ok(), ..Sse::default() })
                    }
                    Err(error) => Err(error),
                });
                Ok(StreamableHttpPostResponse::Sse(events.boxed(), session))
            }
            other => Ok(other),
        }
    }

    /// The one message that answers it.
    fn answered(&self, message: ServerJsonRpcMessage) -> Result<ServerJsonRpcMessage, HttpError> {
        Ok(match message {
            JsonRpcMessage::Error(mut error) if error.id.as_ref().is_none_or(|id| !is_same(&self.id, id)) => {
                if let Some(lost) = self.without_session(&error.error.message) {
                    return Err(lost);
                }
                error.id = Some(self.id.clone());
                JsonRpcMessage::Error(error)
            }
            JsonRpcMessage::Response(response) if !is_same(&self.id, &response.id) => {
                self.failed(format!("it answered with the result of another request ({})", response.id))
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                self.failed("it answered with a message that is no answer".to_owned())
            }
            answer @ (JsonRpcMessage::Error(_) | JsonRpcMessage::Response(_)) => answer,
        })
    }
}

impl Courier {
    async fn post(&self, asked: Option<Asked>, post: Post) -> Posted {
        let Some(asked) = asked else { return self.send(post).await.map_err(|error| plain(error, None)) };
        let mut tries = 0;
        let posted = loop {
            if asked.kind != Kind::Repeatable {
                break self.send(post).await;
            }
            let posted = self.send(post.clone()).await;
            match &posted {
                Err(StreamableHttpError::HttpStatus(busy)) => match pause(busy, tries) {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => break posted,
                },
                _ => break posted,
            }
            tries += 1;
        };
        let posted = posted.map_err(|error| plain(error, Some(&asked)));
        asked.judged(posted)
    }

    /// Sends it with the token that is there, and once more with a new one where that is not taken: it was not looked at then.
    async fn send(&self, mut post: Post) -> Posted {
        let Some(account) = &self.account else { return post.send(&self.client).await };
        let Some(token) = account.token().await? else { return post.send(&self.client).await };
        post.token = Some(token.clone());
        match post.clone().send(&self.client).await.map_err(|error| plain(error, None)) {
            Err(StreamableHttpError::AuthRequired(asked)) => {
                post.token = account.instead_of(&token).await?;
                if post.token.is_none() { Err(StreamableHttpError::AuthRequired(asked)) } else { post.send(&self.client).await }
            }
            Err(StreamableHttpError::InsufficientScope(asked)) => {
                let scopes = asked.required_scope.clone().unwrap_or_default();
                post.token = account.wants(&scopes, &token).await?;
                if post.token.is_none() {
                    return Err(StreamableHttpError::InsufficientScope(asked));
                }
                match post.send(&self.client).await {
                    Err(StreamableHttpError::InsufficientScope(_)) if account.signs_in_by_itself() => {
                        Err(too_little(&scopes).into())
                    }
                    posted => posted,
                }
            }
            posted => posted,
        }
    }

    /// The token for what is no message.
    async fn token(&self) -> Result<Option<String>, HttpError> {
        match &self.account {
            Some(account) => Ok(account.token().await?),
            None => Ok(None),
        }
    }
}

impl StreamableHttpClient for Courier {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Posted {
        self.post_message_with_max_sse_event_size(url, message, session, token, headers, MAX_EVENT_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        max_event_bytes: usize,
    ) -> Posted {
        if let Some(session) = &session {
            self.wire.session.get_or_init(|| Arc::clone(session));
        }
        let post = Post { url, message, session, token, headers, max_event_bytes };
        self.post(Asked::of(&post, &self.wire), post).await
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let token = token.or(self.token().await?);
        self.client.delete_session(url, session, token, headers).await
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        self.get_stream_with_max_sse_event_size(url, session, last_event, token, headers, MAX_EVENT_BYTES).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        max_event_bytes: usize,
    ) -> Result<Events, HttpError> {
        let token = token.or(self.token().await?);
        let events = self.client.get_stream_with_max_sse_event_size(url, session, last_event, token, headers, max_event_bytes);
        Ok(events.await?.map(|event| event.map(|event| raw::answered(raw::wrapped(event, None)))).boxed())
    }
}

/// How long to wait before a list is asked for again; `None` where that is to no purpose.
fn pause(busy: &HttpStatusError, tries: u32) -> Option<Duration> {
    let asked = busy.retry_after.as_deref().and_then(|after| after.trim().parse().ok()).map(Duration::from_secs);
    let pause = asked.unwrap_or(FIRST_PAUSE * 2_u32.pow(tries));
    (tries < MAX_RETRIES && pause <= MAX_PAUSE).then_some(pause)
}

/// A failure in words that say what the server did, where `rmcp`'s do not; and a lost session as one, however it was said.
fn plain(error: HttpError, asked: Option<&Asked>) -> HttpError {
    match error {
        StreamableHttpError::UnexpectedContentType(kind) => {
            let text = not_in_the_protocol(kind.as_deref());
            StreamableHttpError::UnexpectedServerResponse(text.into())
        }
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            StreamableHttpError::AuthRequired(AuthRequiredError::new(String::new()))
        }
        StreamableHttpError::UnexpectedServerResponse(text) if text.contains("recursion limit") => {
            let text = "its answer is nested too deeply to be read; as a stream of events it would be cut there";
            StreamableHttpError::UnexpectedServerResponse(text.into())
        }
        StreamableHttpError::UnexpectedServerResponse(text) => {
            let lost = asked.filter(|_| text.starts_with("HTTP 400")).and_then(|asked| asked.without_session(&text));
            lost.unwrap_or_else(|| StreamableHttpError::UnexpectedServerResponse(Cow::Owned(first_chars(&text))))
        }
        StreamableHttpError::HttpStatus(HttpStatusError { status, retry_after: Some(after), .. }) => {
            // The type's own text leaves it out.
            let text = format!("HTTP {status}; it asks to come back after {}", first_chars(&after));
            StreamableHttpError::UnexpectedServerResponse(text.into())
        }
        other => other,
    }
}

/// Why an answer of this media type is not read.
fn not_in_the_protocol(kind: Option<&str>) -> String {
    let Some(kind) = kind else {
        return "it answered with nothing, or without a content-type: its address may be wrong, or behind a login page"
            .to_owned();
    };
    let shown = first_chars(kind);
    let small = kind.to_ascii_lowercase();
    if ["application/json", "text/event-stream"].iter().any(|known| small.starts_with(known)) {
        return format!("it answered with `{shown}`, and its content-type is read in small letters alone");
    }
    format!("it answered with `{shown}`, not in the protocol: its address may be wrong, or behind a login page")
}

/// What is answered in place of an answer that is too long to be taken.
fn too_long(limit: usize) -> String {
    format!("the answer is over the limit of {limit} bytes: ask for less")
}

/// Whether a stream broke off at an event over the limit, which `rmcp` says in words alone.
fn is_too_long(error: &SseError) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(now) = cause {
        if now.to_string().contains("exceeded the maximum size") {
            return true;
        }
        cause = now.source();
    }
    false
}

/// Whether a refusal that names no request is about the session, which a server forgets when it starts anew.
fn is_about_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["session", "not initialized", "not initialised"].iter().any(|sign| text.contains(sign))
}

/// Whether it is in words that libraries for servers have for requests which they do not look at: without a session that they know.
fn is_lost_session(text: &str) -> bool {
    const SAID: [&str; 9] = [
        "session not found",
        "no valid session",
        "not initialized",
        "not initialised",
        "invalid session",
        "invalid or expired session",
        "missing session",
        "session id missing",
        "mcp-session-id",
    ];
    let text = text.to_ascii_lowercase();
    SAID.iter().any(|said| text.contains(said))
}

/// An event with an error that names no request, named after the request on whose stream it came.
fn with_id(mut event: Sse, id: &RequestId) -> Sse {
    if let Some(data) = &event.data
        && data.len() <= MAX_REFUSAL_BYTES
        && data.contains("\"error\"")
        && let Ok(JsonRpcMessage::Error(mut error)) = serde_json::from_str::<ServerJsonRpcMessage>(data)
        && error.id.is_none()
    {
        error.id = Some(id.clone());
        event.data = serde_json::to_string(&ServerJsonRpcMessage::Error(error)).ok();
    }
    event
}

fn is_same(own: &RequestId, other: &RequestId) -> bool {
    match (own, other) {
        (NumberOrString::Number(own), NumberOrString::String(other)) => other.parse() == Ok(*own),
        (own, other) => own == other,
    }
}

/// A server's page in one line, as much of it as is repeated to people.
pub(super) fn words(page: &[u8]) -> String {
    let text = String::from_utf8_lossy(page);
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).filter(|word| !word.is_empty());
    first_chars(&words.collect::<Vec<_>>().join(" "))
}

fn first_chars(text: &str) -> String {
    text.chars().take(MAX_PAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_read_is_told_with_what_is_wrong_with_it() {
        let said = |kind| not_in_the_protocol(kind);
        assert!(said(Some("text/html")).ends_with("not in the protocol: its address may be wrong, or behind a login page"));
        assert_eq!(
            said(Some("Application/JSON; Charset=UTF-8")),
            "it answered with `Application/JSON; Charset=UTF-8`, and its content-type is read in small letters alone"
        );
        assert!(said(None).starts_with("it answered with nothing, or without a content-type"));
    }

    #[test]
    fn a_list_is_asked_for_again_a_few_times_and_when_the_server_says_but_not_for_ever() {
        let busy = |after: Option<&str>| HttpStatusError::new(503, after.map(str::to_owned));
        let pauses = (0..4).map(|tries| pause(&busy(None), tries)).collect::<Vec<_>>();
        assert_eq!(pauses, [Some(FIRST_PAUSE), Some(FIRST_PAUSE * 2), Some(FIRST_PAUSE * 4), None]);
        assert_eq!(pause(&busy(Some(" 2 ")), 0), Some(Duration::from_secs(2)));
        assert_eq!(pause(&busy(Some("3600")), 0), None);
    }
}
