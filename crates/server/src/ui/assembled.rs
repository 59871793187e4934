//! What a client of the UI message stream puts together of its chunks. Pure, and as `processUIMessageStream` of the package
//! `ai` does it, so that a history begins with what the stream left.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

type Part = Map<String, Value>;

/// A message of a model's.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Assembled {
    pub(crate) id: String,
    pub(crate) metadata: Option<Value>,
    pub(crate) parts: Vec<Part>,
}

/// The messages that these chunks told, each of which begins with a `start`.
pub(crate) fn assembled(chunks: &[Box<RawValue>]) -> Vec<Assembled> {
    let mut assembling = Assembling::default();
    chunks.iter().filter_map(|chunk| serde_json::from_str(chunk.get()).ok()).for_each(|chunk| assembling.take(chunk));
    assembling.done.push(assembling.open);
    assembling.done
}

#[derive(Debug, Default)]
struct Assembling {
    done: Vec<Assembled>,
    open: Assembled,
    /// The places of texts that come in, by their names.
    texts: HashMap<String, usize>,
    /// What came of the arguments of calls.
    inputs: HashMap<String, String>,
}

impl Assembling {
    fn take(&mut self, mut chunk: Part) {
        let kind = text(&chunk, "type").to_owned();
        match kind.as_str() {
            "start" => self.start(&mut chunk),
            "text-start" => self.begin_text(&chunk, json!({"type": "text", "text": "", "state": "streaming"})),
            "reasoning-start" => {
                let id = text(&chunk, "id").to_owned();
                self.begin_text(&chunk, json!({"type": "reasoning", "id": id, "text": "", "state": "streaming"}));
            }
            "text-delta" | "reasoning-delta" => {
                if let Some(Value::String(text)) = self.text_part(&chunk).and_then(|part| part.get_mut("text")) {
                    text.push_str(self::text(&chunk, "delta"));
                }
            }
            "text-end" | "reasoning-end" => set(self.text_part(&chunk), "state", "done".into()),
            "tool-input-start" => self.input(&mut chunk, "input-streaming"),
            "tool-input-delta" => self.more_input(&chunk),
            "tool-input-available" => self.input(&mut chunk, "input-available"),
            "tool-input-error" => self.input(&mut chunk, "output-error"),
            "tool-approval-request" => self.asked(&mut chunk),
            "tool-approval-response" => self.decided(&mut chunk),
            "tool-output-denied" => {
                if let Some(part) = self.call(text(&chunk, "toolCallId")) {
                    part.insert("state".to_owned(), "output-denied".into());
                    settle(part);
                }
            }
            "tool-output-available" => self.output(&mut chunk, "output-available"),
            "tool-output-error" => self.output(&mut chunk, "output-error"),
            "file" => {
                chunk.retain(|name, _| matches!(name.as_str(), "type" | "mediaType" | "url"));
                self.open.parts.push(chunk);
            }
            "start-step" => self.push(json!({"type": "step-start"})),
            "reset-step" => {
                let begin = self.open.parts.iter().rposition(|part| text(part, "type") == "step-start");
                self.open.parts.truncate(begin.map_or(0, |begin| begin.saturating_add(1)));
                self.texts.clear();
                self.inputs.clear();
            }
            _ if kind.starts_with("data-") && chunk.get("transient") != Some(&Value::Bool(true)) => self.data(chunk),
            _ => {}
        }
    }

    /// Begins a message; the first has begun.
    fn start(&mut self, chunk: &mut Part) {
        let next =
            Assembled { id: text(chunk, "messageId").to_owned(), metadata: chunk.remove("messageMetadata"), parts: Vec::new() };
        let before = std::mem::replace(&mut self.open, next);
        self.done.extend(Some(before).filter(|before| !before.id.is_empty()));
        self.texts.clear();
    }

    fn push(&mut self, part: Value) {
        if let Value::Object(part) = part {
            self.open.parts.push(part);
        }
    }

    fn begin_text(&mut self, chunk: &Part, part: Value) {
        self.texts.insert(text(chunk, "id").to_owned(), self.open.parts.len());
        self.push(part);
    }

    fn text_part(&mut self, chunk: &Part) -> Option<&mut Part> {
        self.texts.get(text(chunk, "id")).and_then(|at| self.open.parts.get_mut(*at))
    }

    /// The part of a call.
    fn call(&mut self, id: &str) -> Option<&mut Part> {
        self.parts().find(|part| text(part, "toolCallId") == id)
    }

