//! What waits for a person, as the API tells it.

use turnwright_api as api;
use turnwright_core::{Hold, Sampling, Wants};
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
    let (mode, requested_schema, url, sampling) = match waiting.ask.wants {
        Wants::Form { schema } => ("form", Some(schema), None, None),
        Wants::Url { url } => ("url", None, Some(url), None),
        Wants::Sampling { request } => ("sampling", None, None, Some(sampling(*request))),
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
        sampling,
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

/// What a model is to be asked.
fn sampling(request: Sampling) -> api::Sampling {
    let messages = request.messages.into_iter().map(|message| {
        let content = message.content.iter().filter_map(|block| serde_json::to_value(block).ok()).collect();
        api::SamplingMessage { role: message.role.as_str().to_owned(), content }
    });
    api::Sampling {
        model: request.model.map(|model| model.to_string()),
        system_prompt: request.system_prompt,
        messages: messages.collect(),
        max_tokens: request.max_tokens,
    }
}
