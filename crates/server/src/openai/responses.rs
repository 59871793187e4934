//! From engine events to a response of the Responses API, streamed or whole.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_api::openai::{Extras, OpenAiErrorBody, WireResponse};
use turnwright_core::{AssistantMessage, CallId, Control, ConversationId, Entry, ProviderFailure, ToolDefinition};
use turnwright_engine::Event;

use super::chunk::json as write_json;
use super::error::{body_of, failure_of};
use super::ids;
use super::telling::Tells;
use super::track::{Call, End, Part, STEP_LIMIT, Track};
use crate::sse::Cut;
use crate::stopping::is_stop;
use client::Client;
use event::write_event;
use remembered::Remembered;
use texts::{Close, Kind, at_first_part, item, part, part_event};

pub(crate) mod client;
pub(crate) mod developers;
mod event;
pub(crate) mod kept;
pub(crate) mod object;
pub(crate) mod remembered;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
mod texts;
mod waiting;

/// The numbers of events between two processes that told a part: more than any part has bytes, and so few that the numbers of
/// millions of processes can be told as numbers of JavaScript.
const ANEW: u64 = 1 << 32;
/// The numbers of one process from here on are those of a stream that dropped what it had told of a message. No other stream has them:
/// a message is told later as it is stored, and nothing is dropped then.
const DROPPED: u64 = ANEW / 2;

/// Whether the answer is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As events.
    Streamed,
    /// As one object at the end.
    Whole,
}

/// Tells the part of a turn as one response.
#[derive(Debug)]
pub(crate) struct ResponseFold {
    conversation: ConversationId,
    track: Track,
    form: Form,
    object: WireResponse,
    /// Whether a form was asked for, which the text is to have for a program.
    has_form: bool,
    /// The number of the next event. Each byte of a text has one, so that a text has the same numbers in whatever pieces it
    /// comes: whoever comes back after one is told what follows it, also where the pieces are others then.
    sequence: u64,
    /// The number up to which the client has the stream.
    seen: Option<u64>,
    /// The items in their order, each from the moment that it is added; nothing in the place of one that was dropped.
    output: Vec<Option<Value>>,
    /// How many there were when the message in flight began; nothing where none is, as while calls run.
    in_flight_from: Option<usize>,
    open: Option<Open>,
    /// Calls of ours that run, with their item.
    running: Vec<(CallId, usize)>,
    /// Whether the turn was stopped.
    is_stopping: bool,
    messages: u64,
    is_started: bool,
    /// Where its client says all that there was.
    remembered: Option<Remembered>,
    /// With which the command that decides reaches this data.
    command_flags: String,
    client: Client,
}

/// An item that grows.
#[derive(Debug)]
struct Open {
    kind: Kind,
    /// The model's message and the block in it that it comes from.
    from: (u64, u32),
    index: usize,
    id: String,
    text: String,
}

impl ResponseFold {
    /// `object` is the response as its request chose it.
    pub(crate) fn new(
        conversation: ConversationId,
        part: Part,
        offered: Arc<[Arc<ToolDefinition>]>,
        object: WireResponse,
        form: Form,
    ) -> Self {
        let kind = object.text.pointer("/format/type").and_then(Value::as_str);
        Self {
            conversation,
            track: Track::apart(part, offered),
            form,
            has_form: kind.is_some_and(|kind| kind != "text"),
            object,
            sequence: 0,
            seen: None,
            output: Vec::new(),
            in_flight_from: None,
            open: None,
            running: Vec::new(),
            is_stopping: false,
            messages: 0,
            is_started: false,
            remembered: None,
            command_flags: String::new(),
            client: Client::default(),
        }
    }

    /// The same for this client.
    pub(crate) fn told_to(mut self, client: Client) -> Self {
        self.client = client;
        self
    }

    /// The same with these flags of the command that decides.
    pub(crate) fn decided_with(mut self, flags: &str) -> Self {
        flags.clone_into(&mut self.command_flags);
        self
    }

    /// The same for a client that says all that there was, so that it is known where it says this too.
    pub(crate) fn remembering(mut self, remembered: Option<Remembered>) -> Self {
        self.remembered = remembered;
        self
    }

    /// The same for a client that has the stream up to this number.
    pub(crate) fn starting_after(mut self, seen: u64) -> Self {
        self.seen = Some(seen);
        self
    }

    /// The same where something that was told is hidden by now, and what is left has other numbers: all that the client has counts as
    /// dropped.
    pub(crate) fn hidden_in_part(mut self, is_less: bool) -> Self {
        self.seen = self.seen.map(|seen| if is_less { seen | DROPPED } else { seen });
        self
    }

