//! From engine events to a chat completion, streamed or whole.

use std::sync::Arc;
use std::time::Duration;

use turnwright_api::openai::{
    ChatCall, ChatChoice, ChatCompletion, ChatFunction, ChatMessage, ChatUsage, CompletionTokens, Extras, PromptTokens,
    ToolEvent,
};
use turnwright_core::{AssistantMessage, ConversationId, Entry, ToolDefinition, Usage};
use turnwright_engine::Event;

use super::activity::{self, ToolActivity};
use super::chunk::{Chunks, Ended, Field, TellsUsage};
use super::error::{failure_of, stream_error};
use super::ids;
use super::known::{Fingerprint, KnownHistories};
use super::retold::{More, Retold};
use super::stops::Stops;
use super::telling::Tells;
use super::track::{Call, End, Part, STEP_LIMIT, Track};
use super::waiting;
use crate::error::ApiError;
use crate::sse::Cut;
use crate::stopping::{TOLD, is_stop};

/// How long the head of a stream waits for the first that is told: where a provider refuses before it says anything, its clients
/// know that by the status, as they do with OpenAI. Longer than most providers take to refuse, with the tries between; shorter than
/// proxies wait for a head.
const HEAD_WAITS: Duration = Duration::from_secs(10);

/// What an answer is made with.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) conversation: ConversationId,
    pub(crate) part: Part,
    /// `PROVIDER/MODEL`.
    pub(crate) model: String,
    pub(crate) offered: Arc<[Arc<ToolDefinition>]>,
    pub(crate) activity: ToolActivity,
    pub(crate) tells_usage: TellsUsage,
    /// All that the client said, whose continuation the answer is.
    pub(crate) history: Fingerprint,
    /// What ends its text.
    pub(crate) stops: Stops,
    /// Whether a form was asked for, which the text is to have for a program.
    pub(crate) has_form: bool,
    /// With which the command that decides reaches this data.
    pub(crate) command_flags: String,
    pub(crate) known: Arc<KnownHistories>,
}

/// Where what is told goes.
#[derive(Debug)]
enum Form {
    /// Into the stream.
    Chunks(Option<Chunks>),
    /// Into one answer.
    Whole(ChatMessage, Vec<ToolEvent>),
}

/// Tells the part of a turn as one chat completion.
#[derive(Debug)]
pub(crate) struct ChatFold {
    asked: Asked,
    track: Track,
    form: Form,
    /// What the client has once the messages are whole: their text, and what stands between.
    said: String,
    /// Whether a text is in it, beside which another is a paragraph of its own.
    has_text: bool,
    /// The block that text came from last, and the message: another one is a paragraph of its own.
    speaking: Option<(u64, u32)>,
    /// The message whose thoughts came last: those of another one are a paragraph of their own.
    thinking: Option<u64>,
    messages: u64,
    /// What was told of the message that comes.
    told: Told,
}

/// What was told of the message in flight.
#[derive(Debug, Default)]
struct Told {
    text: Retold,
    reasoning: Retold,
    refusal: Retold,
}

impl Told {
    fn of(&mut self, field: Field) -> &mut Retold {
        match field {
            Field::Content => &mut self.text,
            Field::Reasoning => &mut self.reasoning,
            Field::Refusal => &mut self.refusal,
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.refusal.is_empty()
    }
}

impl ChatFold {
    /// As a stream.
    pub(crate) fn streamed(asked: Asked) -> Self {
        Self::new(asked, Form::Chunks(None))
    }

    /// As one answer.
    pub(crate) fn whole(asked: Asked) -> Self {
        let message = ChatMessage {
            role: "assistant".to_owned(),
            content: None,
            refusal: None,
            reasoning_content: None,
            tool_calls: Vec::new(),
        };
        Self::new(asked, Form::Whole(message, Vec::new()))
    }

