//! Which part of a turn an answer tells, and what is known of it so far. Pure.
//!
//! The part begins after an entry: the user message that was sent, the place where the turn waited for what was given, the end
//! that a retry took back. It ends where the turn is over or waits; or, where answers are told apart, with the last answer to what was
//! said before somebody said more, and not where the turn waits for the client of another request.

use std::sync::Arc;

use turnwright_core::prompt::change_note;
use turnwright_core::{
    ApprovalId, CallId, Completion, ContentBlock, Control, ConversationId, CutOffCause, Decision, ElicitationId, Entry, Hold,
    OpenQuestion, ProviderFailure, QuestionReason, Seq, ToolDefinition, TurnId, Usage, text_of,
};
use turnwright_engine::Event;

use super::apart::Apart;
use crate::stopping::is_stop;

/// What an answer is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The turn.
    pub(crate) turn: TurnId,
    /// It comes after this entry.
    pub(crate) after: Seq,
    /// The calls that waited there.
    pub(crate) calls: Vec<Call>,
}

/// A call of the newest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// The arguments that a person put in their place.
    pub(crate) changed: Option<String>,
    /// What it waits for.
    pub(crate) waits: Option<QuestionReason>,
    /// How often it was decided about.
    pub(crate) decided: u32,
}

impl Call {
    /// The question about it that is open, or would come next.
    pub(crate) fn approval(&self) -> ApprovalId {
        ApprovalId { call: self.id, number: self.decided.saturating_add(1) }
    }

    /// What was decided about it may change its arguments.
    pub(crate) fn take_decision(&mut self, decision: &Decision) {
        self.waits = None;
        self.decided = self.decided.saturating_add(1);
        if let Some(changed) = decision.changed_arguments() {
            self.changed = Some(changed.to_owned());
        }
    }
}

/// What a call asks of people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) question: ElicitationId,
    /// What it says.
    pub(crate) message: String,
    /// Whether the call holds its connection for it, so that it ends with its driver.
    holds_connection: bool,
}

impl Asked {
    /// One that was asked before the part begins.
    pub(crate) fn of(question: &OpenQuestion<'_>) -> Self {
        let holds_connection = matches!(question.hold, Hold::Connection { .. });
        Self { question: question.id, message: question.ask.message.clone(), holds_connection }
    }
}

/// How the part ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The turn waits: for results of the client's, or for people, also where a call holds its connection for them.
    Suspended,
    /// It is over.
    Finished {
        /// `completed | cancelled | failed | step_limit | stopped`.
        status: &'static str,
        /// Why it was stopped: `refused | loop | budget`.
        stop: Option<&'static str>,
        /// Why, where it failed.
        error: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The entry that it begins after was not seen.
    Before,
    /// It was seen, and what follows from it may come.
    AtStart,
    /// What comes is told.
    Telling,
}

/// What people are told where a turn ends since the model was asked as often as it may be.
pub(crate) const STEP_LIMIT: &str =
    "Stopped here: the model was asked as often as it may be in one turn (`max_steps`). Another message goes on.";

/// What is known of a part so far.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) part: Part,
    phase: Phase,
    /// Which answers are of it, where answers are told apart.
    apart: Option<Apart>,
    /// Whether they are.
    is_apart: bool,
    pub(crate) calls: Vec<Call>,
    /// What calls ask of people.
    pub(crate) asked: Vec<Asked>,
    pub(crate) usage: Usage,
    /// Of the newest model call.
    pub(crate) finish_reason: &'static str,
    pub(crate) failure: Option<ProviderFailure>,
    /// Who said the newest message, as `PROVIDER/MODEL`: where that was not the model that was asked, one of its fallbacks.
    pub(crate) said_by: Option<String>,
    /// Whether the newest message was cut off.
    pub(crate) is_cut_off: bool,
    pub(crate) offered: Arc<[Arc<ToolDefinition>]>,
    /// Seconds since 1970 UTC; when the entry before it was stored.
    pub(crate) created: u64,
    /// When the newest entry was.
    pub(crate) newest: u64,
    pub(crate) end: Option<End>,
    /// Whether its end was told.
    pub(crate) is_told: bool,
}

