//! What a server asks of people, in both forms and both eras.

use reqwest::Url;
use rmcp::model::ErrorData;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{AnswerAction, Elicitation, Form, Wants};

use crate::transport::{Wire, call_of};

/// The method by which servers ask.
pub(crate) const METHOD: &str = "elicitation/create";

/// The longest question that is taken, in bytes: it is kept with the conversation and shown to people.
const MAX_BYTES: usize = 256 << 10;

/// Asks whoever the server's call belongs to, and gives the protocol's answer.
pub(super) async fn answer(wire: &Wire, params: Option<Value>, cancelled: &CancellationToken) -> Result<Value, ErrorData> {
    let call = call_of(params.as_ref());
    let asked = question(String::new(), params.unwrap_or_default()).map_err(|why| ErrorData::invalid_params(why, None))?;
    let door = wire.door_of(call.as_ref()).map_err(|why| ErrorData::invalid_request(why, None))?;
    let _held = door.standstill.hold();
    let reply = tokio::select! {
        reply = door.asks.ask(asked) => reply.ok_or_else(unasked)?,
        () = cancelled.cancelled() => return Err(unasked()),
    };
    Ok(result(reply.action, reply.content.map(Value::Object)))
}

/// What a server is told whose question has no answer and gets none: people said nothing, not even that they will not.
pub(super) fn unasked() -> ErrorData {
    ErrorData::internal_error("nobody answers any more: the call that asked is over", None)
}

/// The protocol's answer to a question.
pub(crate) fn result(action: AnswerAction, content: Option<Value>) -> Value {
    match content.filter(|_| action == AnswerAction::Accept) {
        Some(content) => json!({"action": action.as_str(), "content": content}),
        None => json!({"action": action.as_str()}),
    }
}

/// Reads the parameters of a question.
///
/// # Errors
/// What is wrong with it, for the server.
pub(crate) fn question(key: String, params: Value) -> Result<Elicitation, String> {
    let mut key = key;
    let Value::Object(mut params) = params else { return Err("an elicitation has parameters".to_owned()) };
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let mode = text(params.remove("mode"));
    let message = text(params.remove("message")).unwrap_or_default();
    let wants = match mode.as_deref() {
        None | Some("form") => {
            let schema = params.remove("requestedSchema").ok_or("a form has a requestedSchema")?;
            Form::read(&schema)?;
            Wants::Form { schema }
        }
        Some("url") => {
            let url = text(params.remove("url")).ok_or("an elicitation of mode url has a url")?;
            let is_web = Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !is_web || url.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
                return Err("the url of an elicitation is a whole http or https address".to_owned());
            }
            // Before 2026-07-28 it has a name by which its server says that it is done.
            key = text(params.remove("elicitationId")).filter(|_| key.is_empty()).unwrap_or(key);
            Wants::Url { url }
        }
        Some(other) => return Err(format!("an elicitation of mode `{other}` is not known here")),
    };
    let size = message.len().saturating_add(match &wants {
        Wants::Form { schema } => schema.to_string().len(),
        Wants::Url { url } => url.len(),
        Wants::Sampling { .. } => 0,
    });
    if size > MAX_BYTES {
        return Err(format!("the question is {size} bytes long, limit {MAX_BYTES}"));
    }
    Ok(Elicitation { key, message, wants })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_both_modes_are_read_and_others_refused_in_words() {
        let form = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "boolean"}}}});
        let schema = form.get("requestedSchema").unwrap().clone();
        let expected = Elicitation { key: "k".into(), message: "Who?".into(), wants: Wants::Form { schema } };
        assert_eq!(question("k".into(), form), Ok(expected));
        let url = json!({"mode": "url", "message": "Pay.", "url": "https://pay.example.org/a?b#c", "elicitationId": "x"});
        let wants = Wants::Url { url: "https://pay.example.org/a?b#c".into() };
        assert_eq!(question(String::new(), url), Ok(Elicitation { key: "x".into(), message: "Pay.".into(), wants }));
        let nested = json!({"requestedSchema": {"properties": {"a": {"type": "object"}}}});
        let cases = [
            (json!(null), "an elicitation has parameters"),
            (json!({"message": "m"}), "a form has a requestedSchema"),
            (nested, "its field `a` is of type object, which no form has"),
            (json!({"mode": "url"}), "an elicitation of mode url has a url"),
            (
                json!({"mode": "url", "url": "javascript:alert(1)"}),
                "the url of an elicitation is a whole http or https address",
            ),
            (
                json!({"mode": "url", "url": "https://a/\u{1b}[2J"}),
                "the url of an elicitation is a whole http or https address",
            ),
            (json!({"mode": "voice"}), "an elicitation of mode `voice` is not known here"),
            (json!({"message": "m".repeat(300_000), "requestedSchema": {}}), "the question is 300002 bytes long, limit 262144"),
        ];
        for (params, why) in cases {
            assert_eq!(question(String::new(), params), Err(why.to_owned()));
        }
    }
}