    fn new(asked: Asked, form: Form) -> Self {
        let track = Track::apart(asked.part.clone(), asked.offered.clone());
        let (speaking, thinking) = (None, None);
        Self {
            asked,
            track,
            form,
            said: String::new(),
            has_text: false,
            speaking,
            thinking,
            messages: 0,
            told: Told::default(),
        }
    }

    fn id(&self) -> String {
        ids::answer_id("chatcmpl-", &self.asked.conversation, self.asked.part.after)
    }

    /// The answer, once it is done.
    pub(crate) fn completion(self) -> Result<ChatCompletion, ApiError> {
        let id = self.id();
        let finish_reason = self.finish_reason().to_owned();
        if let Some(End::Finished { status: "failed", error, .. }) = &self.track.end {
            return Err(failure_of(self.track.failure.as_ref(), error.as_deref()));
        }
        let Form::Whole(message, tool_events) = self.form else {
            return Err(ApiError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "streamed", "the answer was streamed"));
        };
        Ok(ChatCompletion {
            id,
            object: "chat.completion".to_owned(),
            created: self.track.created,
            choices: vec![ChatChoice { index: 0, message, logprobs: None, finish_reason }],
            usage: self.track.known_usage().map(usage),
            turnwright: Extras {
                conversation_id: self.asked.conversation.to_string(),
                turn_id: self.asked.part.turn.to_string(),
                tool_events,
                is_stopping: false,
                status: self.track.status().map(str::to_owned),
                stop: self.track.stop().map(str::to_owned),
            },
            model: self.track.said_by.unwrap_or(self.asked.model),
        })
    }

    /// Whether a text is told once it is whole: where it is to have a form, what the model says beside its calls is no part of that, and
    /// whether it makes calls is known at the end of a message.
    fn holds(&self) -> bool {
        self.asked.has_form && !self.track.offered.is_empty()
    }

    /// A message of the model's is whole.
    fn said(&mut self, message: &AssistantMessage, out: &mut Vec<u8>) {
        let has_calls = message.calls().next().is_some();
        if self.holds() && !has_calls {
            self.speak(0, &message.text(), out);
        }
        let text = self.whole_text(message, out);
        if self.holds() && has_calls {
            // What ends the text ends nothing here.
            let text = message.text();
            if !text.is_empty() {
                self.think_apart(out);
                self.tell(Field::Reasoning, &text, out);
            }
            return;
        }
        if text.is_empty() {
            return;
        }
        self.paragraph();
        self.said.push_str(&text);
    }

    /// Text of the model's, up to what ends it.
    fn speak(&mut self, block: u32, text: &str, out: &mut Vec<u8>) {
        if self.asked.stops.is_none() {
            self.speak_out(block, text, out);
            return;
        }
        let told = self.asked.stops.push(text);
        if !told.is_empty() {
            self.speak_out(block, &told, out);
        }
    }

    /// The text of a message of the model's as the client has it, once it is whole.
    fn whole_text(&mut self, message: &AssistantMessage, out: &mut Vec<u8>) -> String {
        let rest = self.asked.stops.flush();
        if !rest.is_empty() {
            self.speak_out(self.speaking.map_or(0, |(_, block)| block), &rest, out);
        }
        let is_all = self.asked.stops.is_none() && self.told.text.shorter().is_none();
        for field in [Field::Content, Field::Reasoning, Field::Refusal] {
            let Some(text) = self.told.of(field).shorter().map(str::to_owned) else { continue };
            let told = self.told.of(field).end();
            let is_taken_back = self.take_back(field, &told);
            if is_taken_back && !text.is_empty() {
                self.tell(field, &text, out);
            }
            self.told.of(field).push(if is_taken_back { &text } else { &told });
        }
        let told = std::mem::take(&mut self.told).text.end();
        if is_all { message.text() } else { told }
    }

