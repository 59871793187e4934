//! The journal as a model is shown it.
//!
//! A projection, and a total one: every journal that the machine can produce becomes a prompt in which each assistant
//! message is followed by exactly one result per call, in call order (laws 2 and 3). Nothing is dropped to repair
//! anything. Each dialect builds its request from this.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::{
    ApprovalId, AssistantBlock, AssistantMessage, CallId, ContentBlock, Context, Control, ConversationId, Entry, Journal,
    MessageId, QuestionReason, Seq, SharedBeginning, StoredEntry, ToolCall, ToolChoice, ToolDefinition, ToolErrorKind,
    ToolResult, TurnSettings, UserMessage,
};

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct Prompt<'a> {
    /// The conversation that it comes from, where it comes from one.
    pub conversation: Option<PromptOf<'a>>,
    /// The turn's settings: model, system prompt, sampling, limits.
    pub settings: &'a TurnSettings,
    /// The conversation.
    pub messages: Vec<PromptMessage<'a>>,
    /// The tools, in their stored order.
    pub tools: &'a [Arc<ToolDefinition>],
    /// Whether the model may ask for tools.
    pub allow_calls: bool,
    /// Whether the model did not call what the turn demands since it was demanded, see [`crate::Turn::has_open_demand`].
    pub has_open_demand: bool,
}

/// Whose prompt it is; the same for all prompts of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct PromptOf<'a> {
    /// The conversation.
    pub id: &'a ConversationId,
    /// The entries with which others begin too, where it was made from such.
    pub beginning: Option<&'a SharedBeginning>,
}

impl Prompt<'_> {
    /// Whether and what the model must call now. What the turn demands is met once it called that, or no turn would end; a tool that
    /// is not offered cannot be demanded.
    pub fn tool_choice(&self) -> ToolChoice {
        let is_spoken_to =
            matches!(self.messages.last(), Some(PromptMessage::User { .. } | PromptMessage::Context { .. }) | None);
        let is_demanded = is_spoken_to || self.has_open_demand;
        let is_offered = |name: &String| self.tools.iter().any(|tool| tool.name == *name);
        match &self.settings.tool_choice {
            _ if !self.allow_calls => ToolChoice::None,
            Some(ToolChoice::None) => ToolChoice::None,
            Some(ToolChoice::Required) if is_demanded => ToolChoice::Required,
            Some(ToolChoice::Tool(name)) if is_demanded && is_offered(name) => ToolChoice::Tool(name.clone()),
            Some(ToolChoice::Tools(names)) if is_demanded => {
                let mut offered: Vec<String> = Vec::new();
                for name in names.iter().filter(|name| is_offered(name)) {
                    if !offered.contains(name) {
                        offered.push(name.clone());
                    }
                }
                match offered.as_slice() {
                    [] => ToolChoice::Auto,
                    [one] => ToolChoice::Tool(one.clone()),
                    _ => ToolChoice::Tools(offered),
                }
            }
            Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Tools(_)) | None => {
                ToolChoice::Auto
            }
        }
    }
}

/// One message of a prompt.
#[derive(Debug, Clone)]
pub enum PromptMessage<'a> {
    /// What a person said. Two may follow one another.
    User {
        /// Its place.
        seq: Seq,
        /// The message.
        message: &'a UserMessage,
    },
    /// What was gathered for the message of a person that comes next.
    Context {
        /// Its place.
        seq: Seq,
        /// What was gathered.
        context: &'a Context,
    },
    /// What a model said. Never empty.
    Assistant {
        /// Its place, the first half of its calls' ids.
        seq: Seq,
        /// The message.
        message: &'a AssistantMessage,
    },
    /// The results of the calls of the assistant message just before, one each, in call order.
    Results(Vec<PromptResult<'a>>),
}

