//! What may be spent on models, and what was (docs/budgets.md).
//!
//! Before a model is asked, what the call may come to is reserved; once its end is stored, what it came to is known. Here are the
//! amounts, the decision whether a call is within its budgets, and what a call came to. What a journal tells of all that adds up
//! in `budgets/books.rs`. *Not here:* the limits of an installation, and what others spent: whoever drives brings both.

use serde::{Deserialize, Serialize};

use crate::{DriverId, ElicitationId, ModelRef, Prices, Usage};

mod books;
mod period;
mod words;

pub use books::{Books, Closed, OpenReservation};
pub use period::Period;
pub use words::dollars;
pub(crate) use words::summary;

/// How many of these are a US dollar. Whole numbers add up to the same in whatever order.
pub const NANO_USD: u64 = 1_000_000_000;
/// The least that is kept for an answer: where a budget has less left, no model is asked. In tokens.
pub const LEAST_ANSWER: u64 = 256;
/// Bytes of an answer that count as a token where its provider does not say how many it was.
const BYTES_PER_TOKEN: u64 = 3;

/// Something that models took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Tokens of prompts and answers together.
    pub tokens: u64,
    /// What they cost, in billionths of a US dollar; 0 where no price is known.
    #[serde(default)]
    pub nano_usd: u64,
}

impl Amount {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), nano_usd: self.nano_usd.saturating_add(other.nano_usd) }
    }
}

/// The most that may be spent. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Most {
    /// Tokens of prompts and answers together.
    pub tokens: Option<u64>,
    /// In billionths of a US dollar.
    pub nano_usd: Option<u64>,
}

impl Most {
    /// Whether it limits nothing.
    pub fn is_none(&self) -> bool {
        self.tokens.is_none() && self.nano_usd.is_none()
    }

    /// Whether so much is within it.
    pub fn allows(&self, amount: Amount) -> bool {
        self.tokens.is_none_or(|most| amount.tokens <= most) && self.nano_usd.is_none_or(|most| amount.nano_usd <= most)
    }
}

/// What a budget is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// One turn; a retry begins anew.
    Turn,
    /// One conversation, from its beginning on.
    Conversation,
    /// One user in one day, UTC.
    UserDay,
    /// One user in one calendar month, UTC.
    UserMonth,
    /// The whole installation in one day, UTC.
    Day,
}

impl BudgetKind {
    /// The word of the configuration and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Conversation => "conversation",
            Self::UserDay => "user_day",
            Self::UserMonth => "user_month",
            Self::Day => "day",
        }
    }

    /// The time in which it counts that a moment, in milliseconds since 1970 UTC, is in; `None` where it counts over all time.
    pub fn period(self, at_ms: u64) -> Option<Period> {
        match self {
            Self::Turn | Self::Conversation => None,
            Self::UserDay | Self::Day => Some(Period::day_of(at_ms)),
            Self::UserMonth => Some(Period::month_of(at_ms)),
        }
    }
}

/// A budget as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgeted {
    /// What it is for.
    pub kind: BudgetKind,
    /// The limit; it limits something.
    pub most: Most,
    /// What was spent.
    pub spent: Amount,
    /// What calls may come to that are under way.
    pub reserved: Amount,
    /// When it begins anew, in milliseconds since 1970 UTC; `None` where it does not.
    pub resets_at_ms: Option<u64>,
}

/// What is counted where a budget does not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// Tokens.
    Tokens,
    /// Billionths of a US dollar.
    NanoUsd,
}

/// Why a model was not asked, or was not given more room for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStop {
    /// The budget that does not suffice.
    pub budget: BudgetKind,
    /// In what the numbers are.
    pub unit: BudgetUnit,
    /// Its limit.
    pub limit: u64,
    /// What was spent of it.
    pub spent: u64,
    /// What calls that were under way might have taken of it.
    #[serde(default)]
    pub reserved: u64,
    /// The least that the call would have had to reserve; `None` where the model's price is not known, so that nobody can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<u64>,
    /// When the budget begins anew, in milliseconds since 1970 UTC; `None` where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at_ms: Option<u64>,
}

