//! Answers.

use turnwright_core::{AssistantBlock, Finish, FinishReason, ProviderFailureKind, ToolCall, Usage};
use turnwright_dialects::ollama::Ollama;
use turnwright_dialects::{Dialect, ErrorResponse, Offered, Profile};

use crate::support::{Decoded, calls, decode_reply, every_way, offered};

fn decode_with(offered: &Offered, content_type: Option<&str>, chunks: &[&[u8]]) -> Decoded {
    decode_reply(Ollama.decoder(&Profile::COMPATIBLE, offered), content_type, chunks)
}

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_with(&Offered::default(), Some("application/x-ndjson"), chunks)
}

fn good(body: &str) -> Decoded {
    let decoded = every_way(body, decode);
    assert_eq!(decoded.failure, None);
    decoded
}

fn failed(body: &str) -> ProviderFailureKind {
    every_way(body, decode).failure.unwrap().kind
}

/// A stream of these messages.
fn stream(messages: &[&str]) -> String {
    let line = |message: &&str| format!("{{\"model\":\"m\",\"message\":{message},\"done\":false}}\n");
    let end = "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":20,\"eval_count\":9}\n";
    messages.iter().map(line).collect::<String>() + end
}

const GOLDEN: &str = r#"{"model":"m","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_weather","arguments":{"city":"Zürich"}}}]},"done":false}
{"model":"m","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1,"prompt_eval_count":20,"eval_count":9}
"#;

#[test]
fn a_thought_and_a_call_are_the_same_wherever_the_stream_is_cut() {
    for body in [GOLDEN, GOLDEN.trim_end()] {
        let message = good(body).message;
        let call = ToolCall {
            name: "get_weather".to_owned(),
            arguments: r#"{"city":"Zürich"}"#.to_owned(),
            provider_id: None,
            native: None,
            recovered: false,
        };
        let expected = [AssistantBlock::Reasoning { text: "hm".to_owned(), native: None }, AssistantBlock::Call(call)];
        assert_eq!(message.blocks, expected);
        assert_eq!(message.finish, Finish { reason: FinishReason::ToolCalls, raw: Some("stop".to_owned()) });
        let usage = Usage { input_tokens: Some(20), output_tokens: Some(9), ..Usage::default() };
        assert_eq!(message.usage, usage);
    }
}

#[test]
fn text_and_calls_keep_their_order_over_several_lines() {
    let call = |name: &str, id: &str| {
        format!(r#"{{"content":"","tool_calls":[{{{id}"function":{{"index":0,"name":"{name}","arguments":{{}}}}}}]}}"#)
    };
    let (a, b) = (call("a", ""), call("b", "\"id\":\"call_1\","));
    let body = stream(&[r#"{"content":"One"}"#, &a, r#"{"content":"two"}"#, &b]);
    let message = good(&body).message;
    assert_eq!(calls(&message), [(None, "a", ""), (Some("call_1"), "b", "")]);
    let kinds: Vec<bool> = message.blocks.iter().map(|block| matches!(block, AssistantBlock::Call(_))).collect();
    assert_eq!(kinds, [false, true, false, true]);
}

#[test]
fn lines_are_told_as_they_come() {
    let first = "{\"message\":{\"content\":\"a\"},\"done\":false}\n";
    let mut reply = turnwright_dialects::ReplyDecoder::new(Ollama.decoder(&Profile::OPENAI, &Offered::default()), None);
    let mut out = Vec::new();
    reply.push(first.as_bytes(), &mut out).unwrap();
    assert_eq!(out, [turnwright_core::StreamDelta::Text("a".to_owned())]);
    reply.push(b"{\"message\":{\"content\":\"\"},\"done\":true}\n", &mut out).unwrap();
    assert!(reply.is_done());
}

#[test]
fn a_whole_reply_is_an_answer_on_one_line_or_on_many() {
    let body = r#"{"model":"m","message":{"role":"assistant","content":"Hello","thinking":"hm"},"done":true,"done_reason":"length","eval_count":2}"#;
    let pretty = serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(body).unwrap()).unwrap();
    for body in [body, &format!("{body}\n"), &pretty, &format!("{pretty}\n")] {
        let message = good(body).message;
        assert_eq!((message.text().as_str(), message.finish.reason), ("Hello", FinishReason::Length), "{body}");
        assert_eq!(message.usage, Usage { output_tokens: Some(2), ..Usage::default() });
    }
}

#[test]
fn what_is_not_known_does_not_matter() {
    let body = "{\"x\":1}\n[1]\n\n{\"message\":{\"content\":null,\"tool_calls\":null,\"new\":[]},\"done\":null}\n{\"message\":{\"content\":\"a\"},\"done\":true,\"done_reason\":\"tired\",\"prompt_eval_count\":null}\n{\"after\":1}\n";
    let message = good(body).message;
    assert_eq!((message.text().as_str(), message.finish.reason), ("a", FinishReason::Stop));
    assert_eq!(message.finish.raw.as_deref(), Some("tired"));
    assert_eq!(message.usage, Usage::default());
}

#[test]
fn an_error_in_the_middle_keeps_what_came_before() {
    let body = "{\"message\":{\"content\":\"Hel\"},\"done\":false}\n{\"error\":\"model runner has unexpectedly stopped\"}\n";
    let decoded = every_way(body, decode);
    assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::Server);
    assert_eq!(decoded.message.text(), "Hel");
    assert_eq!(
        failed("{\"error\":\"registry.ollama.ai/library/m does not support tools\"}\n"),
        ProviderFailureKind::InvalidRequest
    );
    assert_eq!(failed("{\"error\":\"model 'x' not found\"}"), ProviderFailureKind::NotFound);
    assert_eq!(failed("{\"error\":\"the input length exceeds the context length\"}\n"), ProviderFailureKind::ContextLength);
}

#[test]
fn every_error_body_has_its_kind() {
    use ProviderFailureKind as K;
    for (status, body, kind) in [
        (400, r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#, K::InvalidRequest),
        (400, r#"{"error":"the input length exceeds the context length"}"#, K::ContextLength),
        (401, r#"{"error":"unauthorized"}"#, K::Auth),
        (404, r#"{"error":"model 'x' not found"}"#, K::NotFound),
        (404, "404 page not found", K::NotFound),
        (500, r#"{"error":"llama runner process has terminated"}"#, K::Server),
        (503, r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#, K::Overloaded),
        (502, "<html><title>Bad gateway</title></html>", K::Server),
        (500, "", K::Server),
    ] {
        let failure = Ollama.failure(&ErrorResponse { status, header: &|_| None, body: body.as_bytes() });
        assert_eq!(failure.kind, kind, "{status} {body}");
        assert_eq!(failure.status, Some(status));
    }
}

#[test]
fn a_stream_that_is_no_stream_to_its_end_is_no_success() {
    let end = GOLDEN.rfind("{\"model\"").unwrap();
    let (before, _) = GOLDEN.split_at(end);
    let decoded = decode(&[before.as_bytes()]);
    assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::CutOff);
    assert_eq!(decoded.message.blocks.len(), 2);
    assert_eq!(failed(""), ProviderFailureKind::CutOff);
    assert_eq!(failed("{\"mess"), ProviderFailureKind::CutOff);
    assert_eq!(failed("{\"x\":1}"), ProviderFailureKind::Malformed);
    assert_eq!(failed("<html><title>Login</title></html>"), ProviderFailureKind::Malformed);
    assert_eq!(failed(&format!("{before}nonsense\n")), ProviderFailureKind::Malformed);
}

#[test]
fn calls_and_reasoning_that_are_written_as_text_are_recovered() {
    let body = stream(&[
        r#"{"content":"<think>hm</think>\n"}"#,
        r#"{"content":"<tool_call>{\"name\":\"f\","}"#,
        r#"{"content":"\"arguments\":{\"a\":1}}</tool_call>"}"#,
    ]);
    let decoded = every_way(&body, |chunks| decode_with(&offered(&["f"]), None, chunks));
    assert_eq!(calls(&decoded.message), [(None, "f", "{\"a\":1}")]);
    assert!(decoded.message.calls().all(|call| call.recovered));
    let thought = AssistantBlock::Reasoning { text: "hm".to_owned(), native: None };
    assert_eq!(decoded.message.blocks.first(), Some(&thought));
}

#[test]
fn nothing_grows_without_a_limit() {
    let limit = |body: &str| decode(&[body.as_bytes()]).failure.unwrap().kind;
    let long = "x".repeat(1_100_000);
    let call = format!(r#"{{"tool_calls":[{{"function":{{"name":"f","arguments":{{"a":"{long}"}}}}}}]}}"#);
    assert_eq!(limit(&stream(&[&call])), ProviderFailureKind::Limit);
    let many = vec![r#"{"tool_calls":[{"function":{"name":"f"}}]}"#; 300];
    assert_eq!(limit(&stream(&many)), ProviderFailureKind::Limit);
    let huge = "x".repeat(50_000_000);
    assert_eq!(limit(&format!("{{\"message\":{{\"content\":\"{huge}")), ProviderFailureKind::Limit);
    let after = format!("{{\"message\":{{\"content\":\"a\"}},\"done\":false}}\n{{\"message\":{{\"content\":\"{huge}");
    assert_eq!(limit(&after), ProviderFailureKind::Limit);
    let text = format!("{{\"message\":{{\"content\":\"{}\"}},\"done\":false}}\n", "x".repeat(9_000_000)).repeat(4);
    assert_eq!(limit(&text), ProviderFailureKind::Limit);
}