    fn speak_out(&mut self, block: u32, text: &str, out: &mut Vec<u8>) {
        match self.told.of(Field::Content).push(text) {
            More::Text("") => {}
            More::Text(more) => self.speak_on(block, more, out),
            More::Other { dropped, text } => {
                if !self.take_back(Field::Content, &dropped) {
                    // It stays with the client, as a paragraph of its own.
                    self.messages = self.messages.saturating_add(1);
                    self.paragraph();
                    self.said.push_str(&dropped);
                }
                self.speak_on(block, &text, out);
            }
        }
    }

    fn speak_on(&mut self, block: u32, text: &str, out: &mut Vec<u8>) {
        let here = (self.messages, block);
        if self.speaking.is_some_and(|(message, _)| message != here.0) {
            self.tell(Field::Content, "\n\n", out);
        }
        self.speaking = Some(here);
        self.tell(Field::Content, text, out);
    }

    /// What the model says beside its text.
    fn add(&mut self, field: Field, text: &str, out: &mut Vec<u8>) {
        match self.told.of(field).push(text) {
            More::Text("") => {}
            More::Text(more) => {
                if field == Field::Reasoning && self.thinking != Some(self.messages) {
                    self.think_apart(out);
                }
                self.tell(field, more, out);
            }
            More::Other { dropped, text } => {
                if !self.take_back(field, &dropped) {
                    self.tell(field, "\n\n", out);
                }
                self.tell(field, &text, out);
            }
        }
    }

    /// What follows is beside the text, and none of what the model thought before.
    fn think_apart(&mut self, out: &mut Vec<u8>) {
        if self.thinking.replace(self.messages).is_some() {
            self.tell(Field::Reasoning, "\n\n", out);
        }
    }

    /// A message begins, or is told again: what of it was told does not count.
    fn begin_message(&mut self) {
        if self.told.is_empty() {
            self.messages = self.messages.saturating_add(1);
        }
        self.asked.stops.begin_again();
        for field in [Field::Content, Field::Reasoning, Field::Refusal] {
            self.told.of(field).begin_again();
        }
    }

    /// Takes back what was told and does not count; whether that is possible, which it is until the answer is sent.
    fn take_back(&mut self, field: Field, dropped: &str) -> bool {
        let Form::Whole(message, _) = &mut self.form else { return false };
        let told = place(message, field);
        let Some((before, after)) = told.as_deref().and_then(|told| told.rsplit_once(dropped)) else { return false };
        *told = Some(format!("{before}{after}")).filter(|rest| !rest.is_empty());
        true
    }

    fn paragraph(&mut self) {
        if self.has_text {
            self.said.push_str("\n\n");
        }
        self.has_text = true;
    }

    /// Text that is no model's, and has no form.
    fn note(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.asked.has_form {
            self.think_apart(out);
            self.tell(Field::Reasoning, text, out);
            return;
        }
        if self.speaking.is_some() {
            self.tell(Field::Content, "\n\n", out);
        }
        self.speaking = Some((u64::MAX, 0));
        self.paragraph();
        self.said.push_str(text);
        self.tell(Field::Content, text, out);
    }

    fn line(&mut self, line: &str, out: &mut Vec<u8>) {
        match self.asked.activity {
            ToolActivity::Reasoning => self.tell(Field::Reasoning, line, out),
            ToolActivity::Content => {
                self.said.push_str(line);
                self.tell(Field::Content, line, out);
            }
            ToolActivity::Hidden | ToolActivity::Details => {}
        }
    }

    fn finished(&mut self, event: &Event, out: &mut Vec<u8>) {
        let Event::ToolFinished { call_id, outcome, is_error, content, duration_ms, .. } = event else { return };
        let Some(call) = self.track.call(*call_id).filter(|call| !self.track.is_clients(call)).cloned() else { return };
        let told =
            ToolEvent { call_id: call.id.to_string(), name: call.name.clone(), is_error: *is_error, duration_ms: *duration_ms };
        if self.asked.activity == ToolActivity::Details {
            let block =
                activity::details(&told.call_id, &call.name, &call.arguments, &self.track.result_text(call.id, content));
            self.said.push_str(&block);
            self.tell(Field::Content, &block, out);
        } else {
            let line = activity::end_line(self.track.definition(&call.name), &call.name, outcome, *duration_ms);
            self.line(&line, out);
        }
        if let Form::Whole(_, events) = &mut self.form {
            events.push(told);
        } else if let Some(chunks) = self.chunks(out) {
            chunks.tool_event(out, &told);
        }
    }