/// What a model call is made for. There is at most one for each at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The turn's next message.
    Answer,
    /// A summary in the place of the conversation's beginning, for which a turn waits.
    Summary,
    /// The same, asked for by a person, beside whatever turn is open.
    SummaryByHand,
    /// The answer to what a tool wants a model to be asked.
    Sampling(ElicitationId),
}

impl Purpose {
    /// Its name among those of a conversation.
    pub fn key(self) -> String {
        match self {
            Self::Answer => "answer".to_owned(),
            Self::Summary => "summary".to_owned(),
            Self::SummaryByHand => "summary_by_hand".to_owned(),
            Self::Sampling(question) => question.to_string(),
        }
    }
}

/// What a model call may come to. Stored before the model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// What the call is for.
    pub purpose: Purpose,
    /// The model that is asked.
    pub model: ModelRef,
    /// The prompt, as far as that can be said before.
    pub input: Amount,
    /// The longest answer that it is asked for.
    pub output: Amount,
    /// The budget that made the answer's limit lower than it would be without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowered_by: Option<BudgetStop>,
    /// The process that makes the call, where that is made under no claim: [`Purpose::SummaryByHand`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverId>,
}

/// What a model call is about to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// What the call is for.
    pub purpose: Purpose,
    /// The model that is asked.
    pub model: ModelRef,
    /// About how many tokens its prompt is.
    pub input_tokens: u64,
    /// The most tokens that its answer should have.
    pub output_tokens: u64,
    /// What they cost, where that is known.
    pub prices: Option<Prices>,
}

/// Whether a call is within its budgets, and with what limit for its answer: as much as all of them have left, at most what the
/// estimate wants, at least [`LEAST_ANSWER`] or what it wants.
///
/// # Errors
/// The first budget that has not even that left, or that is in money where the price is not known.
pub fn reserve(budgets: &[Budgeted], estimate: &Estimate) -> Result<Reserved, BudgetStop> {
    let wanted = estimate.output_tokens;
    let least = wanted.min(LEAST_ANSWER);
    let (mut answer, mut lowered_by) = (wanted, None);
    for budget in budgets {
        for (unit, limit) in [(BudgetUnit::Tokens, budget.most.tokens), (BudgetUnit::NanoUsd, budget.most.nano_usd)] {
            let Some(limit) = limit else { continue };
            let of = |amount: Amount| match unit {
                BudgetUnit::Tokens => amount.tokens,
                BudgetUnit::NanoUsd => amount.nano_usd,
            };
            let (spent, reserved) = (of(budget.spent), of(budget.reserved));
            let (kind, resets_at_ms) = (budget.kind, budget.resets_at_ms);
            let stop = |needed: Option<u64>| BudgetStop { budget: kind, unit, limit, spent, reserved, needed, resets_at_ms };
            if unit == BudgetUnit::NanoUsd && estimate.prices.is_none() {
                return Err(stop(None));
            }
            let of_answer = |tokens| estimate.amounts(tokens);
            let cost = |(input, output): (Amount, Amount)| of(input.plus(output));
            let left = limit.saturating_sub(spent).saturating_sub(reserved);
            if cost(of_answer(least)) > left {
                return Err(stop(Some(cost(of_answer(least)))));
            }
            if cost(of_answer(answer)) > left {
                // The longest that is not too long: what it costs grows with its length.
                let (mut fits, mut too_long) = (least, answer);
                while too_long.saturating_sub(fits) > 1 {
                    let middle = fits.saturating_add(too_long.saturating_sub(fits) / 2);
                    if cost(of_answer(middle)) > left { too_long = middle } else { fits = middle }
                }
                lowered_by = Some(stop(Some(cost(of_answer(wanted)))));
                answer = fits;
            }
        }
    }
    let (input, output) = estimate.amounts(answer);
    Ok(Reserved { purpose: estimate.purpose, model: estimate.model.clone(), input, output, lowered_by, driver: None })
}

