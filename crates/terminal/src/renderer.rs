//! Events in, text out. Pure: the same events give the same text.

use std::collections::{BTreeMap, HashMap};

use turnwright_core::{AssistantMessage, CallId, ContextPart, Entry, MessageId, counted};
use turnwright_engine::Event;

use crate::abridge::both_ends;
use crate::clean::{clean_line, clean_text};
use crate::look::{Look, Paint};
use crate::screen::{Piece, Stream};
use crate::tool_line::{self, Call, Finished};

/// The most lines of progress of one call.
const MAX_PROGRESS_LINES: u32 = 20;

/// Turns events into text. What is told twice, since a watcher came back or a message had to move, is shown once.
#[derive(Debug)]
pub struct Renderer {
    look: Look,
    /// Whether the answer's last line is not ended.
    is_line_open: bool,
    message: Option<MessageId>,
    /// Whether what comes next repeats the step that is shown.
    is_repeating: bool,
    blocks: BTreeMap<u32, Shown>,
    refusal: String,
    /// Why the newest message ended, in the word of its event; empty while it has not.
    finish_reason: &'static str,
    has_thought: bool,
    /// How many pictures and sounds the newest message has.
    media: usize,
    calls: HashMap<CallId, Call>,
    /// How many calls the newest message has.
    step_calls: usize,
    progress_lines: HashMap<CallId, u32>,
}

/// A block of the message in flight.
#[derive(Debug, Default)]
struct Shown {
    /// What is on the screen.
    text: String,
    /// How much of it was told since the step last began.
    told: usize,
}

impl Renderer {
    /// A renderer for text that looks like this.
    pub fn new(look: Look) -> Self {
        Self {
            look,
            is_line_open: false,
            message: None,
            is_repeating: false,
            blocks: BTreeMap::new(),
            refusal: String::new(),
            finish_reason: "",
            has_thought: false,
            media: 0,
            calls: HashMap::new(),
            step_calls: 0,
            progress_lines: HashMap::new(),
        }
    }

    /// How text looks.
    pub fn look(&self) -> Look {
        self.look
    }

    /// Takes note of a call that was asked for before anybody looked.
    pub fn know(&mut self, call: CallId, name: &str, arguments: &str) {
        self.step_calls = self.step_calls.max(usize::try_from(call.index).unwrap_or(usize::MAX).saturating_add(1));
        self.calls.insert(call, Call { name: name.to_owned(), arguments: arguments.to_owned() });
    }

    /// Shows an event.
    pub fn render(&mut self, event: &Event, out: &mut Vec<Piece>) {
        match event {
            Event::StepStarted { message_id } => self.begin(*message_id),
            Event::StepReset => {
                self.is_repeating = true;
                self.rewind();
            }
            Event::TextDelta { block, offset, text } => self.text(*block, *offset, text, out),
            Event::ReasoningDelta { .. } => self.think(out),
            Event::RefusalDelta { text, .. } => self.refusal.push_str(text),
            Event::StepFinished { finish_reason, .. } => {
                self.finish_reason = finish_reason;
                self.finish_step(out);
            }
            Event::ToolInputReady { call_id, name, arguments } => self.know(*call_id, name, arguments),
            Event::ToolApprovalDecided { call_id, arguments: Some(arguments), .. } => {
                if let Some(call) = self.calls.get_mut(call_id) {
                    call.arguments.clone_from(arguments);
                }
            }
            Event::ToolStarted { call_id } => {
                let line = tool_line::started(&self.call(*call_id), self.look);
                self.aside(&line, out);
            }
            Event::ToolProgress { call_id, progress, total, message } => {
                self.progress(*call_id, *progress, *total, message.as_deref(), out);
            }
            Event::ToolFinished { call_id, outcome, is_error, content, duration_ms, .. } => {
                let end = Finished { outcome, is_error: *is_error, content, duration_ms: *duration_ms };
                let needs_arguments = self.step_calls > 1 || duration_ms.is_none();
                let line = tool_line::finished(&self.call(*call_id), &end, needs_arguments, self.look);
                self.aside(&line, out);
            }
            Event::Notice { level, text } => self.aside(&format!("{level}: {}", clean_line(&both_ends(text))), out),
            Event::ContextGathered { parts, .. } => self.sources(parts, out),
            Event::TurnFinished { status: "completed" | "step_limit", .. } if self.finish_reason == "length" => {
                let text = if self.has_said_nothing() {
                    "note: the model reached its limit for one answer before it said anything"
                } else {
                    "note: the answer ends here: the model's limit for one answer is reached"
                };
                self.aside(text, out);
            }
            Event::TurnFinished { status: "completed", .. } if self.has_said_nothing() => {
                self.aside("note: the model ended with an empty answer", out);
            }
            Event::ElicitationAnswered { by: "deadline", .. } => self.aside("note: nobody answered the question in time", out),
            Event::ElicitationAnswered { by: "nobody", .. } => {
                self.aside("note: a tool asked for something and nobody is here to ask; it was told no", out);
            }
            Event::ElicitationAnswered { by: "asker", action: "accept", .. } => {
                self.aside("note: the tool says that what it wanted to have opened is done", out);
            }
            Event::ElicitationAnswered { by: "asker", .. } => {
                self.aside("note: the tool took its question back", out);
            }
            Event::ElicitationAnswered { by: "policy", action: "decline", reason: Some(reason), .. } => {
                self.aside(&format!("note: a tool wanted a model to be asked; it was told no: {}", clean_line(reason)), out);
            }
            Event::SamplingFinished { error: Some(error), .. } => {
                self.aside(&format!("note: a model that a tool wanted to be asked gave no answer: {}", clean_line(error)), out);
            }
            Event::SamplingFinished { error: None, usage, .. } => {
                let tokens = usage.output_tokens.map(|tokens| format!(" ({})", counted(tokens, "token"))).unwrap_or_default();
                self.aside(&format!("note: a model answered a tool{tokens}"), out);
            }
            Event::TurnSuspended { .. } | Event::TurnFinished { .. } => self.end_line(out),
            Event::Entry { entry, .. } => {
                if let Entry::Assistant(message) = &**entry {
                    self.media(message, out);
                }
            }
            Event::TurnStarted { .. }
            | Event::ToolInputStarted { .. }
            | Event::ToolInputDelta { .. }
            | Event::ToolApprovalRequested { .. }
            | Event::ElicitationRequested { .. }
            | Event::ElicitationAnswered { .. }
            | Event::ToolApprovalDecided { arguments: None, .. }
            | Event::TurnHeld { .. }
            | Event::Usage { .. } => {}
        }
    }