/// The answer to one call.
#[derive(Debug, Clone)]
pub struct PromptResult<'a> {
    /// The call's name.
    pub id: CallId,
    /// The call.
    pub call: &'a ToolCall,
    /// Its result.
    pub result: ShownResult<'a>,
    /// The arguments that a person put in the place of the call's.
    pub edit: Option<&'a str>,
    /// What it is told besides since it goes in circles.
    pub nudge: Option<&'a str>,
}

/// The result that a call is shown with. Small where it is stored, as nearly all are: a prompt may hold thousands.
#[derive(Debug, Clone)]
pub enum ShownResult<'a> {
    /// The journal's.
    Stored(&'a ToolResult),
    /// Of nobody's journal.
    Made(Box<ToolResult>),
    /// There is none yet.
    Awaited {
        /// What says so to a model.
        result: Box<ToolResult>,
        /// What a person is asked about the call, where one is.
        asked: Option<(ApprovalId, QuestionReason)>,
    },
}

impl Deref for ShownResult<'_> {
    type Target = ToolResult;

    fn deref(&self) -> &ToolResult {
        match self {
            Self::Stored(result) => result,
            Self::Made(result) | Self::Awaited { result, .. } => result,
        }
    }
}

impl<'a> From<&'a ToolResult> for ShownResult<'a> {
    fn from(result: &'a ToolResult) -> Self {
        Self::Stored(result)
    }
}

impl From<ToolResult> for ShownResult<'_> {
    fn from(result: ToolResult) -> Self {
        Self::Made(Box::new(result))
    }
}

impl PromptResult<'_> {
    /// What the model must know besides: that a person changed the arguments, that they were not a JSON object, or that it goes
    /// in circles.
    pub fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        let arguments = &self.call.arguments;
        if !arguments.trim().is_empty() && !is_object(arguments) {
            let mut shown = arguments.chars();
            let raw: String = shown.by_ref().take(MAX_RAW_ARGUMENTS_SHOWN).collect();
            let rest = if shown.as_str().is_empty() { "" } else { " (and more)" };
            notes.push(format!("[The arguments of this call were not a JSON object: {}{rest}]", Value::from(raw)));
        }
        if let Some(edit) = self.edit {
            notes.push(change_note(edit));
        }
        notes.extend(self.nudge.map(str::to_owned));
        if notes.is_empty() { None } else { Some(notes.join("\n")) }
    }

    /// The result as one text, the note first; `(no output)` where there is nothing.
    pub fn text(&self) -> String {
        self.text_beside(|_| false)
    }

    /// As [`PromptResult::text`], without the blocks of which `is_shown` says that the model is shown them otherwise, unless
    /// nothing but them is there.
    pub fn text_beside(&self, is_shown: impl Fn(&ContentBlock) -> bool) -> String {
        let is_all_shown = self.result.content.iter().all(&is_shown);
        let mut text = self.note().unwrap_or_default();
        let mut add = |more: &str| {
            if !more.is_empty() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(more);
            }
        };
        for block in self.result.content.iter().filter(|block| is_all_shown || !is_shown(block)) {
            add(&block.as_text());
        }
        let has_text = self.result.content.iter().any(|block| matches!(block, ContentBlock::Text { .. }));
        if let (false, Some(structured)) = (has_text, &self.result.structured_content) {
            add(&structured.to_string());
        }
        if text.is_empty() { "(no output)".to_owned() } else { text }
    }
}

/// What stands before a result where a person put these arguments in the place of the call's (law 4).
pub fn change_note(arguments: &str) -> String {
    format!("[The user changed the arguments of this call to: {arguments}]")
}

/// The longest part of arguments that are not JSON that a model is shown again.
const MAX_RAW_ARGUMENTS_SHOWN: usize = 2_000;

impl ToolCall {
    /// The arguments as a JSON object text that every API accepts: the model's own where they are one, else `{}` (law 3).
    pub fn arguments_object(&self) -> &str {
        if is_object(&self.arguments) { &self.arguments } else { "{}" }
    }
}

fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<AnyJson>(text).is_ok()
}

