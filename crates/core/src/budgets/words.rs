//! What is told of a budget that does not suffice.

use std::fmt::Write as _;

use super::{BudgetKind, BudgetStop, BudgetUnit, NANO_USD, period};
use crate::tried::{Story, Tried, short};
use crate::{Entry, ModelRef, Turn, counted};

/// How many calls a summary names.
const MAX_CALLS: usize = 12;
/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;
/// Minutes of a day.
const DAY_MINUTES: u64 = 1_440;

/// An amount of money for people: two digits after the point, or as many as it takes to show anything of a small one.
pub fn dollars(nano_usd: u64) -> String {
    let text = format!("{}.{:09}", nano_usd / NANO_USD, nano_usd % NANO_USD);
    let (whole, cents) = text.split_once('.').unwrap_or((&text, ""));
    let first = cents.find(|digit| digit != '0').unwrap_or(0);
    // Three digits that say something below a dollar, cents above.
    let digits = if nano_usd >= NANO_USD || nano_usd == 0 { 2 } else { first.saturating_add(3).max(2) };
    let shown = cents.get(..digits.min(cents.len())).unwrap_or(cents);
    let kept = shown.trim_end_matches('0').len().max(2).min(shown.len());
    format!("{whole}.{} USD", shown.get(..kept).unwrap_or(shown))
}

impl BudgetStop {
    /// In one or two sentences.
    pub fn told(&self) -> String {
        self.told_of("the model")
    }

    /// The same of a model by its name.
    pub fn told_of_model(&self, model: &ModelRef) -> String {
        self.told_of(&format!("the model `{model}`"))
    }

    fn told_of(&self, model: &str) -> String {
        let what = match self.budget {
            BudgetKind::Turn => "this turn's budget",
            BudgetKind::Conversation => "this conversation's budget",
            BudgetKind::UserDay => "your budget for the day",
            BudgetKind::UserMonth => "your budget for the month",
            BudgetKind::Day => "the installation's budget for the day",
        };
        let of = |number: u64| match self.unit {
            BudgetUnit::Tokens => format!("{number} tokens"),
            BudgetUnit::NanoUsd => dollars(number),
        };
        let name = self.budget.as_str();
        let limit = of(self.limit);
        let Some(needed) = self.needed else {
            return format!(
                "{what} (`budgets.{name}`) is {limit}, and the price of {model} is not known, so that nobody can \
                 say what it would spend of it: give its price in the configuration (0 where it costs nothing), or a limit in tokens"
            );
        };
        let mut text = format!("{what} (`budgets.{name}`) is {limit}, of which {} are spent", of(self.spent));
        if self.reserved > 0 {
            let _ = write!(text, " and {} kept for calls that are under way", of(self.reserved));
        }
        let _ = write!(text, "; the next question to the model may take {}", of(needed));
        match self.resets_at_ms {
            Some(at_ms) => {
                let _ = write!(text, ". It begins anew on {}", moment(at_ms));
            }
            None if self.budget == BudgetKind::Turn => {
                text.push_str(". A retry, and another message, have a budget of their own");
            }
            None => text.push_str(". It does not begin anew: go on in another conversation"),
        }
        text
    }
}

/// A moment, to the minute.
fn moment(at_ms: u64) -> String {
    let minutes = at_ms / MINUTE_MS;
    let (year, month, day) = period::date(minutes / DAY_MINUTES);
    let of_day = minutes % DAY_MINUTES;
    format!("{year:04}-{month:02}-{day:02} at {:02}:{:02} UTC", of_day / 60, of_day % 60)
}

/// Why a turn was stopped, and what was done in it, for people. `entries` are the turn's.
pub(crate) fn summary<'a>(stop: &BudgetStop, turn: &Turn, entries: impl Iterator<Item = &'a Entry>) -> String {
    let story = Story::of(entries);
    let mut text = format!("Stopped: {}.", stop.told_of_model(turn.model()));
    let failed: Vec<String> = turn.failed_models().map(|model| format!("`{model}`")).collect();
    if !failed.is_empty() {
        let _ = write!(text, "\nIt was to be asked in the place of {}, of which no answer came.", failed.join(", "));
    }
    let calls: Vec<&Tried<'_>> = story.rounds.iter().flatten().collect();
    if calls.is_empty() && story.said.is_empty() {
        text.push_str("\nNothing was done. What you wrote is kept; a retry answers it once the budget allows.");
        return text;
    }
    if !calls.is_empty() {
        text.push_str("\nWhat was done:");
        let left_out = calls.len().saturating_sub(MAX_CALLS);
        if left_out > 0 {
            let _ = write!(text, "\n- {}, and then", counted(left_out, "call"));
        }
        for tried in calls.into_iter().skip(left_out) {
            let _ = write!(text, "\n- {}", tried.told());
        }
    }
    if !story.said.is_empty() {
        let _ = write!(text, "\nWhat the model said last: {}", short(&story.said));
    }
    text
}
