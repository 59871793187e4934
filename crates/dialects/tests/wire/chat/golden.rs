//! The golden stream of Chat Completions and its variants, cut at every byte.

use turnwright_core::{
    AssistantBlock, AssistantMessage, Completion, Finish, FinishReason, ProviderFailureKind, Seq, ToolCall, Usage,
};

use crate::support::{decode, decode_every_way, origin};

const HEAD: &str = r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":["#;

fn event(choice: &str) -> String {
    format!("data: {HEAD}{choice}]}}\n\n")
}

fn delta(delta: &str) -> String {
    event(&format!("{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}"))
}

fn usage() -> String {
    format!(
        "data: {HEAD}],\"usage\":{{\"prompt_tokens\":50,\"completion_tokens\":30,\"total_tokens\":80,\
         \"prompt_tokens_details\":{{\"cached_tokens\":32}},\"completion_tokens_details\":{{\"reasoning_tokens\":0}}}}}}\n\n"
    )
}

const TEXT: &str = r#"{"content":"Let me look."}"#;
const CALL_A: &str =
    r#"{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}]}"#;
const A_1: &str = r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Z"}}]}"#;
const CALL_B: &str =
    r#"{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"get_time","arguments":"{}"}}]}"#;
const A_2: &str = r#"{"tool_calls":[{"index":0,"function":{"arguments":"ürich\"}"}}]}"#;

fn golden_of(deltas: &[String], finish: &str) -> String {
    let mut body = delta(r#"{"role":"assistant","content":""}"#).replace("}]}", "}],\"usage\":null}");
    for text in deltas {
        body.push_str(&delta(text));
    }
    body.push_str(&event(&format!("{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}")));
    body + &usage() + "data: [DONE]\n\n"
}

fn golden() -> String {
    golden_of(&[TEXT, CALL_A, A_1, CALL_B, A_2].map(str::to_owned), "tool_calls")
}

fn call(name: &str, id: Option<&str>, arguments: &str) -> AssistantBlock {
    AssistantBlock::Call(ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_id: id.map(str::to_owned),
        native: None,
        recovered: false,
    })
}

fn expected(raw: &str) -> AssistantMessage {
    AssistantMessage {
        origin: origin(),
        saw: Seq::FIRST,
        blocks: vec![
            AssistantBlock::Text { text: "Let me look.".to_owned(), native: None },
            call("get_weather", Some("call_a"), "{\"city\":\"Zürich\"}"),
            call("get_time", Some("call_b"), "{}"),
        ],
        finish: Finish { reason: FinishReason::ToolCalls, raw: Some(raw.to_owned()) },
        completion: Completion::Complete,
        usage: Usage {
            input_tokens: Some(50),
            output_tokens: Some(30),
            cached_input_tokens: Some(32),
            reasoning_tokens: Some(0),
            ..Usage::default()
        },
    }
}

fn check(body: &str, expected: &AssistantMessage) {
    let decoded = decode_every_way(body);
    assert_eq!(decoded.failure, None);
    assert_eq!(&decoded.message, expected);
}

#[test]
fn the_golden_stream_gives_the_same_message_wherever_it_is_cut() {
    check(&golden(), &expected("tool_calls"));
}

#[test]
fn two_calls_under_one_index_are_told_apart_by_their_ids() {
    let deltas = [TEXT, CALL_A, A_1, A_2, CALL_B].map(|text| text.replace("\"index\":1", "\"index\":0"));
    check(&golden_of(&deltas, "tool_calls"), &expected("tool_calls"));
}

#[test]
fn interleaved_calls_under_one_index_are_put_together_by_repeated_ids() {
    let with_id = |text: &str| text.replace("\"function\":{\"arg", "\"id\":\"call_a\",\"function\":{\"arg");
    let deltas = [TEXT.to_owned(), CALL_A.to_owned(), with_id(A_1), CALL_B.to_owned(), with_id(A_2)];
    let deltas = deltas.map(|text| text.replace("\"index\":1", "\"index\":0"));
    check(&golden_of(&deltas, "tool_calls"), &expected("tool_calls"));
}

