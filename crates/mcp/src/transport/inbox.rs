//! What `rmcp` sees of a message that came in.
//!
//! Answers are handed on as plain JSON, since their types are ours and lenient; only the handshake's is typed by `rmcp`.
//! Notifications are handled in [`notices`], in order and without a task each. Requests go to `rmcp`, which calls the
//! handler in [`crate::client`].

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, ServerRequest, ServerResult};
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Value, json};

use super::cleaner::Message;
use super::notices;
use super::wire::Wire;
use crate::client::is_read_here;
use crate::log::{LogOrigin, ServerLog};

/// See the module.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) wire: Arc<Wire>,
    pub(super) log: Arc<ServerLog>,
    /// Until the handshake's answer is there.
    is_opening: bool,
}

impl Inbox {
    pub(super) fn new(wire: Arc<Wire>, log: Arc<ServerLog>) -> Self {
        Self { wire, log, is_opening: true }
    }

    /// What `rmcp` shall see of a message.
    pub(super) fn typed(&mut self, message: Message) -> Option<RxJsonRpcMessage<RoleClient>> {
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
            Message::Request { id, method, params } if is_read_here(&method) => {
                Some(JsonRpcMessage::request(ServerRequest::CustomRequest(CustomRequest::new(method, params)), id))
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
            Message::Notification { method, params } => {
                notices::noticed(&self.wire, &self.log, &method, params).map(JsonRpcMessage::notification)
            }
        }
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
