//! What a server asks of people, in both forms and both eras.

use reqwest::Url;
use rmcp::model::{ErrorData, RequestId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use turnwright_core::{AnswerAction, Elicitation, Form, Wants};
use turnwright_engine::{Held, Reply};

use crate::transport::{Wire, call_of};

/// The method by which servers ask.
pub(crate) const METHOD: &str = "elicitation/create";

/// The longest question that is taken, in bytes: it is kept with the conversation and shown to people.
const MAX_BYTES: usize = 256 << 10;

/// Asks whoever the server's call belongs to, and gives the protocol's answer.
pub(super) async fn answer(wire: &Wire, params: Option<Value>, cancelled: &CancellationToken) -> Result<Value, ErrorData> {
    let call = call_of(params.as_ref());
    let asked = question(String::new(), params.unwrap_or_default()).map_err(|why| ErrorData::invalid_params(why, None))?;
    let reply = ask(wire, call.as_ref(), &asked, cancelled).await?;
    Ok(result(reply.action, reply.content.map(Value::Object)))
}

/// Asks whoever the call belongs to. Where the server does not say which it is, the newest may be over while the one that asked goes on:
/// then it is asked for another that was open when the question came, and still is. Nobody else is: what came since did not ask this.
pub(super) async fn ask(
    wire: &Wire,
    call: Option<&RequestId>,
    asked: &Elicitation,
    cancelled: &CancellationToken,
) -> Result<Reply, ErrorData> {
    let mut doors = wire.doors_of(call).map_err(|why| ErrorData::invalid_request(why, None))?;
    let _held: Vec<Held> = doors.iter().map(|(_, door)| door.standstill.hold()).collect();
    while let Some((id, door)) = doors.pop() {
        let reply = tokio::select! {
            reply = door.asks.ask(asked.clone()) => reply,
            () = cancelled.cancelled() => return Err(unasked()),
        };
        if let Some(reply) = reply {
            return Ok(reply);
        }
        // Nobody drives it any more, nor those beside it.
        if wire.is_open(&id) {
            break;
        }
        doors.retain(|(id, _)| wire.is_open(id));
    }
    Err(unasked())
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
    use std::sync::Arc;

    use rmcp::model::NumberOrString;
    use turnwright_engine::{Asks, Standstill};

    use super::*;
    use crate::transport::Door;

    /// The people of one conversation, for one of its calls.
    #[derive(Debug)]
    struct People {
        wire: Arc<Wire>,
        call: i64,
        /// Whether the call is over before anybody answers, while one of another conversation begins.
        is_over: bool,
    }

    /// Whose call began meanwhile.
    #[derive(Debug)]
    struct Others;

    #[async_trait::async_trait]
    impl Asks for Others {
        async fn ask(&self, _ask: Elicitation) -> Option<Reply> {
            Some(Reply::accept(json!({"call": "another's"}).as_object().cloned()))
        }

        fn whose(&self) -> Option<&str> {
            Some("c2")
        }

        fn by(&self) -> Option<&str> {
            Some("ben")
        }
    }

    #[async_trait::async_trait]
    impl Asks for People {
        async fn ask(&self, _ask: Elicitation) -> Option<Reply> {
            if !self.is_over {
                return (self.call > 0).then(|| Reply::accept(json!({"call": self.call}).as_object().cloned()));
            }
            self.wire.answered(&NumberOrString::Number(self.call));
            let door = Door { asks: Arc::new(Others), standstill: Standstill::default() };
            self.wire.sent(NumberOrString::Number(self.call + 100), None, None, Some(door));
            None
        }

        fn whose(&self) -> Option<&str> {
            Some("c1")
        }

        fn by(&self) -> Option<&str> {
            Some("local")
        }
    }

    async fn told(calls: &[(i64, bool)], named: Option<i64>) -> Result<Value, String> {
        let wire = Arc::new(Wire::default());
        for (call, is_over) in calls {
            let asks = Arc::new(People { wire: wire.clone(), call: *call, is_over: *is_over });
            let door = Door { asks, standstill: Standstill::default() };
            wire.sent(NumberOrString::Number(*call), None, None, Some(door));
        }
        let params = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
        let asked = question(String::new(), params).unwrap();
        let named = named.map(NumberOrString::Number);
        let reply = ask(&wire, named.as_ref(), &asked, &CancellationToken::new()).await;
        reply.map(|reply| Value::from(reply.content)).map_err(|error| error.message.into_owned())
    }

    #[tokio::test]
    async fn where_the_newest_call_is_over_it_is_asked_for_another_that_was_open_and_for_none_that_came_since() {
        let over = Err("nobody answers any more: the call that asked is over".to_owned());
        assert_eq!(told(&[(1, false), (2, true), (3, true)], None).await, Ok(json!({"call": 1})));
        assert_eq!(told(&[(1, true), (2, true)], None).await, over);
        assert_eq!(told(&[], None).await, Err("no call is open to which the question could belong".to_owned()));
        // Whose driver ended while it is open: no other is asked, nor where the server says which it is.
        assert_eq!(told(&[(1, false), (-2, false)], None).await, over);
        assert_eq!(told(&[(1, false), (2, true)], Some(2)).await, over);
    }

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