/// Any JSON that a [`Value`] can hold, without building one. Unlike [`serde::de::IgnoredAny`] it refuses what readers
/// refuse: nesting without end, numbers out of range, broken escapes.
struct AnyJson;

impl<'de> Deserialize<'de> for AnyJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for AnyJson {
    type Value = Self;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

/// The prompt for the next model call of the newest turn.
pub fn of<'a>(
    conversation: &'a ConversationId,
    journal: &'a Journal,
    settings: &'a TurnSettings,
    allow_calls: bool,
) -> Prompt<'a> {
    let (messages, tools) = (messages(journal), journal.offered());
    let has_open_demand = journal.turn().is_some_and(crate::Turn::has_open_demand);
    let conversation = Some(PromptOf { id: conversation, beginning: journal.beginning() });
    Prompt { conversation, settings, messages, tools, allow_calls, has_open_demand }
}

/// The messages of a journal as a model is shown them: a summary in the place of what was compacted.
pub fn messages(journal: &Journal) -> Vec<PromptMessage<'_>> {
    let messages = history(journal);
    match journal.compaction() {
        Some(compaction) => compaction.show(messages),
        None => messages,
    }
}

/// The messages of a journal as models were shown them before any of it was compacted.
pub fn history(journal: &Journal) -> Vec<PromptMessage<'_>> {
    arranged(journal, |message| !journal.is_hidden(message))
}

/// What people and models said, in the order of [`history`], which is not the order of their places: with what is hidden, which
/// has its place in it too.
pub fn order(journal: &Journal) -> impl Iterator<Item = MessageId> {
    arranged(journal, |_| true).into_iter().filter_map(|message| match message {
        PromptMessage::User { seq, .. } | PromptMessage::Assistant { seq, .. } => Some(MessageId(seq)),
        PromptMessage::Context { .. } | PromptMessage::Results(_) => None,
    })
}

/// The messages that are shown, each behind what it saw.
fn arranged(journal: &Journal, is_shown: impl Fn(MessageId) -> bool) -> Vec<PromptMessage<'_>> {
    let mut messages = Vec::new();
    let mut unseen: Vec<Unseen<'_>> = Vec::new();
    let mut entries = journal.entries();
    while let [stored, rest @ ..] = entries {
        entries = rest;
        match &*stored.entry {
            Entry::User(_) | Entry::Assistant(_) if !is_shown(MessageId(stored.seq)) => {}
            Entry::User(message) => {
                unseen.push(Unseen { at: stored.seq, message: PromptMessage::User { seq: stored.seq, message } });
            }
            Entry::Control(Control::Context(context)) => gathered(journal, stored.seq, context, &mut unseen),
            Entry::Assistant(message) if is_empty(message) => {}
            Entry::Assistant(message) => {
                let later = unseen.iter().position(|unseen| unseen.at > message.saw).unwrap_or(unseen.len());
                messages.extend(unseen.drain(..later).map(|unseen| unseen.message));
                messages.push(PromptMessage::Assistant { seq: stored.seq, message });
                let answers = answers(stored.seq, message, rest);
                if !answers.is_empty() {
                    messages.push(PromptMessage::Results(answers));
                }
            }
            Entry::Decision(_)
            | Entry::Question(_)
            | Entry::Started(_)
            | Entry::Elicited(_)
            | Entry::TaskAccepted(_)
            | Entry::Answered(_)
            | Entry::Sampled(_)
            | Entry::Result(_)
            | Entry::Control(_) => {}
        }
    }
    messages.extend(unseen.into_iter().map(|unseen| unseen.message));
    messages
}

/// What no answer has seen yet.
struct Unseen<'a> {
    /// The place that tells whether an answer saw it: a message's own, or of the message that it was gathered for.
    at: Seq,
    message: PromptMessage<'a>,
}

