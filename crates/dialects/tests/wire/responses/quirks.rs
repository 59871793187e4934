//! What servers do that they should not, and what goes wrong.

use std::fmt::Write;

use turnwright_core::{AssistantBlock, Finish, FinishReason, ProviderFailure, ProviderFailureKind, Usage};

use super::ask::{decode, decode_text, event, events};
use crate::support::{calls, every_way};

fn call(id: &str, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    format!(r#"{{"id":"fc_{id}","type":"function_call","call_id":"call_{id}","name":"f_{id}","arguments":{arguments}}}"#)
}

fn item_event(kind: &str, place: &str, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.{kind}",{place}"item":{item}}}"#)
}

fn arguments_delta(place: &str, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(r#"{{"type":"response.function_call_arguments.delta",{place}"delta":{text}}}"#)
}

const EMPTY_END: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
const TEXT: &str = r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Half"}"#;

fn failure(decoded: &crate::support::Decoded) -> &ProviderFailure {
    decoded.failure.as_ref().unwrap()
}

#[test]
fn places_order_items_and_are_no_sizes() {
    let streamed: Vec<String> = [4_294_967_295_u64, 10_000_000, 7, u64::MAX]
        .into_iter()
        .zip(["c", "b", "a", "d"])
        .map(|(index, id)| item_event("done", &format!("\"output_index\":{index},"), &call(id, "{}")))
        .chain([EMPTY_END.to_owned()])
        .collect();
    let decoded = decode_text(&events(&streamed));
    let names: Vec<&str> = calls(&decoded.message).into_iter().map(|(_, name, _)| name).collect();
    assert_eq!(names, ["f_a", "f_b", "f_c", "f_d"]);
}

#[test]
fn what_comes_twice_is_told_once() {
    let index = "\"output_index\":0,";
    let all = [
        item_event("added", index, &call("a", "")),
        item_event("added", index, &call("a", "")),
        arguments_delta(index, "{}"),
        item_event("done", index, &call("a", "{}")),
        item_event("done", index, &call("a", "{}")),
        EMPTY_END.to_owned(),
        EMPTY_END.to_owned(),
    ];
    assert_eq!(calls(&decode_text(&events(&all)).message), [(Some("call_a"), "f_a", "{}")]);
}

#[test]
fn two_calls_in_one_place_are_two() {
    let index = "\"output_index\":0,";
    let all = [
        item_event("added", index, &call("a", "")),
        arguments_delta(index, "{\"x\":1}"),
        item_event("done", index, &call("a", "{\"x\":1}")),
        item_event("added", index, &call("b", "")),
        arguments_delta(index, "{\"y\":2}"),
        item_event("done", index, &call("b", "{\"y\":2}")),
        EMPTY_END.to_owned(),
    ];
    let expected = [(Some("call_a"), "f_a", "{\"x\":1}"), (Some("call_b"), "f_b", "{\"y\":2}")];
    assert_eq!(calls(&every_way(&events(&all), decode).message), expected);
}

#[test]
fn items_without_a_place_are_known_by_their_ids() {
    let all = [
        item_event("added", "", &call("a", "")),
        item_event("added", "", &call("b", "")),
        arguments_delta("\"item_id\":\"fc_a\",", "{\"x\":1}"),
        arguments_delta("\"item_id\":\"fc_b\",", "{}"),
        item_event("done", "", &call("a", "{\"x\":1}")),
        item_event("done", "", &call("b", "{}")),
        EMPTY_END.to_owned(),
    ];
    let expected = [(Some("call_a"), "f_a", "{\"x\":1}"), (Some("call_b"), "f_b", "{}")];
    assert_eq!(calls(&decode_text(&events(&all)).message), expected);
}

#[test]
fn ids_that_change_with_each_event_do_not_matter_where_there_are_places() {
    let index = "\"output_index\":3,";
    let all = [
        item_event("added", index, &call("a", "").replace("fc_a", "fc_1")),
        arguments_delta(&format!("{index}\"item_id\":\"fc_2\","), "{}"),
        item_event("done", index, &call("a", "{}").replace("fc_a", "fc_3")),
        EMPTY_END.to_owned(),
    ];
    assert_eq!(calls(&decode_text(&events(&all)).message), [(Some("call_a"), "f_a", "{}")]);
}

#[test]
fn a_name_that_comes_after_the_arguments_is_in_time() {
    let index = "\"output_index\":0,";
    let named = r#"{"type":"response.function_call_arguments.done","output_index":0,"name":"f","arguments":"{\"x\":1}"}"#;
    let all = [arguments_delta(index, "{\"x\":"), arguments_delta(index, "1}"), named.to_owned(), EMPTY_END.to_owned()];
    assert_eq!(calls(&decode_text(&events(&all)).message), [(None, "f", "{\"x\":1}")]);
}

#[test]
fn members_that_are_null_of_another_type_or_there_twice_stop_nothing() {
    let odd = concat!(
        r#"{"type":"response.output_text.delta","output_index":"0","item_id":null,"content_index":null,"delta":"a","delta":"a"}"#,
        "\n",
        r#"{"type":"response.output_text.delta","output_index":0,"item_id":7,"logprobs":{},"delta":"b","error":null}"#,
        "\n",
        r#"{"type":"response.output_text.delta","output_index":0,"delta":null}"#,
        "\n",
        r#"{"type":"response.output_item.done","output_index":0,"item":null}"#,
        "\n",
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[null,"x",{"type":7}]}}"#,
        "\n",
        r#"[1,2]"#,
        "\n",
        r#"{"type":"response.completed","response":{"status":"completed","output":null,"usage":{"input_tokens":null},"incomplete_details":null}}"#
    );
    let body = odd.lines().fold(String::new(), |body, data| body + "data: " + data + "\n\n");
    let decoded = decode_text(&body);
    assert_eq!((decoded.failure, decoded.message.text().as_str()), (None, "ab"));
    assert_eq!(decoded.message.usage, Usage::default());
}

