//! The summary of a conversation that is too long: asked of the model, or else put together without it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::timeout;
use turnwright_core::compaction::{Cut, cut};
use turnwright_core::{
    Assembler, Compacted, Control, Entry, Origin, ProviderFailure, ProviderFailureKind, Seq, Step, StreamDelta, Usage,
};

use crate::ModelStream;
use crate::inner::Inner;
use crate::live::Live;
use crate::secrets::hidden;

/// How long a model may take over a summary.
const MAX_TIME: Duration = Duration::from_mins(3);
/// The longest answer that is waited for, in bytes.
const MAX_BYTES: usize = 128 * 1024;

/// A summary that is being made.
pub(super) struct Summary(Pin<Box<dyn Future<Output = Entry> + Send>>);

impl Summary {
    /// Asks for it. `None` where the turn does not want it any more: somebody appended since it was planned, of whom the
    /// driver is about to hear.
    pub(super) fn start(inner: &Arc<Inner>, live: &Arc<Live>) -> Option<Self> {
        let (journal, model) = {
            let state = live.lock();
            let turn = state.journal.turn().filter(|turn| turn.step() == Step::Compact)?;
            (state.journal.clone(), turn.model().clone())
        };
        let cut = cut(&journal)?;
        let (turn, through, digest) = (cut.turn, cut.through, cut.digest());
        let request = cut.request(&model);
        let (stream, dialect) = match inner.providers.get(model.provider()) {
            Ok(provider) => (provider.call(model.model(), &request.prompt()), provider.dialect().to_owned()),
            Err(failure) => (Err(failure), String::new()),
        };
        let stream = hidden(stream, inner.secrets());
        let origin = Origin { dialect, provider: model.provider().to_owned(), model: model.model().to_owned() };
        let conversation = live.id.clone();
        Some(Self(Box::pin(async move {
            let answer = listen(stream).await;
            let (summary, origin) = match answer.text {
                Ok(text) => (text, Some(origin)),
                Err(failure) => {
                    tracing::warn!(%conversation, %failure, "no summary from the model; one is put together without it");
                    (digest, None)
                }
            };
            Entry::Control(Control::Compacted(Compacted { turn, through, summary, origin, usage: answer.usage }))
        })))
    }

    /// The entry, once it is made.
    pub(super) async fn done(&mut self) -> Entry {
        (&mut self.0).await
    }
}

/// What a model answered.
struct Answer {
    text: Result<String, ProviderFailure>,
    usage: Usage,
}

async fn listen(stream: Result<ModelStream, ProviderFailure>) -> Answer {
    let mut assembler = Assembler::default();
    let told = match stream {
        Ok(stream) => match timeout(MAX_TIME, take(stream, &mut assembler)).await {
            Ok(told) => told,
            Err(_) => Err(failed(ProviderFailureKind::Timeout, "the summary took too long")),
        },
        Err(failure) => Err(failure),
    };
    let origin = Origin { dialect: String::new(), provider: String::new(), model: String::new() };
    let message = assembler.complete(origin, Seq::FIRST);
    let text = told.and_then(|()| {
        Cut::summary(&message.text()).ok_or_else(|| failed(ProviderFailureKind::Malformed, "the summary is empty"))
    });
    Answer { text, usage: message.usage }
}

async fn take(mut stream: ModelStream, assembler: &mut Assembler) -> Result<(), ProviderFailure> {
    let mut bytes = 0_usize;
    while let Some(deltas) = stream.next().await {
        for delta in deltas? {
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

/// The summary, where one is made.
pub(super) async fn next_summary(summary: &mut Option<Summary>) -> Entry {
    match summary {
        Some(summary) => summary.done().await,
        None => std::future::pending().await,
    }
}