impl Estimate {
    /// The prompt, and an answer of so many tokens. Whether a cache is read is not known before; that it is written is the dearest.
    fn amounts(&self, output_tokens: u64) -> (Amount, Amount) {
        let nano = |input: u64, output: u64| {
            let usage = |written| Usage {
                input_tokens: Some(input),
                output_tokens: Some(output),
                cache_write_tokens: written,
                ..Usage::default()
            };
            let cost = |written| self.prices.as_ref().and_then(|prices| prices.cost(&usage(written))).unwrap_or(0.0);
            nano_usd(cost(None).max(cost(Some(input))))
        };
        let input = Amount { tokens: self.input_tokens, nano_usd: nano(self.input_tokens, 0) };
        let all = nano(self.input_tokens, output_tokens);
        (input, Amount { tokens: output_tokens, nano_usd: all.saturating_sub(input.nano_usd) })
    }
}

/// An amount of US dollars in billionths, no less than it is. Nothing where it is none, or no number.
pub fn nano_usd(usd: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from a float stops at the ends")]
    #[expect(clippy::cast_precision_loss, reason = "a power of ten")]
    let nano = (usd * NANO_USD as f64 - 1e-6).ceil() as u64;
    nano
}

/// What became of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// It ended as it should.
    Whole,
    /// It was cut off after it had said something.
    CutOff,
    /// It failed before it said anything.
    Failed,
    /// It was dropped before it said anything: nobody waited for it any more.
    Dropped,
    /// Its process is gone, and nobody knows.
    Lost,
}

impl Reserved {
    /// All that the call may come to.
    pub fn amount(&self) -> Amount {
        self.input.plus(self.output)
    }

    /// What the call came to that ended so, as far as `usage` tells, with so many bytes said. What a provider does not tell is
    /// estimated: the prompt as it was reserved, the answer by its length. A call that failed counts nothing unless its provider
    /// says so, one that was dropped its prompt, one that is lost all that was reserved.
    pub fn came_to(&self, end: CallEnd, usage: &Usage, said_bytes: u64) -> Amount {
        let said = said_bytes.div_ceil(BYTES_PER_TOKEN);
        let told = usage.input_tokens.is_some() || usage.output_tokens.is_some();
        let (input, output) = match end {
            CallEnd::Lost => return self.amount(),
            CallEnd::Dropped => (Some(self.input.tokens), Some(0)),
            CallEnd::Failed if !told => return Amount::default(),
            CallEnd::Failed => (usage.input_tokens, usage.output_tokens.or(Some(0))),
            CallEnd::Whole => (usage.input_tokens, usage.output_tokens),
            // What a provider counted when it was cut off may be from the beginning of the answer.
            CallEnd::CutOff => (usage.input_tokens, usage.output_tokens.map(|tokens| tokens.max(said))),
        };
        let input = part(self.input, input.unwrap_or(self.input.tokens));
        let output = part(self.output, output.unwrap_or_else(|| said.min(self.output.tokens)));
        let amount = input.plus(output);
        match usage.cost_usd {
            Some(cost) if end == CallEnd::Whole => Amount { nano_usd: nano_usd(cost), ..amount },
            Some(_) | None => amount,
        }
    }
}

/// So many tokens at the price of these.
fn part(of: Amount, tokens: u64) -> Amount {
    let nano = u128::from(of.nano_usd).saturating_mul(u128::from(tokens)).checked_div(u128::from(of.tokens));
    let nano_usd = nano.map_or(0, |nano| u64::try_from(nano).unwrap_or(u64::MAX));
    Amount { tokens, nano_usd }
}

#[cfg(test)]
mod tests;
