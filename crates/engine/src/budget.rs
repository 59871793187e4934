//! Whether a prompt fits its model, before the model is asked.

use serde_json::Value;
use turnwright_core::budget::{Budget, known, most_tokens};
use turnwright_core::prompt::Prompt;
use turnwright_core::{
    ConversationId, Journal, ModelRef, ProviderFailure, ProviderFailureKind, TokenCounting, Turn, TurnSettings, compaction,
    prompt,
};

use crate::engine::Engine;
use crate::inner::Inner;
use crate::{EngineError, Provider, SettingsOverlay};

/// How long a conversation is for the model that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Length {
    /// The model.
    pub model: ModelRef,
    /// About how many tokens the next prompt is, definitions of tools included.
    pub tokens: u64,
    /// How they were counted.
    pub counting: TokenCounting,
    /// What the model takes; `None` where its window is not known.
    pub budget: Option<Budget>,
}

/// About how many tokens `prompt` is for `model`; `None` where nobody can say.
pub(crate) fn tokens(provider: &dyn Provider, model: &ModelRef, journal: &Journal, prompt: &Prompt<'_>) -> Option<u64> {
    let Some(known) = known(journal, prompt, model) else { return provider.measure(model.model(), prompt) };
    if known.rest.is_empty() {
        return Some(known.tokens);
    }
    let settings = TurnSettings::new(model.clone());
    let rest = Prompt {
        conversation: None,
        settings: &settings,
        messages: known.rest,
        tools: &[],
        allow_calls: false,
        has_open_demand: false,
    };
    Some(known.tokens.saturating_add(provider.measure(model.model(), &rest)?))
}

/// Why `prompt` is not sent: it is longer than its model takes, and a summary can make it shorter. Where one was made for this turn
/// and it is too long all the same, the provider has the last word.
pub(crate) fn refusal(provider: &dyn Provider, turn: &Turn, journal: &Journal, prompt: &Prompt<'_>) -> Option<ProviderFailure> {
    let model = &prompt.settings.model;
    let budget = Budget::of(&provider.facts(model.model()), prompt.settings)?;
    if fits_surely(&budget, journal, prompt, model) || turn.is_just_compacted() {
        return None;
    }
    let tokens = tokens(provider, model, journal, prompt).filter(|tokens| *tokens > budget.room())?;
    compaction::cut(journal)?;
    let how = match provider.counts_by(model.model()) {
        TokenCounting::O200k | TokenCounting::Cl100k => "",
        TokenCounting::Estimated => "about ",
    };
    let text = format!(
        "the conversation is {how}{tokens} tokens long; `{model}` takes {}, of which {} are kept for its answer",
        budget.window, budget.answer
    );
    Some(ProviderFailure::new(ProviderFailureKind::ContextLength, text))
}

/// Whether it fits however many tokens its text is: nothing is counted then.
fn fits_surely(budget: &Budget, journal: &Journal, prompt: &Prompt<'_>, model: &ModelRef) -> bool {
    let is_known_to_fit = || known(journal, prompt, model).is_some_and(|known| known.most_tokens() <= budget.room());
    most_tokens_of(prompt) <= budget.room() || is_known_to_fit()
}

/// More tokens than a prompt is, definitions of tools included.
pub(crate) fn most_tokens_of(prompt: &Prompt<'_>) -> u64 {
    let tools = prompt.tools.iter().map(|tool| tool.name.len() + tool.description.len() + bytes(&tool.input_schema));
    let besides = prompt.settings.system_prompt.as_ref().map_or(0, String::len).saturating_add(tools.sum());
    most_tokens(&prompt.messages).saturating_add(u64::try_from(besides).unwrap_or(u64::MAX))
}

/// About how many bytes a value is as JSON.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(_) => 12,
        Value::String(text) => text.len().saturating_add(3),
        Value::Array(items) => items.iter().map(bytes).sum::<usize>().saturating_add(2),
        Value::Object(members) => members.iter().map(|(name, member)| name.len() + 4 + bytes(member)).sum::<usize>() + 2,
    }
}

impl Inner {
    fn length(&self, id: &ConversationId, journal: &Journal, settings: &TurnSettings) -> Option<Length> {
        let model = settings.model.clone();
        let provider = self.providers.get(model.provider()).ok()?;
        let prompt = prompt::of(id, journal, settings, true);
        let tokens = tokens(&*provider, &model, journal, &prompt)?;
        let (counting, facts) = (provider.counts_by(model.model()), provider.facts(model.model()));
        Some(Length { tokens, counting, budget: Budget::of(&facts, settings), model })
    }
}

impl Engine {
    /// How long a conversation is for the model that answers it next; `None` where nobody can say.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn length(&self, id: &ConversationId) -> Result<Option<Length>, EngineError> {
        let overlay = self.conversation(id).await?.overlay.merged(&SettingsOverlay::default());
        let journal = self.journal(id).await?;
        let settings = match journal.open_turn() {
            Some(turn) => TurnSettings { model: turn.model().clone(), ..turn.settings().clone() },
            None => overlay.over(&self.defaults()),
        };
        Ok(self.inner().length(id, &journal, &settings))
    }
}