    /// The turn was stopped, and what runs has not ended.
    fn stopping(&mut self, out: &mut Vec<u8>) {
        self.line(&format!("\n{TOLD}\n"), out);
        if let Some(chunks) = self.chunks(out) {
            chunks.stopping(out);
        }
    }

    fn tell(&mut self, field: Field, text: &str, out: &mut Vec<u8>) {
        if let Form::Whole(message, _) = &mut self.form {
            place(message, field).get_or_insert_default().push_str(text);
            return;
        }
        if let Some(chunks) = self.chunks(out) {
            chunks.text(out, field, text);
        }
    }

    /// The chunks, the first of which is written before all others; `None` where the answer is not streamed.
    fn chunks(&mut self, out: &mut Vec<u8>) -> Option<&mut Chunks> {
        if matches!(self.form, Form::Chunks(None)) {
            let model = self.track.said_by.as_deref().unwrap_or(&self.asked.model);
            let mut chunks = Chunks::new(&self.id(), self.track.created, model, self.asked.tells_usage);
            chunks.start(out, self.asked.conversation.as_str(), &self.asked.part.turn.to_string());
            self.form = Form::Chunks(Some(chunks));
        }
        match &mut self.form {
            Form::Chunks(chunks) => chunks.as_mut(),
            Form::Whole(..) => None,
        }
    }

    /// Names who said the newest message in the chunks that come, where that is not the model that was asked.
    fn name_model(&mut self) {
        if let (Some(said_by), Form::Chunks(Some(chunks))) = (&self.track.said_by, &mut self.form)
            && *said_by != self.asked.model
        {
            chunks.name_model(said_by);
        }
    }

    /// The last word of the answer.
    fn finish_reason(&self) -> &'static str {
        if self.track.handed_over().next().is_some() {
            return "tool_calls";
        }
        if self.asked.stops.is_over() {
            return "stop";
        }
        match (&self.track.end, self.track.finish_reason) {
            (Some(End::Finished { status: "completed", .. }), "length") => "length",
            (Some(End::Finished { status: "completed" | "stopped", .. }), "content_filter") => "content_filter",
            // A client that reads `tool_calls` would look for calls to run.
            _ => "stop",
        }
    }

    fn handed(&self, call: &Call) -> ChatCall {
        ChatCall {
            id: ids::call_id(&self.asked.conversation, call.id),
            kind: "function".to_owned(),
            function: ChatFunction { name: call.name.clone(), arguments: call.arguments.clone() },
        }
    }

    fn remember(&self, calls: &[ChatCall]) {
        // Whoever says that much again knows nothing of what follows it there.
        if self.track.is_followed() {
            return;
        }
        let mut history = self.asked.history.clone();
        history.answer(&self.said, calls.iter().map(|call| call.id.as_str()));
        self.asked.known.remember(&history, self.asked.conversation.clone(), self.asked.part.turn);
    }
}

/// Where a message has such a text.
fn place(message: &mut ChatMessage, field: Field) -> &mut Option<String> {
    match field {
        Field::Content => &mut message.content,
        Field::Reasoning => &mut message.reasoning_content,
        Field::Refusal => &mut message.refusal,
    }
}

