//! The question for a summary: how much of a conversation it shows, how long the answer may be, and what of that is taken.

use std::fmt;

use super::{Cut, MAX_SUMMARY_BYTES, MIN_BYTES, SHARE_THAT_STAYS, digest, said};
use crate::budget::Budget;
use crate::prompt::{Prompt, PromptMessage};
use crate::{ModelFacts, ModelRef, Seq, TurnSettings, UserMessage};

/// The most that a model whose window is not known is given to make a summary of, in bytes, where it has read no more.
const MAX_UNKNOWN_BYTES: usize = 200_000;
/// The most tokens of a model's summary.
const MAX_SUMMARY_TOKENS: u64 = 4_096;
/// The part of what a prompt may take that a summary takes at most: one in so many. Beside it stands the newest quarter.
const SUMMARY_SHARE: u64 = 4;
/// The part of a window that the question and its answer may take, in hundredths: no provider has counted this text yet, and some
/// leave out what is too much without a word.
const WINDOW_PERCENT: u64 = 90;
/// What a text is taken for that nobody counts, in bytes a token.
const BYTES_PER_TOKEN: usize = 3;
/// How much longer than it may be a summary is by an estimate before it is cut, in hundredths: the model counts otherwise.
const TOLERATED_PERCENT: u64 = 125;
/// How often a text is made shorter until it fits.
const MAX_TRIES: usize = 6;

/// A model that is asked for a summary.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The model.
    pub model: &'a ModelRef,
    /// What is known of it.
    pub facts: &'a ModelFacts,
    /// About how many tokens a prompt is for it; `None` where nobody can say.
    pub measure: &'a dyn Fn(&Prompt<'_>) -> Option<u64>,
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("model", self.model).field("facts", self.facts).finish_non_exhaustive()
    }
}

impl Asked<'_> {
    /// The most tokens of its summary: a share of what a prompt may take.
    pub(super) fn answer_tokens(&self) -> u64 {
        let budget = Budget::of(self.facts, &TurnSettings::new(self.model.clone()));
        let share = budget.map_or(MAX_SUMMARY_TOKENS, |budget| (budget.room() / SUMMARY_SHARE).max(1));
        share.min(MAX_SUMMARY_TOKENS).min(self.facts.max_output_tokens.map_or(u64::MAX, u64::from))
    }

    /// About how many tokens a text is.
    pub(super) fn tokens(&self, text: &str) -> u64 {
        self.count(&TurnSettings::new(self.model.clone()), text)
    }

    fn count(&self, settings: &TurnSettings, text: &str) -> u64 {
        let message = said(text.to_owned(), settings.clone());
        (self.measure)(&ask(settings, &message)).unwrap_or_else(|| {
            let system_prompt = settings.system_prompt.as_ref().map_or(0, String::len);
            u64::try_from(text.len().saturating_add(system_prompt).div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
        })
    }
}

/// Why an answer is no summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSummary {
    /// It says nothing.
    Empty,
    /// It is longer than what it is to stand for.
    NoShorter,
}

/// The question for a summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    settings: TurnSettings,
    message: UserMessage,
    /// About how many bytes of text the summary is to stand for.
    stands_for_bytes: usize,
    /// A transcript that is a good deal shorter than what was shown, where the whole one is longer than that.
    shorter: Option<String>,
}

impl Request {
    /// The same for an answer that is no longer than so many tokens.
    #[must_use]
    pub fn within(mut self, most_tokens: Option<u32>) -> Self {
        self.settings.max_output_tokens = self.settings.max_output_tokens.into_iter().chain(most_tokens).min();
        self
    }

    /// The question for whoever refused this one as too long; `None` where it cannot be a good deal shorter.
    #[must_use]
    pub fn shorter(self) -> Option<Self> {
        let message = said(question(&self.shorter?), self.settings.clone());
        Some(Self { message, shorter: None, settings: self.settings, stands_for_bytes: self.stands_for_bytes })
    }

