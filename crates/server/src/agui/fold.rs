//! From engine events to the events of a run.

use std::sync::Arc;

use serde_json::{Value, json};
use turnwright_core::{CallId, ConversationId, ElicitationId, Entry, ModelRef, QuestionReason, Seq, ToolDefinition, Wants};
use turnwright_engine::Event;

use crate::agui::interrupt::Interrupt;
use crate::agui::names::{Names, result_id};
use crate::error::ApiError;
use crate::openai::chunk::json as write_json;
use crate::openai::error::failure_of;
use crate::openai::ids;
use crate::openai::telling::Tells;
use crate::openai::track::{Asked, Call, End, Part, Track};
use crate::sse::Cut;
use crate::stopping::{TOLD, is_stop};
use crate::waiting::{in_words, sampling};

/// Why a run ended where the model said nothing that counts: in a word, and for people.
const REFUSED: (&str, &str) = ("content_filter", "The model refused, or its provider withheld the answer.");

/// What a page knows of the protocol, by what its request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knows {
    /// 1.0 and later, which drop what they do not know.
    All,
    /// What came before 1.0, as `@copilotkit/runtime` has it: such a page fails at an outcome that it does not know, and at a field
    /// of one.
    NoNewOutcomes,
}

/// Tells the part of a turn as one run.
#[derive(Debug)]
pub(crate) struct RunFold {
    conversation: ConversationId,
    run: String,
    knows: Knows,
    model: ModelRef,
    track: Track,
    open: Option<Open>,
    /// The name of the step that is open.
    step: Option<u64>,
    steps: u64,
    /// Names what is said in the message that is being made.
    names: Option<Names>,
    /// The newest message that is stored, with what its model was shown.
    stored: Option<(Seq, Seq)>,
    /// What calls ask for, by their question.
    asked: Vec<(ElicitationId, Wants)>,
    /// What was said before, where the page comes back.
    snapshot: Option<Vec<Value>>,
    /// What the page did not know as it began the run, in words for people.
    notices: Vec<String>,
    is_started: bool,
}

#[derive(Debug)]
struct Open {
    kind: Kind,
    block: u32,
    id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
}

impl RunFold {
    /// The run named `run`, of a turn with this model, for a page that knows so much.
    pub(crate) fn new(
        conversation: ConversationId,
        (run, knows, model): (String, Knows, ModelRef),
        part: Part,
        offered: Arc<[Arc<ToolDefinition>]>,
        asked: Vec<(ElicitationId, Wants)>,
    ) -> Self {
        Self {
            conversation,
            run,
            knows,
            model,
            track: Track::new(part, offered),
            open: None,
            step: None,
            steps: 0,
            names: None,
            stored: None,
            asked,
            snapshot: None,
            notices: Vec::new(),
            is_started: false,
        }
    }

    /// The same for a page that comes back: it is told first what was said before, and knows what calls had asked by then.
    pub(crate) fn after(mut self, messages: Option<Vec<Value>>, asked: Vec<Asked>) -> Self {
        self.snapshot = messages;
        self.track.asked = asked;
        self
    }

    /// The same for a page that answered what was answered otherwise before, and what it has of the run already, where it was begun before.
    pub(crate) fn resuming(mut self, messages: Option<Vec<Value>>, otherwise: Vec<String>) -> Self {
        self.snapshot = messages;
        self.notices = otherwise;
        self
    }

    /// The entry after which its part begins.
    pub(crate) fn begins_after(&self) -> Seq {
        self.track.part.after
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if !self.is_started {
            self.is_started = true;
            let (thread, run) = (&self.conversation, &self.run);
            tell(out, &json!({"type": "RUN_STARTED", "threadId": thread, "runId": run, "protocolVersion": "1.0"}));
            if let Some(messages) = self.snapshot.take() {
                tell(out, &json!({"type": "MESSAGES_SNAPSHOT", "messages": messages}));
            }
            for text in std::mem::take(&mut self.notices) {
                let value = json!({"level": "warning", "text": text});
                tell(out, &json!({"type": "CUSTOM", "name": "turnwright.notice", "value": value}));
            }
        }
    }

