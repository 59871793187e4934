//! The golden stream of Messages and its variants, cut at every byte.

use turnwright_core::{AssistantBlock, AssistantMessage, Completion, Finish, FinishReason, ProviderFailureKind, Seq, Usage};
use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::{Dialect, Offered, Profile, ReplyDecoder};

use super::{call, decode, decode_every_way, good, native, opaque, text};
use crate::support::origin;

const GOLDEN: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":100,"cache_read_input_tokens":900,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I should call both."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBsig"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"EmwKred"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Checking."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Zür"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"ich\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"get_time","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

"#;

fn thinking(text: &str, native_form: &str) -> AssistantBlock {
    AssistantBlock::Reasoning { text: text.to_owned(), native: Some(native(native_form)) }
}

fn expected() -> AssistantMessage {
    AssistantMessage {
        origin: origin(),
        saw: Seq::FIRST,
        blocks: vec![
            thinking("I should call both.", r#"{"type":"thinking","thinking":"I should call both.","signature":"EqQBsig"}"#),
            opaque(r#"{"type":"redacted_thinking","data":"EmwKred"}"#),
            text("Checking."),
            call("get_weather", Some("toolu_1"), "{\"city\": \"Zürich\"}"),
            call("get_time", Some("toolu_2"), "{}"),
        ],
        finish: Finish { reason: FinishReason::ToolCalls, raw: Some("tool_use".to_owned()) },
        completion: Completion::Complete,
        usage: Usage {
            input_tokens: Some(1012),
            output_tokens: Some(89),
            cached_input_tokens: Some(900),
            cache_write_tokens: Some(100),
            reasoning_tokens: None,
            cost_usd: None,
        },
    }
}

fn check(body: &str, expected: &AssistantMessage) {
    assert_eq!(&good(body).message, expected);
}

#[test]
fn the_golden_stream_gives_the_same_message_wherever_it_is_cut() {
    check(GOLDEN, &expected());
}

#[test]
fn comments_and_line_breaks_of_any_kind_mean_nothing() {
    check(&GOLDEN.replace("\n\n", "\n\n: keep-alive\n\n"), &expected());
    check(&GOLDEN.replace('\n', "\r\n"), &expected());
}

#[test]
fn the_name_of_an_event_stands_in_for_a_missing_type_and_the_other_way_round() {
    let bare: Vec<&str> = GOLDEN.split_inclusive('\n').filter(|line| !line.starts_with("event:")).collect();
    check(&bare.concat(), &expected());
    check(&GOLDEN.replace(r#"{"type":"content_block_start","#, "{"), &expected());
}

#[test]
fn thinking_that_is_not_shown_is_kept_for_the_way_back() {
    let empty = GOLDEN.replace("I should call both.", "");
    let mut expected = expected();
    expected.blocks[0] = opaque(r#"{"type":"thinking","thinking":"","signature":"EqQBsig"}"#);
    check(&empty, &expected);
}

#[test]
fn a_signature_in_pieces_is_put_together() {
    let piece = r#"event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBsig"}}"#;
    let pieces = format!("{}\n\n{}", piece.replace("EqQBsig", "EqQ"), piece.replace("EqQBsig", "Bsig"));
    check(&GOLDEN.replace(piece, &pieces), &expected());
}

#[test]
fn a_thought_without_a_signature_has_nothing_for_the_way_back() {
    let body = GOLDEN.replace(r#""signature":"EqQBsig""#, r#""signature":"""#);
    let mut expected = expected();
    expected.blocks[0] = AssistantBlock::Reasoning { text: "I should call both.".to_owned(), native: None };
    check(&body, &expected);
}

#[test]
fn the_last_event_may_be_missing_or_replaced_by_that_of_another_format() {
    let end = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    check(&GOLDEN.replace(end, ""), &expected());
    check(&GOLDEN.replace(end, "data: [DONE]\n\n"), &expected());
    check(&(GOLDEN.to_owned() + "data: [DONE]\n\n"), &expected());
    let warned = |body: &str| {
        let decoder = Anthropic.decoder(&Profile::COMPATIBLE, &Offered::default());
        let (mut reply, mut out) = (ReplyDecoder::new(decoder, Some("text/event-stream")), Vec::new());
        reply.push(body.as_bytes(), &mut out).unwrap();
        reply.end(&mut out).unwrap();
        reply.warning().is_some()
    };
    assert!(warned(&GOLDEN.replace(end, "")));
    assert!(!warned(GOLDEN));
}

#[test]
fn a_stream_that_is_cut_anywhere_before_its_stop_reason_is_never_a_success() {
    let end = GOLDEN.find(r#""stop_reason":"tool_use""#).unwrap();
    for cut in 0..end {
        let decoded = decode(&[&GOLDEN.as_bytes()[..cut]]);
        assert_eq!(decoded.failure.unwrap().kind, ProviderFailureKind::CutOff, "cut at {cut}");
        // What was being said when it was cut has no form for the way back.
        let whole = expected();
        for (block, whole) in decoded.message.blocks.iter().zip(&whole.blocks) {
            let is_begun = match (block, whole) {
                (AssistantBlock::Text { text, native: None }, AssistantBlock::Text { text: all, .. })
                | (AssistantBlock::Reasoning { text, native: None }, AssistantBlock::Reasoning { text: all, .. }) => {
                    all.starts_with(text)
                }
                (AssistantBlock::Call(call), AssistantBlock::Call(all)) => all.arguments.starts_with(&call.arguments),
                _ => false,
            };
            assert!(block == whole || is_begun, "cut at {cut}: {block:?}");
        }
    }
}

#[test]
fn an_error_in_the_middle_keeps_what_was_said() {
    let (before, _) =
        GOLDEN.split_once("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3").unwrap();
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_1\"}\n\n";
    let decoded = decode_every_way(&(before.to_owned() + error));
    let failure = decoded.failure.unwrap();
    assert_eq!((failure.kind, failure.status), (ProviderFailureKind::Overloaded, Some(529)));
    assert_eq!((failure.message.as_str(), failure.code.as_deref()), ("Overloaded", Some("overloaded_error")));
    assert_eq!(failure.request_id.as_deref(), Some("req_1"));
    assert_eq!(decoded.message.blocks, expected().blocks[..3]);
    assert_eq!(decoded.message.finish.reason, FinishReason::Error);
    assert_eq!(decoded.message.usage.input_tokens, Some(1012));
}
