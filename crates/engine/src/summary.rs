//! The summary of a conversation's beginning: asked of a model, or else put together without one.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::timeout;
use tracing::Instrument;
use turnwright_core::compaction::{Asked, NoSummary, Request, cut};
use turnwright_core::prompt::Prompt;
use turnwright_core::secrets::Secrets;
use turnwright_core::{
    Assembler, AssistantMessage, Compacted, Control, ConversationId, Entry, FinishReason, Journal, ModelRef, Origin,
    ProviderFailure, ProviderFailureKind, Seq, StreamDelta, Usage,
};

use crate::asked::ask;
use crate::inner::Inner;
use crate::live::Live;
use crate::report::Report;
use crate::secrets::{Hidden, hidden};
use crate::telemetry::spans;
use crate::{Provider, Telemetry};

/// How long a model may take over a summary.
const MAX_TIME: Duration = Duration::from_mins(3);
/// The longest answer that is waited for, in bytes.
const MAX_BYTES: usize = 128 * 1024;

/// A summary that is being made.
pub(crate) struct Making {
    /// The last entry that it can tell of.
    seen: Option<Seq>,
    made: Pin<Box<dyn Future<Output = Compacted> + Send>>,
}

impl Making {
    /// Asks `model` for it, of at most so many tokens where that is limited. `None` where there is nothing that a summary could stand for.
    pub(crate) fn begin(
        inner: &Inner,
        live: &Live,
        journal: &Journal,
        model: &ModelRef,
        most_tokens: Option<u32>,
    ) -> Option<Self> {
        let cut = cut(journal)?;
        let provider = inner.providers.get(model.provider());
        let (turn, through) = (cut.turn, cut.through);
        let of = |asked: &Asked<'_>| (cut.digest_for(asked), cut.request(asked).within(most_tokens));
        let (digest, request) = asking(provider.as_deref().ok(), model, of);
        let origin = Origin {
            dialect: provider.as_ref().map(|provider| provider.dialect().to_owned()).unwrap_or_default(),
            provider: model.provider().to_owned(),
            model: model.model().to_owned(),
        };
        let (conversation, telemetry) = (live.id.clone(), inner.telemetry().clone());
        let question = Question {
            conversation,
            provider,
            model: model.clone(),
            origin: origin.clone(),
            secrets: inner.secrets(),
            telemetry,
        };
        let made = async move {
            let answer = question.ask(request).await;
            let (summary, origin) = match answer.text {
                Ok(text) => (text, Some(origin)),
                Err(failure) => {
                    let kind = failure.kind.as_str();
                    tracing::warn!(conversation = %question.conversation, kind, "no summary from the model; one is put together without it");
                    (digest, None)
                }
            };
            Compacted { turn, through, summary, origin, usage: answer.usage }
        };
        Some(Self { seen: journal.last_seq(), made: Box::pin(made) })
    }

    /// Whether it may tell of what is shown no more, or other summaries were made or undone since it was begun.
    pub(crate) fn is_stale(&self, journal: &Journal) -> bool {
        is_stale(self.seen, journal)
    }

    /// The last entry that it can tell of.
    pub(crate) fn seen(&self) -> Option<Seq> {
        self.seen
    }

    /// The summary, once it is made.
    pub(crate) async fn made(&mut self) -> Compacted {
        (&mut self.made).await
    }
}

/// Whether something was hidden, or another summary made or undone, after `seen`.
pub(crate) fn is_stale(seen: Option<Seq>, journal: &Journal) -> bool {
    let later = journal.entries().iter().rev().take_while(|stored| Some(stored.seq) > seen);
    later.into_iter().any(|stored| match &*stored.entry {
        Entry::Control(control) => matches!(
            control,
            Control::Hidden { .. } | Control::Compacted(_) | Control::Uncompacted { .. } | Control::Retried { .. }
        ),
        _ => false,
    })
}

/// What a model answered.
struct Answer {
    text: Result<String, ProviderFailure>,
    usage: Usage,
}

/// Whom a summary is asked of.
struct Question {
    conversation: ConversationId,
    provider: Result<Arc<dyn Provider>, ProviderFailure>,
    model: ModelRef,
    origin: Origin,
    secrets: Arc<Secrets>,
    telemetry: Telemetry,
}