/// Tokens as this API tells them.
fn usage(usage: Usage) -> ChatUsage {
    let prompt_tokens = usage.input_tokens.unwrap_or(0);
    let completion_tokens = usage.output_tokens.unwrap_or(0);
    ChatUsage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens.saturating_add(completion_tokens),
        prompt_tokens_details: PromptTokens { cached_tokens: usage.cached_input_tokens.unwrap_or(0) },
        completion_tokens_details: CompletionTokens { reasoning_tokens: usage.reasoning_tokens.unwrap_or(0) },
    }
}

impl Tells for ChatFold {
    fn track(&mut self) -> &mut Track {
        &mut self.track
    }

    fn has_ended(&self) -> bool {
        self.track.is_told
    }

    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let is_told = self.track.take(event);
        if !is_told {
            return;
        }
        match event {
            Event::TextDelta { .. } if self.holds() => {}
            Event::TextDelta { block, text, .. } => self.speak(*block, text, out),
            Event::RefusalDelta { text, .. } => self.add(Field::Refusal, text, out),
            Event::ReasoningDelta { text, .. } => self.add(Field::Reasoning, text, out),
            Event::StepStarted { .. } | Event::StepReset => self.begin_message(),
            Event::Entry { .. } if is_stop(event) => self.stopping(out),
            Event::Entry { entry, .. } => {
                if let Entry::Assistant(message) = &**entry {
                    self.said(message, out);
                    self.name_model();
                }
            }
            Event::ToolStarted { call_id } => {
                if let Some(call) = self.track.call(*call_id).filter(|_| self.asked.activity != ToolActivity::Hidden) {
                    let line = activity::begin_line(self.track.definition(&call.name), &call.name, &call.arguments);
                    self.line(&line, out);
                }
            }
            Event::ToolFinished { .. } => self.finished(event, out),
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(End::Finished { status: "failed", error, .. }) = &self.track.end {
            if matches!(self.form, Form::Chunks(_)) {
                stream_error(out, &failure_of(self.track.failure.as_ref(), error.as_deref()));
                // It has what came before that, and may go on from there.
                if !self.said.is_empty() {
                    self.remember(&[]);
                }
            }
            return;
        }
        if let Some(text) = waiting::text(&self.track, &self.asked.conversation, &self.asked.command_flags) {
            self.note(&text, out);
        }
        if let Some(End::Finished { status: "stopped", error: Some(summary), .. }) = &self.track.end {
            let summary = summary.clone();
            self.note(&summary, out);
        }
        if self.track.status() == Some("step_limit") {
            self.note(STEP_LIMIT, out);
        }
        let calls: Vec<ChatCall> = self.track.handed_over().map(|call| self.handed(call)).collect();
        self.remember(&calls);
        let finish_reason = self.finish_reason();
        let usage = self.track.known_usage().map(usage).filter(|_| self.asked.tells_usage == TellsUsage::AtItsEnd);
        let ended = Ended { status: self.track.status(), stop: self.track.stop() };
        if let Form::Whole(message, _) = &mut self.form {
            message.tool_calls = calls;
            return;
        }
        let Some(chunks) = self.chunks(out) else { return };
        for (index, call) in calls.iter().enumerate() {
            chunks.tool_call(out, index, call);
        }
        chunks.finish(out, finish_reason, ended, usage.as_ref());
    }

    fn head_waits(&self) -> Option<Duration> {
        Some(HEAD_WAITS)
    }

    fn refusal(&self) -> Option<ApiError> {
        match &self.track.end {
            Some(End::Finished { status: "failed", error, .. }) if matches!(self.form, Form::Chunks(None)) => {
                Some(failure_of(self.track.failure.as_ref(), error.as_deref()))
            }
            _ => None,
        }
    }

    fn interrupt(&mut self, cut: Cut, out: &mut Vec<u8>) {
        let detail = cut.in_words("the stream ended before the turn did; the turn goes on and is kept in its conversation");
        stream_error(out, &ApiError::new(http::StatusCode::SERVICE_UNAVAILABLE, "stream_ended", detail));
    }
}

#[cfg(test)]
#[path = "chat/tests.rs"]
mod tests;
