//! Any number of clients, over streamable HTTP.
//!
//! The routes are whoever's has them: this is one function from a request to its response, as the protocol wants it on the
//! endpoint's path. Who may send requests is the caller's to check.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::Body;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::SessionStore;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use serde_json::Value;

use super::backing::Backing;
use super::batch::{self, INVALID_REQUEST, Posted};
use super::body::{self, Answer, Unread, Whole};
use super::fixtures::Fixtures;
use super::handler::Handler;
use super::sessions::{Kept, SessionKeeping, Sessions};

/// How long answers that were just given may take to leave.
const ON_THEIR_WAY: Duration = Duration::from_millis(200);
/// How many sessions may be open at once, unless somebody says otherwise.
const MAX_SESSIONS: usize = 1_000;
/// The code of the error for whoever comes then; the protocol has none of its own.
const TOO_MANY: i32 = -32_000;
/// As the protocol's library says it of other requests.
const NO_SESSION: &str = "Not Found: Session not found";
/// The longest refusal of the protocol's library that is read.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// The endpoint of both eras: sessions for clients that open one, single requests for the others. Cheap to clone.
#[derive(Clone)]
pub struct HttpEndpoint {
    service: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
    max_sessions: usize,
    body_limit_bytes: usize,
    handler: Handler,
}

impl HttpEndpoint {
    /// The endpoint of what is behind it; a request's body may have `body_limit_bytes`.
    pub fn new(backing: Arc<dyn Backing>, body_limit_bytes: usize) -> Self {
        Self::of(Handler::new(backing), body_limit_bytes, None)
    }

    /// The same with what the conformance suite looks for beside the tools.
    pub fn with_fixtures(backing: Arc<dyn Backing>, body_limit_bytes: usize) -> Self {
        Self::of(Handler { fixtures: Some(Fixtures), ..Handler::new(backing) }, body_limit_bytes, None)
    }

    fn of(handler: Handler, body_limit_bytes: usize, keeping: Option<SessionKeeping>) -> Self {
        let kept = keeping.map(|keeping| Arc::new(Kept::new(keeping)));
        let sessions = Arc::new(Sessions::new(handler.backing.clone(), handler.named.clone(), kept.clone()));
        let mut config = StreamableHttpServerConfig::default()
            .with_cancellation_token(handler.stop.clone())
            .with_max_request_body_bytes(body_limit_bytes)
            // The caller has looked: it knows what the page beside this is called.
            .disable_allowed_hosts();
        config.session_store = kept.map(|kept| kept as Arc<dyn SessionStore>);
        let each = handler.clone();
        let service = StreamableHttpService::new(move || Ok(each.clone()), Arc::clone(&sessions), config);
        Self { service, sessions, max_sessions: MAX_SESSIONS, body_limit_bytes, handler }
    }

    /// The same, whose sessions are kept: whoever keeps them in the same place and for the same owner goes on with them. To be
    /// called before the first request.
    #[must_use]
    pub fn keeping_sessions(self, keeping: SessionKeeping) -> Self {
        let max_sessions = self.max_sessions;
        Self { max_sessions, ..Self::of(self.handler, self.body_limit_bytes, Some(keeping)) }
    }

    /// The same with another number of sessions that may be open at once.
    #[must_use]
    pub fn with_max_sessions(mut self, max_sessions: usize) -> Self {
        self.max_sessions = max_sessions;
        self
    }

    /// Answers one request.
    pub async fn answer<B>(
        &self,
        request: http::Request<B>,
    ) -> http::Response<impl Body<Data = Bytes, Error = Infallible> + Send + Sync + 'static + use<B>>
    where
        B: Body + Send + 'static,
        B::Error: fmt::Display,
        B::Data: Send + 'static,
    {
        let named = request.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        if self.wants_room(opens_session(&request), named.as_deref()).await && self.sessions.count().await >= self.max_sessions
        {
            return too_many(self.max_sessions);
        }
        if let Some(named) = named.as_deref().filter(|_| request.method() == Method::DELETE)
            && !self.sessions.has(named).await
        {
            return refusal(StatusCode::NOT_FOUND, &batch::error(INVALID_REQUEST, NO_SESSION, &Value::Null));
        }
        if request.method() != Method::POST {
            let ends = request.method() == Method::DELETE;
            let mut answer = as_message(self.service.handle(request).await, &Bytes::new()).await;
            // It is over when this is answered; some clients take another word for a failure.
            if ends && answer.status() == StatusCode::ACCEPTED {
                *answer.status_mut() = StatusCode::NO_CONTENT;
            }
            return answer;
        }
        let (head, sent) = request.into_parts();
        if announced(&head.headers).is_some_and(|bytes| bytes > self.body_limit_bytes) {
            return too_long(self.body_limit_bytes);
        }
        let sent = match body::read(sent, self.body_limit_bytes).await {
            Ok(sent) => sent,
            Err(Unread::TooLong) => return too_long(self.body_limit_bytes),
            Err(Unread::Broken(why)) => {
                let why = format!("the request broke off: {why}");
                return refusal(StatusCode::BAD_REQUEST, &batch::error(INVALID_REQUEST, &why, &Value::Null));
            }
        };
        match batch::posted(&sent, &head.headers) {
            Posted::One => {
                if let Some(error) = batch::changed_number(&sent) {
                    return refusal(StatusCode::OK, &error);
                }
                let answer = self.service.handle(http::Request::from_parts(head, Whole::of(sent.clone()))).await;
                as_message(answer, &sent).await
            }
            Posted::Refused(why) => refusal(StatusCode::BAD_REQUEST, &batch::error(INVALID_REQUEST, &why, &Value::Null)),
            Posted::Many(messages) => {
                let mut answers = Vec::new();
                for message in messages {
                    let sent = Bytes::from(message.to_string());
                    let request = http::Request::from_parts(head.clone(), Whole::of(sent.clone()));
                    let answer = as_message(self.service.handle(request).await, &sent).await;
                    let is_its_own = matches!(answer.status(), StatusCode::BAD_REQUEST if is_json(answer.headers()));
                    match answer.status() {
                        StatusCode::ACCEPTED => {}
                        StatusCode::OK if !is_json(answer.headers()) => answers.push(answer.into_body()),
                        status if status == StatusCode::OK || is_its_own => {
                            let read = body::read(answer.into_body(), MAX_REFUSAL_BYTES).await;
                            answers.push(Answer::Own(Whole::of(batch::event(&read.unwrap_or_default()))));
                        }
                        // What is wrong with the request is wrong with all of it.
                        _ => return answer,
                    }
                }
                together(answers)
            }
        }
    }

