//! One message on its way, and what comes back at once.
//!
//! `rmcp`'s own client reads a body of JSON into its types, and what these do not hold is lost: whether a tool is called as a task,
//! half of a form. Requests whose results are read by ourselves are posted here, and judged as `rmcp` judges them.

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{StatusCode, header};
use reqwest::{Client, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_MCP_METHOD, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use super::courier::{Events, Headers, Posted};
use super::{HttpError, raw};

/// The most of an answer that is no stream, and of a page in place of one, in bytes, as `rmcp` has it.
const MAX_JSON_BYTES: usize = 16 << 20;
const MAX_PAGE_BYTES: usize = 64 << 10;
/// The longest `Retry-After` that is read.
const MAX_RETRY_AFTER_BYTES: usize = 128;

/// See the module.
#[derive(Clone)]
pub(super) struct Post {
    pub(super) url: Arc<str>,
    pub(super) message: ClientJsonRpcMessage,
    pub(super) session: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: Headers,
    pub(super) max_event_bytes: usize,
}

impl Post {
    /// Whether its result is read by ourselves. `rmcp` has to know what was agreed on, and since 2026-07-28 the tools: some of their
    /// arguments are headers too.
    pub(super) fn is_read_here(&self) -> bool {
        let JsonRpcMessage::Request(request) = &self.message else { return false };
        match request.request {
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            ClientRequest::ListToolsRequest(_) => !self.headers.keys().any(|name| *name == HEADER_MCP_METHOD),
            _ => true,
        }
    }

    pub(super) async fn send(self, client: &Client) -> Posted {
        if matches!(self.message, JsonRpcMessage::Request(_)) {
            // What `rmcp` reads itself and cannot read is mended first.
            let read = if self.is_read_here() { raw::answer } else { raw::typed };
            return self.sent_past(client, read).await;
        }
        let Self { url, message, session, token, headers, max_event_bytes } = self;
        client.post_message_with_max_sse_event_size(url, message, session, token, headers, max_event_bytes).await
    }

    async fn sent_past(self, client: &Client, read: fn(&[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error>) -> Posted {
        let Self { url, message, session, token, headers, max_event_bytes } = self;
        let mut asked = client
            .post(&*url)
            .header(header::ACCEPT, [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", "))
            .header(header::CONTENT_TYPE, JSON_MIME_TYPE);
        if let Some(token) = token {
            asked = asked.bearer_auth(token);
        }
        for (name, value) in headers {
            asked = asked.header(name, value);
        }
        if let Some(session) = &session {
            asked = asked.header(HEADER_SESSION_ID, &**session);
        }
        let response = asked.body(serde_json::to_vec(&message)?).send().await?;
        if !response.status().is_success() {
            return refused(response, session.is_some()).await;
        }
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let kind = kind(&response);
        let session = text_of(&response, HEADER_SESSION_ID);
        if kind.as_deref().is_some_and(|kind| kind.starts_with(EVENT_STREAM_MIME_TYPE)) {
            let events = bounded(response.bytes_stream(), max_event_bytes);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !kind.as_deref().is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE)) {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let body = body(response, MAX_JSON_BYTES).await?;
        match read(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(error) => {
                let text = format!("its answer cannot be read: {error}: {}", String::from_utf8_lossy(&body));
                Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
            }
        }
    }
}

/// What a server says instead of taking a request.
async fn refused(response: Response, has_session: bool) -> Posted {
    let status = response.status();
    if let Some(challenge) = response.headers().get(header::WWW_AUTHENTICATE) {
        let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
        match status {
            StatusCode::UNAUTHORIZED => return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))),
            StatusCode::FORBIDDEN => {
                let scopes = scopes(&challenge);
                return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, scopes)));
            }
            _ => {}
        }
    }
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let is_json = kind(&response).is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE));
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let after = text_of(&response, header::RETRY_AFTER.as_str()).filter(|after| after.len() <= MAX_RETRY_AFTER_BYTES);
    let busy = is_busy.then(|| HttpStatusError::new(status.as_u16(), after));
    let session = text_of(&response, HEADER_SESSION_ID);
    match busy {
        Some(busy) if !is_json || status == StatusCode::TOO_MANY_REQUESTS => return Err(busy.into()),
        _ => {}
    }
    let page = match (body(response, MAX_PAGE_BYTES).await, &busy) {
        (Ok(page), _) => page,
        (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), None) => {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size });
        }
        (Err(_), _) => Vec::new(),
    };
    let is_about_who = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_json
        && !is_about_who
        && let Ok(error @ JsonRpcMessage::Error(_)) = serde_json::from_slice::<ServerJsonRpcMessage>(&page)
    {
        return Ok(StreamableHttpPostResponse::Json(error, session));
    }
    let text = || format!("HTTP {status}: {}", String::from_utf8_lossy(&page));
    Err(busy.map_or_else(|| StreamableHttpError::UnexpectedServerResponse(text().into()), HttpError::from))
}

