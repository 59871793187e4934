//! Servers with an address: streamable HTTP of both eras, by `rmcp`'s client.
//!
//! What comes in is made plain again before the [`Inbox`] sees it, so that an answer means the same here as over pipes;
//! [`courier`] sees to it that something comes. The configured headers belong to the HTTP client itself: they go with every request, and since redirects are not followed to
//! no other address.

mod courier;
mod post;
mod raw;
mod sse;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::{Client, Response, Url, redirect};
use rmcp::RoleClient;
use rmcp::model::{CancelledNotification, ClientNotification, Implementation, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::auth::AuthError;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use serde::Serialize;
use serde_json::Value;
use turnwright_network::{Network, Reason, known_reason, made};

use super::cleaner::{self, Message};
use super::inbox::Inbox;
use super::outbox;
use super::wire::Wire;
use crate::client::me;
use crate::config::shown_address;
use crate::era::{self, Era, Finding, Ground};
use crate::log::ServerLog;
use crate::login::Account;
use crate::{HttpConfig, McpError, McpServer, TransportConfig};
use courier::Courier;

const USER_AGENT: &str = concat!("turnwright/", env!("CARGO_PKG_VERSION"));
/// How long a connection may take to be there.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to say that it wants a sign-in.
const CHALLENGE_LIMIT: Duration = Duration::from_secs(20);
/// The most of an answer to the first question that is read.
const MAX_PROBE_BYTES: usize = 1 << 20;
/// Requests that wait for the head of their answer at once; the engine's own limit comes first.
const MAX_OPEN_POSTS: usize = 1024;
/// How often, and how far apart at most, a broken stream is taken up again.
const MAX_RESUMES: usize = 8;
const MAX_RESUME_PAUSE: Duration = Duration::from_secs(15);

pub(crate) use raw::call_of;
pub(crate) use sse::SseTransport;

/// What a failed request says.
pub(crate) type HttpError = StreamableHttpError<reqwest::Error>;

/// An address with the client that asks it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    url: Url,
    client: Client,
    account: Option<Arc<Account>>,
    /// The headers that the operator gave, which may hold a key.
    own_headers: Vec<String>,
    max_message_bytes: usize,
    network: Network,
}

/// What the first question showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probed {
    pub(crate) finding: Finding,
    /// Whether there is anything at its address that takes messages.
    pub(crate) takes_posts: bool,
    /// What it said beside a status that `rmcp` tells without its words.
    said: Option<String>,
}

impl Probed {
    /// What is known from before.
    pub(crate) fn remembered(finding: Finding) -> Self {
        Self { finding, takes_posts: true, said: None }
    }

    /// A refusal of the handshake with the server's own words, where it tells a status alone.
    pub(crate) fn explained(&self, refused: McpError) -> McpError {
        match (refused, &self.said) {
            (McpError::Handshake { message }, Some(said)) if message.contains("HTTP ") => {
                McpError::Handshake { message: format!("{message}: {said}") }
            }
            (refused, _) => refused,
        }
    }
}

impl Endpoint {
    /// `account` is who we are there, where nothing was configured instead.
    pub(crate) async fn new(
        config: &HttpConfig,
        max_message_bytes: usize,
        account: Option<Arc<Account>>,
        network: &Network,
    ) -> Result<Self, McpError> {
        let bad = |reason: String| McpError::BadAddress { url: shown_address(&config.url), reason };
        let url = admitted(config, network)?;
        let headers = headers(config).map_err(bad)?;
        let own_headers = config.headers.iter().map(|(name, _)| format!("`{name}`")).collect();
        let builder = network
            .client_for(&url)
            .user_agent(USER_AGENT)
            .default_headers(headers)
            .connect_timeout(CONNECT_LIMIT)
            .redirect(redirect::Policy::none())
            .tcp_nodelay(true);
        let client = made(builder).await.map_err(bad)?;
        Ok(Self { url, client, account, own_headers, max_message_bytes, network: network.clone() })
    }