    /// Whether a request opens a session here: for the first time, or again where `named` is another process's.
    async fn wants_room(&self, opens: bool, named: Option<&str>) -> bool {
        match named {
            Some(id) => !self.sessions.knows(id).await,
            None => opens,
        }
    }

    /// Answers the calls that run with what is known of them, then ends all sessions and streams.
    pub async fn end(&self) {
        self.handler.puts_down.cancel();
        self.handler.calls.close();
        self.handler.calls.wait().await;
        // Of a call that ended just before this nothing is left but its answer.
        if self.handler.has_answered.load(Ordering::Relaxed) {
            tokio::time::sleep(ON_THEIR_WAY).await;
        }
        self.handler.stop.cancel();
        self.handler.tasks.close();
        self.handler.tasks.wait().await;
    }
}

/// Whether a request can only be one that opens a session: clients of the era without sessions say so.
fn opens_session<B>(request: &http::Request<B>) -> bool {
    let has = |name| request.headers().contains_key(name);
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    let has_none = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str());
    request.method() == Method::POST && !has("mcp-session-id") && !has_none
}

/// What somebody is told who comes when there is no room.
fn too_many<B>(limit: usize) -> http::Response<Answer<B>> {
    let why = format!("{limit} sessions are open, which is the limit; close one that is not used, or try again later");
    let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, &batch::error(TOO_MANY, &why, &Value::Null));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

/// How many bytes a request says that it has. What is no number is none of ours: its connection knows better.
fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_long<B>(limit_bytes: usize) -> http::Response<Answer<B>> {
    let why = format!("the request is longer than {limit_bytes} bytes");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &batch::error(INVALID_REQUEST, &why, &Value::Null))
}

fn refusal<B>(status: StatusCode, error: &Value) -> http::Response<Answer<B>> {
    let mut response = http::Response::new(Answer::Own(Whole::of(error.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The streams of the messages of a batch as one; nothing where none of them has an answer.
fn together<B>(answers: Vec<Answer<B>>) -> http::Response<Answer<B>> {
    if answers.is_empty() {
        let mut response = http::Response::new(Answer::Own(Whole::default()));
        *response.status_mut() = StatusCode::ACCEPTED;
        return response;
    }
    let mut response = http::Response::new(Answer::Together(answers));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// An answer to one message, whose refusals are messages too: the library's are plain text.
async fn as_message<B>(answer: http::Response<B>, sent: &Bytes) -> http::Response<Answer<B>>
where
    B: Body<Data = Bytes, Error = Infallible>,
{
    let status = answer.status();
    if status.is_success() || is_json(answer.headers()) {
        return answer.map(Answer::Served);
    }
    let (mut head, said) = answer.into_parts();
    let said = body::read(said, MAX_REFUSAL_BYTES).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    // So the library says that it cannot read the message; another media type is named as one.
    let (status, error) = if status == StatusCode::UNSUPPORTED_MEDIA_TYPE && !said.starts_with("Unsupported Media Type") {
        batch::no_message(sent)
    } else {
        (status, batch::error(INVALID_REQUEST, &said, &Value::Null))
    };
    head.headers.remove(CONTENT_LENGTH);
    let mut response: http::Response<Answer<B>> = refusal(status, &error);
    for (name, value) in &head.headers {
        if name != CONTENT_TYPE {
            response.headers_mut().append(name.clone(), value.clone());
        }
    }
    response
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpEndpoint").finish_non_exhaustive()
    }
}
