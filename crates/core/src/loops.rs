//! When a model goes in circles, and what is said about it (docs/loops.md).
//!
//! Which rounds of a turn repeat, its fold knows (`turn/rounds.rs`). Here are the limits, the mark by which two calls or two
//! results are the same, and the words for the model and for people.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tried::{Story, Tried, short};
use crate::{ContentBlock, Entry, Outcome, ToolResult};

/// After how many repetitions of the same rounds something is done. `None` is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopLimits {
    /// The model is told, beside the result; at least 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nudge: Option<u32>,
    /// A person is asked before it goes on, where the approve mode asks people; at least 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<u32>,
    /// The turn is stopped; at least 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<u32>,
}

impl LoopLimits {
    /// No loop is noticed. What a turn that was stored without limits runs with.
    pub const OFF: Self = Self { nudge: None, ask: None, stop: None };

    pub(crate) fn off() -> Self {
        Self::OFF
    }

    pub(crate) fn is_off(&self) -> bool {
        *self == Self::OFF
    }
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self { nudge: Some(3), ask: Some(5), stop: Some(8) }
    }
}

/// The newest rounds of a turn, which are what came before them once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// How often they came in a row; at least 2.
    pub times: u32,
    /// How many rounds repeat; 1 where it is the same round again and again.
    pub period: u32,
}

impl Repetition {
    /// What the model is told beside the result of the call that repeats.
    pub(crate) fn nudge(self, limits: LoopLimits) -> String {
        let Self { times, period } = self;
        let what = match period {
            1 => format!("you have made this call {times} times in a row with the same arguments, and the result is the same"),
            _ => {
                format!("you have made the same {period} rounds of calls {times} times in a row, and the results are the same")
            }
        };
        let left = limits.stop.map(|stop| stop.saturating_sub(times)).filter(|left| *left > 0);
        let end = match left {
            None => String::new(),
            Some(1) => " The turn is stopped if it comes once more.".to_owned(),
            Some(left) => format!(" The turn is stopped if it comes {left} more times."),
        };
        format!("[Note: {what}. Repeating it changes nothing: try something else, or answer with what you know.{end}]")
    }

    /// Why a person is asked.
    pub(crate) fn rule(self) -> String {
        let Self { times, period } = self;
        match period {
            1 => format!("the model repeats itself: this {times} times in a row, with the same result"),
            _ => format!(
                "the model repeats itself: the same {period} rounds of calls {times} times in a row, with the same results"
            ),
        }
    }
}

/// How many calls from before the loop a summary names.
const MAX_BEFORE: usize = 10;

/// What was tried in a turn that went in circles, and what came of it, for people. `entries` are the turn's.
pub(crate) fn summary<'a>(repetition: Repetition, entries: impl Iterator<Item = &'a Entry>) -> String {
    let Repetition { times, period } = repetition;
    let Story { mut rounds, said } = Story::of(entries);
    let period_of = usize::try_from(period).unwrap_or(usize::MAX);
    let circling = rounds.split_off(rounds.len().saturating_sub(period_of));
    let mut text = match period {
        1 => format!("The model made the same call {times} times in a row, with the same result each time:"),
        _ => {
            format!("The model made the same {period} rounds of calls {times} times in a row, with the same results each time:")
        }
    };
    let mut told: Vec<String> = Vec::new();
    for tried in circling.iter().flatten() {
        let line = tried.told();
        if !told.contains(&line) {
            let _ = write!(text, "\n- {line}");
            told.push(line);
        }
    }
    let mut before: Vec<String> = Vec::new();
    for line in rounds.iter().flatten().map(Tried::told) {
        if !told.contains(&line) && !before.contains(&line) {
            before.push(line);
        }
    }
    if !before.is_empty() {
        text.push_str("\nBefore that it tried:");
        let left_out = before.len().saturating_sub(MAX_BEFORE);
        for line in before.iter().skip(left_out) {
            let _ = write!(text, "\n- {line}");
        }
        if left_out > 0 {
            let _ = write!(text, "\n- and {left_out} more calls before these");
        }
    }
    if !said.is_empty() {
        let _ = write!(text, "\nWhat it said last: {}", short(&said));
    }
    text
}

/// What two calls have in common that ask for the same: the name, and the arguments as JSON in whatever order and spacing.
pub(crate) fn mark_of_call(name: &str, arguments: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let text = arguments.trim();
    match serde_json::from_str::<Value>(if text.is_empty() { "{}" } else { text }) {
        Ok(value) => hash_json(&value, &mut hasher),
        Err(_) => text.hash(&mut hasher),
    }
    hasher.finish()
}

/// What two results have in common that are the same. How long it took is no part of them; of a failure nothing but its
/// kind is: what differs in its words is mostly a time, or the number of a request.
pub(crate) fn mark_of_result(result: &ToolResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    match result.outcome {
        Outcome::Success => {}
        Outcome::Denied => "denied".hash(&mut hasher),
        Outcome::Error(kind) => kind.as_str().hash(&mut hasher),
    }
    if result.outcome == Outcome::Success {
        for block in &result.content {
            hash_block(block, &mut hasher);
        }
        if let Some(structured) = &result.structured_content {
            hash_json(structured, &mut hasher);
        }
    }
    hasher.finish()
}

/// The member of results that says how long it took.
const DURATION: &str = "duration_ms";

fn hash_block(block: &ContentBlock, hasher: &mut DefaultHasher) {
    let text = block.as_text();
    if text.contains(DURATION)
        && let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(&text)
    {
        return hash_json(&value, hasher);
    }
    match block {
        ContentBlock::Text { .. } => text.hash(hasher),
        // The words that stand for what is no text may be the same for different things.
        other => serde_json::to_string(other).unwrap_or_default().hash(hasher),
    }
}

fn hash_json(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(is) => (1_u8, is).hash(hasher),
        Value::Number(number) => {
            2_u8.hash(hasher);
            // 1 and 1.0 are one number.
            number.as_f64().map(f64::to_bits).hash(hasher);
            if number.as_f64().is_some_and(|float| float.abs() >= EXACT) {
                number.to_string().hash(hasher);
            }
        }
        Value::String(text) => (3_u8, text).hash(hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            for item in items {
                hash_json(item, hasher);
            }
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().filter(|(name, _)| *name != DURATION).collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            (5_u8, members.len()).hash(hasher);
            for (name, value) in members {
                name.hash(hasher);
                hash_json(value, hasher);
            }
        }
    }
}

/// From here on not every whole number has a floating one of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;
