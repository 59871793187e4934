//! Claude's export (`conversations.json` of claude.ai): `chat_messages`, each with `content` blocks in the form of Anthropic's
//! API, the results of calls in the answer that made them.

use serde_json::Value;
use turnwright_core::ContentBlock;

use super::draft::{Draft, Given};
use super::tree::{self, Node};
use super::{citations, content, list, text, time};

pub(super) fn read(conversation: &Value, messages: &[Value]) -> Draft {
    let mut draft = Draft::new("claude");
    draft.id = text(conversation, "uuid").map(str::to_owned);
    draft.title = text(conversation, "name").map(str::to_owned);
    draft.created_at_ms = time::milliseconds(conversation.get("created_at"));
    draft.model = text(conversation, "model").map(str::to_owned);
    let nodes = messages.iter().map(|message| Node {
        id: text(message, "uuid"),
        parent: text(message, "parent_message_uuid"),
        at_ms: time::milliseconds(message.get("created_at")),
        message,
    });
    let leaf = text(conversation, "current_leaf_message_uuid");
    let path = tree::branch(&nodes.collect::<Vec<_>>(), leaf, "children", &mut draft);
    draft.leave_out_many("a message of another branch", messages.len().saturating_sub(path.len()));
    for message in path {
        let at_ms = time::milliseconds(message.get("created_at"));
        match text(message, "sender").or(text(message, "role")).unwrap_or_default() {
            "human" | "user" => {
                let said = said(message, &mut draft);
                draft.user(said, at_ms);
            }
            "assistant" => {
                draft.answer(text(message, "model"), at_ms);
                assistant(message, at_ms, &mut draft);
            }
            other => draft.leave_out(&format!("a message of sender `{other}`")),
        }
    }
    draft
}

fn said(message: &Value, draft: &mut Draft) -> Vec<ContentBlock> {
    let mut said = match list(message, "content") {
        [] => text(message, "text").map(ContentBlock::text).into_iter().collect(),
        _ => content::blocks(message.get("content"), draft),
    };
    for attachment in list(message, "attachments") {
        let name = text(attachment, "file_name").unwrap_or("attachment");
        said.push(match text(attachment, "extracted_content") {
            Some(text) => content::file(name, text),
            None => content::pointer(name, name, draft),
        });
    }
    for file in list(message, "files") {
        let name = text(file, "file_name").unwrap_or("file");
        said.push(content::pointer(text(file, "file_uuid").unwrap_or(name), name, draft));
    }
    said
}

fn assistant(message: &Value, at_ms: Option<u64>, draft: &mut Draft) {
    let blocks = list(message, "content");
    if let ([], Some(text)) = (blocks, text(message, "text")) {
        draft.text(text);
    }
    for block in blocks {
        match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => {
                let said = block.get("text").and_then(Value::as_str).unwrap_or_default();
                draft.text(&citations::with_addresses(said, list(block, "citations")));
            }
            "thinking" => draft.reasoning(block.get("thinking").and_then(Value::as_str).unwrap_or_default()),
            "tool_use" => {
                let arguments = block.get("input").filter(|input| !input.is_null()).map(Value::to_string);
                draft.call(text(block, "id"), text(block, "name").unwrap_or("unknown"), arguments.unwrap_or_default());
            }
            "tool_result" => {
                let content = content::blocks(block.get("content"), draft);
                let failed = block.get("is_error") == Some(&Value::Bool(true));
                draft.result(text(block, "tool_use_id"), text(block, "name"), Given { content, failed, at_ms });
            }
            // How much the model may still write: nothing that was said.
            "token_budget" | "flag" => {}
            other => draft.leave_out(&format!("a block of type `{other}`")),
        }
    }
    for file in list(message, "files").iter().chain(list(message, "attachments")) {
        draft.leave_out("an image or file in an answer (shown as text)");
        draft.text(&format!("[file {}]", text(file, "file_name").unwrap_or("without a name")));
    }
}
