//! What blocks there are, and what gateways do differently.

use turnwright_core::{AssistantBlock, FinishReason, NativeBlock, ProviderFailureKind, Usage};

use super::{START, STOP};
use super::{answer, call, decode, decode_as, decode_every_way, delta, good, native, opaque, start, stop, stream, text};
use crate::support::calls;

fn text_delta(index: u64, text: &str) -> String {
    delta(index, &format!(r#"{{"type":"text_delta","text":"{text}"}}"#))
}

fn json_delta(index: u64, text: &str) -> String {
    delta(index, &format!(r#"{{"type":"input_json_delta","partial_json":{}}}"#, serde_json::json!(text)))
}

const TEXT: &str = r#"{"type":"text","text":""}"#;
const TOOL: &str = r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{}}"#;

fn blocks(events: &[String], stop_reason: &str) -> Vec<AssistantBlock> {
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    good(&answer(&events, stop_reason)).message.blocks
}

#[test]
fn what_the_provider_ran_itself_is_kept_in_its_place() {
    let used = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"encrypted_content":"A\/B"}]}"#;
    let events = [
        start(0, TEXT),
        text_delta(0, "Let me see."),
        stop(0),
        start(1, used),
        json_delta(1, ""),
        json_delta(1, "{\"query\":"),
        json_delta(1, " \"x\"}"),
        stop(1),
        start(2, found),
        stop(2),
        start(3, TEXT),
        text_delta(3, "So."),
        stop(3),
    ];
    let expected = [text("Let me see."), opaque(&used.replace("{}", "{\"query\": \"x\"}")), opaque(found), text("So.")];
    assert_eq!(blocks(&events, "end_turn"), expected);
}

