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

/// The errors that only 2026-07-28 knows.
const MODERN_ERRORS: std::ops::RangeInclusive<i32> = -32022..=-32020;
/// The one of them that names the versions that a server speaks.
const UNSUPPORTED_VERSION: i32 = -32022;

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
    /// The configuration says so.
    Chosen,
}

impl Ground {
    /// The ground as a sentence, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "it answered server/discover",
            Self::Declined => "it does not know server/discover",
            Self::Silent => "it said nothing to server/discover",
            Self::Remembered => "it spoke so at its last start",
            Self::Chosen => "its `protocol` says so",
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
        Message::Error { id: Some(id), code: UNSUPPORTED_VERSION, data, .. } if is_ours(id) => {
            !names_only_old(data.as_ref().and_then(|data| data.get("supported")))
        }
        Message::Error { id: Some(id), code, .. } if is_ours(id) => MODERN_ERRORS.contains(code),
        _ => return None,
    };
    Some(if is_modern { Era::Modern } else { Era::Legacy })
}

/// Whether a server that refused our version names others, and of those that are spoken here only ones with a handshake.
fn names_only_old(supported: Option<&Value>) -> bool {
    let named = |version: &ProtocolVersion| {
        let versions = supported.and_then(Value::as_array);
        versions.is_some_and(|named| named.iter().any(|named| named == version.as_str()))
    };
    let known = ProtocolVersion::KNOWN_VERSIONS.iter();
    !named(&ProtocolVersion::V_2026_07_28) && known.filter(|version| named(version)).count() > 0
}

fn is_ours(id: &RequestId) -> bool {
    matches!(id, NumberOrString::String(text) if &**text == ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i32, supported: &Value) -> Option<Era> {
        let data = Some(json!({"supported": supported, "requested": "2026-07-28"}));
        answer(&Message::Error { id: Some(NumberOrString::String(ID.into())), code, message: "no".into(), data })
    }

    #[test]
    fn a_server_that_refuses_the_version_is_opened_with_one_that_it_names() {
        for (code, supported, era) in [
            (-32022, json!(["2026-07-28"]), Era::Modern),
            (-32022, json!(["2025-11-25", "2026-07-28"]), Era::Modern),
            (-32022, json!(["2025-11-25", "2027-01-01"]), Era::Legacy),
            (-32022, json!(["2027-01-01"]), Era::Modern),
            (-32022, json!(null), Era::Modern),
            (-32021, json!(["2025-11-25"]), Era::Modern),
            (-32601, json!(["2026-07-28"]), Era::Legacy),
        ] {
            assert_eq!(refused(code, &supported), Some(era), "{code} {supported}");
        }
    }
}
