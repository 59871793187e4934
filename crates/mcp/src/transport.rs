//! The protocol's messages over a child's pipes, as `rmcp` wants to have them.
//!
//! A transport of our own rather than `rmcp`'s over a cleaned pipe: each line is parsed once, answers are handed on as
//! plain JSON (their types are ours, and lenient), and notifications are handled here, in order and without a task each.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, ClientNotification, ClientRequest, CustomResult, ErrorCode, ErrorData, GetExtensions, GetMeta,
    JsonRpcMessage, RequestId, RequestMetaObject, ServerNotification, ServerRequest, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::io::BufReader;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::Instant;

use crate::cleaner::{self, Message, Remark};
use crate::line::{Line, LineReader};
use crate::log::{LogOrigin, ServerLog};
use crate::outgoing::Outgoing;
use crate::probe;
use crate::process::Pipes;
use crate::wire::{ProgressRoute, Wire};

/// What a pipe holds at most on Linux.
const PIPE_BYTES: usize = 64 << 10;
/// The most that a server may print beside its messages within one window, where a line costs at least so much. A program
/// that prints without end is over it, log lines and even a large file never come near it.
const MAX_NOISE_COST: u64 = 256 << 20;
const LEAST_LINE_COST: u64 = 256;
const NOISE_WINDOW: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct StdioTransport {
    lines: LineReader<ChildStdout>,
    limit: usize,
    outgoing: Outgoing<ChildStdin>,
    read: VecDeque<Message>,
    wire: Arc<Wire>,
    log: Arc<ServerLog>,
    /// Until the handshake's answer is there, which alone is typed by `rmcp`.
    is_opening: bool,
    said_glued: bool,
    noise: Noise,
}

/// What was printed beside messages since a moment.
struct Noise {
    since: Instant,
    cost: u64,
}

impl StdioTransport {
    pub(crate) fn new(pipes: Pipes, limit: usize, wire: Arc<Wire>, log: Arc<ServerLog>) -> Self {
        let lines = LineReader::new(BufReader::with_capacity(PIPE_BYTES, pipes.stdout), limit);
        let outgoing = Outgoing::new(pipes.stdin);
        Self {
            lines,
            limit,
            outgoing,
            read: VecDeque::new(),
            wire,
            log,
            is_opening: true,
            said_glued: false,
            noise: Noise { since: Instant::now(), cost: 0 },
        }
    }

