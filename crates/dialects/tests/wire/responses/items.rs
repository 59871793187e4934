//! Answers: which blocks the items of one become.

use turnwright_core::{AssistantBlock, FinishReason, NativeBlock, ToolCall};

use super::ask::{decode, decode_text, events};
use crate::support::every_way;

fn done(index: u64, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

fn added(index: u64, item: &str) -> String {
    done(index, item).replace(".done", ".added")
}

fn delta(kind: &str, index: u64, text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(r#"{{"type":"response.{kind}.delta","output_index":{index},"delta":{text}}}"#)
}

fn completed(items: &[&str]) -> String {
    format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{}]}}}}"#, items.join(","))
}

fn message(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"message","role":"assistant","phase":"commentary","status":"completed","content":[{{"type":"output_text","text":"{text}","annotations":[{{"type":"url_citation","url":"u"}}]}}]}}"#
    )
}

fn call(id: &str, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    format!(r#"{{"id":"fc_{id}","type":"function_call","call_id":"call_{id}","name":"f_{id}","arguments":{arguments}}}"#)
}

fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

fn text_block(text: &str, own: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: Some(native(own)) }
}

fn call_block(id: &str, arguments: &str, own: &str) -> AssistantBlock {
    AssistantBlock::Call(ToolCall {
        name: format!("f_{id}"),
        arguments: arguments.to_owned(),
        provider_id: Some(format!("call_{id}")),
        native: Some(native(own)),
        recovered: false,
    })
}

fn opaque(own: &str) -> AssistantBlock {
    AssistantBlock::Opaque { native: NativeBlock(own.to_owned()) }
}

#[test]
fn text_before_between_and_after_calls_keeps_its_place() {
    let (one, two, three) = (message("msg_1", "one"), message("msg_2", "two"), message("msg_3", "three"));
    let (a, b) = (call("a", "{\"x\":1}"), call("b", "{}"));
    let items = [one.as_str(), &a, &two, &b, &three];
    let streamed: Vec<String> = vec![
        delta("output_text", 0, "o"),
        delta("output_text", 0, "ne"),
        done(0, &one),
        added(1, &call("a", "")),
        // Two calls and a text that come at once.
        added(3, &call("b", "")),
        delta("function_call_arguments", 1, "{\"x\""),
        delta("function_call_arguments", 3, "{}"),
        delta("output_text", 2, "two"),
        delta("function_call_arguments", 1, ":1}"),
        done(1, &a),
        done(2, &two),
        done(3, &b),
        delta("output_text", 4, "three"),
        done(4, &three),
        completed(&items),
    ];
    let expected = [
        text_block("one", &one),
        call_block("a", "{\"x\":1}", &a),
        text_block("two", &two),
        call_block("b", "{}", &b),
        text_block("three", &three),
    ];
    let decoded = every_way(&events(&streamed), decode);
    assert_eq!(decoded.message.blocks, expected);
    assert_eq!(decoded.message.finish.reason, FinishReason::ToolCalls);
}

#[test]
fn two_messages_that_follow_one_another_are_two_blocks_without_their_ends_too() {
    let streamed = [delta("output_text", 0, "one"), delta("output_text", 1, "two"), completed(&[])];
    let texts = ["one", "two"].map(|text| AssistantBlock::Text { text: text.to_owned(), native: None });
    assert_eq!(decode_text(&events(&streamed)).message.blocks, texts);
}

#[test]
fn reasoning_that_is_done_after_the_text_that_follows_it_stays_before_it() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}"#;
    let text = message("msg_1", "4");
    let streamed = [
        added(0, r#"{"type":"reasoning","id":"rs_1","summary":[]}"#),
        delta("reasoning_text", 0, "hm"),
        delta("output_text", 1, "4"),
        done(1, &text),
        done(0, reasoning),
        completed(&[reasoning, &text]),
    ];
    let expected =
        [AssistantBlock::Reasoning { text: "hm".to_owned(), native: Some(native(reasoning)) }, text_block("4", &text)];
    assert_eq!(every_way(&events(&streamed), decode).message.blocks, expected);
}

