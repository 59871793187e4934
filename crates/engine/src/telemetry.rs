//! What an operator can see of an engine from outside: facts to count, spans to trace.
//!
//! [`Observer`] hears of each model call, tool call and turn once it is over; what it makes of them (metrics, a meter, a bill)
//! is its own. The spans are in [`mod@spans`], with the names of the OpenTelemetry conventions for generative AI. Neither
//! decides anything, and nothing of what people, models or tools say is in them unless [`Telemetry::records_content`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use turnwright_core::{ProviderFailureKind, TurnStatus, Usage};

mod content;
pub mod spans;

/// What an engine tells of itself.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    /// Who hears of what happened.
    pub observer: Option<Arc<dyn Observer>>,
    /// Gives the trace context of the current span, where spans are exported: tool sources pass it on to their servers.
    pub trace_context: Option<fn() -> Option<TraceContext>>,
    /// Whether spans carry prompts, answers, arguments and results.
    pub records_content: bool,
}

impl Telemetry {
    /// Tells the observer, where there is one.
    pub(crate) fn tell(&self, fact: &Fact<'_>) {
        if let Some(observer) = &self.observer {
            observer.observe(fact);
        }
    }

    pub(crate) fn current_context(&self) -> Option<TraceContext> {
        self.trace_context.and_then(|context| context())
    }
}

/// Where a span stands in a trace (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`: version, trace id, span id and flags.
    pub traceparent: String,
    /// `tracestate`, where there is one.
    pub tracestate: Option<String>,
}

/// Hears of what happened. Called while a turn goes on: it must not wait for anything.
pub trait Observer: Send + Sync + Debug {
    /// This happened.
    fn observe(&self, fact: &Fact<'_>);
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact<'a> {
    /// A message opened a turn.
    TurnBegan,
    /// A turn waits for people.
    TurnParked,
    /// A turn is over.
    TurnOver {
        /// How it ended.
        status: &'a TurnStatus,
    },
    /// A model call is over, its retries included. What a provider that asks no model answers is none.
    ModelCalled {
        /// The provider's name in the configuration.
        provider: &'a str,
        /// The provider's name for the model.
        model: &'a str,
        /// How it ended.
        end: ModelEnd,
        /// From the request to its end.
        duration: Duration,
        /// From the request to the first that the model said.
        first_content: Option<Duration>,
        /// What it cost, as far as the provider says.
        usage: Usage,
    },
    /// A tool call is over, or parked until people answer what it asks.
    ToolCalled {
        /// The tool source's name.
        source: &'a str,
        /// The tool's qualified name.
        tool: &'a str,
        /// `success`, `parked`, or the kind of the error.
        outcome: &'a str,
        /// How long it ran.
        duration: Duration,
    },
}

/// How a model call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelEnd {
    /// With its terminal marker.
    Complete,
    /// The provider failed.
    Failed(ProviderFailureKind),
    /// A person stopped the turn.
    Cancelled,
}

impl ModelEnd {
    /// One word: `complete`, `cancelled`, or the kind of the error.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed(kind) => kind.as_str(),
            Self::Cancelled => "cancelled",
        }
    }
}
