//! Which era of the protocol a server speaks: asked before `rmcp` opens it.
//!
//! `rmcp`'s own way gives up on servers that start slowly and on those that answer `{}` to what they do not know.

use std::collections::VecDeque;
use std::time::Duration;

use rmcp::ClientLifecycleMode;
use rmcp::model::{Implementation, NumberOrString, ProtocolVersion, RequestId};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::transport::{Message, PipeTransport};

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

impl Era {
    /// How `rmcp` is to open a server of this era.
    pub(crate) fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Modern => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
            Self::Legacy => ClientLifecycleMode::Initialize,
        }
    }
}

/// Why a server is taken to speak its era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// It answered `server/discover`, or refused it with one of the errors that only 2026-07-28 knows.
    Discovered,
    /// It answered `server/discover` as one that does not know it.
    Declined,
    /// It said nothing to `server/discover` within its time.
    Silent,
    /// It spoke so at its last start.
    Remembered,
}

impl Ground {
    /// The ground as a sentence, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "it answered server/discover",
            Self::Declined => "it does not know server/discover",
            Self::Silent => "it said nothing to server/discover",
            Self::Remembered => "it spoke so at its last start",
        }
    }
}

/// An era, and why it is taken for the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) era: Era,
    pub(crate) ground: Ground,
}

impl From<Era> for Finding {
    /// What an answer says.
    fn from(era: Era) -> Self {
        let ground = match era {
            Era::Modern => Ground::Discovered,
            Era::Legacy => Ground::Declined,
        };
        Self { era, ground }
    }
}

/// The question, as it is written.
pub(crate) fn question(me: &Implementation) -> Value {
    json!({"jsonrpc": "2.0", "id": ID, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": me,
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

/// Asks over pipes and waits at most `limit`; a server that says nothing is taken for legacy. `None` where its output
/// ended.
pub(crate) async fn probe<R, W>(transport: &mut PipeTransport<R, W>, me: &Implementation, limit: Duration) -> Option<Finding>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut early = VecDeque::new();
    let answered = tokio::time::timeout(limit, async {
        // A server that is gone ends its output too.
        let _ = transport.send_value(&question(me)).await;
        loop {
            let message = transport.next().await?;
            if let Some(era) = answer(&message) {
                return Some(Finding::from(era));
            }
            if matches!(message, Message::Error { id: None, .. }) {
                // It could not even read the question.
                return Some(Finding::from(Era::Legacy));
            }
            early.push_back(message);
        }
    })
    .await;
    transport.unread(early);
    answered.unwrap_or(Some(Finding { era: Era::Legacy, ground: Ground::Silent }))
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
