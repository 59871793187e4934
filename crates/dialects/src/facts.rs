//! What is known of a model, as the whole system knows it.

pub use turnwright_core::{LongPromptPrices, ModelFacts, Prices, ReasoningStyle};
