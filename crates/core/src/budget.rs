//! How much of a model's window a prompt may take, and how much of it is known to be taken.
//!
//! What a provider said of the last prompt counts for more than any estimate: only what came since has to be measured. *Not
//! here:* counting, which needs a tokenizer.

use crate::prompt::{Prompt, PromptMessage};
use crate::{AssistantMessage, Control, Entry, Journal, ModelFacts, ModelRef, TurnSettings, compaction};

/// The part of a window that stays free, in hundredths: counts are not exact.
const RESERVE_PERCENT: u64 = 2;
/// The part of a window that an answer takes at most where nobody chose its length: one in so many.
const MAX_ANSWER_SHARE: u64 = 2;

/// What a model takes, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Prompt and answer together.
    pub window: u64,
    /// What is kept for the answer.
    pub answer: u64,
    /// What is kept since counts are not exact.
    pub reserve: u64,
}

impl Budget {
    /// The budget of a turn with a model of which this is known; `None` where its window is not.
    pub fn of(facts: &ModelFacts, settings: &TurnSettings) -> Option<Self> {
        let window = u64::from(facts.context_window?);
        let most = window / MAX_ANSWER_SHARE;
        let answer = settings.max_output_tokens.or(facts.max_output_tokens).map_or(0, u64::from).min(most);
        Some(Self { window, answer, reserve: window * RESERVE_PERCENT / 100 })
    }

    /// What a prompt may take, definitions of tools included.
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.answer).saturating_sub(self.reserve)
    }
}

/// How much of a prompt is known in tokens.
#[derive(Debug, Clone)]
pub struct Known<'a> {
    /// What the provider said of the beginning.
    pub tokens: u64,
    /// What came after it.
    pub rest: Vec<PromptMessage<'a>>,
}

impl Known<'_> {
    /// More tokens than all of it is.
    pub fn most_tokens(&self) -> u64 {
        self.tokens.saturating_add(most_tokens(&self.rest))
    }
}

/// What the provider of `model` said of the newest answer in a prompt of `journal`: the tokens of what it was asked and of what
/// it said, and what came after. `None` where it said nothing, another model answered, or what is shown changed since.
pub fn known<'a>(journal: &Journal, prompt: &Prompt<'a>, model: &ModelRef) -> Option<Known<'a>> {
    let place = prompt.messages.iter().rposition(|message| matches!(message, PromptMessage::Assistant { .. }))?;
    let Some(PromptMessage::Assistant { message, .. }) = prompt.messages.get(place) else { return None };
    let is_its = message.origin.provider == model.provider() && message.origin.model == model.model();
    let tokens = message.usage.input_tokens?.saturating_add(said(message));
    let later = journal.entries().iter().rev().take_while(|stored| stored.seq > message.saw);
    let is_changed = later.into_iter().any(|stored| match &*stored.entry {
        Entry::Control(control) => matches!(
            control,
            Control::Compacted(_)
                | Control::Uncompacted { .. }
                | Control::Hidden { .. }
                | Control::Offered { .. }
                | Control::Found { .. }
                | Control::Settings { .. }
                | Control::Retried { .. }
        ),
        _ => false,
    });
    let rest = || prompt.messages.iter().skip(place.saturating_add(1)).cloned().collect();
    (is_its && !is_changed).then(|| Known { tokens, rest: rest() })
}

/// What of an answer comes again in the next prompt; its thoughts may, so they count.
fn said(message: &AssistantMessage) -> u64 {
    message.usage.output_tokens.unwrap_or(0)
}

/// More tokens than these messages are: no token is shorter than a byte.
pub fn most_tokens(messages: &[PromptMessage<'_>]) -> u64 {
    let bytes: usize = messages.iter().map(compaction::bytes).sum();
    let frames = messages.len().saturating_mul(16);
    u64::try_from(bytes.saturating_add(frames)).unwrap_or(u64::MAX)
}
