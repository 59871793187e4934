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
        let mended: Value = serde_json::from_slice(&Anthropic.mended(&request, &refused).unwrap()).unwrap();
        assert_eq!((mended.get("thinking"), mended["messages"][1]["content"].as_array().map(Vec::len)), (None, Some(1)));
        // It is not mended twice.
        assert_eq!(Anthropic.mended(mended.to_string().as_bytes(), &refused), None);
    }
    let other = failure(400, &[], &body("invalid_request_error", "max_tokens: required"));
    assert_eq!(Anthropic.mended(&request, &other), None);
}

#[test]
fn keys_models_and_names_are_those_of_the_api() {
    let dialect = by_name("anthropic").unwrap();
    assert_eq!(dialect.name(), "anthropic");
    assert_eq!(dialect.key_variable(), "ANTHROPIC_API_KEY");
    assert_eq!(dialect.authorization("sk-ant-api03-x"), ("x-api-key", "sk-ant-api03-x".to_owned()));
    assert_eq!(dialect.authorization("sk-ant-oat01-x"), ("authorization", "Bearer sk-ant-oat01-x".to_owned()));
    assert_eq!(dialect.headers(), [("anthropic-version", "2023-06-01")]);
    assert_eq!(dialect.models_path(), "/v1/models?limit=1000");
    let list = br#"{"data":[{"type":"model","id":"claude-b","display_name":"B"},{"id":"claude-a"}],"has_more":false}"#;
    assert_eq!(dialect.models(list).unwrap(), ["claude-b", "claude-a"]);
    assert_eq!(dialect.models(b"[]").unwrap_err().kind, K::Malformed);
}
