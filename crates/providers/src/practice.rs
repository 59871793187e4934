//! The practice model: no language model, only word matching over the offered tools.
//!
//! It answers where no provider is configured, so that everything around a model can be tried: tools, approvals, streams,
//! resumption. It is deterministic, needs no network, and says in every answer and in the model list what it is.
//!
//! [`words`] breaks a text into comparable words, [`clues`] finds what a question offers as arguments, [`schema`] reads
//! what a tool wants, [`fill`] brings the two together, [`pick`] chooses the tools, and [`answer`] puts it into a reply.

mod answer;
mod clues;
mod fill;
mod pick;
mod schema;
mod words;

use async_trait::async_trait;
use futures_util::stream;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ModelFacts, Prices, ProviderFailure, ProviderFailureKind, StreamDelta};
use turnwright_engine::provider::{ModelInfo, ModelStream, Provider};

/// The provider `practice` with its one model `practice`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Practice;

impl Practice {
    /// The name of the provider, of its dialect and of its one model.
    pub const NAME: &'static str = "practice";
}

#[async_trait]
impl Provider for Practice {
    fn dialect(&self) -> &str {
        Self::NAME
    }

    fn call(&self, model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        if model != Self::NAME {
            let message = format!("the practice provider has no model `{model}`, only `{}`", Self::NAME);
            return Err(ProviderFailure::new(ProviderFailureKind::NotFound, message));
        }
        let batches = batches_of(answer::answer(prompt));
        Ok(Box::pin(stream::iter(batches.into_iter().map(Ok))))
    }

    /// It reads any length, looks at every tool, and costs nothing, so that a budget in dollars lets it answer.
    fn facts(&self, _model: &str) -> ModelFacts {
        let prices = Prices { input: 0.0, cached_input: None, cache_write: None, output: 0.0, long_prompts: None };
        ModelFacts { context_window: Some(u32::MAX), prices: Some(prices), ..ModelFacts::default() }
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        let description = "no language model: it only matches the words of a question with the offered tools".to_owned();
        Ok(vec![ModelInfo { id: Self::NAME.to_owned(), description: Some(description), facts: ModelFacts::default() }])
    }
}

/// One piece of text is one batch; all calls are one.
fn batches_of(deltas: Vec<StreamDelta>) -> Vec<Vec<StreamDelta>> {
    let mut batches: Vec<Vec<StreamDelta>> = Vec::new();
    for delta in deltas {
        match batches.last_mut() {
            Some(batch) if !matches!(delta, StreamDelta::Text(_)) => batch.push(delta),
            _ => batches.push(vec![delta]),
        }
    }
    batches
}