    /// The response as it is: over, or in progress.
    pub(crate) fn response(&self) -> WireResponse {
        let (status, details) = self.status();
        let error = self.failure().map(|(failure, reason)| {
            let error = failure_of(failure, reason);
            json!({"code": error.code(), "message": error.to_string()})
        });
        // Clients have no other place for what was tried.
        let error = match &self.track.end {
            Some(End::Finished { stop: Some(stop), error: Some(summary), .. }) => {
                error.or_else(|| Some(json!({"code": stop, "message": summary})))
            }
            Some(End::Finished { .. } | End::Suspended) | None => error,
        };
        let is_over = self.track.end.is_some();
        WireResponse {
            created_at: self.track.created,
            completed_at: is_over.then_some(self.track.newest),
            status: status.to_owned(),
            model: self.track.said_by.clone().unwrap_or_else(|| self.object.model.clone()),
            output: self.output.iter().flatten().filter(|item| self.takes(item)).cloned().collect(),
            error,
            incomplete_details: details.map(|reason| json!({"reason": reason})),
            usage: self.track.known_usage().filter(|_| is_over).map(object::usage),
            turnwright: Extras {
                is_stopping: self.is_stopping && !is_over,
                status: self.track.status().map(str::to_owned),
                stop: self.track.stop().map(str::to_owned),
                ..self.object.turnwright.clone()
            },
            ..self.object.clone()
        }
    }

    fn takes(&self, item: &Value) -> bool {
        self.form == Form::Streamed || self.client.takes(item)
    }

    /// The number of its last event, once all were told.
    pub(crate) fn last_number(&self) -> Option<u64> {
        self.track.is_told.then(|| self.sequence.saturating_sub(1))
    }

    /// What went wrong with its turn, where that failed.
    pub(crate) fn failure(&self) -> Option<(Option<&ProviderFailure>, Option<&str>)> {
        match &self.track.end {
            Some(End::Finished { status: "failed", error, .. }) => Some((self.track.failure.as_ref(), error.as_deref())),
            Some(End::Finished { .. } | End::Suspended) | None => None,
        }
    }

    fn status(&self) -> (&'static str, Option<&'static str>) {
        match &self.track.end {
            None => ("in_progress", None),
            Some(End::Suspended) => ("completed", None),
            Some(End::Finished { status: "cancelled", .. }) => ("cancelled", None),
            Some(End::Finished { status: "failed", .. }) => ("failed", None),
            Some(End::Finished { status: "step_limit", .. }) => ("incomplete", Some("max_output_tokens")),
            // Whoever hears of `max_output_tokens` asks again with more of them.
            Some(End::Finished { stop: Some(stop), error: Some(_), .. }) => ("incomplete", Some(stop)),
            Some(End::Finished { .. }) => match self.track.finish_reason {
                "length" => ("incomplete", Some("max_output_tokens")),
                "content_filter" => ("incomplete", Some("content_filter")),
                _ => ("completed", None),
            },
        }
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        if self.is_lost() {
            self.begin_again(self.seen.map_or(0, |seen| seen.saturating_add(1)), out);
            return;
        }
        if self.form == Form::Streamed {
            for kind in ["response.created", "response.in_progress"] {
                let response = self.response();
                self.tell(out, kind, &json!({"response": response}));
            }
        }
    }

    /// An event with these fields.
    fn tell(&mut self, out: &mut Vec<u8>, kind: &str, fields: &Value) {
        if self.form == Form::Whole {
            return;
        }
        let number = self.sequence;
        self.sequence = self.sequence.saturating_add(1);
        if self.seen.is_some_and(|seen| number <= seen) {
            return;
        }
        write_event(out, kind, number, fields);
    }

    /// Adds an item; its place.
    fn add(&mut self, item: Value, out: &mut Vec<u8>) -> usize {
        let index = self.output.len();
        self.tell(out, "response.output_item.added", &json!({"output_index": index, "item": item}));
        self.output.push(Some(item));
        index
    }

    /// The item is as it stays.
    fn done(&mut self, index: usize, item: Value, out: &mut Vec<u8>) {
        self.tell(out, "response.output_item.done", &json!({"output_index": index, "item": item}));
        if let Some(place) = self.output.get_mut(index) {
            *place = Some(item);
        }
    }

    fn item_id(&self, prefix: &str) -> String {
        ids::item_id(prefix, &self.conversation, self.track.part.after, self.output.len())
    }

    /// Whether a text is told once it is whole: what the model says beside its calls has no form, and is told as what it thinks.
    fn holds(&self) -> bool {
        self.has_form && !self.track.offered.is_empty()
    }