    /// Writes a message that `rmcp` knows nothing of.
    pub(crate) fn send_value(&self, message: &Value) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.outgoing.send(line)
    }

    /// The next message; `None` at the end. May be dropped while it waits: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Some(message);
            }
            // A server that prints without end must not keep timers and everybody else from their turn.
            tokio::task::coop::consume_budget().await;
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) => {
                    self.log.push(LogOrigin::Host, &format!("its output cannot be read: {error}"));
                    return None;
                }
            };
            match line {
                Line::Whole(line) => match cleaner::read(line, |message| self.read.push_back(message)) {
                    Remark::Clean => {}
                    Remark::Noise => {
                        self.log.push_bytes(LogOrigin::Stdout, line);
                        if self.noise.is_too_much(line.len() as u64) {
                            self.give_up();
                            return None;
                        }
                    }
                    Remark::Glued(bytes) => {
                        self.log.push_bytes(LogOrigin::Stdout, line.get(..bytes).unwrap_or_default());
                        if !std::mem::replace(&mut self.said_glued, true) {
                            self.log.push(LogOrigin::Host, "it prints text in front of its messages: only stderr is for that");
                        }
                    }
                },
                Line::TooLong { head, tail, length } => {
                    let limit = self.limit;
                    self.log.push(LogOrigin::Host, &format!("a line of {length} bytes was dropped, limit {limit}"));
                    let answer = cleaner::too_long(head, tail, length, limit);
                    self.read.extend(
                        answer.filter(|answer| matches!(answer, Message::Error { id: Some(id), .. } if self.wire.expects(id))),
                    );
                    if self.read.is_empty() && self.noise.is_too_much(length) {
                        self.give_up();
                        return None;
                    }
                }
            }
        }
    }

    /// Ends a connection over which hardly anything but noise comes.
    fn give_up(&self) {
        self.wire.condemn("it prints without end what is no message of the protocol: only stderr is for that");
    }

    /// Puts messages back that were read too early.
    pub(crate) fn unread(&mut self, mut messages: VecDeque<Message>) {
        messages.append(&mut self.read);
        self.read = messages;
    }

    /// What `rmcp` shall see of a message.
    fn typed(&mut self, message: Message) -> Option<RxJsonRpcMessage<RoleClient>> {
        match message {
            Message::Response { id, .. } | Message::Error { id: Some(id), .. } if !self.wire.expects(&id) => None,
            Message::Response { id, result } => {
                self.wire.answered(&id);
                let result = if std::mem::take(&mut self.is_opening) {
                    serde_json::from_value::<ServerResult>(completed(result)).ok()?
                } else {
                    ServerResult::CustomResult(CustomResult::new(result))
                };
                Some(JsonRpcMessage::response(result, id))
            }
            Message::Error { id, code, message, data } => {
                // Who cannot read a request answers without its id; with one request in flight it is clear whose it is.
                let id = id.or_else(|| self.wire.lone())?;
                self.wire.answered(&id);
                Some(JsonRpcMessage::error(ErrorData::new(ErrorCode(code), message, data), Some(id)))
            }
            Message::Request { id, method, params } => {
                let mut request = json!({"method": method});
                if let (Some(params), Value::Object(request)) = (params, &mut request) {
                    request.insert("params".to_owned(), params);
                }
                match serde_json::from_value::<ServerRequest>(request) {
                    Ok(request) => Some(JsonRpcMessage::request(request, id)),
                    Err(error) => {
                        self.log.push(LogOrigin::Host, &format!("its request `{method}` cannot be read: {error}"));
                        None
                    }
                }
            }
            Message::Notification { method, params } => self.noticed(&method, params),
        }
    }

    fn noticed(&self, method: &str, params: Option<Value>) -> Option<RxJsonRpcMessage<RoleClient>> {
        match method {
            "notifications/progress" => self.wire.progressed(params),
            "notifications/tools/list_changed" => self.wire.tools_changed.notify_one(),
            "notifications/message" => {
                let data = params.as_ref().and_then(|params| params.get("data"));
                match data {
                    Some(Value::String(text)) => self.log.push(LogOrigin::Message, text),
                    Some(other) => self.log.push(LogOrigin::Message, &other.to_string()),
                    None => {}
                }
            }
            "notifications/cancelled" => {
                // Of a request of its own, which `rmcp` keeps.
                let notification = json!({"method": method, "params": params});
                let notification = serde_json::from_value::<ServerNotification>(notification).ok()?;
                return Some(JsonRpcMessage::notification(notification));
            }
            _ => {}
        }
        None
    }

    /// The line that a message is, and what is noted about it; `None` where it need not be sent.
    fn line(&self, mut item: TxJsonRpcMessage<RoleClient>) -> Result<Option<Vec<u8>>, serde_json::Error> {
        match &mut item {
            JsonRpcMessage::Request(request) => {
                let route = request.request.extensions_mut().remove::<ProgressRoute>();
                let token = route.as_ref().and_then(|_| request.request.get_meta().get_progress_token());
                self.wire.sent(request.id.clone(), token, route);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && self.wire.forget(id)
                {
                    return Ok(None);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let mut line = match &item {
            JsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::CallToolRequest(call) => {
                    serde_json::to_vec(&Call::new(&request.id, &call.params, request.request.get_meta()))?
                }
                _ => serde_json::to_vec(&item)?,
            },
            _ => serde_json::to_vec(&item)?,
        };
        line.push(b'\n');
        Ok(Some(line))
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let sending = self.line(item).map(|line| line.map(|line| self.outgoing.send(line)));
        async move {
            match sending? {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.next().await else {
                self.wire.closed.cancel();
                return None;
            };
            if let Some(era) = probe::answer(&message) {
                // It started slowly; which era it speaks is worth knowing all the same.
                self.wire.late_era(era);
                continue;
            }
            if let Some(message) = self.typed(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.wire.closed.cancel();
        self.outgoing.close().await;
        Ok(())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.wire.closed.cancel();
    }
}

impl Noise {
    fn is_too_much(&mut self, bytes: u64) -> bool {
        if self.since.elapsed() > NOISE_WINDOW {
            *self = Self { since: Instant::now(), cost: 0 };
        }
        self.cost = self.cost.saturating_add(bytes.max(LEAST_LINE_COST));
        self.cost > MAX_NOISE_COST
    }
}

/// The handshake's answer with what servers leave out and nobody here needs.
fn completed(mut result: Value) -> Value {
    let defaults = match &result {
        Value::Object(answer) if answer.contains_key("supportedVersions") => {
            json!({"capabilities": {}, "ttlMs": 0, "cacheScope": "private"})
        }
        _ => json!({"capabilities": {}, "serverInfo": {"name": "unknown", "version": "unknown"}}),
    };
    if let (Value::Object(answer), Value::Object(defaults)) = (&mut result, defaults) {
        for (key, value) in defaults {
            answer.entry(key).or_insert(value);
        }
    }
    result
}

/// `tools/call` as it is written; `rmcp`'s own way copies the arguments.
#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    method: &'static str,
    params: CallParams<'a>,
}

#[derive(Serialize)]
struct CallParams<'a> {
    #[serde(rename = "_meta")]
    meta: &'a RequestMetaObject,
    name: &'a str,
    arguments: Option<&'a Map<String, Value>>,
}

impl<'a> Call<'a> {
    fn new(id: &'a RequestId, params: &'a CallToolRequestParams, meta: &'a RequestMetaObject) -> Self {
        let params = CallParams { meta, name: &params.name, arguments: params.arguments.as_ref() };
        Self { jsonrpc: "2.0", id, method: "tools/call", params }
    }
}