    /// Asks `server/discover` and waits at most `limit`; a server that says nothing is taken for legacy.
    pub(crate) async fn probe(&self, me: &Implementation, limit: Duration) -> Result<Probed, McpError> {
        let answered = async {
            let mut token = match &self.account {
                Some(account) => account.token().await.map_err(|error| not_renewed(&error))?,
                None => None,
            };
            let mut is_another = false;
            loop {
                let response = self.ask(me, token.as_deref()).await?;
                let told = if token.is_some() { Told::Token } else { Told::Nothing };
                match (response.status(), &self.account, token.take()) {
                    (StatusCode::UNAUTHORIZED, Some(account), Some(refused)) if !std::mem::replace(&mut is_another, true) => {
                        token = account.instead_of(&refused).await.map_err(|error| not_renewed(&error))?;
                        if token.is_none() {
                            return Err(self.needs_sign_in(&response, told));
                        }
                    }
                    (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, ..) => return Err(self.needs_sign_in(&response, told)),
                    (status, ..) if status.is_redirection() => return Err(sent_on(&response)),
                    (status, ..) => {
                        let takes_posts = !matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
                        let is_busy = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                        let (era, body) = era_of(response).await;
                        let said = is_busy.then(|| courier::words(&body)).filter(|words| !words.is_empty());
                        return Ok(Probed { finding: Finding::from(era), takes_posts, said });
                    }
                }
            }
        };
        let silent = Probed::remembered(Finding { era: Era::Legacy, ground: Ground::Silent });
        tokio::time::timeout(limit, answered).await.unwrap_or(Ok(silent))
    }

    fn courier(&self, wire: &Arc<Wire>) -> Courier {
        Courier { client: self.client.clone(), account: self.account.clone(), wire: Arc::clone(wire) }
    }

    /// What it says to somebody who has not signed in, where it refuses them.
    pub(crate) async fn challenge(&self) -> Result<Option<String>, McpError> {
        let response = tokio::time::timeout(CHALLENGE_LIMIT, self.ask(&me(), None)).await;
        let Ok(response) = response else { return Ok(None) };
        Ok(challenge(&response?))
    }

    /// Whether it takes a token that was given for it.
    pub(crate) async fn takes(&self, token: &str) -> Result<bool, McpError> {
        let response = tokio::time::timeout(CHALLENGE_LIMIT, self.ask(&me(), Some(token))).await;
        let Ok(response) = response else { return Ok(true) };
        Ok(response?.status() != StatusCode::UNAUTHORIZED)
    }

    /// The answer to the question after the era.
    async fn ask(&self, me: &Implementation, token: Option<&str>) -> Result<Response, McpError> {
        let mut asked = self
            .client
            .post(self.url.clone())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "server/discover");
        if let Some(token) = token {
            asked = asked.bearer_auth(token);
        }
        asked.body(era::question(me).to_string()).send().await.map_err(|error| unreachable(&self.network, &error))
    }

    /// What it says to a form; `basic` is a name and a password. Nobody but its own address is asked.
    pub(crate) async fn post_form(&self, form: &[(&str, &str)], basic: Option<(&str, &str)>) -> Result<StatusCode, McpError> {
        let mut written = self.url.clone();
        written.query_pairs_mut().clear().extend_pairs(form);
        let mut asked = self.client.post(self.url.clone()).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some((name, password)) = basic {
            asked = asked.basic_auth(name, Some(password));
        }
        let answer = asked.body(written.query().unwrap_or_default().to_owned()).send().await;
        Ok(answer.map_err(|error| unreachable(&self.network, &error))?.status())
    }

    fn needs_sign_in(&self, response: &Response, told: Told) -> McpError {
        let why = match (told, self.own_headers.as_slice()) {
            (Told::Token, _) => ": it does not take the token that the sign-in gave".to_owned(),
            (Told::Nothing, []) => String::new(),
            (Told::Nothing, [one]) => format!(": the configured header {one} is not taken"),
            (Told::Nothing, several) => format!(": the configured headers {} are not taken", several.join(", ")),
        };
        McpError::NeedsSignIn { reason: format!("HTTP {}{why}", response.status()), challenge: challenge(response) }
    }
}