    /// A message is whole whose text was held.
    fn said(&mut self, message: &AssistantMessage, out: &mut Vec<u8>) {
        let text = message.text();
        if !text.is_empty() {
            let kind = if message.calls().next().is_some() { Kind::Reasoning } else { Kind::Text };
            self.grow(kind, u32::MAX, &text, out);
        }
    }

    /// More of a text.
    fn grow(&mut self, kind: Kind, block: u32, text: &str, out: &mut Vec<u8>) {
        let from = (self.messages, block);
        if self.open.as_ref().is_none_or(|open| open.kind != kind || open.from != from) {
            self.close(Close::Whole, out);
            self.open(kind, from, out);
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let first = self.sequence;
        self.sequence = self.sequence.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        let known = self.seen.map_or(0, |seen| seen.saturating_add(1).saturating_sub(first));
        // A number within a character is of no event: the client has nothing of that.
        let known = text.floor_char_boundary(usize::try_from(known).unwrap_or(usize::MAX));
        let text = text.get(known..).unwrap_or_default();
        if self.form == Form::Whole || text.is_empty() {
            return;
        }
        let (name, place, rest) = match kind {
            Kind::Text => ("response.output_text.delta", "content_index", ",\"logprobs\":[]"),
            Kind::Refusal => ("response.refusal.delta", "content_index", ""),
            Kind::Reasoning => ("response.reasoning_summary_text.delta", "summary_index", ""),
        };
        // Written by hand: this is told for every token.
        let head = format!(
            "event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{},\"item_id\":\"{}\",\"output_index\":{},\"{place}\":0,\"delta\":",
            self.sequence.saturating_sub(1),
            open.id,
            open.index
        );
        out.extend_from_slice(head.as_bytes());
        write_json(out, text);
        out.extend_from_slice(rest.as_bytes());
        out.extend_from_slice(b"}\n\n");
    }

    fn open(&mut self, kind: Kind, from: (u64, u32), out: &mut Vec<u8>) {
        let id = self.item_id(if kind == Kind::Reasoning { "rs" } else { "msg" });
        let index = self.add(item(kind, &id, None), out);
        let fields = json!({"item_id": id, "output_index": index, "part": part(kind, "")});
        self.tell(out, &format!("{}.added", part_event(kind)), &at_first_part(kind, fields));
        self.open = Some(Open { kind, from, index, id, text: String::new() });
    }

    /// No more comes of the text.
    fn close(&mut self, close: Close, out: &mut Vec<u8>) {
        let Some(open) = self.open.take() else { return };
        let Open { kind, id, index, text, .. } = open;
        let (name, field) = match kind {
            Kind::Text => ("response.output_text.done", "text"),
            Kind::Refusal => ("response.refusal.done", "refusal"),
            Kind::Reasoning => ("response.reasoning_summary_text.done", "text"),
        };
        let mut fields = at_first_part(kind, json!({"item_id": id, "output_index": index}));
        if let Value::Object(fields) = &mut fields {
            fields.insert(field.to_owned(), Value::from(text.as_str()));
            if kind == Kind::Text {
                fields.insert("logprobs".to_owned(), json!([]));
            }
        }
        self.tell(out, name, &fields);
        let fields = json!({"item_id": id, "output_index": index, "part": part(kind, &text)});
        self.tell(out, &format!("{}.done", part_event(kind)), &at_first_part(kind, fields));
        self.done(index, item(kind, &id, Some((&text, close))), out);
    }

    /// What a driver told whose process is gone is told anew: from here on the numbers are others, so that none stands for two things.
    fn begin_anew(&mut self, out: &mut Vec<u8>) {
        self.drop_message(out);
        self.in_flight_from = None;
        let before = self.sequence;
        self.sequence = (before / ANEW).saturating_add(1).saturating_mul(ANEW);
        if self.seen.is_some_and(|seen| (before..self.sequence).contains(&seen)) {
            self.begin_again(self.sequence, out);
        }
    }

    /// What was told of the message in flight is told anew, within one process.
    fn begin_message_anew(&mut self, out: &mut Vec<u8>) {
        self.drop_message(out);
        self.sequence = self.sequence.max((self.sequence / ANEW).saturating_mul(ANEW).saturating_add(DROPPED));
    }

    /// What was told of the message in flight does not count: the client was told it, and the response does not hold it. What comes
    /// of calls is stored, and stays.
    fn drop_message(&mut self, out: &mut Vec<u8>) {
        self.close(Close::Cut, out);
        let Some(from) = self.in_flight_from else { return };
        self.output.iter_mut().skip(from).for_each(|item| *item = None);
    }

    /// Whether what the client has was dropped, so that nothing follows it.
    fn is_lost(&self) -> bool {
        self.seen.is_some_and(|seen| seen % ANEW >= DROPPED)
    }

    /// The client must ask for all of it.
    fn begin_again(&mut self, number: u64, out: &mut Vec<u8>) {
        self.track.is_told = true;
        self.sequence = number;
        let message = "what came up to that number was lost and is said anew; ask for the stream from its beginning";
        self.error("told_anew", message, Some("starting_after"), out);
    }

    fn tell_failure(&mut self, out: &mut Vec<u8>) {
        let failure = self.failure().map(|(failure, reason)| body_of(&failure_of(failure, reason)));
        if let Some(error) = failure {
            self.tell(out, "error", &client::error(&error));
        }
    }

    /// Something went wrong with the stream, not with the turn.
    fn error(&mut self, code: &str, message: &str, param: Option<&str>, out: &mut Vec<u8>) {
        let error = OpenAiErrorBody {
            message: message.to_owned(),
            kind: "server_error".to_owned(),
            param: param.map(str::to_owned),
            code: Some(code.to_owned()),
        };
        self.tell(out, "error", &client::error(&error));
    }

    /// A message of ours, which has no form.
    fn note(&mut self, text: &str, out: &mut Vec<u8>) {
        self.messages = self.messages.saturating_add(1);
        self.grow(if self.has_form { Kind::Reasoning } else { Kind::Text }, 0, text, out);
        self.close(Close::Whole, out);
    }

    /// A call runs here.
    fn begin_call(&mut self, call: &Call, out: &mut Vec<u8>) {
        self.close(Close::Whole, out);
        if self.running.iter().any(|(running, _)| *running == call.id) {
            return;
        }
        let id = self.item_id("mcp");
        let item = self.mcp_call(&id, call, "", "in_progress");
        let index = self.add(item, out);
        self.running.push((call.id, index));
        let here = || json!({"item_id": id, "output_index": index});
        self.tell(out, "response.mcp_call.in_progress", &here());
        let mut delta = here();
        let mut done = here();
        if let (Value::Object(delta), Value::Object(done)) = (&mut delta, &mut done) {
            delta.insert("delta".to_owned(), Value::from(call.arguments.as_str()));
            done.insert("arguments".to_owned(), Value::from(call.arguments.as_str()));
        }
        self.tell(out, "response.mcp_call_arguments.delta", &delta);
        self.tell(out, "response.mcp_call_arguments.done", &done);
        let item = self.mcp_call(&id, call, &call.arguments, "in_progress");
        if let Some(place) = self.output.get_mut(index) {
            *place = Some(item);
        }
    }

    /// A call that ran here has its result, or one that cannot run has one that says so.
    fn end_call(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Event::ToolFinished { call_id, outcome, is_error, content, .. } = event else { return };
        let Some(call) = self.track.call(*call_id).cloned() else { return };
        let is_running = self.running.iter().any(|(running, _)| running == call_id);
        // One that held its connection for a person is shown again, now with what came of it.
        let ran_before = self.track.part.calls.iter().any(|before| before.id == *call_id && before.waits.is_none());
        let is_declined = *outcome == "denied" || (call_id.message <= self.track.part.after && !ran_before);
        // What a client ran, and what a person declined, is no call of ours.
        if self.track.is_clients(&call) || (!is_running && is_declined) {
            return;
        }
        self.begin_call(&call, out);
        let Some(at) = self.running.iter().position(|(running, _)| running == call_id) else { return };
        let (_, index) = self.running.swap_remove(at);
        let id =
            self.output.get(index).and_then(|item| item.as_ref()?.get("id")?.as_str().map(str::to_owned)).unwrap_or_default();
        let status = if *is_error { "failed" } else { "completed" };
        let mut item = self.mcp_call(&id, &call, &call.arguments, status);
        if let Value::Object(item) = &mut item {
            let text = self.track.result_text(*call_id, content);
            if *is_error {
                let content = json!([{"type": "text", "text": text}]);
                item.insert("error".to_owned(), json!({"type": "mcp_tool_execution_error", "content": content}));
            } else {
                item.insert("output".to_owned(), Value::from(text));
            }
        }
        self.tell(out, &format!("response.mcp_call.{status}"), &json!({"item_id": id, "output_index": index}));
        self.done(index, item, out);
    }

    /// The turn was stopped. The API has no event for it but the response's own state. The numbers of events stay the same
    /// whenever it is told: while calls run it has its own, since they run between messages; in the middle of a message, which
    /// comes in other pieces when it is told again, it has that of the event before it, and is told again whatever the client has.
    fn stopping(&mut self, out: &mut Vec<u8>) {
        if self.is_stopping {
            return;
        }
        self.is_stopping = true;
        let fields = json!({"response": self.response()});
        if self.running.is_empty() && self.form == Form::Streamed {
            write_event(out, "response.in_progress", self.sequence.saturating_sub(1), &fields);
        } else {
            self.tell(out, "response.in_progress", &fields);
        }
    }

    /// The server and the tool's own name.
    fn server_and_tool<'a>(&'a self, name: &'a str) -> (&'a str, &'a str) {
        self.track.definition(name).map_or(("turnwright", name), |tool| (tool.source.as_str(), tool.tool.as_str()))
    }

