//! Where a client is in the stream of a request: names of events, by which every process goes on with the stream.
//!
//! The library's own name finds the event in the process that told it. What stands after it tells another, to which the client
//! comes back with it, what was asked and when; so nothing needs to be kept for the case.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};

use crate::serve::OfferedCall;

/// The longest name of a request that an event's name holds, in bytes; it comes back in a header.
const MAX_REQUEST_BYTES: usize = 512;

/// The request that a stream answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// The process that was asked.
    pub(super) process: String,
    /// When, in milliseconds since 1970 UTC.
    pub(super) at_ms: u64,
    /// Under which name it is answered.
    pub(super) request: RequestId,
    /// What tells its call from others, where it is one: see [`OfferedCall::digest`].
    pub(super) call: Option<String>,
}

impl Asked {
    /// What `message` asks this process; `None` where that does not fit into names of events.
    pub(super) fn of(message: &ClientJsonRpcMessage, process: &str, at_ms: u64) -> Option<Self> {
        let ClientJsonRpcMessage::Request(asked) = message else { return None };
        let call = match &asked.request {
            ClientRequest::CallToolRequest(call) => {
                let arguments = call.params.arguments.clone().unwrap_or_default();
                let tool = call.params.name.clone().into_owned();
                Some(OfferedCall { client: String::new(), tool, arguments }.digest())
            }
            _ => None,
        };
        let asked = Self { process: process.to_owned(), at_ms, request: asked.id.clone(), call };
        (asked.request_text().len() <= MAX_REQUEST_BYTES).then_some(asked)
    }

    /// The name of the event that the library calls `event`.
    pub(super) fn name(&self, event: &str) -> String {
        let request = URL_SAFE_NO_PAD.encode(self.request_text());
        let call = self.call.as_deref().unwrap_or_default();
        format!("{event}~{}~{}~{request}~{call}", self.process, self.at_ms)
    }

    /// The library's name of an event, and the request of its stream; `None` where it is of no request's stream.
    pub(super) fn read(name: &str) -> Option<(&str, Self)> {
        let mut parts = name.split('~');
        let (event, process, at_ms) = (parts.next()?, parts.next()?.to_owned(), parts.next()?.parse().ok()?);
        let request = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts.next()?).ok()?).ok()?;
        let call = Some(parts.next()?.to_owned()).filter(|call| !call.is_empty());
        Some((event, Self { process, at_ms, request, call }))
    }

    fn request_text(&self) -> String {
        serde_json::to_string(&self.request).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_event_says_what_was_asked_and_where() {
        for request in [RequestId::Number(7), RequestId::String("a ~/\n\u{e4}".into())] {
            let asked = Asked { process: "p-1".to_owned(), at_ms: 5, request, call: None };
            for asked in [asked.clone(), Asked { call: Some("0f".to_owned()), ..asked }] {
                let name = asked.name("0/3");
                assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
                assert_eq!(Asked::read(&name), Some(("0/3", asked)));
            }
        }
        for other in ["0", "0/3", "0/3~p", "", "0/3~p~x~Nw~"] {
            assert_eq!(Asked::read(other), None, "{other}");
        }
    }
}
