//! Asks a server which era of the protocol it speaks, before `rmcp` opens it.
//!
//! `rmcp`'s own way gives up on servers that start slowly and on those that answer `{}` to what they do not know.

use std::collections::VecDeque;
use std::time::Duration;

use rmcp::model::{Implementation, NumberOrString, RequestId};
use serde_json::{Value, json};

use crate::cleaner::Message;
use crate::transport::StdioTransport;

/// The id of the question; `rmcp` counts its own.
const ID: &str = "era-probe";

/// Which protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2026-07-28: without a handshake.
    Modern,
    /// Up to 2025-11-25: with `initialize`.
    Legacy,
}

/// Asks `server/discover` and waits at most `limit`; a server that says nothing is taken for legacy. `None` where its
/// output ended.
pub(crate) async fn probe(transport: &mut StdioTransport, me: &Implementation, limit: Duration) -> Option<Era> {
    let question = json!({"jsonrpc": "2.0", "id": ID, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": me,
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    let mut early = VecDeque::new();
    let answered = tokio::time::timeout(limit, async {
        // A server that is gone ends its output too.
        let _ = transport.send_value(&question).await;
        loop {
            let message = transport.next().await?;
            if let Some(era) = answer(&message) {
                return Some(era);
            }
            if matches!(message, Message::Error { id: None, .. }) {
                // It could not even read the question.
                return Some(Era::Legacy);
            }
            early.push_back(message);
        }
    })
    .await;
    transport.unread(early);
    answered.unwrap_or(Some(Era::Legacy))
}

/// What a message says about the era, where it is the answer to the question.
pub(crate) fn answer(message: &Message) -> Option<Era> {
    let is_modern = match message {
        Message::Response { id, result } if is_ours(id) => result.get("supportedVersions").is_some_and(Value::is_array),
        Message::Error { id: Some(id), code, .. } if is_ours(id) => (-32022..=-32020).contains(code),
        _ => return None,
    };
    Some(if is_modern { Era::Modern } else { Era::Legacy })
}

fn is_ours(id: &RequestId) -> bool {
    matches!(id, NumberOrString::String(text) if &**text == ID)
}
