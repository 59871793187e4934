//! What is known of a model.

/// What is known of a model. `None` is unknown; nothing is guessed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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

/// How a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Prices in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Input that was not read from a cache.
    pub input: f64,
    /// Input read from a cache; as `input` where `None`.
    pub cached_input: Option<f64>,
    /// Input written to a cache; as `input` where `None`.
    pub cache_write: Option<f64>,
    /// Output, reasoning included.
    pub output: f64,
}
