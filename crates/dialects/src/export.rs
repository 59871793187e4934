//! A conversation in the forms in which vendors' libraries hold one.
//!
//! [`export`] writes the messages alone: what [`turnwright_core::prompt::history`] gives, whole. The vendors' forms are
//! written by the dialects' own writers, for a target that no message came from: what only its provider understands
//! (signatures, ciphertext) stays out. The forms of the AI SDK are written here, see `ai_sdk`.

mod ai_sdk;
mod ui;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::Serialize;
use serde_json::value::RawValue;
use turnwright_core::prompt::PromptMessage;
use turnwright_core::{AssistantBlock, MessageId, ModelFacts, Origin, TurnId};

use crate::dialect::Target;
use crate::kept::MessageWriter;
use crate::profile::{Profile, SystemRole};
use crate::{anthropic, gemini, openai_chat};

/// A form in which a conversation leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// OpenAI's Chat Completions messages.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's contents.
    Gemini,
    /// The model messages of the AI SDK, version 6 and newer.
    AiSdk,
    /// The UI messages of the AI SDK, version 5 and newer.
    AiSdkUi,
}

impl ExportForm {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::AiSdk, Self::AiSdkUi];

    /// Its name on the command line and in the HTTP API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai-sdk",
            Self::AiSdkUi => "ai-sdk-ui",
        }
    }

    /// Whether the system prompt is one of its messages. Where not, it goes beside them in a request.
    pub const fn holds_system(self) -> bool {
        match self {
            Self::OpenAi | Self::AiSdk | Self::AiSdkUi => true,
            Self::Anthropic | Self::Gemini => false,
        }
    }
}

impl fmt::Display for ExportForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no form's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no form; there are {}", ExportForm::ALL.map(ExportForm::as_str).join(", "))]
pub struct UnknownForm {
    name: String,
}

impl FromStr for ExportForm {
    type Err = UnknownForm;
    fn from_str(name: &str) -> Result<Self, UnknownForm> {
        let found = Self::ALL.into_iter().find(|form| form.as_str() == name);
        found.ok_or_else(|| UnknownForm { name: name.chars().take(40).collect() })
    }
}

/// A part of a history that cannot be cut further: what a person said, or what a model said with the results of its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Which messages.
    pub range: Range<usize>,
    /// The newest message of a person or a model in it.
    pub last: MessageId,
    /// How many messages it counts for, a result being one.
    pub weight: usize,
}

/// What is written of a conversation.
#[derive(Debug, Clone)]
pub struct History<'a> {
    /// All its messages.
    pub messages: &'a [PromptMessage<'a>],
    /// Which of them.
    pub range: Range<usize>,
    /// Its turns, oldest first: UI messages have their names. Empty where there are none.
    pub turns: &'a [TurnId],
}

impl<'a> History<'a> {
    /// The whole of it.
    pub const fn whole(messages: &'a [PromptMessage<'a>], turns: &'a [TurnId]) -> Self {
        Self { messages, range: 0..messages.len(), turns }
    }
}

/// Where a history can be cut: between two messages of the form, so that its parts put together are the whole of it.
pub fn pieces(form: ExportForm, messages: &[PromptMessage<'_>]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut before, mut is_after_user) = (None, true);
    for (message, at) in messages.iter().zip(0..) {
        let (last, weight) = match message {
            PromptMessage::Context { .. } => continue,
            PromptMessage::User { seq, .. } | PromptMessage::Assistant { seq, .. } => (Some(MessageId(*seq)), 1),
            PromptMessage::Results(results) => (None, results.len()),
        };
        let side = Side::of(message);
        let goes_on = last.is_none()
            || match form {
                ExportForm::OpenAi | ExportForm::AiSdk => false,
                // Neighbours of one side are one message, or have something between them that nobody said.
                ExportForm::Anthropic | ExportForm::Gemini => side.is_none() || side == before || before.is_none(),
                // All that a model said between two messages of a person.
                ExportForm::AiSdkUi => matches!(message, PromptMessage::Assistant { .. }) && !is_after_user,
            };
        match (pieces.last_mut(), last) {
            (Some(piece), last) if goes_on => {
                piece.range.end = at + 1;
                piece.last = last.unwrap_or(piece.last);
                piece.weight += weight;
            }
            (_, Some(last)) => pieces.push(Piece { range: at..at + 1, last, weight }),
            // Results without what they answer, which no history begins with.
            (_, None) => {}
        }
        before = side.or(before);
        is_after_user = matches!(message, PromptMessage::User { .. });
    }
    pieces
}

/// Whose message it is where there are two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The person's, with the results of calls.
    User,
    /// The model's.
    Model,
}