    /// All parts, the newest first.
    fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        let all = self.done.iter_mut().chain(std::iter::once(&mut self.open));
        all.rev().flat_map(|message| message.parts.iter_mut().rev())
    }

    fn input(&mut self, chunk: &mut Part, state: &str) {
        let id = text(chunk, "toolCallId").to_owned();
        if self.call(&id).is_none() {
            self.push(json!({"type": "dynamic-tool", "toolCallId": id}));
        }
        let Some(part) = self.call(&id) else { return };
        for old in ["input", "output", "errorText", "rawInput"] {
            part.remove(old);
        }
        part.insert("state".to_owned(), state.into());
        take_over(part, chunk, &["toolName", "input", "errorText", "title", "toolMetadata"]);
    }

    fn more_input(&mut self, chunk: &Part) {
        let id = text(chunk, "toolCallId");
        let whole = self.inputs.entry(id.to_owned()).or_default();
        whole.push_str(text(chunk, "inputTextDelta"));
        let whole = whole.clone();
        if let Some(part) = self.call(id) {
            if let Ok(input) = serde_json::from_str(&whole) {
                part.insert("input".to_owned(), input);
            }
            part.insert("rawInput".to_owned(), whole.into());
        }
    }

    fn asked(&mut self, chunk: &mut Part) {
        let mut approval = Part::new();
        for (of, to) in [("approvalId", "id"), ("reason", "requestReason"), ("isAutomatic", "isAutomatic")] {
            approval.extend(chunk.remove(of).map(|value| (to.to_owned(), value)));
        }
        if let Some(part) = self.call(text(chunk, "toolCallId")) {
            part.insert("state".to_owned(), "approval-requested".into());
            part.insert("approval".to_owned(), Value::Object(approval));
        }
    }

    fn decided(&mut self, chunk: &mut Part) {
        let id = chunk.get("approvalId");
        let is_asked = |part: &&mut Part| part.get("approval").is_some_and(|approval| approval.get("id") == id);
        let Some(part) = self.parts().find(is_asked) else { return };
        part.insert("state".to_owned(), "approval-responded".into());
        if let Some(Value::Object(approval)) = part.get_mut("approval") {
            take_over(approval, chunk, &["approved", "reason"]);
        }
    }

    fn output(&mut self, chunk: &mut Part, state: &str) {
        let Some(part) = self.call(text(chunk, "toolCallId")) else { return };
        for old in ["output", "errorText", "rawInput"] {
            part.remove(old);
        }
        part.insert("state".to_owned(), state.into());
        take_over(part, chunk, &["output", "errorText", "toolMetadata"]);
        settle(part);
    }

    fn data(&mut self, mut chunk: Part) {
        let is_same =
            |part: &&mut Part| chunk.contains_key("id") && ["type", "id"].iter().all(|key| part.get(*key) == chunk.get(*key));
        match self.open.parts.iter_mut().find(is_same) {
            Some(part) => take_over(part, &mut chunk, &["data"]),
            None => self.open.parts.push(chunk),
        }
    }
}

fn text<'a>(part: &'a Part, key: &str) -> &'a str {
    part.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn set(part: Option<&mut Part>, key: &str, value: Value) {
    if let Some(part) = part {
        part.insert(key.to_owned(), value);
    }
}

/// Says how an approval was answered where the chunks do not, as those for version 6 and older: what a call came to says it. Where that
/// may be either, nothing is said of the approval: such a part is refused by the package itself.
fn settle(part: &mut Part) {
    let approved = match text(part, "state") {
        "output-available" => Some(true),
        "output-denied" => Some(false),
        _ => None,
    };
    let Some(Value::Object(approval)) = part.get_mut("approval") else { return };
    match approved {
        _ if approval.contains_key("approved") => {}
        Some(approved) => drop(approval.insert("approved".to_owned(), approved.into())),
        None => drop(part.remove("approval")),
    }
}

/// Moves these into a part, as far as they are there.
fn take_over(part: &mut Part, from: &mut Part, keys: &[&str]) {
    for key in keys {
        part.extend(from.remove(*key).map(|value| ((*key).to_owned(), value)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn what_a_call_came_to_says_how_its_approval_was_answered_where_nothing_else_does() {
        let ends = [
            (json!({"type": "tool-output-available", "output": 1}), json!({"id": "a", "approved": true})),
            (json!({"type": "tool-output-denied"}), json!({"id": "a", "approved": false})),
            (json!({"type": "tool-output-error", "errorText": "no"}), Value::Null),
        ];
        for (mut end, expected) in ends {
            end["toolCallId"] = json!("call");
            let chunks = [
                json!({"type": "start", "messageId": "turn_1"}),
                json!({"type": "tool-input-available", "toolCallId": "call", "toolName": "t", "input": {}}),
                json!({"type": "tool-approval-request", "toolCallId": "call", "approvalId": "a"}),
                end.clone(),
            ];
            let chunks = chunks.map(|chunk| to_raw_value(&chunk).unwrap());
            let messages = assembled(&chunks);
            assert_eq!(messages[0].parts[0].get("approval").cloned().unwrap_or_default(), expected, "{end}");
        }
    }

    #[test]
    fn each_start_begins_a_message() {
        let chunks = [
            json!({"type": "start", "messageId": "turn_1", "messageMetadata": {"turnId": "turn_1"}}),
            json!({"type": "start-step"}),
            json!({"type": "start", "messageId": "turn_1_7", "messageMetadata": {"turnId": "turn_1"}}),
            json!({"type": "text-start", "id": "t"}),
            json!({"type": "text-delta", "id": "t", "delta": "Yes."}),
        ];
        let messages = assembled(&chunks.map(|chunk| to_raw_value(&chunk).unwrap()));
        let shown: Vec<Value> = messages.into_iter().map(|said| json!([said.id, said.metadata, said.parts])).collect();
        let known = json!({"turnId": "turn_1"});
        let text = json!({"type": "text", "text": "Yes.", "state": "streaming"});
        assert_eq!(shown, [json!(["turn_1", known, [{"type": "step-start"}]]), json!(["turn_1_7", known, [text]])]);
    }
}
