//! One request other than a call of a tool, and its answer as it came.

use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, ErrorCode, ErrorData, ServerResult};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;

use crate::connection::Connection;
use crate::pending::Pending;
use crate::transport::Door;

/// Why a request brought nothing.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The server refused it.
    Refused(ErrorData),
    /// It took too long.
    TooLong(Duration),
    /// The connection ended, or the answer is none.
    Lost(String),
}

impl NoAnswer {
    /// Whether the server does not know the method.
    pub(crate) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
    }

    /// What happened, in words.
    pub(crate) fn in_words(&self, method: &str) -> String {
        match self {
            Self::Refused(error) => format!("{} ({})", error.message, error.code.0),
            Self::TooLong(limit) => format!("no answer to {method} within {} ms", limit.as_millis()),
            Self::Lost(reason) => reason.clone(),
        }
    }
}

/// Asks a server over an open connection. It is told where nobody waits any more.
pub(crate) async fn ask(connection: &Connection, method: &str, params: Value, limit: Duration) -> Result<Value, NoAnswer> {
    ask_for(connection, method, params, limit, None).await
}

/// The same for a call, to whose people the server's questions go meanwhile.
pub(crate) async fn ask_for(
    connection: &Connection,
    method: &str,
    params: Value,
    limit: Duration,
    door: Option<Door>,
) -> Result<Value, NoAnswer> {
    let mut request = CustomRequest::new(method, Some(params));
    if let Some(door) = door {
        request.extensions.insert(door);
    }
    let request = ClientRequest::CustomRequest(request);
    let sent = connection.peer.send_request_with_option(request, PeerRequestOptions::no_options());
    let handle = match tokio::time::timeout(limit, sent).await {
        Ok(Ok(handle)) => handle,
        Ok(Err(error)) => return Err(no_answer(error)),
        Err(_) => {
            connection.wire.condemn("it does not read its input");
            return Err(NoAnswer::TooLong(limit));
        }
    };
    let mut pending = Pending::new(handle, &connection.tracker);
    let Ok(answer) = tokio::time::timeout(limit, pending.answer()).await else { return Err(NoAnswer::TooLong(limit)) };
    pending.over();
    match answer {
        Ok(ServerResult::CustomResult(answer)) => Ok(answer.0),
        Ok(_) => Err(NoAnswer::Lost("its answer is none that the protocol knows".to_owned())),
        Err(error) => Err(no_answer(error)),
    }
}

fn no_answer(error: ServiceError) -> NoAnswer {
    match error {
        ServiceError::McpError(error) => NoAnswer::Refused(error),
        ServiceError::TransportClosed => NoAnswer::Lost("its connection was closed".to_owned()),
        other => NoAnswer::Lost(other.to_string()),
    }
}
