//! LibreChat's export: messages that name their parents in a flat list, or a tree of `children` (`recursive`).

use serde_json::Value;
use turnwright_core::ContentBlock;

use super::draft::{Draft, Given};
use super::tree::{self, Node};
use super::{content, kept, list, text, time};

/// The messages, where this is the form.
pub(super) fn messages(value: &Value) -> Option<&[Value]> {
    let list = value.get("messagesTree").or_else(|| value.get("messages"))?.as_array()?;
    let is_one = |message: &Value| message.get("messageId").is_some() || message.get("isCreatedByUser").is_some();
    list.first().is_some_and(is_one).then_some(list)
}

pub(super) fn read(conversation: &Value, messages: &[Value]) -> Draft {
    let mut draft = Draft::new("librechat");
    let options = conversation.get("options").unwrap_or(conversation);
    draft.id = text(conversation, "conversationId").map(str::to_owned);
    draft.title = text(conversation, "title").map(str::to_owned);
    draft.model = text(options, "model").map(str::to_owned);
    draft.created_at_ms = time::milliseconds(conversation.get("createdAt"));
    kept::read(conversation, &mut draft);
    for name in ["promptPrefix", "system", "instructions"] {
        if let Some(system) = text(options, name) {
            draft.system(system);
        }
    }
    let mut all = Vec::new();
    flatten(messages, None, &mut all);
    // Nothing says which branch was shown: the one with the newest message.
    let path = tree::branch(&all, None, "children", &mut draft);
    draft.leave_out_many("a message of another branch", all.len().saturating_sub(path.len()));
    for message in path {
        self::message(message, &mut draft);
    }
    draft
}

/// All messages. In a tree the parent may be said by the nesting alone.
fn flatten<'a>(messages: &'a [Value], parent: Option<&'a str>, all: &mut Vec<Node<'a>>) {
    for message in messages {
        let id = text(message, "messageId");
        let parent = text(message, "parentMessageId").or(parent);
        all.push(Node { id, parent, at_ms: time::milliseconds(message.get("createdAt")), message });
        flatten(list(message, "children"), id, all);
    }
}

fn message(message: &Value, draft: &mut Draft) {
    let at_ms = time::milliseconds(message.get("createdAt"));
    let is_user = message.get("isCreatedByUser").and_then(Value::as_bool);
    if is_user.unwrap_or_else(|| text(message, "sender").is_some_and(|sender| sender.eq_ignore_ascii_case("user"))) {
        let mut said: Vec<ContentBlock> = match text(message, "text") {
            Some(text) => vec![ContentBlock::text(text)],
            None => content::blocks(message.get("content"), draft),
        };
        for file in list(message, "files") {
            let name = text(file, "filename").unwrap_or("file");
            said.push(content::at_address(text(file, "filepath").unwrap_or(name), name, draft));
        }
        draft.user(said, at_ms);
        return;
    }
    draft.answer(text(message, "model"), at_ms);
    match list(message, "content") {
        [] => draft.text(text(message, "text").unwrap_or_default()),
        parts => parts.iter().for_each(|part| self::part(part, at_ms, draft)),
    }
}

fn part(part: &Value, at_ms: Option<u64>, draft: &mut Draft) {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let inner = part.get(kind).unwrap_or(&Value::Null);
    // A text is said plainly, or as a `value` with annotations.
    let words = inner.as_str().or_else(|| inner.get("value")?.as_str()).unwrap_or_default();
    match kind {
        "text" => draft.text(words),
        "think" => draft.reasoning(words),
        "tool_call" => {
            let function = inner.get("function").unwrap_or(inner);
            let arguments = match function.get("args").or_else(|| function.get("arguments")) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            let (id, name) = (text(inner, "id"), text(function, "name").unwrap_or("unknown"));
            draft.call(id, name, arguments);
            if let Some(output) = function.get("output").filter(|output| !output.is_null()) {
                let content = content::blocks(Some(output), draft);
                draft.result(id, Some(name), Given { content, failed: false, at_ms });
            }
        }
        "error" => {
            draft.leave_out("an error in an answer (shown as text)");
            draft.text(words);
        }
        "image_file" | "image_url" => {
            let address = inner.get("filepath").or_else(|| inner.get("url")).and_then(Value::as_str).unwrap_or("image");
            draft.leave_out("an image or file in an answer (shown as text)");
            let shown: String = address.chars().take(200).collect();
            draft.text(&format!("[image {shown}]"));
        }
        other => draft.leave_out(&format!("a part of type `{other}`")),
    }
}
