//! A conversation in the forms of vendors' libraries.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{AssistantBlock, Entry, Journal, MessageId, NativeBlock, Seq, StoredEntry, prompt, text_of};
use turnwright_dialects::export::{ExportForm, pieces};

use super::{exported, imported, journal};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Two calls at once, one of which fails and one of which gives an image; a thought; and a message that nobody answered.
fn conversation() -> Value {
    json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}}]},
        {"role": "assistant", "content": "One moment.", "reasoning_content": "Two calls.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "s__draw", "arguments": "{\"n\": 12345678901234567890123}"}},
            {"id": "b", "type": "function", "function": {"name": "s__fail", "arguments": "{\"cut"}}]},
        {"role": "tool", "tool_call_id": "b", "content": "ERROR (this call failed): no such thing"},
        {"role": "tool", "tool_call_id": "a", "content": "drawn:\n[image, image/png]\nthere"},
        {"role": "user", "content": [{"type": "text", "text": "Images in the result of the tool call a:"}, {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}}]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ])
}

fn in_form(form: ExportForm) -> Value {
    let found = imported(&conversation().to_string());
    exported(&journal(&found.conversations[0]), form, found.conversations[0].system_prompt.as_deref())
}

const NOTE: &str = "[The arguments of this call were not a JSON object: \"{\\\"cut\"]";

#[test]
fn in_openais_form() {
    let url = format!("data:image/png;base64,{PNG}");
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": url}}]},
        {"role": "assistant", "content": "One moment.", "tool_calls": [
            {"id": "call_3_0", "type": "function", "function": {"name": "s__draw", "arguments": "{\"n\": 12345678901234567890123}"}},
            {"id": "call_3_1", "type": "function", "function": {"name": "s__fail", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_3_0", "content": "drawn:\n[image, image/png]\nthere"},
        {"role": "tool", "tool_call_id": "call_3_1", "content": format!("ERROR (this call failed): {NOTE}\nno such thing")},
        {"role": "user", "content": [{"type": "text", "text": "Images in the result of the tool call call_3_0:"},
                                     {"type": "image_url", "image_url": {"url": url}}]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]);
    assert_eq!(in_form(ExportForm::OpenAi), expected);
}

#[test]
fn our_own_openai_export_gives_the_same_history_back() {
    let first = in_form(ExportForm::OpenAi);
    let found = imported(&first.to_string());
    assert_eq!(found.conversations[0].left_out.len(), 0, "{found:?}");
    let system = found.conversations[0].system_prompt.as_deref();
    let again = journal(&found.conversations[0]);
    assert_eq!(exported(&again, ExportForm::OpenAi, system), first);
    // The image is in the result again, not in a person's message.
    assert_eq!(
        exported(&again, ExportForm::AiSdk, system)[3]["content"][0]["output"],
        in_form(ExportForm::AiSdk)[3]["content"][0]["output"]
    );
}

#[test]
fn a_result_that_reads_like_an_error_is_none_and_says_the_same_again() {
    let texts =
        ["ERROR: out of paper", "ERROR (this call failed): x", "OK (this call worked): OK (this call worked): x", "fine"];
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let ids: Vec<String> = (0..=texts.len()).map(|number| format!("c{number}")).collect();
    let mut messages = vec![
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()}),
        json!({"role": "tool", "tool_call_id": "c0", "content": "ERROR (this call failed): ERROR: no"}),
    ];
    // What another program wrote as an error of its own is no call that failed.
    messages.extend(texts.iter().zip(&ids[1..]).map(|(text, id)| {
        let marked = if text.contains("this call") { format!("OK (this call worked): {text}") } else { (*text).to_owned() };
        json!({"role": "tool", "tool_call_id": id, "content": marked})
    }));
    let given = |list: &Value| {
        let journal = journal(&imported(&list.to_string()).conversations[0]);
        let results = journal.entries().iter().filter_map(|stored| match &*stored.entry {
            Entry::Result(result) => Some((result.outcome.is_error(), text_of(&result.content))),
            _ => None,
        });
        (results.collect::<Vec<_>>(), exported(&journal, ExportForm::OpenAi, None))
    };
    let (first, list) = given(&Value::Array(messages));
    let worked = texts.iter().map(|text| (false, (*text).to_owned()));
    let expected: Vec<_> = std::iter::once((true, "ERROR: no".to_owned())).chain(worked).collect();
    assert_eq!((&first, &given(&list).0), (&expected, &expected));
}

#[test]
fn in_anthropics_form() {
    let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image", "source": source}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "One moment."},
            {"type": "tool_use", "id": "call_3_0", "name": "s__draw", "input": {"n": 0}},
            {"type": "tool_use", "id": "call_3_1", "name": "s__fail", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_3_0", "content": [
                {"type": "text", "text": "drawn:"}, {"type": "image", "source": source}, {"type": "text", "text": "there"}]},
            {"type": "tool_result", "tool_use_id": "call_3_1", "content": format!("{NOTE}\nno such thing"), "is_error": true}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]);
    let mut found = in_form(ExportForm::Anthropic);
    assert_eq!(found[1]["content"][1]["input"]["n"].as_f64(), Some(12_345_678_901_234_567_890_123_f64));
    found[1]["content"][1]["input"]["n"] = 0.into();
    assert_eq!(found, expected);
}

