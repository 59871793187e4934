//! What waits for a person, as the API tells it.

use serde_json::{Value, json};
use turnwright_api as api;
use turnwright_core::{Hold, Sampling, Wants};
use turnwright_engine::{WaitingCall, WaitingQuestion};

use crate::arguments;
use crate::rules::rule_text;
use crate::timestamp::timestamp;

/// A call about which a person is asked.
pub fn waiting_call(waiting: WaitingCall) -> api::Call {
    api::Call {
        id: waiting.call.to_string(),
        approval_id: Some(waiting.approval.to_string()),
        conversation_id: Some(waiting.conversation.to_string()),
        name: waiting.name,
        arguments: arguments::told(&waiting.arguments).to_owned(),
        reason: waiting.reason.as_str().to_owned(),
        rule: waiting.rule,
        always: waiting.always.as_ref().map(rule_text),
        question: None,
    }
}

/// What a call asks of people.
pub fn waiting_question(waiting: WaitingQuestion) -> api::Call {
    let host = waiting.host().map(str::to_owned);
    let (mode, requested_schema, url, sampling) = match waiting.ask.wants {
        Wants::Form { schema } => ("form", Some(schema), None, None),
        Wants::Url { url } => ("url", None, Some(url), None),
        Wants::Sampling { request } => ("sampling", None, None, Some(sampling(&request))),
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
        approval_id: None,
        conversation_id: Some(waiting.conversation.to_string()),
        name: waiting.name,
        arguments: arguments::told(&waiting.arguments).to_owned(),
        reason: "question".to_owned(),
        rule: None,
        always: None,
        question: Some(question),
    }
}

/// The question to a model as one text, for clients that show a text alone.
pub(crate) fn in_words(message: &str, asked: &api::Sampling) -> String {
    let model = asked.model.as_deref().unwrap_or("a model");
    let mut text = format!("{message} It goes to {model}, at your cost, for at most {} tokens:", asked.max_tokens);
    let mut say = |who: &str, what: &str| {
        text.push('\n');
        text.push_str(who);
        text.push_str(": ");
        text.push_str(what);
    };
    if let Some(system) = &asked.system_prompt {
        say("system", system);
    }
    for said in &asked.messages {
        for block in &said.content {
            match block.get("text").and_then(Value::as_str) {
                Some(words) => say(&said.role, words),
                None => say(&said.role, &block.to_string()),
            }
        }
    }
    if !asked.tools.is_empty() {
        say("tools of its own", &asked.tools.join(", "));
    }
    text
}

/// What a model is to be asked.
pub(crate) fn sampling(request: &Sampling) -> api::Sampling {
    let messages = request.messages.iter().map(|message| {
        let said = message.content.iter().filter_map(|block| serde_json::to_value(block).ok());
        let calls = message
            .calls
            .iter()
            .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
        let results = message.results.iter().map(|result| {
            json!({"type": "tool_result", "toolUseId": result.call, "content": result.content, "isError": result.is_error})
        });
        let content = said.chain(calls).chain(results).collect();
        api::SamplingMessage { role: message.role.as_str().to_owned(), content }
    });
    api::Sampling {
        model: request.model.as_ref().map(ToString::to_string),
        system_prompt: request.system_prompt.clone(),
        messages: messages.collect(),
        tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        max_tokens: request.max_tokens,
    }
}
