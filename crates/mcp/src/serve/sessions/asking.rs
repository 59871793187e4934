//! By what a client is asked: names of requests that say where the answer belongs.

use std::sync::Arc;

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::ServerSseMessage;

/// The call that asks. Goes with the request inside this process, and in its name to the client and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::serve) struct Asking {
    /// By which [`crate::serve::Backing::join`] finds the call.
    pub(in crate::serve) handle: String,
    /// Which of its questions it is.
    pub(in crate::serve) key: String,
}

impl Asking {
    /// Whether it asks for leave; what tools ask have names of their own.
    pub(super) fn is_about_leave(&self) -> bool {
        self.key.starts_with(crate::serve::Question::KEY)
    }
}

/// The name of a request to a client: `PROCESS/NUMBER`, and `/KEY/HANDLE` where a call asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// The process that asks.
    pub(super) process: &'a str,
    /// The request's number there.
    pub(super) number: i64,
    /// The call that asks.
    pub(super) asking: Option<Asking>,
}

impl<'a> Name<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let (process, number) = (parts.next()?, parts.next()?.parse().ok()?);
        let asking = parts.next().zip(parts.next());
        let asking = asking.map(|(key, handle)| Asking { handle: handle.to_owned(), key: key.to_owned() });
        Some(Self { process, number, asking })
    }

    fn write(process: &str, number: i64, asking: Option<&Asking>) -> String {
        match asking {
            Some(Asking { handle, key }) => format!("{process}/{number}/{key}/{handle}"),
            None => format!("{process}/{number}"),
        }
    }
}

/// The same message, whose request has its name.
pub(super) fn named(mut told: ServerSseMessage, process: &str) -> ServerSseMessage {
    let Some(message) = &mut told.message else { return told };
    if !matches!(**message, ServerJsonRpcMessage::Request(_)) {
        return told;
    }
    if let ServerJsonRpcMessage::Request(request) = Arc::make_mut(message)
        && let RequestId::Number(number) = request.id
    {
        let name = Name::write(process, number, rmcp::model::GetExtensions::extensions(&request.request).get());
        request.id = RequestId::String(name.into());
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_an_answer_belongs() {
        let asking = Asking { handle: "conv_1/turn_7".to_owned(), key: "approval".to_owned() };
        let name = Name::write("p", 3, Some(&asking));
        assert_eq!(Name::read(&name), Some(Name { process: "p", number: 3, asking: Some(asking) }));
        assert_eq!(Name::read("p/0"), Some(Name { process: "p", number: 0, asking: None }));
        for other in ["", "7", "p/x", "p"] {
            assert_eq!(Name::read(other), None, "{other}");
        }
    }
}