#[test]
fn in_geminis_form() {
    let expected = json!([
        {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        {"role": "model", "parts": [
            {"text": "One moment."},
            {"functionCall": {"name": "s__draw", "args": {"n": 0}}},
            {"functionCall": {"name": "s__fail", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "s__draw", "response": {"output": "drawn:\n[image, image/png]\nthere"}}},
            {"functionResponse": {"name": "s__fail", "response": {"error": format!("{NOTE}\nno such thing")}}}]},
        {"role": "user", "parts": [
            {"text": "What the tool `s__draw` returned beside its text:"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
        {"role": "user", "parts": [{"text": "Thanks."}]},
    ]);
    let mut found = in_form(ExportForm::Gemini);
    found[1]["parts"][1]["functionCall"]["args"]["n"] = 0.into();
    assert_eq!(found, expected);
}

#[test]
fn in_the_ai_sdks_forms() {
    let call =
        |id: &str, name: &str, input: Value| json!({"type": "tool-call", "toolCallId": id, "toolName": name, "input": input});
    let result = |id: &str, name: &str, output: Value| json!({"type": "tool-result", "toolCallId": id, "toolName": name, "output": output});
    let content = json!([{"type": "text", "text": "drawn:"}, {"type": "image-data", "data": PNG, "mediaType": "image/png"},
                         {"type": "text", "text": "there"}]);
    let error = format!("{NOTE}\nno such thing");
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image", "image": PNG, "mediaType": "image/png"}]},
        {"role": "assistant", "content": [
            {"type": "reasoning", "text": "Two calls."}, {"type": "text", "text": "One moment."},
            call("call_3_0", "s__draw", json!({"n": 0})), call("call_3_1", "s__fail", json!({}))]},
        {"role": "tool", "content": [
            result("call_3_0", "s__draw", json!({"type": "content", "value": content})),
            result("call_3_1", "s__fail", json!({"type": "error-text", "value": error}))]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]);
    let mut found = in_form(ExportForm::AiSdk);
    found[2]["content"][2]["input"]["n"] = 0.into();
    assert_eq!(found, expected);
    let output = json!({"content": [{"type": "text", "text": "drawn:"}, {"type": "image", "data": PNG, "mimeType": "image/png"},
                                    {"type": "text", "text": "there"}]});
    let expected = json!([
        {"id": "system", "role": "system", "parts": [{"type": "text", "text": "Be brief."}]},
        {"id": "msg_1", "role": "user", "parts": [
            {"type": "text", "text": "Look."}, {"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{PNG}")}]},
        {"id": "turn_1", "role": "assistant", "parts": [
            {"type": "step-start"}, {"type": "reasoning", "text": "Two calls."}, {"type": "text", "text": "One moment."},
            {"type": "dynamic-tool", "toolName": "s__draw", "toolCallId": "call_3_0", "state": "output-available",
             "input": {"n": 0}, "output": output},
            // As in the stream: what the model is told of the arguments is no part of it.
            {"type": "dynamic-tool", "toolName": "s__fail", "toolCallId": "call_3_1", "state": "output-available",
             "input": "{\"cut", "output": {"content": [{"type": "text", "text": "no such thing"}], "isError": true}},
            {"type": "step-start"}, {"type": "text", "text": "Done."}]},
        {"id": "msg_8", "role": "user", "parts": [{"type": "text", "text": "Thanks."}]},
    ]);
    let mut found = in_form(ExportForm::AiSdkUi);
    found[2]["parts"][3]["input"]["n"] = 0.into();
    assert_eq!(found, expected);
}

#[test]
fn a_history_is_cut_between_steps_alone() {
    let found = imported(&conversation().to_string());
    let journal = journal(&found.conversations[0]);
    let cut = |form| {
        let pieces = pieces(form, &prompt::history(&journal)).into_iter();
        pieces.map(|piece| (piece.range, piece.last, piece.weight)).collect::<Vec<_>>()
    };
    let message = |place| MessageId(Seq::new(place).unwrap());
    let steps = [(0..1, message(1), 1), (1..3, message(3), 3), (3..4, message(6), 1), (4..5, message(8), 1)];
    for form in [ExportForm::OpenAi, ExportForm::Anthropic, ExportForm::Gemini, ExportForm::AiSdk] {
        assert_eq!(cut(form), steps, "{form}");
    }
    assert_eq!(cut(ExportForm::AiSdkUi), [(0..1, message(1), 1), (1..4, message(6), 4), (4..5, message(8), 1)]);
}

#[test]
fn an_unknown_form_is_named_with_the_known_ones() {
    let error = "opnai".parse::<ExportForm>().unwrap_err().to_string();
    assert_eq!(error, "`opnai` is no form; there are openai, anthropic, gemini, ai-sdk, ai-sdk-ui");
}

#[test]
fn a_picture_that_a_model_answered_with_is_in_every_form() {
    let found = imported(&json!([{"role": "user", "content": "Draw."}, {"role": "assistant", "content": "Here:"}]).to_string());
    let plain = journal(&found.conversations[0]);
    let pictured = plain.entries().iter().map(|stored| match &*stored.entry {
        Entry::Assistant(message) => {
            let native = NativeBlock(format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}"#));
            let mut message = message.clone();
            message.origin.dialect = "gemini".to_owned();
            message.blocks.push(AssistantBlock::Opaque { native });
            StoredEntry { entry: Arc::new(Entry::Assistant(message)), ..stored.clone() }
        }
        _ => stored.clone(),
    });
    let journal = Journal::replay(pictured).unwrap();
    let answer = |form| exported(&journal, form, None)[1].clone();
    let word = "[image, image/png]";
    assert_eq!(answer(ExportForm::OpenAi)["content"], format!("Here:\n{word}"));
    let texts = json!([{"type": "text", "text": "Here:"}, {"type": "text", "text": word}]);
    assert_eq!(answer(ExportForm::Anthropic)["content"], texts);
    assert_eq!(answer(ExportForm::Gemini)["parts"], json!([{"text": "Here:"}, {"text": word}]));
    let file = json!({"type": "file", "data": PNG, "mediaType": "image/png"});
    assert_eq!(answer(ExportForm::AiSdk)["content"], json!([{"type": "text", "text": "Here:"}, file]));
    let file = json!({"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{PNG}")});
    assert_eq!(answer(ExportForm::AiSdkUi)["parts"][2], file);
}
