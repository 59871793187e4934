//! Any number of clients, over streamable HTTP.
//!
//! The routes are whoever's has them: this is one function from a request to its response, as the protocol wants it on the
//! endpoint's path. Who may send requests is the caller's to check.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use serde_json::json;

use super::backing::Backing;
use super::fixtures::Fixtures;
use super::handler::Handler;

/// How long answers that were just given may take to leave.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);
/// How long a session is kept in which nothing is said; a person may think about a question for so long.
const SESSION_IDLE: Duration = Duration::from_hours(1);
/// How many sessions may be open at once, unless somebody says otherwise.
const MAX_SESSIONS: usize = 1_000;
/// The code of the error for whoever comes then; the protocol has none of its own.
const TOO_MANY: i32 = -32_000;

/// The endpoint of both eras: sessions for clients that open one, single requests for the others. Cheap to clone.
#[derive(Clone)]
pub struct HttpEndpoint {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    max_sessions: usize,
    handler: Handler,
}

impl HttpEndpoint {
    /// The endpoint of what is behind it; a request's body may have `body_limit_bytes`.
    pub fn new(backing: Arc<dyn Backing>, body_limit_bytes: usize) -> Self {
        Self::of(Handler::new(backing), body_limit_bytes)
    }

    /// The same with what the conformance suite looks for beside the tools.
    pub fn with_fixtures(backing: Arc<dyn Backing>, body_limit_bytes: usize) -> Self {
        Self::of(Handler { fixtures: Some(Fixtures), ..Handler::new(backing) }, body_limit_bytes)
    }

    fn of(handler: Handler, body_limit_bytes: usize) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE);
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(handler.stop.clone())
            .with_max_request_body_bytes(body_limit_bytes)
            // The caller has looked: it knows what the page beside this is called.
            .disable_allowed_hosts();
        let (each, sessions) = (handler.clone(), Arc::new(sessions));
        let service = StreamableHttpService::new(move || Ok(each.clone()), Arc::clone(&sessions), config);
        Self { service, sessions, max_sessions: MAX_SESSIONS, handler }
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
        if opens_session(&request) && self.sessions.sessions.read().await.len() >= self.max_sessions {
            return too_many(self.max_sessions).map(Answer::Own);
        }
        self.service.handle(request).await.map(Answer::Served)
    }

    /// Answers the calls that run with what is known of them, then ends all sessions and streams.
    pub async fn end(&self) {
        self.handler.puts_down.cancel();
        self.handler.calls.close();
        let had_calls = !self.handler.calls.is_empty();
        self.handler.calls.wait().await;
        if had_calls {
            tokio::time::sleep(ON_THEIR_WAY).await;
        }
        self.handler.stop.cancel();
        self.handler.tasks.close();
        self.handler.tasks.wait().await;
    }
}

/// The body of an answer: the protocol's, or a short one of our own.
enum Answer<B> {
    Served(B),
    Own(Option<Bytes>),
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for Answer<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Served(body) => Pin::new(body).poll_frame(context),
            Self::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Served(body) => body.is_end_stream(),
            Self::Own(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Served(body) => body.size_hint(),
            Self::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
        }
    }
}

/// Whether a request can only be one that opens a session: clients of the era without sessions say so.
fn opens_session<B>(request: &http::Request<B>) -> bool {
    let has = |name| request.headers().contains_key(name);
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    let has_none = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str());
    request.method() == http::Method::POST && !has("mcp-session-id") && !has_none
}

/// What somebody is told who comes when there is no room.
fn too_many(limit: usize) -> http::Response<Option<Bytes>> {
    let message = format!("{limit} sessions are open, which is the limit; close one that is not used, or try again later");
    let answer = json!({"jsonrpc": "2.0", "id": null, "error": {"code": TOO_MANY, "message": message}});
    let mut response = http::Response::new(Some(Bytes::from(answer.to_string())));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("60"));
    response
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpEndpoint").finish_non_exhaustive()
    }
}
