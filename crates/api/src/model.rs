//! Models.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A model that can be asked. What is not known of it is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Model {
    /// `PROVIDER/MODEL`, as requests name it.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The provider's own name for the model.
    pub model: String,
    /// What it is, for people; null where nobody says.
    pub description: Option<String>,
    /// Whether turns ask it where nobody chooses another.
    pub is_default: bool,
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
    /// How it is told how much to think: `never`, `effort`, `budget`, `adaptive`.
    pub reasoning: Option<String>,
    /// What it costs.
    pub prices: Option<Prices>,
}

/// What a model costs, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prices {
    /// Input that was not read from a cache.
    pub input: f64,
    /// Input read from a cache; as `input` where null.
    pub cached_input: Option<f64>,
    /// Input written to a cache; as `input` where null.
    pub cache_write: Option<f64>,
    /// Output, reasoning included.
    pub output: f64,
    /// What calls with a long prompt cost instead.
    pub long_prompts: Option<LongPromptPrices>,
}

/// What calls with a long prompt cost, in USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LongPromptPrices {
    /// A prompt with more tokens than this is a long one.
    pub over_input_tokens: u64,
    /// Input that was not read from a cache.
    pub input: f64,
    /// Input read from a cache; as `input` where null.
    pub cached_input: Option<f64>,
    /// Input written to a cache; as `input` where null.
    pub cache_write: Option<f64>,
    /// Output, reasoning included.
    pub output: f64,
}

/// All models, and the providers that did not tell theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Models {
    /// The models, in configuration order.
    pub data: Vec<Model>,
    /// Always null: the list is whole.
    pub next_cursor: Option<String>,
    /// Always false: the list is whole.
    pub has_more: bool,
    /// The providers whose models are missing.
    pub unavailable: Vec<UnavailableProvider>,
}

/// A provider that did not tell its models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnavailableProvider {
    /// The provider.
    pub provider: String,
    /// Why, for people.
    pub message: String,
}

/// Whether the server is well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// Whether the server takes requests, and what it does without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ready`, or `degraded` where it takes requests and something is missing.
    pub status: String,
    /// How many servers over the same data live, this one among them; absent where it is alone or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// What is missing, and what follows from it, a sentence each; absent where nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}
