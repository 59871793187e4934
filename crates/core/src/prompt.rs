//! The journal as a model is shown it.
//!
//! A projection, and a total one: every journal that the machine can produce becomes a prompt in which each assistant
//! message is followed by exactly one result per call, in call order (laws 2 and 3). Nothing is dropped to repair
//! anything. Each dialect builds its request from this.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::{
    AssistantBlock, AssistantMessage, CallId, ContentBlock, Entry, Journal, Seq, ToolCall, ToolDefinition, ToolErrorKind,
    ToolResult, TurnSettings, UserMessage,
};

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct Prompt<'a> {
    /// The turn's settings: model, system prompt, sampling, limits.
    pub settings: &'a TurnSettings,
    /// The conversation.
    pub messages: Vec<PromptMessage<'a>>,
    /// The tools, in their stored order.
    pub tools: &'a [Arc<ToolDefinition>],
    /// Whether the model may ask for tools.
    pub allow_calls: bool,
}

/// One message of a prompt.
#[derive(Debug, Clone)]
pub enum PromptMessage<'a> {
    /// What a person said. Two may follow one another.
    User(&'a UserMessage),
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
    pub result: Cow<'a, ToolResult>,
    /// What the model must know besides: that a person changed the arguments, or that they were not JSON.
    pub note: Option<String>,
}

impl PromptResult<'_> {
    /// The result as one text, the note first; `(no output)` where there is nothing (`provider-wire-formats.md` section 8.2).
    pub fn text(&self) -> String {
        let mut text = self.note.clone().unwrap_or_default();
        let mut add = |more: &str| {
            if !more.is_empty() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(more);
            }
        };
        for block in &self.result.content {
            add(&block.as_text());
        }
        let has_text = self.result.content.iter().any(|block| matches!(block, ContentBlock::Text { .. }));
        if let (false, Some(structured)) = (has_text, &self.result.structured_content) {
            add(&structured.to_string());
        }
        if text.is_empty() { "(no output)".to_owned() } else { text }
    }
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
    text.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The prompt for the next model call of the newest turn.
pub fn of<'a>(journal: &'a Journal, settings: &'a TurnSettings, allow_calls: bool) -> Prompt<'a> {
    Prompt { settings, messages: messages(journal), tools: journal.offered(), allow_calls }
}

/// The messages of a journal as a model is shown them.
pub fn messages(journal: &Journal) -> Vec<PromptMessage<'_>> {
    let mut results: HashMap<CallId, &ToolResult> = HashMap::new();
    let mut edits: HashMap<CallId, &str> = HashMap::new();
    for stored in journal.entries() {
        match &*stored.entry {
            Entry::Result(result) => drop(results.insert(result.call, result)),
            Entry::Decision(decision) => drop(decision.arguments.as_deref().map(|text| edits.insert(decision.call, text))),
            _ => {}
        }
    }
    let mut messages = Vec::new();
    let mut unseen: Vec<(Seq, &UserMessage)> = Vec::new();
    for stored in journal.entries() {
        match &*stored.entry {
            _ if journal.is_hidden(crate::MessageId(stored.seq)) => {}
            Entry::User(message) => unseen.push((stored.seq, message)),
            Entry::Assistant(message) if is_empty(message) => {}
            Entry::Assistant(message) => {
                let (seen, later) = unseen.into_iter().partition(|(seq, _)| *seq <= message.saw);
                let seen: Vec<(Seq, &UserMessage)> = seen;
                unseen = later;
                messages.extend(seen.into_iter().map(|(_, user)| PromptMessage::User(user)));
                messages.push(PromptMessage::Assistant { seq: stored.seq, message });
                let answers: Vec<PromptResult<'_>> = message
                    .calls()
                    .zip(0_u32..)
                    .map(|(call, index)| {
                        let id = CallId { message: stored.seq, index };
                        answer(id, call, results.get(&id).copied(), edits.get(&id).copied())
                    })
                    .collect();
                if !answers.is_empty() {
                    messages.push(PromptMessage::Results(answers));
                }
            }
            Entry::Decision(_) | Entry::Question(_) | Entry::Started(_) | Entry::Result(_) | Entry::Control(_) => {}
        }
    }
    messages.extend(unseen.into_iter().map(|(_, user)| PromptMessage::User(user)));
    messages
}

fn is_empty(message: &AssistantMessage) -> bool {
    message.blocks.iter().all(|block| match block {
        AssistantBlock::Text { text, native: None } | AssistantBlock::Refusal { text } => text.is_empty(),
        AssistantBlock::Reasoning { .. } => true,
        AssistantBlock::Text { .. } | AssistantBlock::Call(_) | AssistantBlock::Opaque { .. } => false,
    })
}

fn answer<'a>(id: CallId, call: &'a ToolCall, result: Option<&'a ToolResult>, edit: Option<&str>) -> PromptResult<'a> {
    let result = result.map_or_else(
        || Cow::Owned(ToolResult::failed(id, ToolErrorKind::Interrupted, "This call has no result yet.")),
        Cow::Borrowed,
    );
    let note = if let Some(edit) = edit {
        Some(format!("[The user changed the arguments of this call to: {edit}]"))
    } else if call.arguments.trim().is_empty() || is_object(&call.arguments) {
        None
    } else {
        let shown: String = call.arguments.chars().take(MAX_RAW_ARGUMENTS_SHOWN).collect();
        Some(format!("[The arguments of this call were not a JSON object: {}]", Value::from(shown)))
    };
    PromptResult { id, call, result, note }
}