impl McpServer {
    /// Whether it may be where its address says, as far as that can be told before anything is looked up.
    ///
    /// # Errors
    ///
    /// [`McpError::BadAddress`] where it may not.
    pub async fn admitted(&self) -> Result<(), McpError> {
        match &self.config().transport {
            TransportConfig::Http(address) => admitted(address, &self.network().await).map(drop),
            TransportConfig::Stdio(_) | TransportConfig::Docker(_) => Ok(()),
        }
    }
}

/// The address of a server, where it may be there as far as its text says it.
pub(crate) fn admitted(config: &HttpConfig, network: &Network) -> Result<Url, McpError> {
    let bad = |reason: String| McpError::BadAddress { url: shown_address(&config.url), reason };
    let url: Url = config.url.parse().map_err(|error| bad(format!("{error}")))?;
    network.admit(&url).map_err(|kept| bad(kept.to_string()))?;
    Ok(url)
}

/// What was sent along of who we are.
#[derive(Debug, Clone, Copy)]
enum Told {
    Nothing,
    Token,
}

/// It wants another address to be asked, which could be anybody's.
fn sent_on(response: &Response) -> McpError {
    let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).map_or("nowhere", |to| to);
    let message = format!(
        "HTTP {}, it sends to `{}`, which is not followed; configure that address if it is meant",
        response.status(),
        without_query(to)
    );
    McpError::Handshake { message }
}

/// The era that an answer to the question names, and what was read for it; whoever does not say otherwise is legacy.
async fn era_of(mut response: Response) -> (Era, Vec<u8>) {
    let mut read: Vec<u8> = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        read.extend_from_slice(&chunk);
        if read.len() > MAX_PROBE_BYTES {
            break;
        }
        if let Some(era) = era_in(&read) {
            // A stream may stay open after its answer.
            return (era, read);
        }
    }
    (Era::Legacy, read)
}

/// The era that a whole body names, or the events of a stream so far.
fn era_in(body: &[u8]) -> Option<Era> {
    let mut found = None;
    let mut look = |json: &[u8]| {
        cleaner::read(json, |message| found = found.or_else(|| era::answer(&message)));
    };
    look(body);
    for line in body.split(|byte| *byte == b'\n') {
        if let Some(data) = line.strip_prefix(b"data:") {
            look(data);
        }
    }
    found
}

