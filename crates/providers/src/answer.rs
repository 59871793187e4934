//! One model call: attempts until there is content, then the answer in batches.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::unfold;
use reqwest::Response;
use tokio::time::{sleep, timeout};
use turnwright_core::{Prices, ProviderFailure, ProviderFailureKind, StreamDelta};
use turnwright_dialects::{Offered, ReplyDecoder};
use turnwright_engine::telemetry::spans;
use turnwright_engine::{ModelStream, let_others_run};

use crate::explain::explain;
use crate::http::{Endpoint, Prepared};
use crate::retry::{Failed, Patience};

/// The shortest wait for another attempt of which people are told.
const LONG_WAIT: Duration = Duration::from_secs(2);
/// The most bytes of the body that become one batch.
const MAX_BATCH_BYTES: usize = 256 * 1024;
/// How long a failing provider may take to say the rest.
const MAX_FAILING: Duration = Duration::from_secs(1);
/// How long is waited for the end of a body whose answer is complete, so that its connection can be used again.
const MAX_DRAIN: Duration = Duration::from_millis(10);

/// A call that is to be made.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) model: String,
    /// What the model costs, where that is known.
    pub(crate) prices: Option<Prices>,
    pub(crate) request: Prepared,
    pub(crate) offered: Offered,
    pub(crate) patience: Patience,
}

/// The answer to `call`. The request is sent when it is polled; dropping it closes the connection.
pub(crate) fn stream(call: Call) -> ModelStream {
    let answer = Answer { call, attempt: 0, state: State::Closed, has_content: false };
    Box::pin(unfold(answer, |mut answer| async move { answer.next().await.map(|batch| (batch, answer)) }))
}

struct Answer {
    call: Call,
    attempt: u32,
    state: State,
    /// Whether content was given on: nothing is tried again after that.
    has_content: bool,
}

enum State {
    Closed,
    /// Another attempt is made after a while.
    Waiting(Duration),
    Open(Box<Open>),
    /// The answer is complete; its body may not have ended.
    Draining(Response),
    Failed(ProviderFailure),
    Over,
}

struct Open {
    response: Response,
    reply: ReplyDecoder,
    request_id: Option<String>,
}

/// How a read went.
enum Read {
    /// More may come.
    More,
    /// The answer is complete; the body has ended or not.
    Complete {
        has_ended: bool,
    },
    Failed(ProviderFailure),
}

impl Answer {
    async fn next(&mut self) -> Option<Result<Vec<StreamDelta>, ProviderFailure>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return None,
                State::Failed(failure) => return Some(Err(failure)),
                State::Draining(mut response) => {
                    let drain = async { while let Ok(Some(_)) = response.chunk().await {} };
                    // Where it takes longer the connection is closed, which harms nobody.
                    drop(timeout(MAX_DRAIN, drain).await);
                    return None;
                }
                State::Waiting(delay) => {
                    sleep(delay).await;
                    self.state = State::Closed;
                }
                // Apart, so that an answer that streams for minutes does not keep the room that asking for it takes.
                State::Closed => match Box::pin(self.open()).await {
                    Ok(open) => {
                        self.state = State::Open(Box::new(open));
                        let notices = self.call.request.take_notices();
                        if !notices.is_empty() {
                            return Some(Ok(notices));
                        }
                    }
                    Err(failed) => {
                        if let Some(notice) = self.failed(failed) {
                            return Some(Ok(vec![notice]));
                        }
                    }
                },
                State::Open(mut open) => {
                    let mut batch = Vec::new();
                    let read = open.read(self.call.endpoint.config.timeouts.idle, &mut batch).await;
                    match (&read, open.reply.model()) {
                        (Read::Complete { .. } | Read::Failed(_), Some(model)) => spans::answered_by(model),
                        (Read::More, _) | (_, None) => {}
                    }
                    match read {
                        Read::More => self.state = State::Open(open),
                        Read::Complete { has_ended: true } => {}
                        Read::Complete { has_ended: false } => self.state = State::Draining(open.response),
                        Read::Failed(mut failure) => {
                            failure.request_id = failure.request_id.or(open.request_id);
                            drop(open.response);
                            self.has_content |= batch.iter().any(is_content);
                            let notice = self.failed(Failed::from(failure));
                            if matches!(self.state, State::Waiting(_)) {
                                match notice {
                                    Some(notice) => return Some(Ok(vec![notice])),
                                    None => continue,
                                }
                            }
                        }
                    }
                    if !batch.is_empty() {
                        price(&mut batch, self.call.prices);
                        self.has_content |= batch.iter().any(is_content);
                        if self.has_content {
                            self.call.request.let_go();
                        }
                        return Some(Ok(batch));
                    }
                }
            }
        }
    }

    async fn open(&mut self) -> Result<Open, Failed> {
        let Call { endpoint, request, offered, .. } = &mut self.call;
        let opened = endpoint.open(request).await?;
        let decoder = endpoint.config.dialect.decoder(&endpoint.config.profile, offered);
        let reply = ReplyDecoder::new(decoder, opened.content_type.as_deref());
        Ok(Open { response: opened.response, reply, request_id: opened.request_id })
    }

    /// Whether and when another attempt is made, and what people are told of it where they wait for long.
    fn failed(&mut self, failed: Failed) -> Option<StreamDelta> {
        let config = &self.call.endpoint.config;
        let jitter = RandomState::new().build_hasher().finish();
        let delay = failed.delay(self.attempt, self.call.patience, jitter).filter(|_| !self.has_content);
        let Some(delay) = delay else {
            let failure = ProviderFailure { after_content: self.has_content, ..failed.failure };
            self.state = State::Failed(explain(config, &self.call.model, failure));
            return None;
        };
        self.attempt += 1;
        // The provider's words may repeat what it was sent.
        tracing::info!(
            provider = config.name,
            attempt = self.attempt,
            delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            kind = failed.failure.kind.as_str(),
            status = failed.failure.status.map(tracing::field::display),
            "a model call failed and is tried again"
        );
        self.state = State::Waiting(delay);
        (delay >= LONG_WAIT).then(|| {
            // How long is waited is said once.
            let failure = ProviderFailure { retry_after_ms: None, ..failed.failure };
            let ProviderFailure { message, .. } = explain(config, &self.call.model, failure);
            StreamDelta::Notice(format!("{message}; it is asked again in {} s", delay.as_millis().div_ceil(1000)))
        })
    }
}

