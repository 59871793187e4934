//! How much of one answer is taken, whatever its format.

use turnwright_core::{ModelFacts, ProviderFailure, ProviderFailureKind, TurnSettings};

/// The most bytes of one answer: text, reasoning and arguments.
pub const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// The most bytes of one call's arguments.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;
/// The most calls of one answer.
pub(crate) const MAX_CALLS: usize = 256;

/// The limit of an answer, in tokens: the turn's, or the most that the model can where that is less, since APIs refuse more.
pub(crate) fn output_tokens(settings: &TurnSettings, model: &ModelFacts) -> Option<u32> {
    let asked = settings.max_output_tokens?;
    Some(model.max_output_tokens.map_or(asked, |most| asked.min(most)))
}

/// How much of an answer came.
#[derive(Debug, Default)]
pub(crate) struct Length {
    bytes: usize,
    is_something: bool,
}

impl Length {
    /// Counts more of it, which is content even where it is empty.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ProviderFailure> {
        self.is_something = true;
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER_BYTES { Err(answer_too_large()) } else { Ok(()) }
    }

    /// Whether there was any content.
    pub(crate) fn is_something(&self) -> bool {
        self.is_something
    }
}

/// The failure of an answer over [`MAX_ANSWER_BYTES`].
pub(crate) fn answer_too_large() -> ProviderFailure {
    let text = format!("the answer is over the limit of {MAX_ANSWER_BYTES} bytes");
    ProviderFailure::new(ProviderFailureKind::Limit, text)
}

/// The failure of an answer with more than [`MAX_CALLS`] calls.
pub(crate) fn too_many_calls() -> ProviderFailure {
    let text = format!("the answer holds more than {MAX_CALLS} tool calls");
    ProviderFailure::new(ProviderFailureKind::Limit, text)
}

/// The failure of a call of `name` whose arguments are over [`MAX_ARGUMENT_BYTES`].
pub(crate) fn arguments_too_large(name: &str) -> ProviderFailure {
    let text = format!("the arguments of a call of `{name}` are over the limit of {MAX_ARGUMENT_BYTES} bytes");
    ProviderFailure::new(ProviderFailureKind::Limit, text)
}