#[test]
fn what_is_not_reported_is_unknown_and_not_zero() {
    let end = r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":0,"cost":0.5}}}"#;
    let expected = Usage { input_tokens: Some(3), output_tokens: Some(0), cost_usd: Some(0.5), ..Usage::default() };
    assert_eq!(decode_text(&event(end)).message.usage, expected);
    let own_key = r#""cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":0.25}"#;
    let end = end.replace(r#""cost":0.5"#, own_key);
    assert_eq!(decode_text(&event(&end)).message.usage, Usage { cost_usd: Some(0.75), ..expected });
}

#[test]
fn an_answer_that_is_not_all_there_says_why() {
    let end = |details: &str| {
        let response = format!(r#"{{"status":"incomplete","output":[],"incomplete_details":{details}}}"#);
        let end = format!(r#"{{"type":"response.incomplete","response":{response}}}"#);
        decode_text(&events(&[TEXT.to_owned(), end])).message
    };
    let finish = |reason, raw: &str| Finish { reason, raw: Some(raw.to_owned()) };
    for (details, expected) in [
        (r#"{"reason":"max_output_tokens"}"#, finish(FinishReason::Length, "incomplete:max_output_tokens")),
        (r#"{"reason":"content_filter"}"#, finish(FinishReason::ContentFilter, "incomplete:content_filter")),
        (r#"{"reason":"something_new"}"#, finish(FinishReason::Length, "incomplete:something_new")),
        ("null", finish(FinishReason::Length, "incomplete")),
    ] {
        let message = end(details);
        assert_eq!((message.finish, message.blocks.len()), (expected, 1), "{details}");
    }
}

#[test]
fn an_error_in_the_middle_keeps_what_was_said_and_is_told_once() {
    let flat = r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}"#;
    let nested =
        r#"{"type":"error","error":{"type":"too_many","code":"rate_limit_exceeded","message":"slow down","param":null}}"#;
    let failed = |error: &str| {
        format!(
            r#"{{"type":"response.failed","response":{{"status":"failed","output":[],"error":{error},"usage":{{"input_tokens":9}}}}}}"#
        )
    };
    let said = r#"{"code":"rate_limit_exceeded","message":"slow down"}"#;
    for (body, raw, input_tokens) in [
        (events(&[TEXT, flat]), None, None),
        (events(&[TEXT, nested]), None, None),
        (events(&[TEXT.to_owned(), failed(said)]), Some("failed"), Some(9)),
        (events(&[TEXT.to_owned(), flat.to_owned(), failed("null")]), Some("failed"), Some(9)),
        (events(&[TEXT, flat, TEXT]), None, None),
    ] {
        let decoded = every_way(&body, decode);
        let failure = failure(&decoded);
        let seen = (failure.kind, failure.code.as_deref(), failure.message.as_str());
        assert_eq!(seen, (ProviderFailureKind::RateLimit, Some("rate_limit_exceeded"), "slow down"), "{body}");
        let half = AssistantBlock::Text { text: "Half".to_owned(), native: None };
        assert_eq!(decoded.message.blocks, [half], "{body}");
        assert_eq!(decoded.message.finish, Finish { reason: FinishReason::Error, raw: raw.map(str::to_owned) }, "{body}");
        assert_eq!(decoded.message.usage.input_tokens, input_tokens, "{body}");
    }
}

#[test]
fn every_code_of_a_response_that_failed_has_its_kind() {
    use ProviderFailureKind as K;
    let kind = |error: &str| {
        let end = format!(r#"{{"type":"response.failed","response":{{"status":"failed","error":{error}}}}}"#);
        failure(&decode_text(&event(&end))).kind
    };
    for (code, expected) in [
        ("server_error", K::Server),
        ("rate_limit_exceeded", K::RateLimit),
        ("invalid_prompt", K::InvalidRequest),
        ("invalid_base64_image", K::InvalidRequest),
        ("image_too_large", K::InvalidRequest),
        ("image_content_policy_violation", K::ContentFilter),
        ("vector_store_timeout", K::Timeout),
        ("context_length_exceeded", K::ContextLength),
        ("insufficient_quota", K::Quota),
        ("something_new", K::Server),
    ] {
        assert_eq!(kind(&format!(r#"{{"code":"{code}","message":"m"}}"#)), expected, "{code}");
    }
    assert_eq!(kind("null"), K::Server);
}

#[test]
fn a_body_that_is_no_stream_is_what_it_is() {
    use ProviderFailureKind as K;
    for (body, kind, text) in [
        (r#"{"error":{"message":"no","code":"invalid_api_key"}}"#, K::Auth, "no"),
        (r#"{"type":"error","code":"server_error","message":"no"}"#, K::Server, "no"),
        (r#"{"status":"failed","output":[],"error":{"code":"server_error","message":"no"}}"#, K::Server, "no"),
        (r#"{"status":"in_progress","output":[]}"#, K::CutOff, "the provider ended its answer with the status `in_progress`"),
        (r#"{"id":"x"}"#, K::Malformed, "the provider's reply holds no answer: {\"id\":\"x\"}"),
        (r#"{"status":"completed","output":[{"#, K::CutOff, "the provider's answer ended before its end"),
        ("<html><title>Log in</title></html>", K::Malformed, "the provider sent no answer but an HTML page: log in"),
        ("", K::CutOff, "the provider sent an empty answer"),
    ] {
        let decoded = decode_text(body);
        let failure = failure(&decoded);
        assert_eq!((failure.kind, failure.message.to_lowercase()), (kind, text.to_lowercase()), "{body}");
    }
    let decoded = decode_text("data: {broken\n\n");
    assert_eq!(failure(&decoded).kind, K::Malformed);
}

#[test]
fn an_answer_without_end_is_ended() {
    let mut body = String::new();
    for number in 0..300 {
        body.push_str(&event(&item_event("added", &format!("\"output_index\":{number},"), &call(&number.to_string(), ""))));
    }
    assert_eq!(failure(&decode_text(&body)).message, "the answer holds more than 256 tool calls");
    let mut body = String::new();
    for number in 0..5_000 {
        let _ = write!(body, "data: {{\"type\":\"response.output_text.delta\",\"output_index\":{number},\"delta\":\"x\"}}\n\n");
    }
    assert_eq!(failure(&decode_text(&body)).message, "the answer holds more than 4096 parts");
    let start = event(&item_event("added", "\"output_index\":0,", &call("a", "")));
    let body = start + &event(&arguments_delta("\"output_index\":0,", &"x".repeat(600_000))).repeat(2);
    let text = "the arguments of a call of `f_a` are over the limit of 1048576 bytes";
    let decoded = decode_text(&body);
    assert_eq!((failure(&decoded).kind, failure(&decoded).message.as_str()), (ProviderFailureKind::Limit, text));
    let text = format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{}"}}"#, "x".repeat(9_000_000));
    assert_eq!(failure(&decode_text(&event(&text).repeat(4))).message, "the answer is over the limit of 33554432 bytes");
    // What only the end says is under the same limits.
    let many: Vec<String> = (0..300).map(|number| call(&number.to_string(), "{}")).collect();
    let end = format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{}]}}}}"#, many.join(","));
    assert_eq!(failure(&decode_text(&event(&end))).message, "the answer holds more than 256 tool calls");
}