impl Track {
    /// `offered` is what was offered when it began; a turn that begins tells itself.
    pub(crate) fn new(part: Part, offered: Arc<[Arc<ToolDefinition>]>) -> Self {
        Self {
            calls: part.calls.clone(),
            part,
            phase: Phase::Before,
            apart: None,
            is_apart: false,
            asked: Vec::new(),
            usage: Usage::default(),
            finish_reason: "stop",
            failure: None,
            said_by: None,
            is_cut_off: false,
            offered,
            created: 0,
            newest: 0,
            end: None,
            is_told: false,
        }
    }

    /// The same where the answers to what people say in one turn are told apart: to each request its own.
    pub(crate) fn apart(part: Part, offered: Arc<[Arc<ToolDefinition>]>) -> Self {
        Self { is_apart: true, ..Self::new(part, offered) }
    }

    /// The tool with this qualified name.
    pub(crate) fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        self.offered.iter().find(|tool| tool.name == name).map(|tool| &**tool)
    }

    /// The call, where it is of the newest message.
    pub(crate) fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == id)
    }

    /// What a call gave, as one text; where a person changed its arguments, that it says so first (law 4).
    pub(crate) fn result_text(&self, id: CallId, content: &[ContentBlock]) -> String {
        let text = text_of(content);
        match self.call(id).and_then(|call| call.changed.as_deref()) {
            Some(changed) => format!("{}\n{text}", change_note(changed)),
            None => text,
        }
    }

    /// Whether the client runs it.
    pub(crate) fn is_clients(&self, call: &Call) -> bool {
        // What brings its result may offer other tools from there on.
        let waited = |before: &Call| before.id == call.id && before.waits == Some(QuestionReason::ClientTool);
        if self.part.calls.iter().any(waited) || self.apart.as_ref().is_some_and(|apart| apart.is_handed(call.id)) {
            return true;
        }
        // Tools of sources have qualified names, which are not their own.
        self.definition(&call.name).is_some_and(|tool| tool.name == tool.tool)
    }

    /// The calls that wait for the client, where it is the one whose request they answer.
    pub(crate) fn handed_over(&self) -> impl Iterator<Item = &Call> {
        let are_others = self.apart.as_ref().is_some_and(Apart::calls_are_others);
        self.calls.iter().filter(move |call| !are_others && call.waits == Some(QuestionReason::ClientTool))
    }

    /// The calls that wait for a person.
    pub(crate) fn asked_about(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.waits.is_some_and(|reason| reason != QuestionReason::ClientTool))
    }

    /// The tokens, where anything is known of them.
    pub(crate) fn known_usage(&self) -> Option<Usage> {
        Some(self.usage).filter(|usage| usage.input_tokens.is_some() || usage.output_tokens.is_some())
    }

    /// How it ended where it is not a whole answer; `waiting` where a person is asked first.
    pub(crate) fn status(&self) -> Option<&'static str> {
        match &self.end {
            None | Some(End::Finished { status: "completed", .. }) => None,
            Some(End::Finished { status, .. }) => Some(*status),
            Some(End::Suspended) => {
                let is_asked = self.asked_about().next().is_some() || !self.asked.is_empty();
                is_asked.then_some("waiting")
            }
        }
    }

    /// Why it was stopped, where it was: `refused | loop | budget`.
    pub(crate) fn stop(&self) -> Option<&'static str> {
        match &self.end {
            Some(End::Finished { stop, .. }) => *stop,
            Some(End::Suspended) | None => None,
        }
    }

    /// What calls ask of people, each as a line of a text with the command that answers it.
    pub(crate) fn questions(&self, conversation: &ConversationId) -> impl Iterator<Item = String> {
        self.asked.iter().map(move |Asked { question, message, .. }| {
            format!("- {message}\n  `turnwright approvals answer {question} --conversation {conversation}`")
        })
    }

    /// Takes an event; says whether it belongs to the part.
    pub(crate) fn take(&mut self, event: &Event) -> bool {
        if self.end.is_some() {
            return false;
        }
        let is_told = match event {
            Event::Entry { seq, at_ms, entry } => self.entry(*seq, at_ms / 1_000, entry),
            _ => self.other(event),
        };
        let ends = match event {
            Event::StepFinished { .. } => true,
            Event::Entry { entry, .. } => matches!(**entry, Entry::User(_)),
            _ => false,
        };
        if ends && self.is_followed() {
            self.end = Some(End::Finished { status: "completed", stop: None, error: None });
        }
        is_told && (!self.is_before() || is_stop(event))
    }

    /// A message of the model's begins that is shown all up to this entry.
    pub(crate) fn begins(&mut self, saw: Seq) {
        self.apart.iter_mut().for_each(|apart| apart.begins(saw));
    }

    /// Whether the turn goes on behind it with an answer to what was said meanwhile.
    pub(crate) fn is_followed(&self) -> bool {
        self.apart.as_ref().is_some_and(Apart::is_over)
    }

    /// Whether what comes is of an answer that was begun before what the part answers.
    fn is_before(&self) -> bool {
        self.apart.as_ref().is_some_and(Apart::is_before)
    }

    fn other(&mut self, event: &Event) -> bool {
        match self.phase {
            Phase::Before => return false,
            Phase::AtStart => match event {
                Event::StepStarted { .. } | Event::TextDelta { .. } | Event::ReasoningDelta { .. } => {
                    self.phase = Phase::Telling;
                }
                _ => return false,
            },
            Phase::Telling => {}
        }
        self.follow(event);
        true
    }

    fn entry(&mut self, seq: Seq, at: u64, entry: &Entry) -> bool {
        self.newest = at;
        if seq < self.part.after {
            return false;
        }
        if seq == self.part.after {
            self.phase = Phase::AtStart;
            self.created = at;
            self.apart = self.is_apart.then(|| Apart::of(&self.part, entry));
            return false;
        }
        self.phase = Phase::Telling;
        self.apart.iter_mut().for_each(|apart| apart.take(seq, entry));
        match entry {
            Entry::Question(question) => self.wait(question.call, Some(question.reason)),
            Entry::Decision(decision) => {
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == decision.call) {
                    call.take_decision(decision);
                }
            }
            Entry::Result(result) => {
                self.wait(result.call, None);
                self.asked.retain(|asked| asked.question.call != result.call);
            }
            Entry::Control(Control::Offered { definitions }) => self.offered = definitions.as_slice().into(),
            Entry::Control(Control::Found { definitions }) => {
                self.offered = self.offered.iter().chain(definitions).cloned().collect();
            }
            Entry::Control(Control::Claimed(_)) => self.asked.retain(|asked| !asked.holds_connection),
            Entry::Control(Control::Failed(failure)) => self.failure = Some(failure.clone()),
            Entry::Assistant(message) => {
                self.calls.clear();
                self.said_by = Some(format!("{}/{}", message.origin.provider, message.origin.model));
                self.is_cut_off = message.completion != Completion::Complete;
                self.failure = match &message.completion {
                    Completion::CutOff(CutOffCause::Provider(failure)) => Some((**failure).clone()),
                    Completion::CutOff(CutOffCause::Cancelled) | Completion::Complete => None,
                };
            }
            Entry::User(_)
            | Entry::Started(_)
            | Entry::Elicited(_)
            | Entry::Answered(_)
            | Entry::TaskAccepted(_)
            | Entry::Sampled(_)
            | Entry::Control(_) => {}
        }
        true
    }

    fn wait(&mut self, id: CallId, reason: Option<QuestionReason>) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
            call.waits = reason;
        }
    }

    fn ready(&mut self, id: CallId, name: &str, arguments: &str) {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        self.calls.push(Call { id, name, arguments, changed: None, waits: None, decided: 0 });
    }

    /// What follows from entries, and deltas.
    fn follow(&mut self, event: &Event) {
        match event {
            Event::ToolInputReady { call_id, name, arguments } => self.ready(*call_id, name, arguments),
            Event::ElicitationRequested { question_id, message, holds_connection, .. } => {
                let (question, message, holds_connection) = (*question_id, message.clone(), *holds_connection);
                self.asked.push(Asked { question, message, holds_connection });
            }
            Event::ElicitationAnswered { question_id, .. } => self.asked.retain(|asked| asked.question != *question_id),
            Event::StepFinished { finish_reason, usage, .. } => {
                self.finish_reason = finish_reason;
                if !self.is_before() {
                    self.usage = self.usage.plus(*usage);
                }
            }
            Event::TurnSuspended { turn_id, .. } | Event::TurnHeld { turn_id, .. } if *turn_id == self.part.turn => {
                let waits_on = self.apart.as_ref().is_some_and(Apart::waits_on);
                self.end = (!waits_on).then_some(End::Suspended);
            }
            Event::TurnFinished { turn_id, status, stop, .. } if *turn_id == self.part.turn => {
                self.end = Some(End::Finished { status, stop: *stop, error: event.why_it_ended().map(str::to_owned) });
            }
            _ => {}
        }
    }
}