    fn mcp_call(&self, id: &str, call: &Call, arguments: &str, status: &str) -> Value {
        let (server, tool) = self.server_and_tool(&call.name);
        // Only calls about which a person was asked go on in an answer of their own.
        let asked = self.track.part.calls.iter().find(|before| before.id == call.id && before.waits.is_some());
        let request = asked.map(|before| ids::request_id(&self.conversation, before.approval()));
        json!({"id": id, "type": "mcp_call", "server_label": server, "name": tool, "arguments": arguments, "output": null,
               "error": null, "status": status, "approval_request_id": request})
    }
}

impl Tells for ResponseFold {
    fn track(&mut self) -> &mut Track {
        &mut self.track
    }

    fn has_ended(&self) -> bool {
        self.track.is_told
    }

    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        if !self.track.take(event) {
            return;
        }
        self.start(out);
        if self.is_lost() {
            return;
        }
        match event {
            Event::StepStarted { .. } => {
                self.close(Close::Cut, out);
                self.in_flight_from = Some(self.output.len());
                self.messages = self.messages.saturating_add(1);
            }
            Event::TextDelta { .. } if self.holds() => {}
            Event::TextDelta { block, text, .. } => self.grow(Kind::Text, *block, text, out),
            Event::RefusalDelta { block, text, .. } => self.grow(Kind::Refusal, *block, text, out),
            Event::ReasoningDelta { block, text, .. } => self.grow(Kind::Reasoning, *block, text, out),
            Event::StepReset => self.begin_message_anew(out),
            Event::StepFinished { finish_reason, .. } => {
                let is_refused = self.open.as_ref().is_some_and(|open| open.kind == Kind::Refusal);
                let is_cut = self.track.is_cut_off || matches!(*finish_reason, "length" | "content_filter" | "error");
                self.close(if is_cut && !is_refused { Close::Cut } else { Close::Whole }, out);
                self.in_flight_from = None;
            }
            Event::ToolStarted { call_id } => {
                if let Some(call) = self.track.call(*call_id).cloned() {
                    self.begin_call(&call, out);
                }
            }
            Event::ToolFinished { .. } => self.end_call(event, out),
            Event::Entry { .. } if is_stop(event) => self.stopping(out),
            Event::Entry { entry, .. } => match &**entry {
                Entry::Control(Control::Resumed { .. }) => self.begin_anew(out),
                Entry::Assistant(message) if self.holds() => self.said(message, out),
                _ => {}
            },
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.start(out);
        if self.is_lost() {
            return;
        }
        self.close(Close::Cut, out);
        for (_, index) in std::mem::take(&mut self.running) {
            let Some(mut item) = self.output.get(index).cloned().flatten() else { continue };
            if let Value::Object(item) = &mut item {
                item.insert("status".to_owned(), Value::from("incomplete"));
            }
            self.done(index, item, out);
        }
        if self.track.end == Some(End::Suspended) {
            self.waits(out);
        }
        if self.track.status() == Some("step_limit") {
            self.note(STEP_LIMIT, out);
        }
        let response = self.response();
        // Whoever says that much again knows nothing of what follows it there.
        if let Some(remembered) = self.remembered.take().filter(|_| !self.track.is_followed()) {
            remembered.told(response.output.clone(), &self.conversation, self.track.part.turn);
        }
        let kind = match response.status.as_str() {
            "completed" => "response.completed",
            "failed" => {
                self.tell_failure(out);
                "response.failed"
            }
            _ => "response.incomplete",
        };
        self.tell(out, kind, &json!({"response": response}));
        if self.form == Form::Streamed {
            out.extend_from_slice(b"data: [DONE]\n\n");
        }
    }

    fn interrupt(&mut self, cut: Cut, out: &mut Vec<u8>) {
        let message = cut.in_words("the stream ended before the turn did; the turn goes on, ask for the response by its id");
        self.error("stream_ended", message, None, out);
    }
}