    /// As a model is asked it, without tools and apart from the conversation.
    pub fn prompt(&self) -> Prompt<'_> {
        ask(&self.settings, &self.message)
    }

    /// What of an answer is taken as the summary: all of it, or beginning and end where it is longer than it may be.
    ///
    /// # Errors
    /// [`NoSummary`], where it says nothing or is longer than what it is to stand for.
    pub fn summary(&self, answer: &str, asked: &Asked<'_>) -> Result<String, NoSummary> {
        let answer = answer.trim();
        if answer.is_empty() {
            return Err(NoSummary::Empty);
        }
        if answer.len() > self.stands_for_bytes.max(MIN_BYTES) {
            return Err(NoSummary::NoShorter);
        }
        let most = self.settings.max_output_tokens.map_or(MAX_SUMMARY_TOKENS, u64::from);
        let excerpt = |bytes| digest::excerpt(answer, bytes).into_owned();
        if asked.tokens(answer) <= most.saturating_mul(TOLERATED_PERCENT) / 100 {
            return Ok(excerpt(MAX_SUMMARY_BYTES));
        }
        Ok(fitting(most, MAX_SUMMARY_BYTES, excerpt, |text| asked.tokens(text)))
    }
}

/// The question for a summary of what is cut.
pub(super) fn of(cut: &Cut<'_>, asked: &Asked<'_>) -> Request {
    let answer_tokens = asked.answer_tokens();
    let settings = TurnSettings {
        system_prompt: Some(instructions(answer_tokens)),
        max_output_tokens: Some(u32::try_from(answer_tokens).unwrap_or(u32::MAX)),
        ..TurnSettings::new(asked.model.clone())
    };
    let short_bytes = (cut.shown_bytes / SHARE_THAT_STAYS).clamp(MIN_BYTES, MAX_UNKNOWN_BYTES);
    let transcript = match asked.facts.context_window.map(u64::from) {
        Some(window) => {
            let besides = asked.count(&settings, &question(""));
            let room = (window * WINDOW_PERCENT / 100).saturating_sub(answer_tokens).saturating_sub(besides);
            let count = |text: &str| asked.count(&settings, &question(text)).saturating_sub(besides);
            fitting(room, usize::MAX, |bytes| cut.told(bytes), count)
        }
        None => cut.told(short_bytes.max(cut.read_by(asked.model))),
    };
    let shorter = (transcript.len() > short_bytes).then(|| cut.told(short_bytes));
    Request {
        message: said(question(&transcript), settings.clone()),
        settings,
        stands_for_bytes: cut.messages.iter().map(digest::bytes).sum(),
        shorter,
    }
}

/// What a model is told that is asked for a summary of so many tokens.
fn instructions(answer_tokens: u64) -> String {
    let words = (answer_tokens * 3 / 5).clamp(30, 800);
    format!(
        "You are given the transcript of a conversation between a user and an assistant that works with tools. Where parts of it \
         are left out, it says so. Write a summary from which the assistant can go on: what the user wants, what was decided, \
         what was done with which tools and what came of it, names, paths, numbers and identifiers that are still needed, and \
         what remains to be done. Write plain text, no more than {words} words, and nothing besides the summary."
    )
}

fn question(transcript: &str) -> String {
    format!("The transcript:\n\n{transcript}")
}

fn ask<'a>(settings: &'a TurnSettings, message: &'a UserMessage) -> Prompt<'a> {
    let messages = vec![PromptMessage::User { seq: Seq::FIRST, message }];
    Prompt { conversation: None, settings, messages, tools: &[], allow_calls: false, has_open_demand: false }
}

/// A text of at most so many tokens and bytes, as `make` gives it for a number of bytes.
pub(super) fn fitting(
    most_tokens: u64,
    most_bytes: usize,
    make: impl Fn(usize) -> String,
    count: impl Fn(&str) -> u64,
) -> String {
    let mut text = make(most_bytes);
    let mut bytes = most_bytes.min(text.len());
    for _ in 0..MAX_TRIES {
        let tokens = count(&text);
        if tokens <= most_tokens {
            break;
        }
        // A little less than what the ratio says: not every part of a text has as many tokens.
        let less = u128::try_from(bytes).unwrap_or(u128::MAX).saturating_mul(u128::from(most_tokens)) * 19 / 20;
        bytes = usize::try_from(less / u128::from(tokens)).unwrap_or(bytes);
        text = make(bytes);
    }
    text
}