/// Puts what was gathered before the message that it was gathered for; where that was answered meanwhile, behind all.
fn gathered<'a>(journal: &Journal, seq: Seq, context: &'a Context, unseen: &mut Vec<Unseen<'a>>) {
    // One that only tells people something says nothing to a model.
    if context.text.is_empty() || (!context.is_standing() && journal.is_hidden(context.message)) {
        return;
    }
    let is_it = |unseen: &Unseen<'_>| unseen.at == context.message.0 && matches!(unseen.message, PromptMessage::User { .. });
    let message = PromptMessage::Context { seq, context };
    match unseen.iter().position(is_it) {
        Some(place) => unseen.insert(place, Unseen { at: context.message.0, message }),
        None => unseen.push(Unseen { at: seq, message }),
    }
}

/// The answers to the calls of the message at `seq`, in call order. They are among the entries up to the next message of a
/// model: before that, every call has its result.
fn answers<'a>(seq: Seq, message: &'a AssistantMessage, rest: &'a [StoredEntry]) -> Vec<PromptResult<'a>> {
    struct Found<'a> {
        call: &'a ToolCall,
        result: Option<&'a ToolResult>,
        asked: Option<QuestionReason>,
        decided: u32,
        edit: Option<&'a str>,
        nudge: Option<&'a str>,
    }
    fn of<'f, 'a>(found: &'f mut [Found<'a>], seq: Seq, id: CallId) -> Option<&'f mut Found<'a>> {
        usize::try_from(id.index).ok().filter(|_| id.message == seq).and_then(|index| found.get_mut(index))
    }
    let open = |call| Found { call, result: None, asked: None, decided: 0, edit: None, nudge: None };
    let mut found: Vec<Found<'_>> = message.calls().map(open).collect();
    if found.is_empty() {
        return Vec::new();
    }
    for stored in rest {
        match &*stored.entry {
            Entry::Assistant(_) => break,
            Entry::Result(result) => {
                if let Some(found) = of(&mut found, seq, result.call) {
                    found.result = Some(result);
                }
            }
            Entry::Decision(decision) => {
                if let Some(found) = of(&mut found, seq, decision.call) {
                    found.asked = None;
                    found.decided = found.decided.saturating_add(1);
                    found.edit = decision.changed_arguments().or(found.edit);
                }
            }
            Entry::Question(question) => {
                if let Some(found) = of(&mut found, seq, question.call) {
                    found.asked = Some(question.reason).filter(|reason| *reason != QuestionReason::ClientTool);
                }
            }
            Entry::Control(Control::Nudged { call, text }) => {
                if let Some(found) = of(&mut found, seq, *call) {
                    found.nudge = Some(text);
                }
            }
            Entry::User(_)
            | Entry::Started(_)
            | Entry::Elicited(_)
            | Entry::TaskAccepted(_)
            | Entry::Answered(_)
            | Entry::Sampled(_)
            | Entry::Control(_) => {}
        }
    }
    let answers = found.into_iter().zip(0_u32..);
    answers
        .map(|(found, index)| {
            let id = CallId { message: seq, index };
            let awaited = || {
                let result = ToolResult::failed(id, ToolErrorKind::Interrupted, "This call has no result yet.");
                let number = found.decided.saturating_add(1);
                let asked = found.asked.map(|reason| (ApprovalId { call: id, number }, reason));
                ShownResult::Awaited { result: Box::new(result), asked }
            };
            let result = found.result.map_or_else(awaited, ShownResult::Stored);
            PromptResult { id, call: found.call, result, edit: found.edit, nudge: found.nudge }
        })
        .collect()
}

fn is_empty(message: &AssistantMessage) -> bool {
    message.blocks.iter().all(|block| match block {
        AssistantBlock::Text { text, native: None } | AssistantBlock::Refusal { text } => text.chars().all(char::is_whitespace),
        AssistantBlock::Reasoning { .. } => true,
        AssistantBlock::Text { .. } | AssistantBlock::Call(_) | AssistantBlock::Opaque { .. } => false,
    })
}
