//! What goes over the endpoint, as far as the API's description says it: what messages mean is the protocol's to say.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// A message of JSON-RPC 2.0, as the Model Context Protocol has them; of these methods and fields this document says nothing.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what the protocol's library reads")]
pub(super) struct McpMessage {
    /// `2.0`.
    #[schema(pattern = "^2[.]0$")]
    jsonrpc: String,
    /// What answers it names; absent where no answer is wanted.
    #[schema(value_type = Option<Value>)]
    id: Option<Value>,
    /// What is asked; absent in an answer.
    method: Option<String>,
    /// With what.
    params: Option<BTreeMap<String, Value>>,
    /// What came of what this side asked.
    result: Option<BTreeMap<String, Value>>,
    /// Why nothing came of it.
    error: Option<BTreeMap<String, Value>>,
}

/// A refusal in the protocol's form.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what the protocol's library writes")]
pub(super) struct McpRefusal {
    /// `2.0`.
    jsonrpc: String,
    /// That of the message which is refused; null where it has none, or could not be read.
    #[schema(required, value_type = Option<Value>)]
    id: Value,
    /// What is wrong with it.
    error: McpError,
}

/// Why a message is refused.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes what the protocol's library writes")]
pub(super) struct McpError {
    /// A code of JSON-RPC or of the protocol.
    code: i64,
    /// In words.
    message: String,
    /// What else is known of it.
    #[schema(value_type = Option<Value>)]
    data: Option<Value>,
}

/// What says which session of a client is meant, and how it speaks.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what the protocol's library reads")]
pub(super) struct McpHeaders {
    /// The session, as the answer to `initialize` named it. Absent in that request, and from 2026-07-28 on.
    #[param(rename = "Mcp-Session-Id")]
    session: Option<String>,
    /// The revision of the protocol, as it was agreed on.
    #[param(rename = "MCP-Protocol-Version")]
    version: Option<String>,
}

/// What each single request says of itself from 2026-07-28 on.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what the protocol's library reads")]
pub(super) struct McpMethodHeaders {
    /// The `method` of the message.
    #[param(rename = "Mcp-Method")]
    method: Option<String>,
    /// The name in its `params`, where that method has one.
    #[param(rename = "Mcp-Name")]
    name: Option<String>,
}

/// Where a stream that broke off goes on.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes what the protocol's library reads")]
pub(super) struct McpLastEvent {
    /// The `id` of the last event that came.
    #[param(rename = "Last-Event-Id")]
    last_event: Option<String>,
}
