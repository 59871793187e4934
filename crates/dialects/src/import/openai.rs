//! OpenAI's Chat Completions messages: a list, or an object that holds one as `messages` or `data`.

use serde_json::Value;
use turnwright_core::{AssistantBlock, ContentBlock};

use super::draft::{Draft, Given};
use super::{content, list, text, time};
use crate::outcome_mark;

/// How the message begins that stands for images in results, which this form has no place for.
const IMAGES: &str = "Images in the result of the tool call ";

/// The messages, where this is the form.
pub(super) fn messages(value: &Value) -> Option<&[Value]> {
    let list = value.as_array().or_else(|| value.get("messages")?.as_array()).or_else(|| value.get("data")?.as_array())?;
    list.first()?.get("role").is_some_and(Value::is_string).then_some(list)
}

pub(super) fn read(conversation: &Value, messages: &[Value]) -> Draft {
    let mut draft = Draft::new("openai");
    draft.id = text(conversation, "id").map(str::to_owned);
    draft.title = text(conversation, "title").map(str::to_owned);
    draft.model = text(conversation, "model").map(str::to_owned);
    draft.created_at_ms = time::milliseconds(conversation.get("created_at").or_else(|| conversation.get("created")));
    if let Some(system) = text(conversation, "system") {
        draft.system(system);
    }
    for message in messages {
        self::message(message, &mut draft);
    }
    draft
}

fn message(message: &Value, draft: &mut Draft) {
    let at_ms = time::milliseconds(message.get("timestamp").or_else(|| message.get("created_at")));
    let body = message.get("content");
    match message.get("role").and_then(Value::as_str).unwrap_or_default() {
        "system" | "developer" => {
            let said = content::blocks(body, draft);
            draft.system(&turnwright_core::text_of(&said));
        }
        "user" => {
            let said = content::blocks(body, draft);
            if let Some(said) = results_images(said, draft) {
                draft.user(said, at_ms);
            }
        }
        "assistant" => assistant(message, at_ms, draft),
        "tool" | "function" => {
            let mut content = content::blocks(body, draft);
            let failed = take_failed(&mut content);
            draft.result(text(message, "tool_call_id"), text(message, "name"), Given { content, failed, at_ms });
        }
        other => draft.leave_out(&format!("a message of role `{other}`")),
    }
}

fn assistant(message: &Value, at_ms: Option<u64>, draft: &mut Draft) {
    draft.answer(text(message, "model"), at_ms);
    for name in ["reasoning_content", "reasoning"] {
        if let Some(thought) = text(message, name) {
            draft.reasoning(thought);
            break;
        }
    }
    for block in content::blocks(message.get("content"), draft) {
        match block {
            ContentBlock::Text { text } => draft.text(&text),
            ContentBlock::Image { .. }
            | ContentBlock::Audio { .. }
            | ContentBlock::Resource { .. }
            | ContentBlock::ResourceLink { .. } => {
                draft.leave_out("an image or file in an answer (shown as text)");
                draft.text(&block.as_text());
            }
        }
    }
    if let Some(refusal) = text(message, "refusal") {
        draft.say(AssistantBlock::Refusal { text: refusal.to_owned() });
    }
    for call in list(message, "tool_calls") {
        let function = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
        draft.call(text(call, "id"), text(function, "name").unwrap_or("unknown"), arguments(function));
    }
    if let Some(function) = message.get("function_call").filter(|call| call.is_object()) {
        draft.call(None, text(function, "name").unwrap_or("unknown"), arguments(function));
    }
    if message.get("audio").is_some_and(Value::is_object) {
        draft.leave_out("the sound of an answer");
    }
}

/// The arguments as the model wrote them.
fn arguments(function: &Value) -> String {
    match function.get("arguments").or_else(|| function.get("input")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Whether a result is marked as one that failed; the mark is taken off. What only reads like an error is none.
fn take_failed(content: &mut [ContentBlock]) -> bool {
    let Some(ContentBlock::Text { text }) = content.first_mut() else { return false };
    let Some((rest, failed)) = outcome_mark::taken_off(text) else { return false };
    *text = rest.to_owned();
    failed
}

/// Puts images back into the results that they belong to, where the message is the one that our own export puts behind
/// them; else the message as it is.
fn results_images(said: Vec<ContentBlock>, draft: &mut Draft) -> Option<Vec<ContentBlock>> {
    let of = |block: &ContentBlock| match block {
        ContentBlock::Text { text } => text.strip_prefix(IMAGES).and_then(|rest| rest.strip_suffix(':')).map(str::to_owned),
        ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => None,
    };
    let mut id = said.first().and_then(of);
    let is_ours = id.is_some()
        && said.iter().all(|block| match of(block) {
            Some(id) => draft.result_of(&id).is_some(),
            None => !matches!(block, ContentBlock::Text { .. }),
        });
    if !is_ours {
        return Some(said);
    }
    for block in said {
        match of(&block) {
            Some(next) => id = Some(next),
            None => {
                if let Some(given) = id.as_deref().and_then(|id| draft.result_of(id)) {
                    put_back(block, &mut given.content);
                }
            }
        }
    }
    None
}

/// Puts a block into the place that its stand-in has in a text, else at the end.
fn put_back(block: ContentBlock, content: &mut Vec<ContentBlock>) {
    let mark = block.as_text().into_owned();
    let found = content.iter().zip(0_usize..).find_map(|(there, at)| {
        let ContentBlock::Text { text } = there else { return None };
        let lines: Vec<&str> = text.split('\n').collect();
        let line = lines.iter().position(|line| *line == mark)?;
        let (before, after) = lines.split_at_checked(line)?;
        Some((at, before.join("\n"), after.get(1..).unwrap_or_default().join("\n")))
    });
    let Some((at, before, after)) = found else {
        content.push(block);
        return;
    };
    let text = |text: String| (!text.is_empty()).then(|| ContentBlock::text(text));
    content.splice(at..=at, text(before).into_iter().chain([block]).chain(text(after)));
}
