//! The golden stream of Responses and its variants, cut at every byte.

use turnwright_core::{
    AssistantBlock, AssistantMessage, Completion, Finish, FinishReason, NativeBlock, ProviderFailureKind, Seq, ToolCall, Usage,
};

use super::ask::{decode, event, events};
use crate::support::{Decoded, every_way, origin};

const CREATED: &str =
    r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}"#;
const REASONING_ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"early"}}"#;
const SUMMARY_ADDED: &str = r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#;
const SUMMARY: &str = r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Need weather"}"#;
const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Need weather"}],"encrypted_content":"gAAAA_enc"}"#;
const CALL_ADDED: &str = r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_a","name":"get_weather","arguments":""}}"#;
const ARGUMENTS_1: &str =
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"city\":"}"#;
const ARGUMENTS_2: &str =
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"\"Zürich\"}"}"#;
const ARGUMENTS_DONE: &str =
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"{\"city\":\"Zürich\"}"}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"get_weather","arguments":"{\"city\":\"Zürich\"}"}"#;
const USAGE: &str = r#""usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":8,"cache_write_tokens":16},"output_tokens":25,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":65}"#;

fn done(index: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

fn completed(items: &[&str]) -> String {
    let output = items.join(",");
    format!(
        r#"{{"type":"response.completed","response":{{"id":"resp_1","status":"completed","output":[{output}],{USAGE},"error":null}}}}"#
    )
}

fn golden() -> Vec<String> {
    let mut all: Vec<String> = [CREATED, REASONING_ADDED, SUMMARY_ADDED, SUMMARY].map(str::to_owned).to_vec();
    all.push(done(0, REASONING));
    all.extend([CALL_ADDED, ARGUMENTS_1, ARGUMENTS_2, ARGUMENTS_DONE].map(str::to_owned));
    all.push(done(1, CALL));
    all.push(completed(&[REASONING, CALL]));
    all
}

fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

fn blocks() -> Vec<AssistantBlock> {
    vec![
        AssistantBlock::Reasoning { text: "Need weather".to_owned(), native: Some(native(REASONING)) },
        AssistantBlock::Call(ToolCall {
            name: "get_weather".to_owned(),
            arguments: "{\"city\":\"Zürich\"}".to_owned(),
            provider_id: Some("call_a".to_owned()),
            native: Some(native(CALL)),
            recovered: false,
        }),
    ]
}

fn expected() -> Decoded {
    let message = AssistantMessage {
        origin: origin(),
        saw: Seq::FIRST,
        blocks: blocks(),
        finish: Finish { reason: FinishReason::ToolCalls, raw: Some("completed".to_owned()) },
        completion: Completion::Complete,
        usage: Usage {
            input_tokens: Some(40),
            output_tokens: Some(25),
            cached_input_tokens: Some(8),
            cache_write_tokens: Some(16),
            reasoning_tokens: Some(12),
            ..Usage::default()
        },
    };
    Decoded { message, failure: None }
}

#[test]
fn the_golden_stream_is_the_same_wherever_it_is_cut() {
    assert_eq!(every_way(&events(&golden()), decode), expected());
}

#[test]
fn keep_alives_other_line_ends_missing_names_and_a_stray_end_change_nothing() {
    let body = events(&golden());
    let nameless: String = golden().iter().fold(String::new(), |body, data| body + "data: " + data + "\n\n");
    let commented = golden().iter().fold(String::new(), |body, data| body + ": keep-alive\n\n" + &event(data));
    let unknown = golden().iter().fold(String::new(), |body, data| {
        body + r#"data: {"type":"keepalive","sequence_number":3}"#
            + "\n\n"
            + "data: {\"type\":\"response.new.thing\",\"output_index\":0,\"delta\":\"x\"}\n\n"
            + &event(data)
    });
    let named_alone = body.replace(r#""type":"response."#, r#""other":"response."#);
    for variant in [body.replace('\n', "\r\n"), nameless, commented, unknown, named_alone, format!("{body}data: [DONE]\n\n")] {
        assert_eq!(decode(&[variant.as_bytes()]), expected(), "{variant}");
    }
}

#[test]
fn a_gateway_that_leaves_events_out_tells_the_same() {
    let all = golden();
    let without = |left_out: &[&str]| -> String {
        events(&all.iter().filter(|data| !left_out.iter().any(|part| data.contains(part))).cloned().collect::<Vec<_>>())
    };
    for left_out in [
        vec![".added"],
        vec![".delta"],
        vec!["arguments.done"],
        vec!["output_item.done"],
        vec![".added", ".delta"],
        vec![".delta", "arguments.done"],
        vec![".delta", "output_item.done"],
        vec![".delta", "arguments.done", ".added"],
        vec![".added", ".delta", ".done"],
    ] {
        assert_eq!(decode(&[without(&left_out).as_bytes()]), expected(), "without {left_out:?}");
    }
    // What came before counts where the response holds no items.
    let empty = events(&[all[..10].to_vec(), vec![completed(&[])]].concat());
    assert_eq!(decode(&[empty.as_bytes()]), expected());
}

#[test]
fn a_whole_reply_is_the_same_answer() {
    let body = format!(
        r#"{{"id":"resp_1","object":"response","status":"completed","output":[{REASONING},{CALL}],{USAGE},"error":null}}"#
    );
    assert_eq!(every_way(&body, decode), expected());
}

#[test]
fn a_stream_without_its_end_is_cut_off_with_what_came() {
    let all = golden();
    let decoded = decode(&[events(&all[..7]).as_bytes()]);
    assert_eq!(decoded.failure.as_ref().map(|failure| failure.kind), Some(ProviderFailureKind::CutOff));
    let mut partial = blocks();
    let AssistantBlock::Call(call) = &mut partial[1] else { panic!() };
    (call.arguments, call.native) = ("{\"city\":".to_owned(), None);
    assert_eq!(decoded.message.blocks, partial);
    assert_eq!(decoded.message.finish, Finish { reason: FinishReason::Error, raw: None });
}

#[test]
fn what_the_response_at_the_end_says_counts() {
    let wrong = done(1, &CALL.replace("Zürich", "Bern"));
    let text = r#"{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Right","annotations":[]}]}"#;
    let delta = r#"{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":"Wrong"}"#;
    let body = events(&[vec![wrong, delta.to_owned()], vec![completed(&[REASONING, CALL, text])]].concat());
    let mut blocks = blocks();
    blocks.push(AssistantBlock::Text { text: "Right".to_owned(), native: Some(native(text)) });
    assert_eq!(every_way(&body, decode).message.blocks, blocks);
}

#[test]
fn the_ciphertext_of_the_items_own_event_is_kept_and_that_of_the_end_where_there_is_none() {
    let other = REASONING.replace("gAAAA_enc", "gAAAA_other");
    let none = REASONING.replace(r#","encrypted_content":"gAAAA_enc""#, "");
    let kept = |own: &str, last: &str| {
        let decoded = decode(&[events(&[done(0, own), done(1, CALL), completed(&[last, CALL])]).as_bytes()]);
        match decoded.message.blocks.into_iter().next() {
            Some(AssistantBlock::Reasoning { native: Some(native), .. }) => native.0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(kept(REASONING, &other), REASONING);
    assert_eq!(kept(&none, REASONING), REASONING);
    assert_eq!(kept(REASONING, &none), REASONING);
}
