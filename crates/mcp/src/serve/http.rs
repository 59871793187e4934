//! Any number of clients, over streamable HTTP.
//!
//! The routes are whoever's has them: this is one function from a request to its response, as the protocol wants it on the
//! endpoint's path. Who may send requests is the caller's to check.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::backing::Backing;
use super::fixtures::Fixtures;
use super::handler::Handler;

/// How long a session is kept in which nothing is said; a person may think about a question for so long.
const SESSION_IDLE: Duration = Duration::from_hours(1);

/// The endpoint of both eras: sessions for clients that open one, single requests for the others. Cheap to clone.
#[derive(Clone)]
pub struct HttpEndpoint {
    service: StreamableHttpService<Handler, LocalSessionManager>,
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
        let each = handler.clone();
        Self { service: StreamableHttpService::new(move || Ok(each.clone()), sessions.into(), config), handler }
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
        self.service.handle(request).await
    }

    /// Ends all sessions and streams.
    pub async fn end(&self) {
        self.handler.stop.cancel();
        self.handler.tasks.close();
        self.handler.tasks.wait().await;
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpEndpoint").finish_non_exhaustive()
    }
}
