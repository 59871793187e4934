//! From the answer to `tools/call` to a tool's output, leniently: a part that is not understood is named, not fatal.

use serde_json::{Map, Value};
use turnwright_core::ContentBlock;
use turnwright_engine::ToolOutput;

/// Why an answer is no output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NoOutput {
    /// The server wants something of the caller first (`resultType: input_required`); its answer, to be read further.
    InputRequired(Map<String, Value>),
    /// It goes on by itself as a task; its answer.
    Task(Map<String, Value>),
    /// It says that it is something that is not known here; what, and its answer without that.
    Unknown(String, Value),
}

/// Reads the answer.
pub(crate) fn read(answer: Value) -> Result<ToolOutput, NoOutput> {
    let Value::Object(mut answer) = answer else {
        return Ok(ToolOutput { content: vec![plain(answer)], structured_content: None, is_error: false, diagnostic: None });
    };
    match answer.get("resultType").and_then(Value::as_str) {
        Some("input_required") => return Err(NoOutput::InputRequired(answer)),
        Some("task") => return Err(NoOutput::Task(answer)),
        // The form of 2025-11-25, which only comes where it was asked for.
        None if answer.get("task").is_some_and(|task| task.get("taskId").is_some()) && !answer.contains_key("content") => {
            return Err(NoOutput::Task(answer));
        }
        // 2026-07-28, "Result types": a receiver takes one that it does not know for invalid.
        Some(other) if other != "complete" => {
            let kind = other.to_owned();
            answer.remove("resultType");
            return Err(NoOutput::Unknown(kind, Value::Object(answer)));
        }
        Some(_) | None => {}
    }
    let is_error = answer.get("isError") == Some(&Value::Bool(true));
    let structured_content = answer.remove("structuredContent").filter(|value| !value.is_null());
    let mut content = match answer.remove("content") {
        Some(Value::Array(blocks)) => blocks.into_iter().map(block).collect(),
        None | Some(Value::Null) => Vec::new(),
        Some(other) => vec![plain(other)],
    };
    if content.is_empty() {
        // What the model is shown is the content.
        content.extend(structured_content.as_ref().map(|value| ContentBlock::text(value.to_string())));
    }
    Ok(ToolOutput { content, structured_content, is_error, diagnostic: None })
}

fn plain(value: Value) -> ContentBlock {
    match value {
        Value::String(text) => ContentBlock::text(text),
        other => ContentBlock::text(other.to_string()),
    }
}

/// One piece of content.
pub(crate) fn block(block: Value) -> ContentBlock {
    let Value::Object(mut block) = block else { return plain(block) };
    let kind = match block.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        _ => return ContentBlock::text("[content without a type, not shown]"),
    };
    match kind.as_str() {
        "text" => match block.remove("text") {
            Some(Value::String(text)) => ContentBlock::Text { text },
            _ => ContentBlock::text("[malformed text, not shown]"),
        },
        "image" | "audio" | "resource" | "resource_link" => {
            let described = described(&kind, &block);
            // What is only said of it spoils nothing.
            block.retain(|key, value| match key.as_str() {
                "title" | "description" => value.is_string(),
                "size" => value.is_u64(),
                _ => true,
            });
            serde_json::from_value(Value::Object(block))
                .unwrap_or_else(|error| ContentBlock::text(format!("[malformed {described}, not shown: {error}]")))
        }
        _ => ContentBlock::text(format!("[{}: a kind of content that is not known here, not shown]", described(&kind, &block))),
    }
}

/// `video (video/mp4)`.
fn described(kind: &str, block: &Map<String, Value>) -> String {
    match block.get("mimeType").and_then(Value::as_str) {
        Some(mime_type) => format!("{kind} ({mime_type})"),
        None => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnwright_core::EmbeddedResource;

    use super::*;

    fn texts(texts: &[&str]) -> Vec<ContentBlock> {
        texts.iter().copied().map(ContentBlock::text).collect()
    }

    #[test]
    fn every_known_kind_of_content_is_kept_whole() {
        let answer = json!({"content": [
            {"type": "text", "text": "t", "annotations": {"priority": 1}},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "r"}},
            {"type": "resource_link", "uri": "a://c", "name": "c", "title": "C", "size": 3},
        ], "structuredContent": [1], "isError": true});
        let resource =
            EmbeddedResource { uri: "a://b".into(), mime_type: Some("text/plain".into()), text: Some("r".into()), blob: None };
        let expected = ToolOutput {
            content: vec![
                ContentBlock::text("t"),
                ContentBlock::Image { data: "AA==".into(), mime_type: "image/png".into() },
                ContentBlock::Audio { data: "AA==".into(), mime_type: "audio/wav".into() },
                ContentBlock::Resource { resource },
                ContentBlock::ResourceLink {
                    uri: "a://c".into(),
                    name: "c".into(),
                    title: Some("C".into()),
                    description: None,
                    mime_type: None,
                    size: Some(3),
                },
            ],
            structured_content: Some(json!([1])),
            is_error: true,
            diagnostic: None,
        };
        assert_eq!(read(answer), Ok(expected));
    }

    #[test]
    fn what_is_not_understood_is_named_and_the_rest_is_kept() {
        let answer = json!({"content": [
            {"type": "text", "text": "fine"},
            {"type": "video", "data": "AA==", "mimeType": "video/mp4"},
            {"type": "image", "mimeType": "image/png"},
            {"type": "text"},
            {},
            "bare",
        ]});
        let expected = [
            "fine",
            "[video (video/mp4): a kind of content that is not known here, not shown]",
            "[malformed image (image/png), not shown: missing field `data`]",
            "[malformed text, not shown]",
            "[content without a type, not shown]",
            "bare",
        ];
        assert_eq!(read(answer).unwrap().content, texts(&expected));
    }

    #[test]
    fn structured_content_alone_is_also_the_text() {
        let output = read(json!({"structuredContent": {"a": 1}})).unwrap();
        assert_eq!(output, ToolOutput::json(json!({"a": 1})));
        assert_eq!(read(json!({"content": "just a string"})).unwrap(), ToolOutput::text("just a string"));
        assert_eq!(read(json!({})).unwrap(), ToolOutput::default());
    }

    #[test]
    fn an_answer_that_is_not_the_end_is_no_output() {
        let asks = json!({"resultType": "input_required", "requestState": "s"});
        let unknown = json!({"resultType": "strange", "content": []});
        assert_eq!(read(unknown), Err(NoOutput::Unknown("strange".to_owned(), json!({"content": []}))));
        assert_eq!(read(asks.clone()), Err(NoOutput::InputRequired(asks.as_object().unwrap().clone())));
        for task in [json!({"resultType": "task", "taskId": "x"}), json!({"task": {"taskId": "x"}})] {
            assert_eq!(read(task.clone()), Err(NoOutput::Task(task.as_object().unwrap().clone())));
        }
    }
}