fn headers(config: &HttpConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| format!("the value of its header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

/// An address as it may be shown: what comes after `?` may be a key.
fn without_query(url: &str) -> String {
    url.split_once('?').map_or(url, |(before, _)| before).to_owned()
}

fn challenge(response: &Response) -> Option<String> {
    let challenge = response.headers().get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    challenge.filter(|_| response.status() == StatusCode::UNAUTHORIZED).map(str::to_owned)
}

fn not_renewed(error: &AuthError) -> McpError {
    McpError::SignIn { message: format!("it could not be renewed: {error}") }
}

fn unreachable(network: &Network, error: &reqwest::Error) -> McpError {
    let url = error.url().map(|url| without_query(url.as_str())).unwrap_or_default();
    let reason = match network.reason(error) {
        Reason::Proxy(blamed) => blamed,
        Reason::Elsewhere(_) => known_reason(error).unwrap_or_else(|| causes(error)),
    };
    McpError::Unreachable { url, reason }
}

/// What is below an error, in its own words; the address is not repeated.
fn causes(error: &dyn Error) -> String {
    let mut words = Vec::new();
    let mut cause = error.source();
    while let Some(now) = cause {
        words.push(now.to_string());
        cause = now.source();
    }
    words.dedup();
    if words.is_empty() { error.to_string() } else { words.join(": ") }
}

/// Why an opening over this network failed, where HTTP knows.
pub(crate) fn refused(error: &(dyn Error + Send + Sync + 'static), network: &Network) -> Option<McpError> {
    Some(match error.downcast_ref::<HttpError>()? {
        StreamableHttpError::AuthRequired(asked) => McpError::NeedsSignIn {
            reason: "HTTP 401 Unauthorized".to_owned(),
            challenge: Some(asked.www_authenticate_header.clone()),
        },
        StreamableHttpError::Client(error) => unreachable(network, error),
        other => McpError::Handshake { message: other.to_string() },
    })
}

/// See the module.
pub(crate) struct HttpTransport {
    inner: StreamableHttpClientTransport<Courier>,
    inbox: Inbox,
}

impl HttpTransport {
    pub(crate) fn new(endpoint: &Endpoint, wire: Arc<Wire>, log: Arc<ServerLog>) -> Self {
        let mut retry = ExponentialBackoff::default();
        (retry.max_times, retry.max_delay) = (Some(MAX_RESUMES), Some(MAX_RESUME_PAUSE));
        let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
            .max_concurrent_requests(MAX_OPEN_POSTS)
            // It would send the calls again.
            .reinit_on_expired_session(false)
            .max_sse_event_size(endpoint.max_message_bytes);
        config.retry_config = Arc::new(retry);
        let inner = StreamableHttpClientTransport::with_client(endpoint.courier(&wire), config);
        Self { inner, inbox: Inbox::new(wire, log) }
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = HttpError;

    fn send(&mut self, mut item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), HttpError>> + Send + 'static {
        let wire = Arc::clone(&self.inbox.wire);
        let id = match &item {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        };
        let sending = match outbox::note(&wire, &mut item) {
            outbox::Outgoing::Send => Some(self.inner.send(as_known(item))),
            outbox::Outgoing::Skip => None,
        };
        async move {
            let Some(sending) = sending else { return Ok(()) };
            let sent = sending.await;
            if let Err(error) = &sent {
                // First: the end of the connection may reach its calls before the error does.
                if let (Some(id), Some(why)) = (id, not_taken(error)) {
                    wire.not_taken(id, why);
                }
                failed(&wire, error);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(item) = self.inner.receive().await else {
                self.inbox.wire.closed.cancel();
                return None;
            };
            if let Some(typed) = plain(item).and_then(|message| self.inbox.typed(message)) {
                return Some(typed);
            }
        }
    }

    async fn close(&mut self) -> Result<(), HttpError> {
        self.inbox.wire.closed.cancel();
        self.inner.close().await
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.inbox.wire.closed.cancel();
    }
}

/// What a request that was not taken means for the connection.
fn failed(wire: &Wire, error: &HttpError) {
    match error {
        StreamableHttpError::AuthRequired(asked) => wire.challenge(&asked.www_authenticate_header),
        StreamableHttpError::InsufficientScope(asked) => wire.challenge(&asked.www_authenticate_header),
        StreamableHttpError::SessionExpired => wire.condemn("it does not know our session any more"),
        StreamableHttpError::Client(error) if error.is_connect() => {
            wire.condemn(&format!("it cannot be reached any more: {}", causes(error)));
        }
        StreamableHttpError::TransportChannelClosed => wire.closed.cancel(),
        _ => {}
    }
}

/// Why a call that could not be sent was certainly not run, as the end of "The MCP server NAME …".
fn not_taken(error: &HttpError) -> Option<&'static str> {
    match error {
        StreamableHttpError::SessionExpired => Some("has lost its session, which is opened again"),
        StreamableHttpError::AuthRequired(_) => Some("needs somebody to sign in"),
        StreamableHttpError::Auth(AuthError::InsufficientScope { .. }) => Some("allows its client less than this needs"),
        StreamableHttpError::Auth(_) => Some("takes no calls until its sign-in is renewed, which failed now"),
        StreamableHttpError::InsufficientScope(_) => Some("needs somebody to sign in and allow more"),
        StreamableHttpError::Client(error) if error.is_connect() => Some("cannot be reached"),
        _ => None,
    }
}

/// `rmcp` ends the request that a cancellation names only where the notification has its own type.
fn as_known(mut item: TxJsonRpcMessage<RoleClient>) -> TxJsonRpcMessage<RoleClient> {
    if let JsonRpcMessage::Notification(notification) = &mut item
        && let ClientNotification::CustomNotification(custom) = &notification.notification
        && custom.method == "notifications/cancelled"
        && let Some(Ok(params)) = custom.params.clone().map(serde_json::from_value)
    {
        notification.notification = ClientNotification::CancelledNotification(CancelledNotification::new(params));
    }
    item
}

/// A message that `rmcp` typed, as it was.
fn plain(item: RxJsonRpcMessage<RoleClient>) -> Option<Message> {
    Some(match item {
        JsonRpcMessage::Response(response) => match raw::result(response.result) {
            Ok(result) => Message::Response { id: response.id, result },
            Err(error) => Message::Error {
                id: Some(response.id),
                code: cleaner::INTERNAL_ERROR,
                message: format!("the answer could not be parsed: {error}"),
                data: None,
            },
        },
        JsonRpcMessage::Error(error) => Message::Error {
            id: error.id,
            code: error.error.code.0,
            message: error.error.message.into_owned(),
            data: error.error.data,
        },
        JsonRpcMessage::Request(request) => {
            let (method, params) = method_and_params(&request.request)?;
            Message::Request { id: request.id, method: raw::unwrapped(method), params }
        }
        JsonRpcMessage::Notification(notification) => {
            let (method, params) = method_and_params(&notification.notification)?;
            Message::Notification { method, params }
        }
    })
}

fn method_and_params(typed: &impl Serialize) -> Option<(String, Option<Value>)> {
    let Ok(Value::Object(mut message)) = serde_json::to_value(typed) else { return None };
    let Some(Value::String(method)) = message.remove("method") else { return None };
    Some((method, message.remove("params")))
}

#[cfg(test)]
mod tests {
    use turnwright_network::{Proxies, ProxyAddress};

    use super::*;

    #[test]
    fn the_era_is_read_from_a_body_and_from_a_stream_that_stays_open() {
        let modern = r#"{"jsonrpc":"2.0","id":"era-probe","result":{"supportedVersions":["2026-07-28"]}}"#;
        let legacy = r#"{"jsonrpc":"2.0","id":"era-probe","error":{"code":-32601,"message":"Method not found"}}"#;
        let stream = format!(": hello\nevent: message\ndata: {modern}\n\n");
        let bodies = [modern.as_bytes(), legacy.as_bytes(), stream.as_bytes(), b"<html>no</html>", b"data: {\"json"];
        let eras = bodies.map(era_in);
        assert_eq!(eras, [Some(Era::Modern), Some(Era::Legacy), Some(Era::Modern), None, None]);
    }

    #[tokio::test]
    async fn what_cannot_be_sent_is_named_without_its_value() {
        let mut config = HttpConfig::new("http://127.0.0.1:9/mcp?key=hidden");
        config.headers = vec![("X-Key".into(), "hidden\n".into())];
        let error = Endpoint::new(&config, 1, None, &Network::default()).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "its address `http://127.0.0.1:9/mcp?key=***` cannot be used: the value of its header `X-Key` cannot be sent"
        );
    }
    #[tokio::test]
    async fn a_proxy_that_is_not_there_is_named_beside_the_server_and_its_password_is_not() {
        let proxy = ProxyAddress::read("http://127.0.0.1:1").unwrap().with_login("me", "hidden").unwrap();
        let network = Network::default().through(&Proxies::all(proxy, Vec::new())).unwrap();
        for url in ["http://mcp.invalid/mcp", "https://mcp.invalid/mcp"] {
            let config = HttpConfig::new(format!("{url}?key=hidden"));
            let endpoint = Endpoint::new(&config, 1, None, &network).await.unwrap();
            let expected = format!("it cannot be reached at {url}: the proxy http://127.0.0.1:1 cannot be reached: ");
            let probed = endpoint.probe(&me(), CHALLENGE_LIMIT).await.unwrap_err().to_string();
            let error = endpoint.client.get(endpoint.url.clone()).send().await.unwrap_err();
            let opened = refused(&HttpError::Client(error), &network).unwrap().to_string();
            for told in [probed, opened] {
                assert!(told.starts_with(&expected) && !told.contains("hidden"), "{told}");
            }
        }
    }
}
