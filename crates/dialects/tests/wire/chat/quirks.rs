//! What compatible servers do differently.

use turnwright_core::{AssistantBlock, FinishReason, NativeBlock, ProviderFailureKind, Usage};
use turnwright_dialects::{Offered, Profile};

use crate::support::{Decoded, calls, decode, decode_every_way, decode_with, offered, stream};

fn good(body: &str) -> Decoded {
    let decoded = decode_every_way(body);
    assert_eq!(decoded.failure, None);
    decoded
}

fn failed(body: &str) -> (ProviderFailureKind, String) {
    let failure = decode_every_way(body).failure.unwrap();
    (failure.kind, failure.message)
}

#[test]
fn calls_without_index_and_id_are_told_apart_by_their_names_and_by_whole_arguments() {
    let call = |name: &str, x: u8| format!(r#"{{"function":{{"name":"{name}","arguments":"{{\"x\":{x}}}"}}}}"#);
    let delta = format!(r#"{{"tool_calls":[{},{},{}]}}"#, call("f", 1), call("g", 2), call("g", 3));
    let decoded = good(&stream(&[&delta], "stop"));
    let expected = [(None, "f", "{\"x\":1}"), (None, "g", "{\"x\":2}"), (None, "g", "{\"x\":3}")];
    assert_eq!(calls(&decoded.message), expected);
}

#[test]
fn a_repeated_id_and_name_are_taken_once() {
    let fragment = |arguments: &str| {
        format!(r#"{{"tool_calls":[{{"index":0,"id":"0","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#)
    };
    let body = stream(&[&fragment(""), &fragment("{\\\"a\\\":"), &fragment("1}")], "tool_calls");
    assert_eq!(calls(&good(&body).message), [(Some("0"), "f", "{\"a\":1}")]);
}

#[test]
fn the_word_null_is_no_id() {
    let body = stream(&[r#"{"tool_calls":[{"index":0,"id":"null","function":{"name":"f","arguments":"{}"}}]}"#], "stop");
    assert_eq!(calls(&good(&body).message), [(None, "f", "{}")]);
}

#[test]
fn a_name_may_come_after_arguments() {
    let body = stream(
        &[
            r#"{"tool_calls":[{"index":3,"id":"a","function":{"arguments":"{\"a\""}}]}"#,
            r#"{"tool_calls":[{"index":3,"function":{"name":"f","arguments":":1}"}}]}"#,
        ],
        "tool_calls",
    );
    assert_eq!(calls(&good(&body).message), [(Some("a"), "f", "{\"a\":1}")]);
}

#[test]
fn arguments_that_are_wrapped_in_a_string_are_unwrapped() {
    let body =
        stream(&[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"\"{\\\"a\\\":1}\""}}]}"#], "stop");
    assert_eq!(calls(&good(&body).message), [(Some("a"), "f", "{\"a\":1}")]);
}

#[test]
fn the_function_call_of_old_servers_is_a_call() {
    let body = stream(
        &[r#"{"function_call":{"name":"f","arguments":"{\"a\""}}"#, r#"{"function_call":{"arguments":":1}"}}"#],
        "function_call",
    );
    let decoded = good(&body);
    assert_eq!(calls(&decoded.message), [(None, "f", "{\"a\":1}")]);
    assert_eq!(decoded.message.finish.reason, FinishReason::ToolCalls);
}

#[test]
fn an_index_of_any_size_costs_nothing() {
    let body = stream(&[r#"{"tool_calls":[{"index":4294967295,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#], "stop");
    assert_eq!(calls(&good(&body).message), [(Some("a"), "f", "{}")]);
}

#[test]
fn arguments_and_calls_over_the_limits_end_the_answer() {
    let piece = "x".repeat(600_000);
    let fragment = format!(r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{piece}"}}}}]}}"#);
    let decoded = decode(&[stream(&[&fragment, &fragment], "stop").as_bytes()]);
    assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::Limit);
    let many: Vec<String> = (0..300)
        .map(|index| format!(r#"{{"tool_calls":[{{"index":{index},"id":"i{index}","function":{{"name":"f"}}}}]}}"#))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(decode(&[stream(&many, "stop").as_bytes()]).failure.unwrap().kind, ProviderFailureKind::Limit);
}

#[test]
fn reasoning_is_read_from_every_field_and_shown_once() {
    let text = |text: &str| AssistantBlock::Text { text: text.to_owned(), native: None };
    let reasoning = |native: Option<&str>| AssistantBlock::Reasoning {
        text: "why".to_owned(),
        native: native.map(|native| NativeBlock(native.to_owned())),
    };
    let details = r#"{"field":"reasoning_details","value":[{"type":"reasoning.text","text":"why","index":0,"signature":"s"}]}"#;
    let table: [(&[&str], Option<&str>); 6] = [
        (&[r#"{"reasoning_content":"wh"}"#, r#"{"reasoning_content":"y"}"#], Some(r#"{"field":"reasoning_content"}"#)),
        (&[r#"{"reasoning":"why"}"#], Some(r#"{"field":"reasoning"}"#)),
        (&[r#"{"reasoning":"why","reasoning_content":"why"}"#], Some(r#"{"field":"reasoning_content"}"#)),
        (
            &[
                r#"{"reasoning":"wh","reasoning_details":[{"type":"reasoning.text","text":"wh","index":0}]}"#,
                r#"{"reasoning":"y","reasoning_details":[{"type":"reasoning.text","text":"y","index":0}]}"#,
                r#"{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]}"#,
            ],
            Some(details),
        ),
        (&[r#"{"content":"<thi"}"#, r#"{"content":"nk>why</think>\n"}"#], None),
        (&[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"why"}]}]}"#], None),
    ];
    for (deltas, native) in table {
        let mut deltas = deltas.to_vec();
        deltas.push(r#"{"content":"so"}"#);
        let decoded = good(&stream(&deltas, "stop"));
        assert_eq!(decoded.message.blocks, [reasoning(native), text("so")], "{deltas:?}");
    }
}

#[test]
fn encrypted_reasoning_without_text_is_kept_for_the_way_back() {
    let body = stream(
        &[r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":0}]}"#, r#"{"content":"so"}"#],
        "stop",
    );
    let native = r#"{"field":"reasoning_details","value":[{"type":"reasoning.encrypted","data":"x","index":0}]}"#;
    let expected = [
        AssistantBlock::Opaque { native: NativeBlock(native.to_owned()) },
        AssistantBlock::Text { text: "so".to_owned(), native: None },
    ];
    assert_eq!(good(&body).message.blocks, expected);
}

#[test]
fn think_tags_are_text_where_the_profile_does_not_know_them() {
    let body = stream(&[r#"{"content":"<think>why</think>so"}"#], "stop");
    let decoded = decode_with(&Profile::OPENAI, &Offered::default(), None, &[body.as_bytes()]);
    assert_eq!(decoded.message.text(), "<think>why</think>so");
}

#[test]
fn extra_content_of_a_call_is_kept() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}"#;
    let decoded = good(&stream(&[call], "stop"));
    let native = decoded.message.calls().next().unwrap().native.clone();
    assert_eq!(native, Some(NativeBlock(r#"{"extra_content":{"google":{"thought_signature":"s"}}}"#.to_owned())));
}

#[test]
fn usage_is_taken_from_every_place_and_the_last_counts() {
    let table = [
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
        r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":2}}}"#,
        r#"{"choices":[{"index":0,"delta":{},"usage":{"prompt_tokens":7,"completion_tokens":2}}]}"#,
    ];
    for chunk in table {
        let body = format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1}}}}\n\ndata: {chunk}\n\ndata: {{\"usage\":{{}}}}\n\n"
        );
        let decoded = good(&(body + &stream(&[r#"{"content":"a"}"#], "stop")));
        let expected = Usage { input_tokens: Some(7), output_tokens: Some(2), ..Usage::default() };
        assert_eq!(decoded.message.usage, expected, "{chunk}");
    }
}

#[test]
fn where_the_key_is_the_vendors_own_its_charge_counts_besides_the_gateways_fee() {
    let cost = |usage: &str| {
        let body = format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":7,{usage}}}}}\n\n");
        good(&(body + &stream(&[r#"{"content":"a"}"#], "stop"))).message.usage.cost_usd
    };
    for (usage, expected) in [
        (r#""cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":0.5}"#, Some(0.75)),
        (r#""cost":0,"is_byok":true,"cost_details":{"upstream_inference_cost":0.5}"#, Some(0.5)),
        (r#""cost":0.25,"is_byok":false,"cost_details":{"upstream_inference_cost":0.5}"#, Some(0.25)),
        (r#""cost":0.25,"is_byok":"odd","cost_details":{"upstream_inference_cost":null}"#, Some(0.25)),
        (r#""cost":0.25,"is_byok":true,"cost_details":null"#, Some(0.25)),
        (r#""cost":-5"#, None),
    ] {
        assert_eq!(cost(usage), expected, "{usage}");
    }
}

#[test]
fn every_word_for_the_end_has_its_meaning() {
    use FinishReason as F;
    for (raw, reason) in [
        ("stop", F::Stop),
        ("eos", F::Stop),
        ("end_turn", F::Stop),
        ("a_new_word", F::Stop),
        ("length", F::Length),
        ("model_length", F::Length),
        ("max_tokens", F::Length),
        ("content_filter", F::ContentFilter),
    ] {
        let decoded = good(&stream(&[r#"{"content":"a"}"#], raw));
        assert_eq!((decoded.message.finish.reason, decoded.message.finish.raw.as_deref()), (reason, Some(raw)));
    }
    for (raw, kind) in [
        ("error", ProviderFailureKind::Server),
        ("abort", ProviderFailureKind::CutOff),
        ("insufficient_system_resource", ProviderFailureKind::Overloaded),
    ] {
        assert_eq!(failed(&stream(&[r#"{"content":"a"}"#], raw)).0, kind);
    }
}

#[test]
fn an_empty_finish_reason_ends_an_answer_only_with_done() {
    let body = stream(&[r#"{"content":"a"}"#], "");
    assert_eq!(good(&body).message.finish.reason, FinishReason::Stop);
    assert_eq!(failed(&body.replace("data: [DONE]\n\n", "")).0, ProviderFailureKind::CutOff);
}

#[test]
fn done_without_finish_reason_is_an_end_where_usage_was_reported_or_the_profile_says_so() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n";
    assert_eq!(failed(&format!("{text}data: [DONE]\n\n")).0, ProviderFailureKind::CutOff);
    assert_eq!(good(&format!("{text}{usage}data: [DONE]\n\n")).message.text(), "a");
    let profile = Profile { done_without_finish: true, ..Profile::COMPATIBLE };
    let body = format!("{text}data: [DONE]\n\n");
    assert_eq!(decode_with(&profile, &Offered::default(), None, &[body.as_bytes()]).failure, None);
}

#[test]
fn nonsense_in_a_chunk_never_kills_the_answer() {
    let body = format!(
        "data: 1\n\ndata: \"ping\"\n\ndata: null\n\ndata: []\n\ndata: {{\"type\":\"new\",\"choices\":null}}\n\n\
         data: {{\"choices\":[{{\"index\":\"0\",\"delta\":{{\"content\":null,\"refusal\":7,\"tool_calls\":null,\
         \"reasoning\":{{\"a\":[1]}},\"reasoning_details\":\"x\"}},\"finish_reason\":null}}],\"usage\":\"none\"}}\n\n\
         data: {{\"choices\":[{{\"delta\":{{\"content\":\"a\",\"content\":\"b\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":1,\"delta\":{{\"content\":\"other choice\"}}}}]}}\n\n{}",
        stream(&[], "stop")
    );
    assert_eq!(good(&body).message.text(), "b");
}

#[test]
fn an_event_that_is_not_json_is_malformed() {
    let (kind, message) = failed("data: <b>oops</b>\n\n");
    assert_eq!(
        (kind, message.as_str()),
        (ProviderFailureKind::Malformed, "the stream holds an event that is not JSON: <b>oops</b>")
    );
}

#[test]
fn an_empty_answer_is_a_failure_that_says_so() {
    for body in ["", "\n\n", "data: [DONE]\n\n", ": ping\n\n"] {
        let (kind, message) = failed(body);
        let expected = "the provider sent an empty answer; the prompt may be too long for the model";
        assert_eq!((kind, message.as_str()), (ProviderFailureKind::CutOff, expected), "{body}");
    }
}

#[test]
fn a_finish_reason_that_is_no_text_ends_nothing() {
    let body = "data: {\"choices\":{\"x\":1}}\n\ndata: {\"choices\":[{\"finish_reason\":7}]}\n\ndata: null\n\ndata: [DONE]\n\n";
    let expected = "the provider's reply holds no answer: its finish reason is no text".to_owned();
    assert_eq!(failed(body), (ProviderFailureKind::Malformed, expected));
}

const WHOLE: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;

#[test]
fn a_whole_reply_to_a_request_for_a_stream_is_decoded_as_one() {
    for body in [WHOLE.to_owned(), format!("  \n{WHOLE}"), format!("data: {WHOLE}\n\ndata: [DONE]\n\n")] {
        let decoded = good(&body);
        assert_eq!(decoded.message.text(), "a");
        assert_eq!(calls(&decoded.message), [(Some("x"), "f", "{}")]);
    }
}

#[test]
fn a_whole_reply_that_is_cut_is_never_a_success() {
    for cut in 1..WHOLE.len() {
        let failure = decode(&[&WHOLE.as_bytes()[..cut]]).failure.unwrap();
        assert_eq!(failure.kind, ProviderFailureKind::CutOff, "cut at {cut}");
    }
}

#[test]
fn what_is_no_answer_is_told_by_its_first_bytes() {
    let html = failed("<!doctype html><title>Sign in</title>");
    let said = "the provider sent no answer but an HTML page: Sign in";
    assert_eq!(html, (ProviderFailureKind::Malformed, said.to_owned()));
    let decoded = decode_with(&Profile::COMPATIBLE, &Offered::default(), Some("text/plain"), &[b"hello\nworld"]);
    let failure = decoded.failure.unwrap();
    let expected = "the provider sent something that is no answer: hello\nworld";
    assert_eq!((failure.kind, failure.message.as_str()), (ProviderFailureKind::Malformed, expected));
    assert_eq!(failed(r#"{"error":"no such model","code":404}"#), (ProviderFailureKind::NotFound, "no such model".to_owned()));
    assert_eq!(failed(r#"{"choices":[]}"#).0, ProviderFailureKind::Malformed);
    assert_eq!(
        failed(r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#),
        (ProviderFailureKind::Quota, "insufficient balance".to_owned())
    );
}

#[test]
fn a_call_that_was_written_as_text_is_recovered_where_the_profile_says_so() {
    let body = stream(
        &[r#"{"content":"Sure.\n{\"name\": \"time__now\","}"#, r#"{"content":" \"arguments\": {\"zone\": \"Asia/Tokyo\"}}"}"#],
        "stop",
    );
    let offered = offered(&["time__now"]);
    let decoded = decode_with(&Profile::COMPATIBLE, &offered, None, &[body.as_bytes()]);
    assert_eq!(decoded.message.text(), "Sure.");
    assert_eq!(calls(&decoded.message), [(None, "time__now", "{\"zone\": \"Asia/Tokyo\"}")]);
    assert!(decoded.message.calls().all(|call| call.recovered));
    assert_eq!(decoded.message.finish.reason, FinishReason::ToolCalls);
    let decoded = decode_with(&Profile::OPENAI, &offered, None, &[body.as_bytes()]);
    assert_eq!(calls(&decoded.message), []);
}
