//! What is told of a model call to whoever watches over the engine.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Span;
use turnwright_core::prompt::Prompt;
use turnwright_core::{AssistantMessage, Origin, ProviderFailure, StreamDelta, Usage};

use crate::telemetry::spans;
use crate::{Fact, ModelEnd, Telemetry};

/// A model call as it is told.
pub(crate) struct Report {
    telemetry: Telemetry,
    pub(crate) span: Span,
    begun: Instant,
    first_content: Option<Duration>,
    is_counted: bool,
}

impl Report {
    /// The call begins.
    pub(crate) fn new(telemetry: Telemetry, span: Span, prompt: &Prompt<'_>) -> Self {
        if telemetry.records_content && !span.is_disabled() {
            spans::shown(&span, prompt);
        }
        Self { telemetry, span, begun: Instant::now(), first_content: None, is_counted: true }
    }

    /// The same of a call that a program answers in place of a model: it is none that is counted.
    pub(crate) fn of_no_model(self) -> Self {
        Self { is_counted: false, ..self }
    }

    /// The model said something, where this is a part of it.
    pub(crate) fn hear(&mut self, delta: &StreamDelta) {
        if self.first_content.is_none() && !matches!(delta, StreamDelta::Notice(_)) {
            let elapsed = self.begun.elapsed();
            self.first_content = Some(elapsed);
            spans::began_to_say(&self.span, elapsed);
        }
    }

    /// It ended with this message.
    pub(crate) fn complete(&self, origin: &Origin, said: &AssistantMessage) {
        if !self.span.is_disabled() {
            spans::used(&self.span, &said.usage, said.finish.reason.as_contract());
            if self.telemetry.records_content {
                spans::said(&self.span, said);
            }
        }
        self.end(origin, ModelEnd::Complete, said.usage);
    }

    /// The provider failed. Its words may repeat what it was sent, so the log has none of them.
    pub(crate) fn fail(&self, origin: &Origin, failure: &ProviderFailure) {
        spans::model_failed(&self.span, failure);
        let (kind, status) = (failure.kind.as_str(), failure.status.map(tracing::field::display));
        tracing::info!(provider = origin.provider, model = origin.model, kind, status, "a model call failed");
        self.end(origin, ModelEnd::Failed(failure.kind), Usage::default());
    }

    /// A person stopped it.
    pub(crate) fn cancel(&self, origin: &Origin) {
        self.end(origin, ModelEnd::Cancelled, Usage::default());
    }

    fn end(&self, origin: &Origin, end: ModelEnd, usage: Usage) {
        if !self.is_counted {
            return;
        }
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
