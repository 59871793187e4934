//! What differs from the plain case.

use turnwright_core::{AssistantBlock, FinishReason, ProviderFailureKind, Usage};

use super::{decode, decode_as, good, native, stream, text};
use crate::support::{calls, every_way};
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::{Dialect, ErrorResponse};

#[test]
fn a_signature_stays_in_the_very_part_that_it_came_with() {
    let signed = r#"{"text":" there","thoughtSignature":"c2ln"}"#;
    let alone = r#"{"text":"","thoughtSignature":"bGFzdA=="}"#;
    let thought = r#"{"thoughtSignature": "dGg=", "text":"Hm", "thought": true}"#;
    let decoded = good(&stream(&[thought, r#"{"text":"Hi"}"#, signed, r#"{"text":"!"}"#, alone], "STOP"));
    let expected = [
        AssistantBlock::Reasoning { text: "Hm".to_owned(), native: Some(native(thought)) },
        text("Hi"),
        AssistantBlock::Text { text: " there".to_owned(), native: Some(native(signed)) },
        text("!"),
        AssistantBlock::Opaque { native: native(alone) },
    ];
    assert_eq!(decoded.message.blocks, expected);
}

#[test]
fn what_is_not_understood_is_kept_as_it_came_in_its_place() {
    let code = r#"{"executableCode":{"language":"PYTHON","code":"print(1)"}}"#;
    let result = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}"#;
    let image = r#"{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}"#;
    let new = r#"{"hologram":{"x":1}}"#;
    let decoded = good(&stream(&[code, &format!("{result},{image}"), r#"{"text":"1"}"#, new, "{}"], "STOP"));
    let opaque = |text| AssistantBlock::Opaque { native: native(text) };
    assert_eq!(decoded.message.blocks, [opaque(code), opaque(result), opaque(image), text("1"), opaque(new)]);
}

#[test]
fn unknown_fields_events_and_reasons_do_not_matter() {
    let body = "event: ping\ndata: {\"ping\":1}\n\ndata: 7\n\ndata: {\"candidates\":null,\"x\":[]}\n\ndata: {\"candidates\":[{\"content\":null,\"citationMetadata\":{}}]}\n\ndata: {\"candidates\":[{\"content\":{\"parts\":null}}]}\n\ndata: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"new\":1}]},\"finishReason\":\"GALACTIC\"}]}\n\ndata: [DONE]\n\n";
    let message = good(body).message;
    assert_eq!((message.text().as_str(), message.finish.reason), ("a", FinishReason::Stop));
    assert_eq!(message.finish.raw.as_deref(), Some("GALACTIC"));
    assert_eq!(message.usage, Usage::default());
}

#[test]
fn every_reason_to_withhold_an_answer_is_a_content_filter() {
    for reason in [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
        "ESCALATION",
    ] {
        let decoded = decode(&[stream(&[], reason).as_bytes()]);
        assert_eq!((decoded.message.finish.reason, decoded.failure), (FinishReason::ContentFilter, None), "{reason}");
    }
    let decoded = good(&stream(&[r#"{"text":"a"}"#], "MAX_TOKENS"));
    assert_eq!(decoded.message.finish.reason, FinishReason::Length);
}

#[test]
fn a_prompt_that_was_blocked_is_a_content_filter() {
    let body = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"},\"usageMetadata\":{\"promptTokenCount\":3}}\n\n";
    let message = good(body).message;
    assert_eq!(message.finish.reason, FinishReason::ContentFilter);
    assert_eq!(message.finish.raw.as_deref(), Some("blockReason:SAFETY"));
    assert_eq!(message.usage.input_tokens, Some(3));
}

#[test]
fn what_the_model_could_not_write_is_a_failure_that_may_be_tried_again() {
    let body = "data: {\"candidates\":[{\"content\":{},\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"Malformed function call: print(f(\"}]}\n\n";
    let decoded = every_way(body, decode);
    let failure = decoded.failure.unwrap();
    assert_eq!((failure.kind, failure.code.as_deref()), (ProviderFailureKind::Server, Some("MALFORMED_FUNCTION_CALL")));
    assert!(failure.message.contains("print(f("), "{}", failure.message);
    assert!(failure.is_retryable());
    assert_eq!(decoded.message.finish.raw.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
    for reason in ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "OTHER", "IMAGE_OTHER", "NO_IMAGE"] {
        let failure = decode(&[stream(&[], reason).as_bytes()]).failure.unwrap();
        assert_eq!(failure.kind, ProviderFailureKind::Server, "{reason}");
    }
    let failure = decode(&[stream(&[], "MISSING_THOUGHT_SIGNATURE").as_bytes()]).failure.unwrap();
    assert_eq!(failure.kind, ProviderFailureKind::InvalidRequest);
}

#[test]
fn an_empty_answer_is_no_success() {
    for body in [stream(&[], "STOP"), stream(&[r#"{"text":""}"#], "STOP")] {
        let failure = every_way(&body, decode).failure.unwrap();
        assert_eq!((failure.kind, failure.is_retryable()), (ProviderFailureKind::CutOff, true));
    }
}

#[test]
fn an_error_in_the_middle_keeps_what_came_before() {
    let error = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    let before = stream(&[r#"{"text":"Hel"}"#], "STOP");
    let before = before.split_once("data: {\"candidates\":[{\"finish").unwrap().0;
    for error in [format!("data: {error}\n\n"), format!("data: [{error}]\n\n"), format!("event: error\ndata: {error}\n\n")] {
        let decoded = every_way(&format!("{before}{error}"), decode);
        let failure = decoded.failure.unwrap();
        assert_eq!((failure.kind, failure.status), (ProviderFailureKind::Overloaded, Some(503)));
        assert_eq!(decoded.message.text(), "Hel");
    }
}

#[test]
fn a_body_that_is_no_answer_is_told_as_what_it_is() {
    let kind = |content_type: &str, body: &str| decode_as(content_type, &[body.as_bytes()]).failure.unwrap().kind;
    let error = r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]"#;
    assert_eq!(kind("application/json", error), ProviderFailureKind::RateLimit);
    assert_eq!(kind("text/html", "<html><title>Login</title></html>"), ProviderFailureKind::Malformed);
    assert_eq!(kind("application/json", "{\"x\":1}"), ProviderFailureKind::Malformed);
    assert_eq!(kind("application/json", "{\"candidates\":"), ProviderFailureKind::CutOff);
    assert_eq!(kind("text/event-stream", "data: {\"candidates\n\n"), ProviderFailureKind::Malformed);
    assert_eq!(kind("text/event-stream", ""), ProviderFailureKind::CutOff);
}

#[test]
fn arguments_are_put_together_from_their_pieces() {
    let piece = |path: &str, value: &str, goes_on: bool| {
        format!(
            r#"{{"functionCall":{{"partialArgs":[{{"jsonPath":"{path}",{value}{}}}],"willContinue":true}}}}"#,
            if goes_on { ",\"willContinue\":true" } else { "" }
        )
    };
    let parts = [
        r#"{"functionCall":{"id":"c1","name":"cook","willContinue":true},"thoughtSignature":"c2ln"}"#.to_owned(),
        piece("$.steps[0].text", r#""stringValue":"Stir""#, true),
        piece("$.steps[0].text", r#""stringValue":" \"it\"""#, true),
        piece("$.steps[0].text", r#""stringValue":"""#, false),
        piece("$.steps[1]['wait.s']", r#""numberValue":2.5"#, false),
        piece("$.hot", r#""boolValue":true"#, false),
        piece("$.none", r#""nullValue":null"#, false),
        piece("$.list[2]", r#""stringValue":"c""#, false),
        r#"{"functionCall":{}}"#.to_owned(),
        r#"{"functionCall":{"name":"plain","args":{"a":1}}}"#.to_owned(),
    ];
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let decoded = good(&stream(&parts, "STOP"));
    let arguments = r#"{"steps":[{"text":"Stir \"it\""},{"wait.s":2.5}],"hot":true,"none":null,"list":[null,null,"c"]}"#;
    assert_eq!(calls(&decoded.message), [(Some("c1"), "cook", arguments), (None, "plain", "{\"a\":1}")]);
    let own = format!(r#"{{"functionCall":{{"id":"c1","name":"cook","args":{arguments}}},"thoughtSignature":"c2ln"}}"#);
    assert_eq!(decoded.message.calls().next().unwrap().native, Some(native(&own)));
}

#[test]
fn arguments_that_came_as_the_text_of_an_object_are_that_object() {
    let decoded = good(&stream(&[r#"{"functionCall":{"name":"f","args":"{\"a\": 1}"}}"#], "STOP"));
    assert_eq!(calls(&decoded.message), [(None, "f", "{\"a\": 1}")]);
    let other = good(&stream(&[r#"{"functionCall":{"name":"f","args":"a"}}"#], "STOP"));
    assert_eq!(calls(&other.message), [(None, "f", "\"a\"")]);
}

#[test]
fn a_call_without_a_name_is_a_call() {
    let decoded = good(&stream(&[r#"{"functionCall":{}}"#], "STOP"));
    assert_eq!(calls(&decoded.message), [(None, "", "")]);
}

#[test]
fn arguments_that_were_cut_are_seen_to_be_cut() {
    let body = stream(
        &[
            r#"{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true}}"#,
        ],
        "STOP",
    );
    let body = body.split_once("data: {\"candidates\":[{\"finish").unwrap().0;
    let decoded = decode(&[body.as_bytes()]);
    assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::CutOff);
    assert_eq!(calls(&decoded.message), [(None, "f", "{\"a\":\"x\"")]);
}

#[test]
fn no_index_and_no_size_costs_more_than_the_limits() {
    let limit = |parts: &[&str]| decode(&[stream(parts, "STOP").as_bytes()]).failure.unwrap().kind;
    let piece =
        |path: &str| format!(r#"{{"functionCall":{{"name":"f","partialArgs":[{{"jsonPath":"{path}","boolValue":true}}]}}}}"#);
    for index in ["10000000", "4294967295", "18446744073709551615"] {
        assert_eq!(limit(&[&piece(&format!("$.a[{index}]"))]), ProviderFailureKind::Limit, "{index}");
    }
    for path in ["", "a", "$.a[", "$.a[x]", "$.a[-1]", &format!("${}", ".a".repeat(100))] {
        assert_eq!(limit(&[&piece(path)]), ProviderFailureKind::Malformed, "{path}");
    }
    let long = "x".repeat(1_100_000);
    let call = format!(r#"{{"functionCall":{{"name":"f","args":{{"a":"{long}"}}}}}}"#);
    assert_eq!(limit(&[&call]), ProviderFailureKind::Limit);
    let piece = format!(
        r#"{{"functionCall":{{"name":"f","partialArgs":[{{"jsonPath":"$.a","stringValue":"{}","willContinue":true}}],"willContinue":true}}}}"#,
        "x".repeat(600_000)
    );
    let more = piece.replace(r#""name":"f","#, "");
    assert_eq!(limit(&[&piece, &more]), ProviderFailureKind::Limit);
    let many: Vec<&str> = std::iter::repeat_n(r#"{"functionCall":{"name":"f"}}"#, 300).collect();
    assert_eq!(limit(&many), ProviderFailureKind::Limit);
    let event = format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{}", "x".repeat(50_000_000));
    assert_eq!(decode(&[event.as_bytes()]).failure.unwrap().kind, ProviderFailureKind::Limit);
}

#[test]
fn names_in_snake_case_are_taken_too() {
    let body = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"function_call\":{\"name\":\"f\",\"args\":{\"a\":1}},\"thought_signature\":\"c2ln\"}]},\"finish_reason\":\"STOP\"}],\"usage_metadata\":{\"prompt_token_count\":1}}\n\n";
    let message = good(body).message;
    assert_eq!(calls(&message), [(None, "f", "{\"a\":1}")]);
    assert_eq!(message.usage.input_tokens, Some(1));
    assert!(message.calls().next().unwrap().native.is_some());
}

#[test]
fn an_answer_that_is_to_be_continued_leaves_its_token() {
    let body = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]},\"finishReason\":\"CONTINUATION\",\"continuationToken\":\"t\"}]}\n\n";
    let message = good(body).message;
    assert_eq!(message.finish.reason, FinishReason::Pause);
    let token = AssistantBlock::Opaque { native: native(r#"{"continuationToken":"t"}"#) };
    assert_eq!(message.blocks, [text("a"), token]);
}

#[test]
fn arguments_that_are_no_object_are_kept_as_text_alone() {
    let parts = [
        r#"{"functionCall":{"name":"f","args":"{\"a\""},"thoughtSignature":"c2ln"}"#,
        r#"{"functionCall":{"name":"f","args":[1]},"thoughtSignature":"c2ln"}"#,
        r#"{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"}"#,
    ];
    let message = good(&stream(&parts, "STOP")).message;
    assert_eq!(calls(&message), [(None, "f", r#""{\"a\"""#), (None, "f", "[1]"), (None, "f", "")]);
    let natives: Vec<_> = message.calls().map(|call| call.native.clone()).collect();
    assert_eq!(natives, [None, None, Some(native(parts[2]))]);
}

#[test]
fn every_row_of_the_error_table_has_its_kind() {
    use ProviderFailureKind as K;
    let error = |code: u16, word: &str, message: &str| {
        format!(r#"{{"error":{{"code":{code},"message":"{message}","status":"{word}"}}}}"#)
    };
    let detailed = |code: u16, word: &str, details: &str| {
        format!(r#"{{"error":{{"code":{code},"message":"m","status":"{word}","details":[{details}]}}}}"#)
    };
    let key = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}"#;
    let delay = r#"{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46s"}"#;
    let daily = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}"#;
    let waits = "Quota exceeded.\\nPlease retry in 10h17m5.7s.";
    let overflow = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
    let table = [
        (400, detailed(400, "INVALID_ARGUMENT", key), K::Auth, None),
        (400, error(400, "INVALID_ARGUMENT", "no"), K::InvalidRequest, None),
        (400, error(400, "FAILED_PRECONDITION", "not in your country"), K::InvalidRequest, None),
        (400, error(400, "INVALID_ARGUMENT", overflow), K::ContextLength, None),
        (400, error(400, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."), K::TooLarge, None),
        (401, error(401, "UNAUTHENTICATED", "no"), K::Auth, None),
        (403, error(403, "PERMISSION_DENIED", "no"), K::Permission, None),
        (404, error(404, "NOT_FOUND", "no"), K::NotFound, None),
        (429, error(429, "RESOURCE_EXHAUSTED", "Quota exceeded, limit: 10"), K::RateLimit, None),
        (429, error(429, "RESOURCE_EXHAUSTED", "Quota exceeded, limit: 0, model: m"), K::Quota, None),
        (429, error(429, "RESOURCE_EXHAUSTED", waits), K::RateLimit, Some(37_025_700)),
        (429, detailed(429, "RESOURCE_EXHAUSTED", delay), K::RateLimit, Some(46_000)),
        (429, format!("[{}]", detailed(429, "RESOURCE_EXHAUSTED", delay)), K::RateLimit, Some(46_000)),
        (429, detailed(429, "RESOURCE_EXHAUSTED", &format!("{daily},{delay}")), K::Quota, Some(46_000)),
        (499, error(499, "CANCELLED", "no"), K::Server, None),
        (500, error(500, "INTERNAL", "no"), K::Server, None),
        (503, error(503, "UNAVAILABLE", "The model is overloaded"), K::Overloaded, None),
        (504, error(504, "DEADLINE_EXCEEDED", "no"), K::Timeout, None),
        (502, "<html><title>Bad gateway</title></html>".to_owned(), K::Server, None),
        (500, String::new(), K::Server, None),
    ];
    for (status, body, kind, delay) in table {
        let failure = Gemini.failure(&ErrorResponse { status, header: &|_| None, body: body.as_bytes() });
        assert_eq!((failure.kind, failure.retry_after_ms), (kind, delay), "{status} {body}");
        assert_eq!(failure.status, Some(status));
    }
}
