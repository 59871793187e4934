//! From engine events to the chunks of one message.

use std::sync::Arc;

use turnwright_core::{
    AssistantMessage, Completion, Control, ConversationId, Entry, FinishReason, Seq, ToolDefinition, TurnId,
};
use turnwright_engine::{Event, Frame};

use super::UiVersion;
use super::chunk::{BlockKind, Chunks, Start};
use crate::timestamp::timestamp;

mod apart;
mod asked;
mod calls;
mod resuming;
mod steps;

pub(crate) use apart::seen;
use apart::{Said, is_unseen_by_next};
use asked::Asked;
use calls::{Call, definition};
use steps::Unsent;

/// Where a stream begins. In every case the fold is given the whole turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// With the turn's beginning: a new message, or its full replay.
    Turn,
    /// In the message that the client has: it answered questions.
    Continue {
        /// After this entry.
        after: Seq,
        /// The user message that the client's message answers, where that is one that joined an open turn.
        joined: Option<Seq>,
    },
    /// With this user message, which joined an open turn: a new message of the client, named by the newest that its first answer
    /// saw.
    Join(Seq),
    /// With the turn's beginning, for a client that has what people said up to this message, each at its place: the answer to
    /// what joined the turn is a message of its own, which a `start` begins, named by the newest that it saw. Where nothing
    /// joined it yet, the chunks up to there have ids, as with [`Begin::Turn`].
    Apart(Seq),
    /// As [`Begin::Apart`] for a client that takes one message of a stream: with the last of these that has begun, in which it
    /// goes on.
    Answer(Seq),
    /// After this position, the id of the last chunk that the client read of the message before it lost the stream. The
    /// client has to know how a step is dropped ([`UiVersion::V7`]).
    After(Seq),
}

/// Tells one turn as one message. Give every frame of the turn to [`UiFold::fold`]; when [`UiFold::is_done`], nothing more
/// comes.
///
/// The id of a chunk is where to come back to: the last entry that was stored when the step began that it belongs to, and of
/// the chunk that ends the stream the last entry of all. Before the first step it is the last entry before the turn. So an id
/// says which step a client has open, and whoever comes back is told that step anew and nothing before it.
#[derive(Debug)]
pub struct UiFold {
    conversation: ConversationId,
    turn: TurnId,
    version: UiVersion,
    begin: Begin,
    offered: Arc<[Arc<ToolDefinition>]>,
    chunks: Chunks,
    phase: Phase,
    /// The last entry that was seen.
    last: Option<Seq>,
    is_started: bool,
    step: Step,
    /// Where the open step's chunks are among what is to be sent, while nothing of them was sent.
    unsent_step: Option<Unsent>,
    /// Where what is to be sent first begins; `None` once that was sent.
    first: Option<usize>,
    open: Option<OpenBlock>,
    texts: u32,
    reasonings: u32,
    calls: Vec<Call>,
    /// What calls asked and nobody answered.
    asked: Vec<Asked>,
    /// The newest message, where a retry of its turn hides it.
    retaken: Option<Seq>,
    /// What a person said last.
    said_last: Option<Seq>,
    /// Whether the model is already answering, without having seen it, when the next entry is told.
    is_answering: bool,
    /// What joined the turn, and when.
    joined: Vec<(Seq, u64)>,
    /// What a person said meanwhile and the client is to be told: its place is after that answer.
    said_meanwhile: Vec<Said>,
    /// The same once that answer is whole.
    said_before: Vec<Said>,
    /// The newest message that joined the turn and the client's message answers.
    answers: Option<Seq>,
    untold: Untold,
    finish_reason: &'static str,
    model: Option<String>,
    created_at_ms: Option<u64>,
    end: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// What comes is remembered and not told.
    Quiet,
    /// What comes is told.
    Telling,
    /// Another turn began: nothing more is about this one.
    Past,
    /// The stream is complete.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// None is open at the client.
    Closed,
    /// One is open and empty.
    Empty,
    /// The model's message is coming in.
    Streaming,
    /// The model's message is whole; its calls are looked after.
    Told,
}

