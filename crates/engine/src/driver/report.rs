//! What is told of a model call to whoever watches over the engine.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;
use turnwright_core::prompt::Prompt;
use turnwright_core::{AssistantMessage, Origin, ProviderFailure, Usage};

use crate::telemetry::spans;
use crate::{Fact, ModelEnd, Telemetry};

/// A model call as it is told.
pub(super) struct Report {
    telemetry: Telemetry,
    pub(super) span: Span,
    begun: Instant,
    first_content: Option<Duration>,
}

impl Report {
    /// The call begins.
    pub(super) fn new(telemetry: Telemetry, span: Span, prompt: &Prompt<'_>) -> Self {
        if telemetry.records_content && !span.is_disabled() {
            spans::shown(&span, prompt);
        }
        Self { telemetry, span, begun: Instant::now(), first_content: None }
    }

    /// The model said something.
    pub(super) fn hear_content(&mut self) {
        if self.first_content.is_none() {
            let elapsed = self.begun.elapsed();
            self.first_content = Some(elapsed);
            spans::began_to_say(&self.span, elapsed);
        }
    }

    /// It ended with this message.
    pub(super) fn complete(&self, origin: &Origin, said: &AssistantMessage) {
        if !self.span.is_disabled() {
            spans::used(&self.span, &said.usage, said.finish.reason.as_contract());
            if self.telemetry.records_content {
                spans::said(&self.span, said);
            }
        }
        self.end(origin, ModelEnd::Complete, said.usage);
    }

    /// The provider failed.
    pub(super) fn fail(&self, origin: &Origin, failure: &ProviderFailure) {
        spans::model_failed(&self.span, failure);
        self.end(origin, ModelEnd::Failed(failure.kind), Usage::default());
    }

    /// A person stopped it.
    pub(super) fn cancel(&self, origin: &Origin) {
        self.end(origin, ModelEnd::Cancelled, Usage::default());
    }

    fn end(&self, origin: &Origin, end: ModelEnd, usage: Usage) {
        self.telemetry.tell(&Fact::ModelCalled {
            provider: &origin.provider,
            model: &origin.model,
            end,
            duration: self.begun.elapsed(),
            first_content: self.first_content,
            usage,
        });
    }
}