#[test]
fn each_part_of_a_summary_is_a_block_and_the_last_holds_the_item() {
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"x"}"#;
    let summary = |index: u32, text: &str| {
        format!(
            r#"{{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":{index},"delta":"{text}"}}"#
        )
    };
    let reasoning = |text: &str, native| AssistantBlock::Reasoning { text: text.to_owned(), native };
    let expected = [reasoning("a", None), reasoning("b", Some(native(item)))];
    let streamed = [summary(0, "a"), summary(1, "b"), done(0, item), completed(&[item])];
    assert_eq!(decode_text(&events(&streamed)).message.blocks, expected);
    assert_eq!(decode_text(&events(&[completed(&[item])])).message.blocks, expected);
}

#[test]
fn reasoning_that_nobody_can_read_and_what_the_provider_did_itself_are_kept_in_their_places() {
    let items = [
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}"#,
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
        r#"{"type":"something_new","id":"sn_1","more":{"deep":[1,2.50]}}"#,
        &message("msg_1", "found"),
    ];
    let expected = [opaque(items[0]), opaque(items[1]), opaque(items[2]), text_block("found", items[3])];
    let progress = r#"{"type":"response.web_search_call.searching","output_index":1,"item_id":"ws_1"}"#;
    let code = r#"{"type":"response.code_interpreter_call_code.delta","output_index":2,"delta":"print(1)"}"#;
    let streamed = [
        added(0, r#"{"type":"reasoning","id":"rs_1","summary":[]}"#),
        done(0, items[0]),
        added(1, r#"{"type":"web_search_call","id":"ws_1","status":"in_progress"}"#),
        progress.to_owned(),
        done(1, items[1]),
        code.to_owned(),
        done(2, items[2]),
        done(3, items[3]),
        completed(&items),
    ];
    assert_eq!(every_way(&events(&streamed), decode).message.blocks, expected);
}

#[test]
fn a_refusal_is_one_and_text_beside_it_stays_text() {
    let parts = r#"[{"type":"output_text","text":"So. ","annotations":[]},{"type":"refusal","refusal":"No."}]"#;
    let item = format!(r#"{{"type":"message","id":"msg_1","role":"assistant","content":{parts}}}"#);
    let refusal = |index: u32, kind: &str, key: &str, text: &str| {
        format!(r#"{{"type":"response.refusal.{kind}","output_index":0,"content_index":{index},"{key}":"{text}"}}"#)
    };
    let streamed = [
        delta("output_text", 0, "So. "),
        refusal(1, "delta", "delta", "N"),
        refusal(1, "delta", "delta", "o."),
        refusal(1, "done", "refusal", "No."),
        done(0, &item),
        completed(&[&item]),
    ];
    let expected =
        [AssistantBlock::Text { text: "So. ".to_owned(), native: None }, AssistantBlock::Refusal { text: "No.".to_owned() }];
    let decoded = every_way(&events(&streamed), decode);
    assert_eq!(decoded.message.blocks, expected);
    assert_eq!(decoded.message.finish.raw.as_deref(), Some("completed"));
}

#[test]
fn a_call_with_free_text_holds_that_text() {
    let item = r#"{"type":"custom_tool_call","id":"ctc_1","call_id":"call_a","name":"f_a","input":"print('hi')"}"#;
    let streamed = [
        added(0, &item.replace("print('hi')", "")),
        delta("custom_tool_call_input", 0, "print("),
        delta("custom_tool_call_input", 0, "'hi')"),
        r#"{"type":"response.custom_tool_call_input.done","output_index":0,"input":"print('hi')"}"#.to_owned(),
        done(0, item),
        completed(&[item]),
    ];
    assert_eq!(decode_text(&events(&streamed)).message.blocks, [call_block("a", "print('hi')", item)]);
}

#[test]
fn a_call_without_arguments_and_one_with_an_object_for_a_text_are_read() {
    let bare = r#"{"type":"function_call","call_id":"call_a","name":"f_a"}"#;
    let object = r#"{"type":"function_call","call_id":"call_b","name":"f_b","arguments":{"x":1}}"#;
    let expected = [call_block("a", "", bare), call_block("b", "{\"x\":1}", object)];
    assert_eq!(decode_text(&events(&[completed(&[bare, object])])).message.blocks, expected);
}

#[test]
fn a_message_that_says_nothing_is_nothing_and_one_of_an_unknown_kind_is_kept() {
    let empty = r#"{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":""}]}"#;
    let sound = r#"{"type":"message","id":"msg_2","role":"assistant","content":[{"type":"output_audio","data":"x"}]}"#;
    let decoded = decode_text(&events(&[done(0, empty), done(1, sound), completed(&[empty, sound])]));
    assert_eq!(decoded.message.blocks, [opaque(sound)]);
}