impl Side {
    /// `None` where nothing of it is shown to a model that did not say it.
    fn of(message: &PromptMessage<'_>) -> Option<Self> {
        match message {
            PromptMessage::User { .. } | PromptMessage::Context { .. } | PromptMessage::Results(_) => Some(Self::User),
            PromptMessage::Assistant { message, .. } => message.blocks.iter().any(is_shown).then_some(Self::Model),
        }
    }
}

/// Whether a block is shown to a model that did not say it.
fn is_shown(block: &AssistantBlock) -> bool {
    match block {
        AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => !text.trim().is_empty(),
        AssistantBlock::Call(_) => true,
        AssistantBlock::Opaque { .. } => block.media().is_some(),
        AssistantBlock::Reasoning { .. } => false,
    }
}

/// The messages of a history in a form, each JSON text. `system` is the first of them where the form has a place for it.
pub fn export(form: ExportForm, system: Option<&str>, history: &History<'_>) -> Vec<Box<RawValue>> {
    let system = system.filter(|text| !text.trim().is_empty() && form.holds_system());
    // What was gathered beside a message is nobody's message.
    let exported = history.messages.get(history.range.clone()).unwrap_or_default();
    let said: Vec<PromptMessage<'_>> =
        exported.iter().filter(|message| !matches!(message, PromptMessage::Context { .. })).cloned().collect();
    let messages = said.as_slice();
    match form {
        ExportForm::OpenAi => {
            let mut list: Vec<_> = system.into_iter().filter_map(|content| raw(&System { role: "system", content })).collect();
            list.extend(written(openai_chat::Writer::for_readers(&NEUTRAL), messages));
            list
        }
        ExportForm::Anthropic => without_opening(history, written(anthropic::Writer::new(), messages)),
        ExportForm::Gemini => without_opening(history, written(gemini::Writer::default(), messages)),
        ExportForm::AiSdk => ai_sdk::messages(system, messages),
        ExportForm::AiSdkUi => {
            let before = history.messages.get(..history.range.start).unwrap_or_default();
            let said = before.iter().rev().find_map(|message| match message {
                PromptMessage::User { seq, .. } => Some(*seq),
                PromptMessage::Context { .. } | PromptMessage::Assistant { .. } | PromptMessage::Results(_) => None,
            });
            ui::messages(system, messages, &ui::Names { turns: history.turns, said })
        }
    }
}

/// The messages without what the writer puts before a model's message that nothing comes before: here something does.
fn without_opening(history: &History<'_>, mut written: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
    let first = history.messages.get(history.range.clone()).and_then(<[_]>::first);
    if history.range.start > 0 && matches!(first, Some(PromptMessage::Assistant { .. })) && !written.is_empty() {
        written.remove(0);
    }
    written
}

/// An endpoint that takes all that the format's own maker takes.
const NEUTRAL: Profile = Profile { system_role: SystemRole::System, ..Profile::OPENAI };

#[derive(Serialize)]
struct System<'a> {
    role: &'static str,
    content: &'a str,
}

/// What a dialect's writer makes of messages that came from nowhere that it knows.
fn written(mut writer: impl MessageWriter, messages: &[PromptMessage<'_>]) -> Vec<Box<RawValue>> {
    let nobody = Origin { dialect: String::new(), provider: String::new(), model: String::new() };
    let target = Target { origin: &nobody, profile: &NEUTRAL, model: &ModelFacts::default() };
    let mut out = vec![b'['];
    for message in messages {
        writer.push(&target, message, &mut out);
    }
    writer.close(&mut out);
    out.push(b']');
    serde_json::from_slice(&out).unwrap_or_default()
}

fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}