#[test]
fn fragments_without_an_index_belong_to_the_newest_call() {
    let deltas = [TEXT, CALL_A, A_1, A_2, CALL_B].map(|text| text.replace("\"index\":1,", "").replace("\"index\":0,", ""));
    check(&golden_of(&deltas, "tool_calls"), &expected("tool_calls"));
}

#[test]
fn calls_that_share_an_id_and_have_no_index_are_told_apart_by_what_they_are() {
    let plain = |text: &str| text.replace("\"index\":1,", "").replace("\"index\":0,", "").replace("call_b", "call_a");
    let with_id = |text: &str| plain(text).replace("\"function\":{\"arg", "\"id\":\"call_a\",\"function\":{\"arg");
    let deltas = [plain(TEXT), plain(CALL_A), with_id(A_1), with_id(A_2), plain(CALL_B), plain(CALL_B)];
    let mut expected = expected("tool_calls");
    expected.blocks[2] = call("get_time", Some("call_a"), "{}");
    expected.blocks.push(call("get_time", Some("call_a"), "{}"));
    check(&golden_of(&deltas, "tool_calls"), &expected);
}

#[test]
fn an_empty_id_on_later_fragments_means_nothing() {
    let deltas = [TEXT, CALL_A, A_1, CALL_B, A_2]
        .map(|text| text.replace("\"function\":{\"arg", "\"id\":\"\",\"function\":{\"name\":\"\",\"arg"));
    check(&golden_of(&deltas, "tool_calls"), &expected("tool_calls"));
}

#[test]
fn arguments_may_be_an_object() {
    let whole = CALL_A.replace("\"arguments\":\"\"", "\"arguments\":{\"city\":\"Zürich\"}");
    let none = CALL_B.replace("\"{}\"", "{}");
    let mut expected = expected("tool_calls");
    expected.blocks[2] = call("get_time", Some("call_b"), "");
    check(&golden_of(&[TEXT.to_owned(), whole, none], "tool_calls"), &expected);
}

#[test]
fn an_error_in_the_middle_keeps_what_was_said() {
    let body = delta(TEXT) + "data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\",\"code\":null}}\n\n";
    let decoded = decode_every_way(&body);
    let failure = decoded.failure.unwrap();
    assert_eq!((failure.kind, failure.message.as_str()), (ProviderFailureKind::Server, "boom"));
    assert_eq!(decoded.message.text(), "Let me look.");
    assert_eq!(decoded.message.finish.reason, FinishReason::Error);
}

#[test]
fn a_stream_that_ends_after_its_text_is_cut_off() {
    let decoded = decode_every_way(&delta(TEXT));
    assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::CutOff);
    assert_eq!(decoded.message.text(), "Let me look.");
}

#[test]
fn a_stop_with_calls_is_a_stop_for_calls() {
    check(&golden().replace("\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"stop\""), &expected("stop"));
}

#[test]
fn comments_between_events_mean_nothing() {
    check(&golden().replace("\n\n", "\n\n: keep-alive\n\n:\n"), &expected("tool_calls"));
}

#[test]
fn line_breaks_may_be_of_any_kind() {
    check(&golden().replace('\n', "\r\n"), &expected("tool_calls"));
    check(&golden().replace('\n', "\r"), &expected("tool_calls"));
}

#[test]
fn done_may_be_missing_after_a_finish_reason() {
    check(&golden().replace("data: [DONE]\n\n", ""), &expected("tool_calls"));
}

#[test]
fn the_last_line_break_may_be_missing() {
    check(golden().trim_end(), &expected("tool_calls"));
}

#[test]
fn a_stream_that_is_cut_anywhere_before_its_finish_reason_is_never_a_success() {
    let body = golden();
    let finish = body.find("\"finish_reason\":\"tool_calls\"").unwrap();
    for cut in 0..finish {
        let failure = decode(&[&body.as_bytes()[..cut]]).failure.unwrap();
        assert_eq!(failure.kind, ProviderFailureKind::CutOff, "cut at {cut}");
    }
}