/// The scopes that a challenge names (RFC 6750, section 3).
fn scopes(challenge: &str) -> Option<String> {
    let at = challenge.to_ascii_lowercase().find("scope=")?;
    let value = challenge.get(at + "scope=".len()..)?;
    let scopes = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => value.split([',', ';', ' ', '\t']).next()?,
    };
    Some(scopes.to_owned()).filter(|scopes| !scopes.is_empty())
}

fn kind(response: &Response) -> Option<String> {
    let kind = response.headers().get(header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(kind.as_bytes()).into_owned())
}

fn text_of(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, HttpError> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: most };
    if response.content_length().is_some_and(|length| usize::try_from(length).map_or(true, |length| length > most)) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if part.len() > most.saturating_sub(body.len()) {
            return Err(too_large());
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// Why a stream ends before its end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("an event exceeded the maximum size of {limit} bytes")]
    TooLong { limit: usize },
    #[error(transparent)]
    Away(reqwest::Error),
}

/// The events of a stream up to one that is longer than `limit`.
fn bounded(parts: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static, limit: usize) -> Events {
    let parts = parts.scan(Some(EventSize::default()), move |size, part| {
        let counted = size.as_mut().map(|size| {
            let part = part.map_err(Broken::Away)?;
            if size.grown_by(&part) > limit { Err(Broken::TooLong { limit }) } else { Ok(part) }
        });
        if !matches!(counted, Some(Ok(_))) {
            *size = None;
        }
        ready(counted)
    });
    SseStream::from_bytes_stream(parts).boxed()
}

/// What is kept of an event until its end, in bytes.
#[derive(Debug, Default)]
struct EventSize {
    lines: usize,
    line: usize,
    is_comment: bool,
    was_return: bool,
}

impl EventSize {
    /// The most that was kept at once while this came.
    fn grown_by(&mut self, part: &[u8]) -> usize {
        let mut most = 0;
        for byte in part {
            let was_return = std::mem::replace(&mut self.was_return, *byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\r' | b'\n' => {
                    self.lines = match self.line {
                        0 => 0,
                        _ if self.is_comment => self.lines,
                        line => self.lines.saturating_add(line).saturating_add(1),
                    };
                    self.line = 0;
                }
                _ => {
                    if self.line == 0 {
                        self.is_comment = *byte == b':';
                    }
                    self.line = self.line.saturating_add(1);
                }
            }
            most = most.max(self.lines.saturating_add(self.line));
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_long_as_what_is_kept_of_it_and_comments_are_not() {
        let mut size = EventSize::default();
        let grown = ["data: 1", "23\r", "\ndata: 4\n", "\n", ": ping\n", ": ping\n", "a\n\n"]
            .map(|part| size.grown_by(part.as_bytes()));
        assert_eq!(grown, [7, 10, 18, 0, 6, 6, 2]);
    }

    #[test]
    fn the_scopes_of_a_challenge_are_read_in_quotes_and_without() {
        for (challenge, expected) in [
            (r#"Bearer error="insufficient_scope", scope="files:read files:write""#, Some("files:read files:write")),
            ("Bearer Scope=write, realm=x", Some("write")),
            ("Bearer scope=", None),
            (r#"Bearer scope="open"#, None),
            ("Bearer", None),
        ] {
            assert_eq!(scopes(challenge).as_deref(), expected, "{challenge}");
        }
    }
}