    /// Names what the model is shown besides the message.
    fn sources(&mut self, parts: &[ContextPart], out: &mut Vec<Piece>) {
        const MOST_NAMED: usize = 8;
        let mut names: Vec<String> =
            parts.iter().take(MOST_NAMED).map(|part| clean_line(&part.to_string()).into_owned()).collect();
        if let Some(more) = parts.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            names.push(format!("{more} more"));
        }
        self.aside(&format!("context: {}", names.join("; ")), out);
    }

    /// Shows a line beside the answer. The line may have colour: whoever made it has cleaned it.
    pub fn aside(&mut self, line: &str, out: &mut Vec<Piece>) {
        if self.look.is_one_screen {
            self.end_line(out);
        }
        out.push(Piece { stream: Stream::Aside, text: format!("{line}\n") });
    }

    /// Whether the newest message showed nothing to read.
    fn has_said_nothing(&self) -> bool {
        self.message.is_some()
            && self.media == 0
            && self.refusal.is_empty()
            && self.blocks.values().all(|shown| shown.text.trim().is_empty())
    }

    /// Ends the answer's last line.
    fn end_line(&mut self, out: &mut Vec<Piece>) {
        if std::mem::take(&mut self.is_line_open) {
            push_answer("\n", out);
        }
    }

    fn begin(&mut self, message: MessageId) {
        let is_same = self.message == Some(message) || self.is_repeating;
        self.message = Some(message);
        self.is_repeating = false;
        if is_same {
            self.rewind();
        } else {
            self.blocks.clear();
            self.has_thought = false;
            self.media = 0;
            self.step_calls = 0;
        }
        self.refusal.clear();
        self.finish_reason = "";
    }

    /// What is told from here on begins the step again.
    fn rewind(&mut self) {
        self.blocks.values_mut().for_each(|shown| shown.told = 0);
    }

    fn text(&mut self, block: u32, offset: u64, text: &str, out: &mut Vec<Piece>) {
        let shown = self.blocks.entry(block).or_default();
        // A delta that lies before what was told already is known.
        if usize::try_from(offset).is_ok_and(|offset| offset < shown.told) {
            return;
        }
        let known = shown.text.len().saturating_sub(shown.told).min(text.len());
        let is_same = shown.text.get(shown.told..shown.told + known).is_some_and(|before| Some(before) == text.get(..known));
        let new = if is_same {
            shown.told += text.len();
            let new = text.get(known..).unwrap_or_default();
            shown.text.push_str(new);
            new.to_owned()
        } else {
            // The model was asked again and says something else.
            let mut again = shown.text.get(..shown.told).unwrap_or_default().to_owned();
            again.push_str(text);
            shown.told = again.len();
            shown.text.clone_from(&again);
            self.end_line(out);
            self.aside("note: the answer had to begin again", out);
            again
        };
        let new = if self.look.answer_is_on_terminal { clean_text(&new) } else { new.into() };
        if !new.is_empty() {
            self.is_line_open = !new.ends_with('\n');
            push_answer(&new, out);
        }
    }

    fn think(&mut self, out: &mut Vec<Piece>) {
        if self.look.is_one_screen && !self.has_thought {
            self.has_thought = true;
            let line = self.look.paint(Paint::Quiet, "thinking …");
            self.aside(&line, out);
        }
    }

    fn finish_step(&mut self, out: &mut Vec<Piece>) {
        self.end_line(out);
        if !self.refusal.is_empty() {
            let refusal = std::mem::take(&mut self.refusal);
            self.aside(&format!("refused: {}", clean_text(&refusal)), out);
        }
    }

    /// Says what a terminal does not show.
    fn media(&mut self, message: &AssistantMessage, out: &mut Vec<Piece>) {
        for media in message.media() {
            self.media += 1;
            self.aside(&format!("note: the model answered with {media}, which is not shown here"), out);
        }
    }

    fn progress(&mut self, id: CallId, progress: f64, total: Option<f64>, message: Option<&str>, out: &mut Vec<Piece>) {
        let lines = self.progress_lines.entry(id).or_default();
        if *lines < MAX_PROGRESS_LINES {
            *lines += 1;
            let line = tool_line::progressed(&self.call(id), progress, total, message, self.look);
            self.aside(&line, out);
        }
    }

    /// A call that was asked for before anybody looked is known by its id alone.
    fn call(&self, id: CallId) -> Call {
        self.calls.get(&id).cloned().unwrap_or_else(|| Call { name: id.to_string(), arguments: String::new() })
    }
}

fn push_answer(text: &str, out: &mut Vec<Piece>) {
    match out.last_mut() {
        Some(Piece { stream: Stream::Answer, text: before }) => before.push_str(text),
        _ => out.push(Piece { stream: Stream::Answer, text: text.to_owned() }),
    }
}
