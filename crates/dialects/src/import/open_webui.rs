//! Open WebUI's chat export: a tree of messages under `chat.history`. What an answer called is in its `output` items, or in
//! `<details>` elements of its text.

use serde_json::Value;
use turnwright_core::ContentBlock;

use super::details::{self, Piece};
use super::draft::{Draft, Given};
use super::tree::{self, Node};
use super::{citations, content, kept, list, text, time};

/// The chat inside of a record, where this is the form.
pub(super) fn chat(value: &Value) -> Option<&Value> {
    let is_chat = |chat: &Value| chat.get("history").and_then(|history| history.get("messages")).is_some_and(Value::is_object);
    value.get("chat").filter(|chat| is_chat(chat)).or_else(|| Some(value).filter(|chat| is_chat(chat)))
}

pub(super) fn read(record: &Value, chat: &Value) -> Draft {
    let mut draft = Draft::new("open-webui");
    draft.id = text(record, "id").or(text(chat, "id")).map(str::to_owned);
    draft.title = text(record, "title").or(text(chat, "title")).map(str::to_owned);
    draft.created_at_ms = time::milliseconds(record.get("created_at")).or_else(|| time::milliseconds(chat.get("timestamp")));
    draft.model = list(chat, "models").iter().find_map(Value::as_str).map(str::to_owned);
    kept::read(record, &mut draft);
    let parameters = chat.get("params").unwrap_or(&Value::Null);
    if let Some(system) = text(parameters, "system").or(text(chat, "system")) {
        draft.system(system);
    }
    let history = chat.get("history").unwrap_or(&Value::Null);
    let messages = history.get("messages").and_then(Value::as_object).into_iter().flatten();
    let nodes: Vec<Node<'_>> = messages
        .map(|(id, message)| Node {
            id: Some(id),
            parent: text(message, "parentId"),
            at_ms: time::milliseconds(message.get("timestamp")),
            message,
        })
        .collect();
    let path = tree::branch(&nodes, text(history, "currentId"), "childrenIds", &mut draft);
    draft.leave_out_many("a message of another branch", nodes.len().saturating_sub(path.len()));
    for message in path {
        self::message(message, &mut draft);
    }
    draft
}

fn message(message: &Value, draft: &mut Draft) {
    let at_ms = time::milliseconds(message.get("timestamp"));
    match message.get("role").and_then(Value::as_str).unwrap_or_default() {
        "system" => draft.system(text(message, "content").unwrap_or_default()),
        "user" => {
            let mut said = content::blocks(message.get("content"), draft);
            said.retain(|block| !matches!(block, ContentBlock::Text { text } if text.is_empty()));
            for file in list(message, "files") {
                said.push(self::file(file, draft));
            }
            draft.user(said, at_ms);
        }
        "assistant" => {
            draft.answer(text(message, "model"), at_ms);
            let items = list(message, "output");
            match message.get("content") {
                _ if !items.is_empty() => items.iter().for_each(|item| self::item(item, at_ms, draft)),
                Some(Value::String(text)) => details::pieces(text).for_each(|piece| self::piece(piece, at_ms, draft)),
                other => content::blocks(other, draft).iter().for_each(|block| draft.text(&block.as_text())),
            }
            for file in list(message, "files") {
                draft.leave_out("an image or file in an answer (shown as text)");
                draft.text(&format!("[file {}]", text(file, "name").or(text(file, "type")).unwrap_or("without a name")));
            }
            sources(list(message, "sources"), draft);
            if let Some(error) = message.get("error").filter(|error| !matches!(error, Value::Null | Value::Bool(false))) {
                draft.leave_out("an error in an answer (shown as text)");
                draft.text(text(error, "content").or(error.as_str()).unwrap_or("(error)"));
            }
        }
        other => draft.leave_out(&format!("a message of role `{other}`")),
    }
}

/// What an answer had been shown: named behind it.
fn sources(sources: &[Value], draft: &mut Draft) {
    let name = |source: &Value| {
        let of = source.get("source").unwrap_or(source);
        let name = text(of, "name").or(text(of, "url")).unwrap_or("without a name");
        citations::links(text(of, "url").into_iter().map(|url| (Some(name), url))).unwrap_or_else(|| format!("({name})"))
    };
    let names: Vec<String> = sources.iter().map(name).collect();
    if !names.is_empty() {
        draft.text(&format!("\n\nSources: {}", names.join(" ")));
    }
    let documents = sources.iter().map(|source| list(source, "document").len()).sum();
    draft.leave_out_many("a text that an answer had been shown (its source is named)", documents);
}

fn file(file: &Value, draft: &mut Draft) -> ContentBlock {
    let inner = file.get("file").unwrap_or(file);
    let name = text(file, "name").or(text(inner, "filename")).unwrap_or("file");
    let words = inner.get("data").and_then(|data| text(data, "content"));
    match words {
        Some(words) => content::file(name, words),
        None => content::at_address(text(file, "url").unwrap_or(name), name, draft),
    }
}

/// An item of an answer, in the form of OpenAI's Responses.
fn item(item: &Value, at_ms: Option<u64>, draft: &mut Draft) {
    match item.get("type").and_then(Value::as_str).unwrap_or_default() {
        "message" => {
            for block in content::blocks(item.get("content"), draft) {
                draft.text(&block.as_text());
            }
        }
        "reasoning" => {
            let parts = [list(item, "content"), list(item, "summary")].concat();
            let words: Vec<&str> = parts.iter().filter_map(|part| text(part, "text")).collect();
            draft.reasoning(&words.join("\n"));
        }
        "function_call" => {
            let arguments = match item.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            draft.call(text(item, "call_id"), text(item, "name").unwrap_or("unknown"), arguments);
        }
        "function_call_output" => {
            let content = content::blocks(item.get("output"), draft);
            let failed = text(item, "status") == Some("failed");
            draft.result(text(item, "call_id"), None, Given { content, failed, at_ms });
        }
        other => draft.leave_out(&format!("an item of type `{other}`")),
    }
}

fn piece(piece: Piece, at_ms: Option<u64>, draft: &mut Draft) {
    match piece {
        Piece::Text(text) => draft.text(&text),
        Piece::Reasoning(text) => draft.reasoning(&text),
        Piece::Call { id, name, arguments, result } => {
            draft.call(id.as_deref(), &name, arguments);
            if let Some(result) = result {
                let given = Given { content: vec![ContentBlock::text(result)], failed: false, at_ms };
                draft.result(id.as_deref(), Some(&name), given);
            }
        }
    }
}