#[test]
fn text_with_citations_is_kept_with_them() {
    let citation = r#"{"type":"web_search_result_location","cited_text":"x","encrypted_index":"E\/8"}"#;
    let cited = |citation: &str| delta(0, &format!(r#"{{"type":"citations_delta","citation":{citation}}}"#));
    let events = [
        start(0, r#"{"citations":[],"type":"text","text":""}"#),
        cited(citation),
        text_delta(0, "Su"),
        text_delta(0, "nny"),
        cited(r#"{"n":2}"#),
        stop(0),
        start(1, r#"{"type":"text","text":""}"#),
        text_delta(1, "."),
        stop(1),
    ];
    let form = format!(r#"{{"citations":[{citation},{{"n":2}}],"type":"text","text":"Sunny"}}"#);
    let expected = [AssistantBlock::Text { text: "Sunny".to_owned(), native: Some(native(&form)) }, text(".")];
    assert_eq!(blocks(&events, "end_turn"), expected);
}

#[test]
fn a_compaction_and_a_block_that_nobody_knows_are_kept() {
    let events = [
        start(0, r#"{"type":"compaction","content":""}"#),
        delta(0, r#"{"type":"compaction_delta","content":"So "}"#),
        delta(0, r#"{"type":"compaction_delta","content":"far."}"#),
        stop(0),
        start(1, r#"{"type":"hologram","beam":[1,2.50]}"#),
        delta(1, r#"{"type":"beam_delta","beam":3}"#),
        stop(1),
    ];
    let expected = [opaque(r#"{"type":"compaction","content":"So far."}"#), opaque(r#"{"type":"hologram","beam":[1,2.50]}"#)];
    assert_eq!(blocks(&events, "compaction"), expected);
}

#[test]
fn a_call_keeps_what_it_holds_besides_name_id_and_input() {
    let caller = r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"},"x":null}"#;
    let [AssistantBlock::Call(call)] = &blocks(&[start(0, caller), stop(0)], "tool_use")[..] else { panic!() };
    assert_eq!(call.native, Some(NativeBlock(r#"{"caller":{"type":"direct"}}"#.to_owned())));
}

#[test]
fn the_input_of_a_call_is_what_its_deltas_say_else_what_it_began_with() {
    let seeded = r#"{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1.0}}"#;
    assert_eq!(blocks(&[start(0, seeded), stop(0)], "tool_use"), [call("f", Some("toolu_1"), "{\"a\":1.0}")]);
    let events = [start(0, seeded), json_delta(0, "{\"b\":2}"), stop(0)];
    assert_eq!(blocks(&events, "tool_use"), [call("f", Some("toolu_1"), "{\"b\":2}")]);
    assert_eq!(blocks(&[start(0, TOOL), stop(0)], "tool_use"), [call("f", Some("toolu_1"), "{}")]);
    let missing = r#"{"type":"tool_use","id":null,"name":"f"}"#;
    assert_eq!(blocks(&[start(0, missing), stop(0)], "tool_use"), [call("f", None, "")]);
}

#[test]
fn arguments_that_are_cut_by_the_output_limit_stay_as_they_are() {
    let decoded = good(&answer(&[&start(0, TOOL), &json_delta(0, "{\"a\": \"b"), &stop(0)], "max_tokens"));
    assert_eq!(calls(&decoded.message), [(Some("toolu_1"), "f", "{\"a\": \"b")]);
    assert_eq!(decoded.message.finish.reason, FinishReason::Length);
}

#[test]
fn blocks_that_are_mixed_keep_their_places() {
    let thinking = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let events = [
        start(0, thinking),
        start(10_000_000, TEXT),
        start(4_294_967_295, TOOL),
        text_delta(10_000_000, "A"),
        json_delta(4_294_967_295, "{\"a\":"),
        delta(0, r#"{"type":"thinking_delta","thinking":"Hm"}"#),
        text_delta(10_000_000, "B"),
        stop(10_000_000),
        delta(0, r#"{"type":"signature_delta","signature":"s"}"#),
        stop(0),
        json_delta(4_294_967_295, "1}"),
        stop(4_294_967_295),
    ];
    let form = r#"{"type":"thinking","thinking":"Hm","signature":"s"}"#;
    let expected = [
        AssistantBlock::Reasoning { text: "Hm".to_owned(), native: Some(native(form)) },
        text("AB"),
        call("f", Some("toolu_1"), "{\"a\":1}"),
    ];
    assert_eq!(blocks(&events, "tool_use"), expected);
}

#[test]
fn an_index_that_comes_again_belongs_to_another_block() {
    let other = TOOL.replace("toolu_1", "toolu_2");
    let events = [start(0, TOOL), json_delta(0, "{\"a\":1}"), start(0, &other), json_delta(0, "{\"b\":2}"), stop(0)];
    let expected = [call("f", Some("toolu_1"), "{\"a\":1}"), call("f", Some("toolu_2"), "{\"b\":2}")];
    assert_eq!(blocks(&events, "tool_use"), expected);
}

#[test]
fn indexes_and_ends_of_blocks_may_be_missing() {
    let without_index = |event: String| event.replace("\"index\":0,", "").replace(",\"index\":0", "");
    let events = [start(0, TEXT), text_delta(0, "A"), stop(0), start(0, TOOL), json_delta(0, "{}"), stop(0)];
    let expected = [text("A"), call("f", Some("toolu_1"), "{}")];
    assert_eq!(blocks(&events.clone().map(without_index), "tool_use"), expected);
    let events = [start(0, TEXT), text_delta(0, "A"), start(1, TOOL), json_delta(1, "{}")];
    assert_eq!(blocks(&events, "tool_use"), expected);
}

#[test]
fn text_of_a_block_that_was_not_begun_is_text() {
    let thought = delta(0, r#"{"type":"thinking_delta","thinking":"Hm"}"#);
    let expected = [AssistantBlock::Reasoning { text: "Hm".to_owned(), native: None }, text("AB")];
    assert_eq!(blocks(&[thought, text_delta(1, "A"), text_delta(1, "B")], "end_turn"), expected);
}

#[test]
fn what_is_not_known_or_does_not_fit_means_nothing() {
    let events = [
        r#"{"type":"hologram_start","beam":1}"#.to_owned(),
        r#"{"type":"content_block_delta","index":0,"delta":"x"}"#.to_owned(),
        r#"{"type":"content_block_start","index":0}"#.to_owned(),
        start(0, TEXT),
        json_delta(0, "{}"),
        delta(0, r#"{"type":"signature_delta","signature":"s"}"#),
        delta(0, r#"{"type":"beam_delta","beam":1}"#),
        delta(0, r#"{"type":"text_delta","text":null}"#),
        text_delta(0, "A"),
        stop(0),
        stop(7),
        json_delta(7, "{}"),
    ];
    assert_eq!(blocks(&events, "end_turn"), [text("A")]);
}

#[test]
fn why_the_model_stopped_is_told_in_its_word_and_in_ours() {
    for (raw, reason) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("pause_turn", FinishReason::Pause),
        ("compaction", FinishReason::Pause),
        ("refusal", FinishReason::Refusal),
        ("a_new_reason", FinishReason::Stop),
    ] {
        let finish = good(&answer(&[&start(0, TEXT), &text_delta(0, "A"), &stop(0)], raw)).message.finish;
        assert_eq!((finish.reason, finish.raw.as_deref()), (reason, Some(raw)));
    }
}

#[test]
fn a_refusal_says_why_where_the_provider_does() {
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Not that."}},"usage":{"output_tokens":2}}"#;
    let decoded = good(&stream(&[START, &start(0, TEXT), &text_delta(0, "A"), &stop(0), end, STOP]));
    assert_eq!(decoded.message.blocks, [text("A"), AssistantBlock::Refusal { text: "Not that.".to_owned() }]);
    assert_eq!(decoded.message.finish.reason, FinishReason::Refusal);
}

#[test]
fn usage_is_the_last_report_of_each_counter() {
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":20,"cache_read_input_tokens":null,"output_tokens":9,"output_tokens_details":{"thinking_tokens":5}}}"#;
    let begin = START.replace(r#""input_tokens":1"#, r#""input_tokens":3,"cache_read_input_tokens":4"#);
    let decoded = good(&stream(&[&begin, end, STOP]));
    let expected = Usage {
        input_tokens: Some(24),
        output_tokens: Some(9),
        cached_input_tokens: Some(4),
        reasoning_tokens: Some(5),
        ..Usage::default()
    };
    assert_eq!(decoded.message.usage, expected);
    let none = START.replace(r#","usage":{"input_tokens":1,"output_tokens":1}"#, "");
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    assert_eq!(good(&stream(&[&none, end, STOP])).message.usage, Usage::default());
}

#[test]
fn a_whole_body_is_decoded_as_its_stream_would_be() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
        {"type":"thinking","thinking":"Hm","signature":"s"},{"type":"thinking","thinking":"","signature":"t"},
        {"type":"text","text":"A","citations":null},{"type":"text","text":"B","citations":[{"n":1}]},
        {"type":"tool_use","id":"toolu_1","name":"f","input":{"a": 1}}],
        "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let expected = [
        AssistantBlock::Reasoning {
            text: "Hm".to_owned(),
            native: Some(native(r#"{"type":"thinking","thinking":"Hm","signature":"s"}"#)),
        },
        opaque(r#"{"type":"thinking","thinking":"","signature":"t"}"#),
        text("A"),
        AssistantBlock::Text {
            text: "B".to_owned(),
            native: Some(native(r#"{"type":"text","text":"B","citations":[{"n":1}]}"#)),
        },
        call("f", Some("toolu_1"), "{\"a\": 1}"),
    ];
    for content_type in ["application/json", "text/event-stream"] {
        let decoded = decode_as(content_type, &[body.as_bytes()]);
        assert_eq!((decoded.failure, decoded.message.blocks.as_slice()), (None, expected.as_slice()));
    }
    for cut in 1..body.len() {
        let failure = decode_as("application/json", &[&body.as_bytes()[..cut]]).failure.unwrap();
        assert_eq!(failure.kind, ProviderFailureKind::CutOff, "cut at {cut}");
    }
}

#[test]
fn a_success_that_holds_no_answer_is_told_as_what_it_is() {
    use ProviderFailureKind as K;
    for (body, kind) in [
        (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, K::Overloaded),
        (r#"{"error":{"message":"m","type":"authentication_error"}}"#, K::Auth),
        (
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
            K::Quota,
        ),
        (r#"{"status":"fine"}"#, K::Malformed),
        ("<html><title>Log in</title></html>", K::Malformed),
        ("hello", K::Malformed),
        ("[1,2]", K::Malformed),
        ("", K::CutOff),
    ] {
        let failure = decode_as("application/json", &[body.as_bytes()]).failure.unwrap();
        assert_eq!(failure.kind, kind, "{body}: {failure}");
    }
}

#[test]
fn an_end_without_a_reason_is_an_end_only_where_something_whole_was_said() {
    let said = [START, &start(0, TEXT), &text_delta(0, "A"), &stop(0), STOP].map(str::to_owned);
    let events: Vec<&str> = said.iter().map(String::as_str).collect();
    assert_eq!(good(&stream(&events)).message.finish.reason, FinishReason::Stop);
    let open: Vec<&str> = events.iter().copied().filter(|event| !event.contains("block_stop")).collect();
    for events in [open, vec![START, STOP], vec![]] {
        assert_eq!(decode_every_way(&stream(&events)).failure.unwrap().kind, ProviderFailureKind::CutOff, "{events:?}");
    }
}

#[test]
fn an_event_that_is_not_json_ends_the_answer() {
    let decoded = decode_every_way(&(stream(&[START]) + "event: content_block_start\ndata: {\"type\":\"conte\n\n"));
    assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::Malformed);
}

#[test]
fn what_is_over_a_limit_ends_the_answer() {
    let limit = |events: &[String]| {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        decode(&[answer(&events, "tool_use").as_bytes()]).failure.map(|failure| failure.kind)
    };
    let piece = json_delta(0, &"x".repeat(600_000));
    assert_eq!(limit(&[start(0, TOOL), piece.clone(), piece.clone()]), Some(ProviderFailureKind::Limit));
    let server = TOOL.replace("tool_use", "server_tool_use");
    assert_eq!(limit(&[start(0, &server), piece.clone(), piece]), Some(ProviderFailureKind::Limit));
    let many: Vec<String> = (0..300).flat_map(|index| [start(index, TOOL), stop(index)]).collect();
    assert_eq!(limit(&many), Some(ProviderFailureKind::Limit));
    let open: Vec<String> = (0..300).map(|index| start(index, TEXT)).collect();
    assert_eq!(limit(&open), Some(ProviderFailureKind::Limit));
    let long = text_delta(0, &"x".repeat(9_000_000));
    assert_eq!(limit(&[start(0, TEXT), long.clone(), long.clone(), long.clone(), long]), Some(ProviderFailureKind::Limit));
    let huge = format!("data: {{\"type\":\"ping\",\"x\":\"{}", "x".repeat(50_000_000));
    assert_eq!(decode(&[huge.as_bytes()]).failure.unwrap().kind, ProviderFailureKind::Limit);
}
