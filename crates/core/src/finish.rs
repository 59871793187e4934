//! How model calls and turns end, and what they cost.

use serde::{Deserialize, Serialize};

use crate::BudgetStop;

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said all it wanted.
    Stop,
    /// It asks for tools.
    ToolCalls,
    /// It reached its output limit.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider wants to be asked again to go on.
    Pause,
    /// The provider says that something went wrong.
    Error,
}

impl FinishReason {
    /// The word of the HTTP API and the command line: `stop | tool_calls | length | content_filter | error`.
    pub fn as_contract(self) -> &'static str {
        match self {
            Self::Stop | Self::Pause => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter | Self::Refusal => "content_filter",
            Self::Error => "error",
        }
    }
}

/// A finish reason with the provider's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// The normalized reason.
    pub reason: FinishReason,
    /// The provider's word; `None` where it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// Tokens of one model call. `None` is unknown, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// The whole prompt, cached part included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The whole answer, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The part of the prompt that came from the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The part of the prompt that was written to the provider's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of the answer that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// What it cost, in US dollars, where the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The sum of two model calls; what neither knows stays unknown.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        fn both<T>(a: Option<T>, b: Option<T>, plus: fn(T, T) -> T) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(plus(a, b)),
                (a, b) => a.or(b),
            }
        }
        // What a provider reports may be absurd.
        let sum = |a, b| both(a, b, u64::saturating_add);
        Self {
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cached_input_tokens: sum(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
            cost_usd: both(self.cost_usd, other.cost_usd, std::ops::Add::add),
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model answered.
    Completed,
    /// A person stopped it.
    Cancelled,
    /// The provider failed, or the turn could not go on. The text says why, for people.
    Failed {
        /// Why, in one sentence.
        reason: String,
    },
    /// The step limit ended it: the last step's answer was given without the tools it may have wanted.
    StepLimit,
    /// It was stopped for another reason.
    Stopped {
        /// Which.
        reason: StopReason,
        /// What was tried and what came of it, for people, where that is not plain from the last message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
}

/// Why a turn was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model refused, or the provider withheld the answer.
    Refused,
    /// The model went in circles.
    Loop,
    /// A budget does not allow another question to a model.
    Budget(BudgetStop),
}

impl StopReason {
    /// The word of the HTTP API and the command line.
    pub fn as_contract(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Loop => "loop",
            Self::Budget(_) => "budget",
        }
    }
}

impl TurnStatus {
    /// It was stopped for this, and the last message says all there is to say.
    pub const fn stopped(reason: StopReason) -> Self {
        Self::Stopped { reason, summary: None }
    }

    /// The word of the HTTP API and the command line.
    pub fn as_contract(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
            Self::StepLimit => "step_limit",
            Self::Stopped { .. } => "stopped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_no_model_can_have_end_at_the_largest_number() {
        let absurd = Usage { input_tokens: Some(u64::MAX), output_tokens: Some(1), cost_usd: Some(0.5), ..Usage::default() };
        let expected = Usage { output_tokens: Some(2), cost_usd: Some(1.0), ..absurd };
        assert_eq!(absurd.plus(absurd), expected);
    }
}
