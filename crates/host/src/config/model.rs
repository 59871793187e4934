//! `[models."PROVIDER/MODEL"]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_core::{LongPromptPrices, ModelFacts, Prices, ReasoningStyle};

use super::schema;

/// What is known of a model, before what the catalogue says of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// The most tokens of prompt and answer together.
    #[schemars(range(min = 1))]
    pub context_window: Option<u32>,
    /// The most tokens of one answer.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u32>,
    /// Whether it takes images.
    pub images: Option<bool>,
    /// Whether it takes PDF documents.
    pub documents: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// How it is told how much to think.
    #[schemars(schema_with = "schema::reasoning_style")]
    pub reasoning: Option<ReasoningStyle>,
    /// Whether it takes a sampling temperature.
    pub temperature: Option<bool>,
    /// What it costs, in USD per million tokens.
    pub prices: Option<PriceConfig>,
}

/// What a model costs, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    /// Input that was not read from a cache.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Input read from a cache; as `input` where not given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cached_input: Option<f64>,
    /// Input written to a cache; as `input` where not given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
    /// Output, reasoning included.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// What calls with a long prompt cost instead.
    #[serde(default)]
    pub long_prompts: Option<LongPromptConfig>,
}

/// What calls with a long prompt cost, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongPromptConfig {
    /// A prompt with more tokens than this is a long one.
    pub over_input_tokens: u64,
    /// Input that was not read from a cache.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Input read from a cache; as `input` where not given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cached_input: Option<f64>,
    /// Input written to a cache; as `input` where not given.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
    /// Output, reasoning included.
    #[schemars(range(min = 0))]
    pub output: f64,
}

impl ModelConfig {
    /// The same as the rest of the system knows it.
    pub fn facts(&self) -> ModelFacts {
        ModelFacts {
            context_window: self.context_window,
            max_output_tokens: self.max_output_tokens,
            images: self.images,
            documents: self.documents,
            tools: self.tools,
            reasoning: self.reasoning,
            temperature: self.temperature,
            prices: self.prices.as_ref().map(|prices| Prices {
                input: prices.input,
                cached_input: prices.cached_input,
                cache_write: prices.cache_write,
                output: prices.output,
                long_prompts: prices.long_prompts.as_ref().map(|long| LongPromptPrices {
                    over_input_tokens: long.over_input_tokens,
                    input: long.input,
                    cached_input: long.cached_input,
                    cache_write: long.cache_write,
                    output: long.output,
                }),
            }),
        }
    }
}
