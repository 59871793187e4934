//! What calls ask of people.

use serde_json::{Value, json};
use turnwright_core::{CallId, ElicitationId};
use turnwright_engine::Event;

use super::UiFold;

/// A question, as the client knows it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    id: ElicitationId,
    call: CallId,
    /// Whether the call holds its connection for it.
    holds_connection: bool,
    data: Value,
}

impl Asked {
    /// The question that an event asks; `None` for other events.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let Event::ElicitationRequested {
            question_id,
            call_id,
            server,
            mode,
            message,
            requested_schema,
            url,
            sampling,
            holds_connection,
            expires_at_ms: _,
        } = event
        else {
            return None;
        };
        let mut data = json!({
            "id": question_id, "server": server, "mode": mode, "message": message, "callId": call_id,
            "holdsConnection": holds_connection, "state": "open",
        });
        if let Some(schema) = requested_schema {
            set(&mut data, "requestedSchema", schema.clone());
        }
        if let Some(url) = url {
            set(&mut data, "url", Value::from(url.as_str()));
        }
        if let Some(Ok(sampling)) = sampling.as_ref().map(serde_json::to_value) {
            set(&mut data, "sampling", sampling);
        }
        Some(Self { id: *question_id, call: *call_id, holds_connection: *holds_connection, data })
    }
}

fn set(data: &mut Value, key: &str, value: Value) {
    if let Value::Object(data) = data {
        data.insert(key.to_owned(), value);
    }
}

impl UiFold {
    /// A call asks.
    pub(super) fn elicitation(&mut self, asked: Option<Asked>, out: &mut Vec<u8>) {
        let Some(asked) = asked else { return };
        self.chunks.elicitation(out, asked.id, &asked.data);
        self.asked.push(asked);
    }

    /// It has its answer.
    pub(super) fn elicitation_over(&mut self, id: ElicitationId, action: &str, by: &str, out: &mut Vec<u8>) {
        let Some(at) = self.asked.iter().position(|asked| asked.id == id) else { return };
        let mut asked = self.asked.swap_remove(at);
        set(&mut asked.data, "state", Value::from(if by == "deadline" { "expired" } else { "answered" }));
        set(&mut asked.data, "action", Value::from(action));
        self.chunks.elicitation(out, asked.id, &asked.data);
    }

    /// The call is over: what it asked and nobody answered is closed.
    pub(super) fn elicitations_closed(&mut self, call: CallId, out: &mut Vec<u8>) {
        self.close_elicitations(|asked| asked.call == call, out);
    }

    /// Another process drives: what was asked over connections of the one before is closed with them.
    pub(super) fn elicitations_lost(&mut self, out: &mut Vec<u8>) {
        self.close_elicitations(|asked| asked.holds_connection, out);
    }

    fn close_elicitations(&mut self, is_closed: impl Fn(&Asked) -> bool, out: &mut Vec<u8>) {
        let (closed, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.asked).into_iter().partition(is_closed);
        self.asked = open;
        for mut asked in closed {
            set(&mut asked.data, "state", Value::from("expired"));
            self.chunks.elicitation(out, asked.id, &asked.data);
        }
    }
}