impl Question {
    /// Asks, and once more for less where that was too long for the model after all.
    async fn ask(&self, request: Request) -> Answer {
        let answer = self.ask_once(&request).await;
        let is_too_long = answer.text.as_ref().is_err_and(|failure| failure.kind == ProviderFailureKind::ContextLength);
        match is_too_long.then(|| request.shorter()).flatten() {
            Some(shorter) => self.ask_once(&shorter).await,
            None => answer,
        }
    }

    async fn ask_once(&self, request: &Request) -> Answer {
        let prompt = request.prompt();
        let span = spans::model_call(&self.conversation, &self.origin.dialect, &self.model);
        let mut report = Report::new(self.telemetry.clone(), span.clone(), &prompt);
        let call = |provider: Arc<dyn Provider>| span.in_scope(|| ask(&*provider, &self.model, &prompt));
        let stream = hidden(self.provider.clone().and_then(call), self.secrets.clone());
        let heard = listen(stream, &self.origin, &mut report).instrument(span).await;
        let take = |message: &AssistantMessage| {
            let provider = self.provider.as_deref().ok();
            asking(provider, &self.model, |asked| request.summary(&message.text(), asked)).map_err(refusal)
        };
        let text = heard.told.and_then(|()| must_be_whole(&heard.message)).and_then(|()| take(&heard.message));
        Answer { text, usage: heard.message.usage }
    }
}

/// What is known of a model that is asked for a summary.
pub(crate) fn asking<R>(provider: Option<&dyn Provider>, model: &ModelRef, with: impl FnOnce(&Asked<'_>) -> R) -> R {
    let facts = provider.map(|provider| provider.facts(model.model())).unwrap_or_default();
    let measure = |prompt: &Prompt<'_>| provider.and_then(|provider| provider.measure(model.model(), prompt));
    with(&Asked { model, facts: &facts, measure: &measure })
}

fn refusal(why: NoSummary) -> ProviderFailure {
    match why {
        NoSummary::Empty => failed(ProviderFailureKind::Malformed, "the summary is empty"),
        NoSummary::NoShorter => failed(ProviderFailureKind::Limit, "the summary is no shorter than what it stands for"),
    }
}

/// What was heard of an answer.
struct Heard {
    message: AssistantMessage,
    told: Result<(), ProviderFailure>,
}

async fn listen(stream: Result<Hidden, ProviderFailure>, origin: &Origin, report: &mut Report) -> Heard {
    let mut assembler = Assembler::default();
    let told = match stream {
        Ok(stream) => match timeout(MAX_TIME, take(stream, &mut assembler, report)).await {
            Ok(told) => told,
            Err(_) => Err(failed(ProviderFailureKind::Timeout, "the summary took too long")),
        },
        Err(failure) => Err(failure),
    };
    let message = assembler.complete(origin.clone(), Seq::FIRST);
    match &told {
        Ok(()) => report.complete(origin, &message),
        Err(failure) => report.fail(origin, failure),
    }
    Heard { message, told }
}

/// What the model refused to say, or did not say to its end, stands for nothing.
fn must_be_whole(message: &AssistantMessage) -> Result<(), ProviderFailure> {
    if message.is_refusal() {
        return Err(failed(ProviderFailureKind::ContentFilter, "the model refused to write the summary"));
    }
    match message.finish.reason {
        FinishReason::Stop => Ok(()),
        FinishReason::ToolCalls => Err(failed(ProviderFailureKind::Malformed, "the model asked for a tool")),
        FinishReason::Length | FinishReason::Pause => Err(failed(ProviderFailureKind::Limit, "the summary was cut off")),
        FinishReason::ContentFilter | FinishReason::Refusal => {
            Err(failed(ProviderFailureKind::ContentFilter, "the provider withheld the summary"))
        }
        FinishReason::Error => Err(failed(ProviderFailureKind::Server, "the provider says that something went wrong")),
    }
}

async fn take(mut stream: Hidden, assembler: &mut Assembler, report: &mut Report) -> Result<(), ProviderFailure> {
    let mut bytes = 0_usize;
    while let Some(deltas) = stream.next().await {
        for delta in deltas? {
            report.hear(&delta);
            if let StreamDelta::Text(text) | StreamDelta::Reasoning(text) = &delta {
                bytes = bytes.saturating_add(text.len());
            }
            assembler.push(delta);
        }
        if bytes > MAX_BYTES {
            return Err(failed(ProviderFailureKind::Limit, "the summary is no shorter than what it stands for"));
        }
    }
    Ok(())
}

fn failed(kind: ProviderFailureKind, message: &str) -> ProviderFailure {
    ProviderFailure::new(kind, message)
}
