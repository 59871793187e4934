//! The port to model providers.

use std::fmt::Debug;
use std::pin::Pin;

use async_trait::async_trait;
use futures_util::Stream;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ConversationId, ModelFacts, ModelRef, ProviderFailure, StreamDelta, TokenCounting};

/// A model's answer while it comes.
///
/// Yields batches of one or more deltas: what one read from the network brought is one batch. Ends after the provider's
/// terminal marker; anything else ends with one `Err`, after which nothing more comes. Dropping it cancels the call and
/// closes its connection.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<Vec<StreamDelta>, ProviderFailure>> + Send>>;

/// An endpoint that answers prompts.
#[async_trait]
pub trait Provider: Send + Sync + Debug {
    /// The wire format that it speaks, such as `openai-chat`; stored as part of a message's origin.
    fn dialect(&self) -> &str;

    /// Asks `model`. The request is built here; it is sent when the stream is polled. Failures before the first byte of
    /// content are retried inside, as the endpoint's configuration says.
    ///
    /// Both are done in the turn's task: what computes for long or blocks holds up its calls and whoever stops it, and belongs in
    /// `tokio::task::spawn_blocking`. A panic is a failure of the provider.
    ///
    /// # Errors
    /// Where the request cannot be built.
    fn call(&self, model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure>;

    /// What is known of `model` without asking anybody.
    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts::default()
    }

    /// The most tools that a request may have, without asking anybody; `None` where there is no such limit.
    fn max_tools(&self) -> Option<usize> {
        None
    }

    /// About how many tokens `prompt` is for `model`, without asking anybody; `None` where that cannot be said.
    fn measure(&self, _model: &str, _prompt: &Prompt<'_>) -> Option<u64> {
        None
    }

    /// How [`Provider::measure`] counts.
    fn counts_by(&self, _model: &str) -> TokenCounting {
        TokenCounting::Estimated
    }

    /// Whether it asks no model: its calls are in no budget, and told to no [`Observer`](crate::Observer).
    fn asks_no_model(&self) -> bool {
        false
    }

    /// Whether results are given to it whole, however large they are: it is a program, which has room for them and counts on their
    /// form. A model is shown beginning and end.
    fn takes_results_whole(&self) -> bool {
        false
    }

    /// A conversation was deleted: nothing that it said is to be kept in memory any more, such as what was written of its requests.
    fn forget(&self, _conversation: &ConversationId) {}

    /// The conversations of which it keeps something so.
    fn kept(&self) -> Vec<ConversationId> {
        Vec::new()
    }

    /// The models that the endpoint offers, its configured ones where some are configured.
    ///
    /// # Errors
    /// Where the endpoint had to be asked and did not answer.
    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure>;
}

/// What is known about a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The provider's own name for it.
    pub id: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// What it can do and what it costs.
    pub facts: ModelFacts,
}

/// The providers of an installation, by the names in its configuration.
pub trait Providers: Send + Sync + Debug {
    /// The provider with this name.
    ///
    /// # Errors
    /// [`turnwright_core::ProviderFailureKind::Unavailable`] with what would be right, where there is none or its dialect is not there.
    fn get(&self, name: &str) -> Result<std::sync::Arc<dyn Provider>, ProviderFailure>;

    /// The models that are asked in turn where `model` is overloaded, out of reach or takes no more requests. Stored with
    /// each turn.
    fn fallback(&self, model: &ModelRef) -> Vec<ModelRef> {
        let _ = model;
        Vec::new()
    }

    /// The first model of which it is known that it is offered and whose name holds one of `hints`, the best hint first;
    /// `current` before others. `None` where there is none: nobody is asked for it.
    fn hinted(&self, hints: &[String], current: &ModelRef) -> Option<ModelRef> {
        hints.iter().any(|hint| current.model().contains(hint.as_str())).then(|| current.clone())
    }

    /// The models that are configured by name, without asking anybody.
    fn listed(&self) -> Vec<ModelRef> {
        Vec::new()
    }

    /// Has every provider that may keep something of a deleted conversation [forget](Provider::forget) it.
    fn forget(&self, conversation: &ConversationId) {
        for provider in self.names().iter().filter_map(|name| self.get(name).ok()) {
            provider.forget(conversation);
        }
    }

    /// The conversations of which any of them [keeps](Provider::kept) something.
    fn kept(&self) -> Vec<ConversationId> {
        self.names().iter().filter_map(|name| self.get(name).ok()).flat_map(|provider| provider.kept()).collect()
    }

    /// All names, in configuration order.
    fn names(&self) -> Vec<String>;
}
