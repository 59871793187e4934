//! What a model answers with besides words.

use turnwright_core::{AssistantBlock, NativeBlock};

use super::*;

fn pictured(number: u64) -> Event {
    let Event::Entry { entry: stored, .. } = assistant(number) else { panic!("no entry") };
    let Entry::Assistant(mut message) = Arc::unwrap_or_clone(stored) else { panic!("no answer") };
    let native = NativeBlock(r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#.to_owned());
    message.blocks.push(AssistantBlock::Opaque { native });
    entry(number, Entry::Assistant(message))
}

#[test]
fn a_picture_is_a_file_of_the_step_that_it_was_answered_in() {
    let begin = [user(1, "draw"), started(), step(3), text(0, 0, "Here:"), pictured(3), step_finished(3, "stop")];
    let stream = told(UiVersion::V7, Begin::Turn, [begin.into_iter().chain([finished("completed")]).collect()]);
    let kinds: Vec<Value> = stream.iter().filter_map(|chunk| serde_json::from_str(chunk).ok()).collect();
    let expected = json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"});
    let at = kinds.iter().position(|chunk| *chunk == expected).unwrap();
    let around: Vec<&str> = kinds[at - 1..=at + 1].iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    assert_eq!(around, ["text-end", "file", "finish-step"]);
}

#[test]
fn a_picture_is_in_the_history_that_a_page_begins_with() {
    let chunks = [
        r#"{"type":"start","messageId":"m"}"#,
        r#"{"type":"start-step"}"#,
        r#"{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"}"#,
    ];
    let chunks = chunks.map(|chunk| serde_json::value::RawValue::from_string(chunk.to_owned()).unwrap());
    let messages = crate::ui::assembled::assembled(&chunks);
    let picture = json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"});
    let parts: Vec<Value> = messages[0].parts.iter().cloned().map(Value::Object).collect();
    assert_eq!(parts, [json!({"type": "step-start"}), picture]);
}