impl Open {
    /// Waits for bytes, and takes with them all that came together: what the network brought at once is one batch.
    async fn read(&mut self, idle: Duration, batch: &mut Vec<StreamDelta>) -> Read {
        let wait = if self.reply.is_failing() { MAX_FAILING.min(idle) } else { idle };
        let Ok(first) = timeout(wait, self.response.chunk()).await else {
            return self.idle(wait, batch);
        };
        let mut next = first;
        let mut bytes = 0;
        loop {
            match next {
                Ok(Some(chunk)) => {
                    bytes += chunk.len();
                    if let Err(failure) = self.reply.push(&chunk, batch) {
                        return Read::Failed(failure);
                    }
                }
                Ok(None) => return self.ended(batch),
                Err(error) => return self.broke(&error, batch),
            }
            if bytes >= MAX_BATCH_BYTES {
                break;
            }
            let mut more = self.response.chunk().now_or_never();
            if more.is_none() {
                // The connection's own task may hold more that has arrived: it gives one chunk for each poll.
                let_others_run().await;
                more = self.response.chunk().now_or_never();
            }
            let Some(more) = more else { break };
            next = more;
        }
        if self.reply.is_done() { Read::Complete { has_ended: false } } else { Read::More }
    }

    fn ended(&mut self, batch: &mut Vec<StreamDelta>) -> Read {
        match self.reply.end(batch) {
            Ok(()) => {
                if let Some(warning) = self.reply.warning() {
                    tracing::warn!(request_id = self.request_id, "{warning}");
                }
                Read::Complete { has_ended: true }
            }
            Err(failure) => Read::Failed(failure),
        }
    }

    /// The connection broke. Some servers close it instead of ending the body: what is complete is complete.
    fn broke(&mut self, error: &reqwest::Error, batch: &mut Vec<StreamDelta>) -> Read {
        match self.ended(batch) {
            Read::Failed(failure) if failure.kind == ProviderFailureKind::CutOff => {
                let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
                let text = format!("the connection broke before the answer's end ({reason})");
                Read::Failed(ProviderFailure::new(ProviderFailureKind::CutOff, text))
            }
            read => read,
        }
    }

    /// Nothing more comes. Some servers say that the answer is finished, and leave out the event that ends its stream and keep the
    /// connection: what is complete is complete.
    fn idle(&mut self, waited: Duration, batch: &mut Vec<StreamDelta>) -> Read {
        match self.ended(batch) {
            Read::Failed(failure) if failure.kind == ProviderFailureKind::CutOff => {
                let text = format!("nothing came for {} s", waited.as_secs_f64());
                Read::Failed(ProviderFailure::new(ProviderFailureKind::Timeout, text))
            }
            read => read,
        }
    }
}

/// Says what the tokens of an answer cost, where its provider does not.
fn price(batch: &mut [StreamDelta], prices: Option<Prices>) {
    let Some(prices) = prices else { return };
    for delta in batch {
        if let StreamDelta::Usage(usage) = delta {
            usage.cost_usd = usage.cost_usd.or_else(|| prices.cost(usage));
        }
    }
}

/// Whether a delta is a part of the answer, which a second attempt would repeat.
fn is_content(delta: &StreamDelta) -> bool {
    match delta {
        StreamDelta::Usage(_) | StreamDelta::Finished(_) | StreamDelta::Notice(_) => false,
        StreamDelta::Text(_)
        | StreamDelta::Reasoning(_)
        | StreamDelta::Refusal(_)
        | StreamDelta::CallStarted { .. }
        | StreamDelta::CallArguments { .. }
        | StreamDelta::CallNative { .. }
        | StreamDelta::CallRecovered { .. }
        | StreamDelta::BlockEnded { .. }
        | StreamDelta::Opaque(_)
        | StreamDelta::Rewritten(_) => true,
    }
}
