//! Whole answers.

use turnwright_core::{AssistantBlock, Finish, FinishReason, ToolCall, Usage};

use super::{decode, decode_as, good, native, text};
use crate::support::{calls, every_way};

const PLAN: &str = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Plan: call both.","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":30,"totalTokenCount":30},"modelVersion":"m","responseId":"r1"}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Checking."}]},"index":0}],"usageMetadata":{"promptTokenCount":30,"totalTokenCount":33},"modelVersion":"m","responseId":"r1"}

data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"fc1","name":"get_weather","args":{"city":"Zürich"}},"thoughtSignature":"c2lnMQ=="},{"functionCall":{"id":"fc2","name":"get_time","args":{}}}]},"index":0}],"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":20,"thoughtsTokenCount":15,"totalTokenCount":65},"modelVersion":"m","responseId":"r1"}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":20,"thoughtsTokenCount":15,"totalTokenCount":65},"modelVersion":"m","responseId":"r1"}

"#;

fn expected_blocks() -> Vec<AssistantBlock> {
    let call = |id: &str, name: &str, arguments: &str, own: Option<&str>| {
        AssistantBlock::Call(ToolCall {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            provider_id: Some(id.to_owned()),
            native: own.map(native),
            recovered: false,
        })
    };
    let signed = r#"{"functionCall":{"id":"fc1","name":"get_weather","args":{"city":"Zürich"}},"thoughtSignature":"c2lnMQ=="}"#;
    vec![
        AssistantBlock::Reasoning { text: "Plan: call both.".to_owned(), native: None },
        text("Checking."),
        call("fc1", "get_weather", r#"{"city":"Zürich"}"#, Some(signed)),
        call("fc2", "get_time", "", None),
    ]
}

#[test]
fn a_thought_a_text_and_two_calls_come_in_their_order_wherever_the_stream_is_cut() {
    let message = good(PLAN).message;
    assert_eq!(message.blocks, expected_blocks());
    assert_eq!(message.finish, Finish { reason: FinishReason::ToolCalls, raw: Some("STOP".to_owned()) });
    let usage = Usage { input_tokens: Some(30), output_tokens: Some(35), reasoning_tokens: Some(15), ..Usage::default() };
    assert_eq!(message.usage, usage);
}

#[test]
fn the_list_that_comes_without_sse_is_the_same_answer() {
    let events: Vec<&str> = PLAN.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let list = format!("[{}\r\n]", events.join(",\r\n"));
    let decode_list = |chunks: &[&[u8]]| decode_as("application/json", chunks);
    let decoded = every_way(&list, decode_list);
    assert_eq!((decoded.message.blocks, decoded.failure), (expected_blocks(), None));
    // What came of a list that was cut is kept.
    let cut = decode_list(&[&list.as_bytes()[..list.len() - 200]]);
    assert_eq!(cut.message.blocks, expected_blocks());
    assert_eq!(cut.failure.unwrap().kind, turnwright_core::ProviderFailureKind::CutOff);
}

#[test]
fn a_whole_body_is_an_answer() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"toolUsePromptTokenCount":2,"candidatesTokenCount":1,"totalTokenCount":12}}"#;
    let decoded = decode_as("application/json", &[body.as_bytes()]);
    assert_eq!((decoded.message.text().as_str(), decoded.failure), ("Hello", None));
    let usage = Usage { input_tokens: Some(11), output_tokens: Some(1), cached_input_tokens: Some(4), ..Usage::default() };
    assert_eq!(decoded.message.usage, usage);
}

#[test]
fn a_stream_that_ends_before_a_finish_reason_is_cut_off_with_what_came() {
    let end = PLAN.find("data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}").unwrap();
    let decoded = decode(&[&PLAN.as_bytes()[..end]]);
    assert_eq!(decoded.failure.unwrap().kind, turnwright_core::ProviderFailureKind::CutOff);
    assert_eq!(decoded.message.blocks, expected_blocks());
    assert_eq!(decoded.message.finish.reason, FinishReason::Error);
}

#[test]
fn calls_without_ids_and_with_one_name_are_two_calls() {
    let part = |city: &str| format!(r#"{{"functionCall":{{"name":"f","args":{{"city":"{city}"}}}}}}"#);
    let decoded = good(&super::stream(&[&part("a"), &part("b")], "STOP"));
    assert_eq!(calls(&decoded.message), [(None, "f", r#"{"city":"a"}"#), (None, "f", r#"{"city":"b"}"#)]);
}
