//! What a response ends with where its turn waits: calls that its client runs, and what people are asked.

use serde_json::{Value, json};
use turnwright_core::QuestionReason;

use super::ResponseFold;
use crate::openai::clients::{self, Takes};
use crate::openai::ids;
use crate::openai::recalled::WAITS_FOR_ANSWER;
use crate::openai::track::Call;
use crate::openai::waiting;

impl ResponseFold {
    /// The turn waits.
    pub(super) fn waits(&mut self, out: &mut Vec<u8>) {
        let handed: Vec<Call> = self.track.handed_over().cloned().collect();
        for call in &handed {
            self.hand_over(call, out);
        }
        let asked: Vec<Call> = self.track.asked_about().cloned().collect();
        let knows_approvals = asked.is_empty() || self.names_servers();
        let has_items = knows_approvals || self.client.takes_questions();
        for call in asked.iter().filter(|_| has_items) {
            if let Some(known) = call.waits.and_then(QuestionReason::to_know) {
                self.note(&format!("{}: {known}", call.name), out);
            }
            let (server, tool) = self.server_and_tool(&call.name);
            let item = json!({"id": ids::request_id(&self.conversation, call.approval()), "type": "mcp_approval_request",
                              "server_label": server, "name": tool, "arguments": call.arguments});
            let index = self.add(item.clone(), out);
            self.done(index, item, out);
        }
        let text = if knows_approvals {
            self.questions()
        } else {
            waiting::text(&self.track, &self.conversation, &self.command_flags)
        };
        if let Some(text) = text {
            self.note(&text, out);
        }
    }

    /// Whether the request names servers of tools: its client knows what is asked about their calls.
    fn names_servers(&self) -> bool {
        self.object.tools.iter().any(|tool| tool.get("type").and_then(Value::as_str) == Some("mcp"))
    }

    /// What calls ask of people, and where they answer: as a message, since the API has no item for it.
    fn questions(&self) -> Option<String> {
        let conversation = &self.conversation;
        let lines: Vec<String> = self.track.questions(conversation).collect();
        (!lines.is_empty()).then(|| {
            format!(
                "{WAITS_FOR_ANSWER}\n{}\nOver HTTP: `GET /api/v1/conversations/{conversation}/calls`. The turn goes on by itself once that is answered; another message here declines it.",
                lines.join("\n")
            )
        })
    }

    /// A call that the client runs, by the name and of the kind that it knows.
    fn hand_over(&mut self, call: &Call, out: &mut Vec<u8>) {
        let definition = self.track.definition(&call.name).cloned();
        let face = definition.as_ref().map(clients::face);
        let name = face.map_or(call.name.as_str(), |face| face.name);
        let takes_text = face.is_some_and(|face| face.takes == Takes::Text);
        let (prefix, kind, field, event) = if takes_text {
            ("ctc", "custom_tool_call", "input", "response.custom_tool_call_input")
        } else {
            ("fc", "function_call", "arguments", "response.function_call_arguments")
        };
        let given = if takes_text { clients::input_of(&call.arguments) } else { call.arguments.clone() };
        let id = self.item_id(prefix);
        let call_id = ids::call_id(&self.conversation, call.id);
        let item = |given: &str, status: &str| {
            let mut item = json!({"id": id, "type": kind, "call_id": call_id, "name": name, field: given, "status": status});
            if let (Some(namespace), Value::Object(item)) = (face.and_then(|face| face.namespace), &mut item) {
                item.insert("namespace".to_owned(), Value::from(namespace));
            }
            item
        };
        let index = self.add(item("", "in_progress"), out);
        let delta = json!({"item_id": id, "output_index": index, "delta": given});
        self.tell(out, &format!("{event}.delta"), &delta);
        let mut done = json!({"item_id": id, "output_index": index, field: given});
        if let (false, Value::Object(done)) = (takes_text, &mut done) {
            done.insert("name".to_owned(), Value::from(name));
        }
        self.tell(out, &format!("{event}.done"), &done);
        self.done(index, item(&given, "completed"), out);
    }
}