    fn grow(&mut self, kind: Kind, block: u32, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if self.open.as_ref().is_none_or(|open| open.kind != kind || open.block != block) {
            self.close(out);
            self.begin(kind, block, out);
        }
        let Some(open) = &self.open else { return };
        let kind = match kind {
            Kind::Text => "TEXT_MESSAGE_CONTENT",
            Kind::Reasoning => "REASONING_MESSAGE_CONTENT",
        };
        tell(out, &json!({"type": kind, "messageId": open.id, "delta": text}));
    }

    fn begin(&mut self, kind: Kind, block: u32, out: &mut Vec<u8>) {
        let Some(names) = &mut self.names else { return };
        let id = match kind {
            Kind::Text => names.text(),
            Kind::Reasoning => names.thought(),
        };
        match kind {
            Kind::Text => tell(out, &json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})),
            Kind::Reasoning => {
                tell(out, &json!({"type": "REASONING_START", "messageId": id}));
                tell(out, &json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}));
            }
        }
        self.open = Some(Open { kind, block, id });
    }

    /// A message begins, or is told anew.
    fn name(&mut self, told_as: Seq) {
        // One that is stored already stands where it was put, and was begun after what its model was shown.
        let began = self.stored.filter(|(at, _)| *at == told_as).map_or(told_as, |(_, saw)| saw.next());
        match self.names.as_mut().filter(|names| names.are_of(began)) {
            Some(names) => names.begin_anew(),
            None => self.names = Some(Names::of(began)),
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(Open { kind, id, .. }) = self.open.take() else { return };
        match kind {
            Kind::Text => tell(out, &json!({"type": "TEXT_MESSAGE_END", "messageId": id})),
            Kind::Reasoning => {
                tell(out, &json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
                tell(out, &json!({"type": "REASONING_END", "messageId": id}));
            }
        }
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        if let Some(step) = self.step.take() {
            tell(out, &json!({"type": "STEP_FINISHED", "stepName": step.to_string()}));
        }
    }

    /// What a call gave, where the page does not know it: it ran here.
    fn result(&mut self, call: CallId, text: &str, out: &mut Vec<u8>) {
        if self.track.call(call).is_some_and(|call| self.track.is_clients(call)) {
            return;
        }
        let id = ids::call_id(&self.conversation, call);
        let message = result_id(&id);
        tell(
            out,
            &json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": id, "content": text, "role": "tool"}),
        );
    }

    /// What the turn waits for: for people first, since the page's own calls stay open meanwhile.
    fn waits(&self) -> Value {
        let approvals = self.track.asked_about().map(|call| self.approval(call));
        let questions = self.track.asked.iter().map(|Asked { question, message, .. }| {
            let wants = self.asked.iter().find(|(asked, _)| asked == question).map(|(_, wants)| wants);
            let call = ids::call_id(&self.conversation, question.call);
            // Who agrees that a model is asked must see what; there is nothing to fill in.
            let (message, schema, more) = match wants {
                Some(Wants::Form { schema }) => (message.clone(), schema.clone(), json!({"url": null})),
                Some(Wants::Url { url }) => (message.clone(), json!({"type": "object"}), json!({"url": url})),
                Some(Wants::Sampling { request }) => {
                    let shown = sampling(request);
                    (in_words(message, &shown), json!({"type": "object", "properties": {}}), json!({"sampling": shown}))
                }
                None => (message.clone(), json!({"type": "object"}), json!({"url": null})),
            };
            json!({"id": Interrupt::Question(*question).name(&self.conversation), "reason": "input_required", "toolCallId": call, "message": message,
                   "responseSchema": schema, "metadata": {"turnwright": more}})
        });
        let interrupts: Vec<Value> = approvals.chain(questions).collect();
        if !interrupts.is_empty() {
            return json!({"type": "interrupt", "interrupts": interrupts});
        }
        match self.knows {
            Knows::All => json!({"type": "success", "pendingToolCallIds": self.pending()}),
            Knows::NoNewOutcomes => json!({"type": "success"}),
        }
    }

    /// The calls that are left to the page.
    fn pending(&self) -> Vec<String> {
        self.track.handed_over().map(|call| ids::call_id(&self.conversation, call.id)).collect()
    }

    /// What the run gave, which may be anything: what the outcome does not say to a page that would fail at it.
    fn gave(&self) -> Option<Value> {
        let is_left_out = self.knows == Knows::NoNewOutcomes && matches!(self.track.end, Some(End::Suspended));
        let pending = if is_left_out { self.pending() } else { Vec::new() };
        (!pending.is_empty()).then(|| json!({"pendingToolCallIds": pending}))
    }

    /// Why the run ended before the model came to its end, in a word and for people: the protocol tells it as any success.
    fn stopped_by(&self) -> Option<(&'static str, &str)> {
        let Some(End::Finished { status, error, .. }) = &self.track.end else { return None };
        match (*status, error, self.track.finish_reason) {
            ("cancelled", ..) if self.knows == Knows::NoNewOutcomes => Some(("cancelled", "The turn was cancelled.")),
            ("stopped", Some(summary), _) => Some(("stopped", summary)),
            ("step_limit", ..) => Some(("step_limit", "The step limit of this turn is reached.")),
            ("completed" | "stopped", _, "content_filter") => Some(REFUSED),
            // Its provider may say so by its words alone.
            ("stopped", None, _) if self.track.stop() == Some("refused") => Some(REFUSED),
            ("completed", _, "length") => Some(("length", "The answer is cut off: it is as long as it may be.")),
            ("stopped", None, _) => Some(("stopped", "The turn was stopped.")),
            _ => None,
        }
    }

    fn approval(&self, call: &Call) -> Value {
        let (server, tool) = match self.track.definition(&call.name) {
            Some(tool) => (tool.source.as_str(), tool.tool.as_str()),
            None => ("", call.name.as_str()),
        };
        let message = match call.waits {
            Some(QuestionReason::UnknownOutcome) => {
                format!("{} was interrupted and may have happened; run it again?", call.name)
            }
            Some(QuestionReason::DefinitionChanged) => format!("{} has changed since it was allowed", call.name),
            Some(QuestionReason::Loop) => {
                format!("{} was called again and again with the same result; let it go on?", call.name)
            }
            Some(QuestionReason::Approval | QuestionReason::ClientTool) | None => format!("{} waits to be allowed", call.name),
        };
        let schema = json!({"type": "object", "required": ["approved"], "properties": {
            "approved": {"type": "boolean"}, "editedArgs": {"type": "object"}, "reason": {"type": "string"}}});
        json!({"id": Interrupt::Approval(call.approval()).name(&self.conversation), "reason": "tool_call",
               "toolCallId": ids::call_id(&self.conversation, call.id), "message": message, "responseSchema": schema,
               "metadata": {"turnwright": {"server": server, "tool": tool}}})
    }
}

/// A stream that is one refusal.
pub(crate) fn refusal(error: &ApiError) -> Vec<u8> {
    let mut out = Vec::new();
    tell(&mut out, &json!({"type": "RUN_ERROR", "message": error.to_string(), "code": error.code()}));
    out
}

fn tell(out: &mut Vec<u8>, event: &Value) {
    out.extend_from_slice(b"data: ");
    write_json(out, event);
    out.extend_from_slice(b"\n\n");
}

impl Tells for RunFold {
    fn track(&mut self) -> &mut Track {
        &mut self.track
    }

    fn has_ended(&self) -> bool {
        self.track.is_told
    }

    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        if let Event::Entry { seq, entry, .. } = event
            && let Entry::Assistant(message) = &**entry
        {
            self.stored = Some((*seq, message.saw));
        }
        if !self.track.take(event) {
            return;
        }
        self.start(out);
        if is_stop(event) {
            let value = json!({"level": "info", "text": TOLD});
            tell(out, &json!({"type": "CUSTOM", "name": "turnwright.notice", "value": value}));
        }
        match event {
            Event::StepStarted { message_id } => {
                self.end_step(out);
                self.steps = self.steps.saturating_add(1);
                self.step = Some(self.steps);
                self.name(message_id.0);
                tell(out, &json!({"type": "STEP_STARTED", "stepName": self.steps.to_string()}));
            }
            Event::TextDelta { block, text, .. } | Event::RefusalDelta { block, text, .. } => {
                self.grow(Kind::Text, *block, text, out);
            }
            Event::ReasoningDelta { block, text, .. } => self.grow(Kind::Reasoning, *block, text, out),
            Event::StepReset => {
                self.close(out);
                self.names.iter_mut().for_each(Names::begin_anew);
            }
            Event::StepFinished { .. } => self.close(out),
            Event::ToolInputReady { call_id, name, arguments } => {
                self.close(out);
                let id = ids::call_id(&self.conversation, *call_id);
                let parent = self.names.as_ref().map(Names::of_calls);
                tell(
                    out,
                    &json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": parent}),
                );
                tell(out, &json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments}));
                tell(out, &json!({"type": "TOOL_CALL_END", "toolCallId": id}));
            }
            Event::ToolProgress { call_id, progress, total, message } => {
                let id = ids::call_id(&self.conversation, *call_id);
                let value = json!({"toolCallId": id, "progress": progress, "total": total, "message": message});
                tell(out, &json!({"type": "CUSTOM", "name": "turnwright.progress", "value": value}));
            }
            Event::Notice { level, text } => {
                let value = json!({"level": level, "text": text});
                tell(out, &json!({"type": "CUSTOM", "name": "turnwright.notice", "value": value}));
            }
            Event::ContextGathered { message_id, parts } => {
                let parts: Vec<_> = parts.iter().map(crate::report::context_part).collect();
                let value = json!({"messageId": message_id.to_string(), "parts": parts});
                tell(out, &json!({"type": "CUSTOM", "name": "turnwright.context", "value": value}));
            }
            Event::ElicitationRequested { question_id, requested_schema, url, sampling, .. } => {
                let wants = match (requested_schema, url, sampling) {
                    (Some(schema), _, _) => Some(Wants::Form { schema: schema.clone() }),
                    (None, Some(url), _) => Some(Wants::Url { url: url.clone() }),
                    (None, None, Some(request)) => Some(Wants::Sampling { request: request.clone() }),
                    (None, None, None) => None,
                };
                self.asked.extend(wants.map(|wants| (*question_id, wants)));
            }
            Event::ToolFinished { call_id, content, .. } => {
                let text = self.track.result_text(*call_id, content);
                self.result(*call_id, &text, out);
            }
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.start(out);
        self.end_step(out);
        if let Some((reason, text)) = self.stopped_by() {
            let mut value = json!({"level": "warning", "text": text, "reason": reason});
            if let (Value::Object(value), Some(stop)) = (&mut value, self.track.stop()) {
                value.insert("stop".to_owned(), stop.into());
            }
            tell(out, &json!({"type": "CUSTOM", "name": "turnwright.notice", "value": value}));
        }
        let outcome = match &self.track.end {
            Some(End::Finished { status: "failed", error, .. }) => {
                let error = failure_of(self.track.failure.as_ref(), error.as_deref());
                tell(out, &json!({"type": "RUN_ERROR", "message": error.to_string(), "code": error.code()}));
                return;
            }
            Some(End::Finished { status: "cancelled", .. }) if self.knows == Knows::All => json!({"type": "cancelled"}),
            Some(End::Suspended) => self.waits(),
            Some(End::Finished { .. }) | None => json!({"type": "success"}),
        };
        let usage = self.track.usage;
        let (provider, model) = (self.model.provider(), self.model.model());
        let mut tokens = json!({"provider": provider, "model": model, "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens, "reasoningTokens": usage.reasoning_tokens,
            "cachedInputTokens": usage.cached_input_tokens, "cacheWriteInputTokens": usage.cache_write_tokens});
        if let Value::Object(tokens) = &mut tokens {
            tokens.retain(|_, value| !value.is_null());
        }
        let (thread, run) = (&self.conversation, &self.run);
        let mut end = json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run, "outcome": outcome, "usage": [tokens]});
        if let (Value::Object(end), Some(gave)) = (&mut end, self.gave()) {
            end.insert("result".to_owned(), gave);
        }
        tell(out, &end);
    }

    fn interrupt(&mut self, cut: Cut, out: &mut Vec<u8>) {
        let message = cut.in_words("the stream ended before the turn did; the turn goes on and is kept in its conversation");
        tell(out, &json!({"type": "RUN_ERROR", "message": message, "code": "stream_ended"}));
    }
}
