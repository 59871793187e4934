//! What waits for a person, as the API tells it.

use turnwright_api as api;
use turnwright_core::{Hold, Wants};
use turnwright_engine::{WaitingCall, WaitingQuestion};

use crate::timestamp::timestamp;

/// A call about which a person is asked.
pub fn waiting_call(waiting: WaitingCall) -> api::Call {
    api::Call {
        id: waiting.call.to_string(),
        conversation_id: Some(waiting.conversation.to_string()),
        name: waiting.name,
        arguments: waiting.arguments,
        reason: waiting.reason.as_str().to_owned(),
        rule: waiting.rule,
        question: None,
    }
}

/// What a call asks of people.
pub fn waiting_question(waiting: WaitingQuestion) -> api::Call {
    let host = waiting.host().map(str::to_owned);
    let (mode, requested_schema, url) = match waiting.ask.wants {
        Wants::Form { schema } => ("form", Some(schema), None),
        Wants::Url { url } => ("url", None, Some(url)),
    };
    let expires_at = match waiting.hold {
        Hold::Connection { until_ms } => Some(timestamp(until_ms)),
        Hold::Nothing => None,
    };
    let question = api::Question {
        call_id: waiting.call.to_string(),
        server: waiting.source,
        mode: mode.to_owned(),
        message: waiting.ask.message,
        requested_schema,
        url,
        host,
        holds_connection: expires_at.is_some(),
        expires_at,
    };
    api::Call {
        id: waiting.id.to_string(),
        conversation_id: Some(waiting.conversation.to_string()),
        name: waiting.name,
        arguments: waiting.arguments,
        reason: "question".to_owned(),
        rule: None,
        question: Some(question),
    }
}
