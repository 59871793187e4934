//! What is noted about a message that goes out, and how it is written.

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, ClientNotification, ClientRequest, GetExtensions, GetMeta, InputResponses, JsonRpcMessage,
    RequestId, RequestMetaObject,
};
use rmcp::service::TxJsonRpcMessage;
use serde::Serialize;
use serde_json::{Map, Value};

use super::wire::{Door, ProgressRoute, Wire};
use crate::listen::LISTEN;

/// Whether a message has to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outgoing {
    Send,
    /// The server knows it already.
    Skip,
}

/// Notes what a message means for the calls in flight.
pub(super) fn note(wire: &Wire, item: &mut TxJsonRpcMessage<RoleClient>) -> Outgoing {
    match item {
        JsonRpcMessage::Request(request) => {
            if let Some(level) = wire.log_level.get() {
                request.request.get_meta_mut().insert("io.modelcontextprotocol/logLevel".to_owned(), (*level).into());
            }
            if request.request.method() == LISTEN {
                wire.subscribed(request.id.clone());
                return Outgoing::Send;
            }
            let route = request.request.extensions_mut().remove::<ProgressRoute>();
            let door = request.request.extensions_mut().remove::<Door>();
            let token = route.as_ref().and_then(|_| request.request.get_meta().get_progress_token());
            wire.sent(request.id.clone(), token, route, door);
        }
        JsonRpcMessage::Notification(notification) => {
            if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                && let Some(id) = &cancelled.params.request_id
                && wire.forget(id)
            {
                return Outgoing::Skip;
            }
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
    }
    Outgoing::Send
}

/// The line that a message is, with its line break.
pub(super) fn line(item: &TxJsonRpcMessage<RoleClient>) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = match item {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::CallToolRequest(call) => {
                serde_json::to_vec(&Call::new(&request.id, &call.params, request.request.get_meta()))?
            }
            _ => serde_json::to_vec(item)?,
        },
        _ => serde_json::to_vec(item)?,
    };
    line.push(b'\n');
    Ok(line)
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
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a InputResponses>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

impl<'a> Call<'a> {
    fn new(id: &'a RequestId, params: &'a CallToolRequestParams, meta: &'a RequestMetaObject) -> Self {
        let params = CallParams {
            meta,
            name: &params.name,
            arguments: params.arguments.as_ref(),
            input_responses: params.input_responses.as_ref(),
            request_state: params.request_state.as_deref(),
        };
        Self { jsonrpc: "2.0", id, method: "tools/call", params }
    }
}