/// What was begun before the client's message and is not told yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Untold {
    Nothing,
    /// The beginning of the open step, which what comes of its calls needs.
    Step,
    /// The same, and all that the model says in it: it does not know the message that the client's message answers.
    Answer,
}

impl Step {
    /// Whether the model is answering.
    fn is_open(self) -> bool {
        match self {
            Self::Empty | Self::Streaming => true,
            Self::Closed | Self::Told => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenBlock {
    kind: BlockKind,
    /// Its index in the model's message.
    block: u32,
    /// Its number in the stream.
    number: u32,
}

/// How the turn stands, told when nothing more contradicts it.
#[derive(Debug)]
enum End {
    Suspended,
    Finished { status: &'static str, stop: Option<&'static str>, error: Option<String> },
}

impl UiFold {
    /// The stream of `turn`. `offered` is what was offered when it began.
    pub fn new(
        conversation: ConversationId,
        turn: TurnId,
        version: UiVersion,
        begin: Begin,
        offered: Arc<[Arc<ToolDefinition>]>,
    ) -> Self {
        let mut chunks = Chunks::default();
        match begin {
            Begin::Turn => chunks.set_id(turn.0.get().saturating_sub(1)),
            Begin::Apart(known) if known == turn.0 => chunks.set_id(turn.0.get().saturating_sub(1)),
            Begin::Continue { after, .. } | Begin::After(after) => chunks.set_id(after.get()),
            // A message beside the turn's own: where to come back to is a place in that.
            Begin::Join(_) | Begin::Apart(_) | Begin::Answer(_) => {}
        }
        Self {
            conversation,
            turn,
            version,
            begin,
            offered,
            chunks,
            phase: match begin {
                Begin::Turn | Begin::Apart(_) | Begin::Answer(_) => Phase::Telling,
                Begin::Continue { .. } | Begin::Join(_) | Begin::After(_) => Phase::Quiet,
            },
            last: None,
            // Whoever comes back has the message already.
            is_started: matches!(begin, Begin::After(_)),
            step: Step::Closed,
            unsent_step: None,
            first: None,
            open: None,
            texts: 0,
            reasonings: 0,
            calls: Vec::new(),
            asked: Vec::new(),
            retaken: None,
            said_last: None,
            is_answering: false,
            joined: Vec::new(),
            said_meanwhile: Vec::new(),
            said_before: Vec::new(),
            answers: None,
            untold: Untold::Nothing,
            finish_reason: "stop",
            model: None,
            created_at_ms: None,
            end: None,
        }
    }

    /// Tells a frame. What is to be sent is appended to `out`.
    pub fn fold(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        if self.phase == Phase::Done {
            return;
        }
        self.unsent_step = None;
        self.first = self.last.is_none().then_some(out.len());
        let mut events = frame.events.iter();
        while let Some(event) = events.next() {
            self.come_back_before(event, out);
            self.is_answering = is_unseen_by_next(event, events.as_slice()).unwrap_or(self.step.is_open());
            if self.phase == Phase::Past {
                break;
            }
            let before = out.len();
            let was_quiet = self.phase == Phase::Quiet;
            self.event(event, events.as_slice(), out);
            self.stopping(event, events.as_slice(), out);
            self.start_before(before, out);
            if was_quiet && self.phase != Phase::Telling {
                out.truncate(before);
            }
        }
        if frame.has_caught_up {
            self.come_back(out);
            if self.end.is_some() {
                self.finish(out);
            }
        }
    }

    /// Whether the message is complete and the stream ends.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Tells that the stream ends before its message does, and why.
    pub fn cut_off(&mut self, why: &str, out: &mut Vec<u8>) {
        if self.phase != Phase::Done {
            self.phase = Phase::Done;
            self.chunks.error(out, why);
            self.chunks.plain(out, "[DONE]");
        }
    }

    /// Tells an event, after which these are told.
    fn event(&mut self, event: &Event, rest: &[Event], out: &mut Vec<u8>) {
        if goes_on(event, self.turn) {
            self.end = None;
        }
        match event {
            Event::Entry { seq, at_ms, entry } => self.entry(*seq, *at_ms, entry, out),
            Event::TurnStarted { turn_id, model } => {
                if *turn_id == self.turn {
                    self.model = Some(model.to_string());
                } else if *turn_id > self.turn {
                    self.phase = Phase::Past;
                }
            }
            Event::StepStarted { message_id } => self.step_started(*message_id, rest, out),
            Event::StepReset => self.reset(out),
            Event::StepFinished { finish_reason, .. } => {
                self.close_block(out);
                self.finish_reason = finish_reason;
                self.step = Step::Told;
            }
            Event::TextDelta { block, text, .. } | Event::RefusalDelta { block, text, .. } => {
                self.delta(BlockKind::Text, *block, text, out);
            }
            Event::ReasoningDelta { block, text, .. } => self.delta(BlockKind::Reasoning, *block, text, out),
            Event::ToolInputStarted { call_id, name, .. } => self.input_started(*call_id, name, out),
            Event::ToolInputDelta { call_id, text, .. } => {
                if self.call(*call_id).is_some_and(|call| call.is_announced) {
                    self.chunks.input_delta(out, *call_id, text);
                }
            }
            Event::ToolInputReady { call_id, name, arguments } => self.input_ready(*call_id, name, arguments, out),
            Event::ToolApprovalRequested { call_id, reason, rule, .. } => {
                self.approval_requested(*call_id, reason, rule.as_deref(), out);
            }
            Event::ToolApprovalDecided { call_id, .. } => self.approval_decided(*call_id, event, out),
            Event::ElicitationRequested { .. } => {
                self.elicitation(Asked::of(event), out);
            }
            Event::ElicitationAnswered { question_id, action, by, .. } => self.elicitation_over(*question_id, action, by, out),
            Event::ToolStarted { .. } | Event::SamplingFinished { .. } | Event::TurnHeld { .. } => {}
            Event::ToolProgress { call_id, progress, total, message } => {
                self.chunks.progress(out, *call_id, *progress, *total, message.as_deref());
            }
            Event::ToolFinished { call_id, .. } => {
                self.elicitations_closed(*call_id, out);
                self.tool_finished(*call_id, event, out);
            }
            Event::Usage { usage } => self.chunks.usage(out, usage, self.model.as_deref()),
            Event::Notice { level, text } => self.chunks.notice(out, level, text),
            Event::ContextGathered { message_id, parts } => self.chunks.sources(out, &message_id.to_string(), parts),
            Event::TurnSuspended { turn_id, .. } => {
                if *turn_id == self.turn {
                    self.end = Some(End::Suspended);
                }
            }
            Event::TurnFinished { turn_id, status, stop, .. } => {
                if *turn_id == self.turn {
                    self.end = Some(End::Finished { status, stop: *stop, error: event.why_it_ended().map(str::to_owned) });
                }
            }
        }
    }

    fn entry(&mut self, seq: Seq, at_ms: u64, entry: &Entry, out: &mut Vec<u8>) {
        if matches!((entry, &self.end), (Entry::User(_), Some(End::Finished { .. }))) {
            // It begins the next turn.
            self.phase = Phase::Past;
            return;
        }
        self.last = Some(seq);
        let is_due = match self.begin {
            Begin::Turn | Begin::After(_) | Begin::Apart(_) | Begin::Answer(_) => false,
            Begin::Continue { after, .. } => seq > after,
            Begin::Join(message) => seq >= message,
        };
        let begins_message = seq == self.turn.0 || self.begin == Begin::Join(seq);
        if begins_message {
            self.created_at_ms = Some(at_ms);
        }
        if self.phase == Phase::Quiet && is_due {
            self.speak(out);
        }
        match entry {
            Entry::User(message) => {
                self.said_last = Some(seq);
                if self.begin == Begin::Join(seq) && self.is_answering {
                    self.untold = Untold::Answer;
                }
                let is_said = !message.content.is_empty();
                if is_said && seq > self.turn.0 {
                    self.joined.push((seq, at_ms));
                }
                if is_said && !begins_message && self.version >= UiVersion::V7 && !self.is_at_its_place(seq) {
                    self.said(Said { seq, content: message.content.clone() }, out);
                }
            }
            Entry::Assistant(message) => {
                self.said_before.append(&mut self.said_meanwhile);
                if self.untold == Untold::Nothing {
                    self.media(message, out);
                }
                self.heard();
                // The one that was asked first may not be the one that answers.
                self.model = Some(format!("{}/{}", message.origin.provider, message.origin.model));
                self.retaken = Some(seq).filter(|_| is_taken_back(message, self.said_last));
            }
            Entry::Control(Control::Claimed(_)) => self.elicitations_lost(out),
            Entry::Control(Control::Offered { definitions }) => self.offered = definitions.clone().into(),
            Entry::Control(Control::Found { definitions }) => {
                self.offered = self.offered.iter().chain(definitions).cloned().collect();
            }
            Entry::Control(Control::Retried { .. }) => {
                // What is asked again is not shown again.
                if let Some(message) = self.retaken.take() {
                    self.step = if self.step == Step::Told { Step::Streaming } else { self.step };
                    self.reset(out);
                    self.take_back_step(out);
                    self.calls.retain(|call| call.id.message != message);
                }
            }
            Entry::Decision(_)
            | Entry::Question(_)
            | Entry::Started(_)
            | Entry::TaskAccepted(_)
            | Entry::Elicited(_)
            | Entry::Answered(_)
            | Entry::Sampled(_)
            | Entry::Result(_)
            | Entry::Control(_) => {}
        }
    }

    /// Ends the quiet part: from here on the client is told.
    fn speak(&mut self, out: &mut Vec<u8>) {
        self.phase = Phase::Telling;
        self.unsent_step = None;
        self.open = None;
        match self.begin {
            Begin::Turn | Begin::Apart(_) | Begin::Answer(_) => {}
            Begin::Continue { after, .. } => {
                self.start(out);
                self.chunks.set_id(after.get());
                self.step = Step::Closed;
            }
            Begin::After(after) => {
                self.chunks.set_id(after.get());
                self.take_up_step(out);
            }
            Begin::Join(_) => {
                for call in &mut self.calls {
                    call.is_announced = false;
                    call.is_asked_about = false;
                }
                if self.step != Step::Closed {
                    self.untold = Untold::Step;
                }
            }
        }
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let turn = self.turn.to_string();
        let joined = match self.begin {
            Begin::Continue { joined, .. } => joined,
            Begin::Join(message) => self.answers.max(Some(message)),
            Begin::Turn | Begin::After(_) | Begin::Apart(_) | Begin::Answer(_) => self.answers,
        };
        let joined = joined.map(|message| format!("{turn}_{message}"));
        let created_at = self.created_at_ms.map(timestamp);
        let start = Start {
            message_id: joined.as_deref().unwrap_or(&turn),
            turn_id: &turn,
            conversation_id: self.conversation.as_str(),
            model: self.model.as_deref(),
            created_at: created_at.as_deref(),
        };
        self.chunks.start(out, &start);
    }

    fn delta(&mut self, kind: BlockKind, block: u32, text: &str, out: &mut Vec<u8>) {
        if self.untold == Untold::Answer {
            self.step = Step::Streaming;
            return;
        }
        let number = match self.open {
            Some(open) if open.kind == kind && open.block == block => open.number,
            _ => self.open_block(kind, block, out),
        };
        self.chunks.block_delta(out, kind, number, text);
    }

    fn open_block(&mut self, kind: BlockKind, block: u32, out: &mut Vec<u8>) -> u32 {
        self.close_block(out);
        self.step = Step::Streaming;
        let count = match kind {
            BlockKind::Text => &mut self.texts,
            BlockKind::Reasoning => &mut self.reasonings,
        };
        *count = count.saturating_add(1);
        let number = *count;
        self.chunks.block_start(out, kind, number);
        self.open = Some(OpenBlock { kind, block, number });
        number
    }

    fn close_block(&mut self, out: &mut Vec<u8>) {
        if let Some(open) = self.open.take() {
            self.chunks.block_end(out, open.kind, open.number);
        }
    }

    /// Tells the pictures and sounds of a message, which come whole, after all its words.
    fn media(&mut self, message: &AssistantMessage, out: &mut Vec<u8>) {
        for media in message.media() {
            self.close_block(out);
            self.step = Step::Streaming;
            self.chunks.file(out, &media);
        }
    }

    /// Tells how the turn stands, and ends the stream.
    fn finish(&mut self, out: &mut Vec<u8>) {
        let Some(end) = self.end.take() else { return };
        self.phase = Phase::Done;
        self.start(out);
        self.close_block(out);
        self.said_before.append(&mut self.said_meanwhile);
        self.steer(out);
        for call in self.calls.iter().filter(|call| call.is_announced && call.arguments.is_none()) {
            let text = "the model's answer was cut off before this call was complete";
            let told = (definition(&self.offered, &call.name), call.changed.as_deref());
            self.chunks.output_error(out, call.id, text, told);
        }
        if self.step != Step::Closed && self.untold == Untold::Nothing {
            self.chunks.plain(out, r#"{"type":"finish-step"}"#);
        }
        if matches!(end, End::Suspended) && self.is_answered_and_waits() {
            // With the id of the stream's end: whoever comes back after it has the step before it whole.
            self.move_on();
            self.chunks.plain(out, r#"{"type":"start-step"}"#);
            // A step alone is shown to nobody: the library looks again at the message with what may have changed in it.
            self.chunks.plain(out, r#"{"type":"message-metadata","messageMetadata":{}}"#);
            self.chunks.plain(out, r#"{"type":"finish-step"}"#);
        }
        match end {
            End::Suspended => self.chunks.finish(out, "tool-calls"),
            End::Finished { status: "cancelled", .. } => self.chunks.plain(out, r#"{"type":"abort","reason":"stopped"}"#),
            End::Finished { status: "failed", error, .. } => {
                self.chunks.error(out, error.as_deref().unwrap_or("the turn failed"));
            }
            End::Finished { status: "step_limit", .. } => {
                self.chunks.notice(out, "warning", "The step limit of this turn is reached.");
                self.chunks.finish(out, "other");
            }
            End::Finished { stop: Some(stop), error: Some(summary), .. } => {
                self.chunks.stopped(out, stop, &summary);
                self.chunks.finish(out, "other");
            }
            End::Finished { .. } => self.chunks.finish(out, finish_word(self.finish_reason)),
        }
        self.move_on();
        self.chunks.plain(out, "[DONE]");
    }
}

/// Whether a retry hides a message that is the newest: it is broken, or models would be shown it last. As
/// `Turn::hidden_by_retry` of the core.
fn is_taken_back(message: &AssistantMessage, said_last: Option<Seq>) -> bool {
    let is_broken = message.completion != Completion::Complete || message.finish.reason == FinishReason::Error;
    let is_answer = message.calls().next().is_none() && message.finish.reason != FinishReason::Pause;
    is_broken || (is_answer && Some(message.saw) >= said_last)
}

/// Whether an event shows that the turn is not at the end that was told before.
fn goes_on(event: &Event, turn: TurnId) -> bool {
    match event {
        Event::TurnStarted { turn_id, .. } => *turn_id == turn,
        Event::StepStarted { .. }
        | Event::ElicitationAnswered { .. }
        | Event::ToolApprovalDecided { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. } => true,
        Event::Entry { .. }
        | Event::StepReset
        | Event::StepFinished { .. }
        | Event::TextDelta { .. }
        | Event::ReasoningDelta { .. }
        | Event::RefusalDelta { .. }
        | Event::ToolInputStarted { .. }
        | Event::ToolInputDelta { .. }
        | Event::ToolInputReady { .. }
        | Event::ToolApprovalRequested { .. }
        | Event::ElicitationRequested { .. }
        | Event::SamplingFinished { .. }
        | Event::ToolProgress { .. }
        | Event::Usage { .. }
        | Event::Notice { .. }
        | Event::ContextGathered { .. }
        | Event::TurnSuspended { .. }
        | Event::TurnHeld { .. }
        | Event::TurnFinished { .. } => false,
    }
}

fn finish_word(reason: &str) -> &'static str {
    match reason {
        "stop" => "stop",
        "tool_calls" => "tool-calls",
        "length" => "length",
        "content_filter" => "content-filter",
        "error" => "error",
        _ => "other",
    }
}
