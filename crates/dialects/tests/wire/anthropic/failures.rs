//! What goes wrong, and the rest of the seam.

use serde_json::{Value, json};
use turnwright_core::{ProviderFailure, ProviderFailureKind as K};
use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::{Dialect, ErrorResponse, by_name};

use super::request::{Ask, answer, asks, message, says, thought};
use super::{opaque, text};

fn failure(status: u16, headers: &[(&str, &str)], body: &str) -> ProviderFailure {
    let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    Anthropic.failure(&ErrorResponse { status, header: &header, body: body.as_bytes() })
}

const NEW_THOUGHT: &str = r#"{"type":"thinking","thinking":"New.","signature":"n"}"#;

fn body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).to_string()
}

#[test]
fn each_error_is_of_the_kind_that_its_status_and_type_say() {
    let table = [
        (400, "invalid_request_error", "max_tokens: required", K::InvalidRequest),
        (400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum", K::ContextLength),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            K::ContextLength,
        ),
        (401, "authentication_error", "invalid x-api-key", K::Auth),
        (402, "billing_error", "no credit", K::Quota),
        (403, "permission_error", "no", K::Permission),
        (404, "not_found_error", "model: claude-x", K::NotFound),
        (413, "request_too_large", "Request exceeds the maximum size", K::TooLarge),
        (429, "rate_limit_error", "too many", K::RateLimit),
        (500, "api_error", "Internal server error", K::Server),
        (504, "timeout_error", "no", K::Timeout),
        (529, "overloaded_error", "Overloaded", K::Overloaded),
    ];
    for (status, kind, message, expected) in table {
        let failure = failure(status, &[], &body(kind, message));
        assert_eq!((failure.kind, failure.status, failure.message.as_str()), (expected, Some(status), message), "{kind}");
        assert_eq!(failure.request_id.as_deref(), Some("req_1"));
        // The same as an event of a stream that began well.
        let stream = format!("event: error\ndata: {}\n\n", body(kind, message));
        let in_stream = super::decode(&[stream.as_bytes()]).failure.unwrap();
        assert_eq!(
            (in_stream.kind, in_stream.status, in_stream.request_id.as_deref()),
            (expected, Some(status), Some("req_1"))
        );
    }
}

#[test]
fn a_limit_on_spending_is_no_limit_on_the_rate_that_waiting_ends() {
    let spent = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m",
        "details": {"error_code": "enforced_spend_limit_reached"}}})
    .to_string();
    assert_eq!(failure(429, &[], &spent).kind, K::Quota);
    assert_eq!(failure(429, &[], &spent).code.as_deref(), Some("enforced_spend_limit_reached"));
    assert_eq!(failure(429, &[("retry-after", "9")], &spent).kind, K::RateLimit);
}

#[test]
fn the_header_names_the_request_before_the_body_does() {
    let failure = failure(500, &[("request-id", "req_2")], &body("api_error", "m"));
    assert_eq!(failure.request_id.as_deref(), Some("req_2"));
    assert_eq!(self::failure(502, &[], "<html><title>Bad gateway</title></html>").kind, K::Server);
    assert_eq!(self::failure(503, &[], "").kind, K::Overloaded);
}

#[test]
fn a_request_whose_thoughts_are_refused_is_asked_once_more_without_them() {
    let (hello, more) = (asks("Hi"), asks("More"));
    let said = says(vec![thought("Hm."), opaque(r#"{"type":"redacted_thinking","data":"r"}"#), text("So.")]);
    let mut ask = Ask::new(vec![message(1, &hello), answer(2, &said), message(3, &more)]);
    ask.settings.reasoning_effort = Some(turnwright_core::ReasoningEffort::Low);
    let request = ask.request().body;
    for text in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ] {
        let refused = failure(400, &[], &body("invalid_request_error", text));
        let mended: Value = serde_json::from_slice(&Anthropic.mended(&request, &refused).unwrap().body).unwrap();
        assert_eq!((mended.get("thinking"), mended["messages"][1]["content"].as_array().map(Vec::len)), (None, Some(1)));
        // It is not mended twice.
        assert_eq!(Anthropic.mended(mended.to_string().as_bytes(), &refused), None);
    }
    let other = failure(400, &[], &body("invalid_request_error", "max_tokens: required"));
    assert_eq!(Anthropic.mended(&request, &other), None);
}

#[test]
fn thoughts_that_were_refused_stay_left_out_and_newer_ones_go_back() {
    let (hello, more, again) = (asks("Hi"), asks("More"), asks("Again"));
    let (said, new) = (says(vec![thought("Hm."), text("So.")]), says(vec![opaque(NEW_THOUGHT), text("Well.")]));
    let messages = [message(1, &hello), answer(2, &said), message(3, &more), answer(4, &new), message(5, &again)];
    let body_of = |count: usize| Ask::new(messages.iter().take(count).cloned().collect()).request().body;
    let refused = failure(400, &[], &body("invalid_request_error", "Invalid `signature` in `thinking` block"));
    let mended = Anthropic.mended(&body_of(3), &refused).unwrap();
    assert_eq!(mended.messages, 3);
    let later = String::from_utf8(Anthropic.still_mended(&body_of(5), mended.messages).unwrap()).unwrap();
    let before = String::from_utf8(mended.body).unwrap();
    assert!(later.starts_with(before.split_once("More").unwrap().0), "{later}");
    assert!(later.contains("New.") && !later.contains("Hm."), "{later}");
    assert_eq!(Anthropic.still_mended(&body_of(1), mended.messages), None, "there is nothing to leave out");
}

#[test]
fn results_of_an_answer_without_its_thought_are_answered_without_thinking() {
    let body_of = |first: Value, last: Value| {
        let call = json!([{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]);
        let messages = json!([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, {"role": "assistant", "content": call},
            {"role": "user", "content": [first]}, {"role": "user", "content": [last]}]);
        json!({"messages": messages, "thinking": {"type": "enabled", "budget_tokens": 2000}}).to_string()
    };
    let result = || json!({"type": "tool_result", "tool_use_id": "a", "content": "1"});
    let thinks = |body: String| {
        let later = Anthropic.still_mended(body.as_bytes(), 2).unwrap();
        serde_json::from_slice::<Value>(&later).unwrap().get("thinking").is_some()
    };
    assert!(!thinks(body_of(result(), result())));
    assert!(thinks(body_of(result(), json!({"type": "text", "text": "More"}))), "a new question is thought about");
}

#[test]
fn keys_models_and_names_are_those_of_the_api() {
    let dialect = by_name("anthropic").unwrap();
    assert_eq!(dialect.name(), "anthropic");
    assert_eq!(dialect.authorization("sk-ant-api03-x"), ("x-api-key", "sk-ant-api03-x".to_owned()));
    assert_eq!(dialect.authorization("sk-ant-oat01-x"), ("authorization", "Bearer sk-ant-oat01-x".to_owned()));
    assert_eq!(dialect.headers(), [("anthropic-version", "2023-06-01")]);
    assert_eq!(dialect.models_path(), "/v1/models?limit=1000");
    let list = br#"{"data":[{"type":"model","id":"claude-b","display_name":"B"},{"id":"claude-a"}],"has_more":false}"#;
    assert_eq!(dialect.models(list).unwrap(), ["claude-b", "claude-a"]);
    assert_eq!(dialect.models(b"[]").unwrap_err().kind, K::Malformed);
}
