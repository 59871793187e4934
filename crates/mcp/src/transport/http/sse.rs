//! HTTP+SSE, the transport of 2024-11-05, which `rmcp` does not have: one stream on which everything comes in, after an event
//! that names where to send.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::{StatusCode, header};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpClient;

use super::Endpoint;
use super::courier::Events;
use crate::McpError;
use crate::log::{LogOrigin, ServerLog};
use crate::login::Account;
use crate::transport::cleaner::{self, Message, Remark};
use crate::transport::inbox::Inbox;
use crate::transport::outbox;
use crate::transport::wire::Wire;

/// How long the first event may take; a server of another transport sends none.
const FIRST_EVENT_LIMIT: Duration = Duration::from_secs(5);
/// How long a server may take to take a message.
const TAKE_LIMIT: Duration = Duration::from_secs(30);

/// See the module.
pub(crate) struct SseTransport {
    events: Events,
    to: Arc<To>,
    read: VecDeque<Message>,
    inbox: Inbox,
}

/// Where messages go.
struct To {
    url: Url,
    client: Client,
    account: Option<Arc<Account>>,
}

impl SseTransport {
    /// Opens the stream; `None` where the server has none of this kind.
    ///
    /// # Errors
    ///
    /// [`McpError::Handshake`], where messages should go to another origin: what is sent along is meant for this one.
    pub(crate) async fn open(endpoint: &Endpoint, wire: Arc<Wire>, log: Arc<ServerLog>) -> Result<Option<Self>, McpError> {
        let url = endpoint.url.as_str().into();
        let first = async {
            let token = match &endpoint.account {
                Some(account) => account.token().await.ok()?,
                None => None,
            };
            // Its events are read here: nothing has to go past types.
            let most = endpoint.max_message_bytes;
            let opened = endpoint.client.get_stream_with_max_sse_event_size(url, None, None, token, HashMap::new(), most).await;
            let mut events = opened.ok()?;
            let first = events.next().await?.ok()?;
            let path = first.data.filter(|_| first.event.as_deref() == Some("endpoint"))?;
            Some((events, path))
        };
        let Ok(Some((events, path))) = tokio::time::timeout(FIRST_EVENT_LIMIT, first).await else { return Ok(None) };
        let to = endpoint.url.join(path.trim()).ok().filter(|to| to.origin() == endpoint.url.origin());
        let Some(url) = to else {
            let message = "it wants its messages at another origin than its own".to_owned();
            return Err(McpError::Handshake { message });
        };
        log.push(LogOrigin::Host, "it speaks the transport of 2024-11-05 (HTTP+SSE)");
        let to = To { url, client: endpoint.client.clone(), account: endpoint.account.clone() };
        Ok(Some(Self { events, to: Arc::new(to), read: VecDeque::new(), inbox: Inbox::new(wire, log) }))
    }
}

impl To {
    async fn send(&self, body: Vec<u8>, wire: &Wire) -> io::Result<()> {
        let mut token = self.token(None).await?;
        loop {
            let mut post = self.client.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json");
            if let Some(token) = &token {
                post = post.bearer_auth(token);
            }
            let answer = post.body(body.clone()).timeout(TAKE_LIMIT).send().await.map_err(io::Error::other)?;
            match (answer.status(), token.take()) {
                (status, _) if status.is_success() => return Ok(()),
                (StatusCode::UNAUTHORIZED, refused) => {
                    let other = self.token(refused.as_deref()).await?.filter(|other| Some(other) != refused.as_ref());
                    if other.is_none() {
                        wire.challenge(super::challenge(&answer).as_deref().unwrap_or_default());
                        return Err(io::Error::other("HTTP 401 Unauthorized"));
                    }
                    token = other;
                }
                (status, _) => return Err(io::Error::other(format!("HTTP {status}"))),
            }
        }
    }

    async fn token(&self, refused: Option<&str>) -> io::Result<Option<String>> {
        let Some(account) = &self.account else { return Ok(None) };
        let token = match refused {
            Some(refused) => account.instead_of(refused).await,
            None => account.token().await,
        };
        token.map_err(io::Error::other)
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = io::Error;

    fn send(&mut self, mut item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let wire = Arc::clone(&self.inbox.wire);
        let body = match outbox::note(&wire, &mut item) {
            outbox::Outgoing::Send => outbox::line(&item).map(Some),
            outbox::Outgoing::Skip => Ok(None),
        };
        let to = Arc::clone(&self.to);
        async move {
            match body? {
                Some(body) => to.send(body, &wire).await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            while let Some(message) = self.read.pop_front() {
                if let Some(typed) = self.inbox.typed(message) {
                    return Some(typed);
                }
            }
            match self.events.next().await {
                Some(Ok(event)) => {
                    let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
                    if cleaner::read(data.as_bytes(), |message| self.read.push_back(message)) == Remark::Noise {
                        self.inbox.log.push(LogOrigin::Stdout, &data);
                    }
                }
                Some(Err(error)) => {
                    self.inbox.log.push(LogOrigin::Host, &format!("its stream cannot be read: {error}"));
                    self.inbox.wire.closed.cancel();
                    return None;
                }
                None => {
                    self.inbox.wire.closed.cancel();
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.inbox.wire.closed.cancel();
        Ok(())
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.inbox.wire.closed.cancel();
    }
}
