//! ChatGPT's export (`conversations.json`): each conversation a tree of nodes under `mapping`, the newest message of the
//! branch that was shown last under `current_node`.

use serde_json::{Map, Value};
use turnwright_core::ContentBlock;

use super::draft::{Draft, Given};
use super::tree::{self, Node};
use super::{citations, content, kept, list, text, time};

pub(super) fn read(conversation: &Value) -> Draft {
    let mut draft = Draft::new("chatgpt");
    draft.id = text(conversation, "conversation_id").or(text(conversation, "id")).map(str::to_owned);
    draft.title = text(conversation, "title").map(str::to_owned);
    draft.created_at_ms = time::milliseconds(conversation.get("create_time"));
    draft.model = text(conversation, "default_model_slug").map(str::to_owned);
    kept::read(conversation, &mut draft);
    let mapping = conversation.get("mapping").and_then(Value::as_object).into_iter().flatten();
    let nodes: Vec<Node<'_>> = mapping
        .map(|(id, node)| Node {
            id: Some(id),
            parent: text(node, "parent"),
            at_ms: time::milliseconds(node.get("message").and_then(|message| message.get("create_time"))),
            message: node,
        })
        .collect();
    let path = tree::branch(&nodes, text(conversation, "current_node"), "children", &mut draft);
    let said = |node: &&Value| node.get("message").is_some_and(Value::is_object);
    let others = nodes.iter().map(|node| node.message).filter(said).count();
    let others = others.saturating_sub(path.iter().copied().filter(said).count());
    draft.leave_out_many("a message of another branch", others);
    for message in path.into_iter().filter_map(|node| node.get("message")).filter(|message| message.is_object()) {
        self::message(message, &mut draft);
    }
    draft
}

fn message(message: &Value, draft: &mut Draft) {
    let at_ms = time::milliseconds(message.get("create_time"));
    let author = message.get("author").unwrap_or(&Value::Null);
    let metadata = message.get("metadata").unwrap_or(&Value::Null);
    let body = message.get("content").unwrap_or(&Value::Null);
    let kind = text(body, "content_type").unwrap_or("text");
    let role = text(author, "role").unwrap_or_default();
    let is_hidden = metadata.get("is_visually_hidden_from_conversation") == Some(&Value::Bool(true));
    match (role, kind) {
        (_, "user_editable_context") => {
            for name in ["user_profile", "user_instructions"] {
                if let Some(said) = text(body, name) {
                    draft.system(said);
                }
            }
        }
        (_, "model_editable_context") => {
            if text(body, "model_set_context").is_some() {
                draft.leave_out("what the model was told of its memory");
            }
        }
        (_, "reasoning_recap") => draft.leave_out("how long the model thought"),
        ("system", _) => {
            let said = said(body, draft);
            draft.system(&turnwright_core::text_of(&said));
        }
        ("user", _) => {
            let mut said = said(body, draft);
            for file in list(metadata, "attachments") {
                // Images among them are parts of the message too.
                if !text(file, "mime_type").is_some_and(|mime_type| mime_type.starts_with("image/")) {
                    let name = text(file, "name").unwrap_or("file");
                    said.push(content::pointer(text(file, "id").unwrap_or(name), name, draft));
                }
            }
            draft.user(said, at_ms);
        }
        ("assistant", _) => assistant(message, body, kind, at_ms, draft),
        ("tool", _) => tool(text(author, "name").unwrap_or("tool"), body, kind, at_ms, draft),
        (other, _) => draft.leave_out(&format!("a message of role `{other}`")),
    }
    if is_hidden && role == "user" && kind != "user_editable_context" {
        draft.leave_out("a message that was hidden there (it is shown here)");
    }
}

fn assistant(message: &Value, body: &Value, kind: &str, at_ms: Option<u64>, draft: &mut Draft) {
    let metadata = message.get("metadata").unwrap_or(&Value::Null);
    draft.go_on(text(metadata, "model_slug"), at_ms);
    let recipient = text(message, "recipient").unwrap_or("all");
    if kind == "thoughts" {
        for thought in list(body, "thoughts") {
            let parts = [text(thought, "summary"), text(thought, "content")];
            draft.reasoning(&parts.into_iter().flatten().collect::<Vec<_>>().join("\n"));
        }
        return;
    }
    if recipient != "all" {
        let written = match text(body, "text") {
            Some(text) => text.to_owned(),
            None => turnwright_core::text_of(&said(body, draft)),
        };
        draft.call(None, recipient, arguments(&written, kind));
        return;
    }
    if kind == "code" {
        let language = text(body, "language").filter(|language| *language != "unknown").unwrap_or_default();
        draft.text(&format!("```{language}\n{}\n```", text(body, "text").unwrap_or_default()));
        return;
    }
    for block in said(body, draft) {
        let text = citations::in_words(&block.as_text(), list(metadata, "content_references"), draft);
        draft.text(&text);
    }
}

/// What was sent to a tool as an object: it may be a program.
fn arguments(written: &str, kind: &str) -> String {
    if serde_json::from_str::<Map<String, Value>>(written).is_ok() {
        return written.to_owned();
    }
    let name = if kind == "code" { "code" } else { "input" };
    let mut object = Map::new();
    object.insert(name.to_owned(), Value::from(written));
    Value::Object(object).to_string()
}

fn tool(name: &str, body: &Value, kind: &str, at_ms: Option<u64>, draft: &mut Draft) {
    let content = said(body, draft);
    let failed = kind == "system_error";
    // Some tools answer a call with several messages.
    if let Some(given) = draft.newest_result(name) {
        given.content.extend(content);
        given.failed |= failed;
        return;
    }
    draft.result(None, Some(name), Given { content, failed, at_ms });
}

/// The content of a message.
fn said(body: &Value, draft: &mut Draft) -> Vec<ContentBlock> {
    let parts = list(body, "parts");
    if !parts.is_empty() {
        return parts.iter().filter_map(|part| self::part(part, draft)).collect();
    }
    if let Some(said) = text(body, "text") {
        return vec![ContentBlock::text(said)];
    }
    // What a page gave, and what a program did.
    if let Some(given) = text(body, "result").or(text(body, "output_str")) {
        return vec![ContentBlock::text(given)];
    }
    if ["parts", "text", "result", "output_str"].iter().all(|name| body.get(name).is_none()) && body.is_object() {
        draft.leave_out(&format!("content of type `{}`", text(body, "content_type").unwrap_or("unknown")));
    }
    Vec::new()
}

fn part(part: &Value, draft: &mut Draft) -> Option<ContentBlock> {
    if let Some(said) = part.as_str() {
        return (!said.is_empty()).then(|| ContentBlock::text(said));
    }
    match text(part, "content_type").unwrap_or("part") {
        "audio_transcription" => text(part, "text").map(ContentBlock::text),
        "image_asset_pointer" => Some(content::at_address(text(part, "asset_pointer").unwrap_or("image"), "image", draft)),
        "audio_asset_pointer" | "real_time_user_audio_video_asset_pointer" | "video_container_asset_pointer" => {
            let audio = part.get("audio_asset_pointer").unwrap_or(part);
            Some(content::pointer(text(audio, "asset_pointer").unwrap_or("audio"), "audio", draft))
        }
        other => {
            let said = text(part, "text").map(ContentBlock::text);
            if said.is_none() {
                draft.leave_out(&format!("a part of type `{other}`"));
            }
            said
        }
    }
}
