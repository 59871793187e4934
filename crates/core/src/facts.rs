//! What is known of a model.

use crate::Usage;
use serde::{Deserialize, Serialize};

/// What is known of a model. `None` is unknown; nothing is guessed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// The most tokens of prompt and answer together.
    pub context_window: Option<u32>,
    /// The most tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether it takes PDF documents.
    pub documents: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// How it is told how much to think.
    pub reasoning: Option<ReasoningStyle>,
    /// Whether it takes a sampling temperature.
    pub temperature: Option<bool>,
    /// What it costs.
    pub prices: Option<Prices>,
}

impl ModelFacts {
    /// These, and what `others` know besides.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            context_window: self.context_window.or(others.context_window),
            max_output_tokens: self.max_output_tokens.or(others.max_output_tokens),
            images: self.images.or(others.images),
            documents: self.documents.or(others.documents),
            tools: self.tools.or(others.tools),
            reasoning: self.reasoning.or(others.reasoning),
            temperature: self.temperature.or(others.temperature),
            prices: self.prices.or(others.prices),
        }
    }
}

/// By what the tokens of a prompt are counted for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenCounting {
    /// OpenAI's `o200k_base`.
    O200k,
    /// OpenAI's `cl100k_base`.
    Cl100k,
    /// By the kinds of letters; the tokenizer is not published.
    Estimated,
}

impl TokenCounting {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::O200k => "counted (o200k_base)",
            Self::Cl100k => "counted (cl100k_base)",
            Self::Estimated => "estimated",
        }
    }
}

/// How a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningStyle {
    /// It does not think.
    Never,
    /// By a word of effort.
    Effort,
    /// By a budget in tokens.
    Budget,
    /// It finds out by itself; a word of effort steers it.
    Adaptive,
}

impl ReasoningStyle {
    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Effort => "effort",
            Self::Budget => "budget",
            Self::Adaptive => "adaptive",
        }
    }
}

/// Prices in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input that was not read from a cache.
    pub input: f64,
    /// Input read from a cache; as `input` where `None`.
    #[serde(default)]
    pub cached_input: Option<f64>,
    /// Input written to a cache; as `input` where `None`.
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// Output, reasoning included.
    pub output: f64,
    /// What holds in place of these for long prompts, where a vendor asks more for them.
    #[serde(default)]
    pub long_prompts: Option<LongPromptPrices>,
}

/// Prices of calls with a long prompt, in USD per million tokens; of the whole call, not of what is over the limit alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPromptPrices {
    /// A prompt with more tokens than this is a long one.
    pub over_input_tokens: u64,
    /// As in [`Prices`].
    pub input: f64,
    /// As in [`Prices`].
    #[serde(default)]
    pub cached_input: Option<f64>,
    /// As in [`Prices`].
    #[serde(default)]
    pub cache_write: Option<f64>,
    /// As in [`Prices`].
    pub output: f64,
}

impl Prices {
    /// What one model call cost, in USD; `None` where the tokens of its prompt or of its answer are not known.
    ///
    /// A usage counts the whole prompt as input: what was read from a cache and what was written to one are parts of it
    /// and are priced apart.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let prices = match self.long_prompts {
            Some(long) if input > long.over_input_tokens => Self {
                input: long.input,
                cached_input: long.cached_input,
                cache_write: long.cache_write,
                output: long.output,
                long_prompts: None,
            },
            Some(_) | None => *self,
        };
        // What a provider counts as cached is never more than the prompt, and if it were, the prompt is all that was paid.
        let cached = usage.cached_input_tokens.unwrap_or(0).min(input);
        let written = usage.cache_write_tokens.unwrap_or(0).min(input - cached);
        let parts = [
            (input - cached - written, prices.input),
            (cached, prices.cached_input.unwrap_or(prices.input)),
            (written, prices.cache_write.unwrap_or(prices.input)),
            (output, prices.output),
        ];
        Some(parts.into_iter().map(|(tokens, price)| count(tokens) * price).sum::<f64>() / 1_000_000.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below the 53 bits that are exact")]
fn count(tokens: u64) -> f64 {
    tokens as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: Option<u64>, written: Option<u64>, output: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            cached_input_tokens: cached,
            cache_write_tokens: written,
            output_tokens: Some(output),
            ..Usage::default()
        }
    }

    const PLAIN: Prices = Prices { input: 2.0, cached_input: None, cache_write: None, output: 10.0, long_prompts: None };
    const CACHED: Prices = Prices { cached_input: Some(0.2), cache_write: Some(2.5), ..PLAIN };
    const LONG: Prices = Prices {
        long_prompts: Some(LongPromptPrices {
            over_input_tokens: 1_000,
            input: 4.0,
            cached_input: Some(0.4),
            cache_write: None,
            output: 15.0,
        }),
        ..CACHED
    };

    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let micro = |prices: Prices, usage| (prices.cost(&usage).unwrap() * 1e9).round() / 1e3;
        let rows = [
            ("input and output", PLAIN, usage(1_000, None, None, 100), 3_000.0),
            ("no output", PLAIN, usage(1_000, None, None, 0), 2_000.0),
            ("cached input without a price of its own", PLAIN, usage(1_000, Some(400), Some(100), 0), 2_000.0),
            (
                "reads and writes of a cache, apart",
                CACHED,
                usage(1_000, Some(400), Some(100), 10),
                1_000.0 + 80.0 + 250.0 + 100.0,
            ),
            ("all of it cached", CACHED, usage(1_000, Some(1_000), None, 0), 200.0),
            ("more cached than there was", CACHED, usage(1_000, Some(3_000), Some(3_000), 0), 200.0),
            ("a prompt at the limit is not long", LONG, usage(1_000, None, None, 100), 3_000.0),
            (
                "a long prompt costs more as a whole",
                LONG,
                usage(1_001, Some(1), Some(500), 100),
                2_000.0 + 0.4 + 2_000.0 + 1_500.0,
            ),
        ];
        for (name, prices, usage, expected) in rows {
            assert_eq!(micro(prices, usage).to_string(), expected.to_string(), "{name}");
        }
    }

    #[test]
    fn what_is_not_known_costs_nothing_that_is_known() {
        for usage in [
            Usage::default(),
            Usage { input_tokens: Some(1), ..Usage::default() },
            Usage { output_tokens: Some(1), ..Usage::default() },
        ] {
            assert_eq!(PLAIN.cost(&usage), None);
        }
    }

    #[test]
    fn facts_of_a_configuration_come_before_others() {
        let own: ModelFacts = serde_json::from_str(r#"{"context_window": 8192, "images": false}"#).unwrap();
        let others = ModelFacts { context_window: Some(1), images: Some(true), tools: Some(true), ..ModelFacts::default() };
        assert_eq!(own.or(others), ModelFacts { context_window: Some(8192), images: Some(false), ..others });
    }
}
