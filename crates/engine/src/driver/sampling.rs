//! What calls ask of models: whether they may, and the asking.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::timeout;
use tracing::Instrument;
use turnwright_core::budgets::Purpose;
use turnwright_core::policy::{Action, Policy};
use turnwright_core::{
    AnswerAction, AnsweredBy, Assembler, ConversationId, Declared, Elicitation, ElicitationId, Entry, ModelRef, Origin,
    ProviderFailure, ProviderFailureKind, Sampled, Sampling, SamplingOutcome, SamplingSpent, Seq, StreamDelta, Turn, Wants,
};

use super::model::longest_answer;
use super::reserving::{Leave, leave};
use crate::asked::ask;
use crate::inner::Inner;
use crate::live::Live;
use crate::report::Report;
use crate::secrets::{Hidden, hidden};
use crate::telemetry::spans;

/// How long a model may take over an answer.
const MAX_TIME: Duration = Duration::from_mins(5);
/// The longest answer that is taken, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// What rules name a question to a model by, after the name of the source: no tool has such a name, and a `*` does not reach it.
const RULED_AS: &str = "__sampling/createMessage";

/// How a question of a source was answered without people.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruled {
    pub(super) action: AnswerAction,
    pub(super) by: AnsweredBy,
    pub(super) reason: Option<String>,
}

/// Where people can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whenever they come: the turn waits.
    Later,
    /// While the call is open.
    Now,
}

/// Completes what a source asks of models, and says what the policy and the budget say to it. In the order of `asks`; `None` is for
/// people to answer.
pub(super) fn ruled(
    inner: &Inner,
    policy: &Policy,
    turn: &Turn,
    source: &str,
    asks: &mut [Elicitation],
    reach: Reach,
) -> Vec<Option<Ruled>> {
    let ruler = Ruler { inner, policy, turn, source, reach };
    let mut spent = turn.spent(source);
    asks.iter_mut()
        .map(|ask| match &mut ask.wants {
            Wants::Sampling { request } => ruler.rule(request, &mut spent),
            Wants::Form { .. } | Wants::Url { .. } => None,
        })
        .collect()
}

/// What a source's questions to models are judged by.
struct Ruler<'a> {
    inner: &'a Inner,
    /// The configured rules with those that people had remembered.
    policy: &'a Policy,
    turn: &'a Turn,
    source: &'a str,
    reach: Reach,
}

impl Ruler<'_> {
    fn rule(&self, request: &mut Sampling, spent: &mut SamplingSpent) -> Option<Ruled> {
        let Self { inner, policy, turn, source, reach } = *self;
        let model = inner.providers.hinted(&request.hints, turn.model()).unwrap_or_else(|| turn.model().clone());
        let told = json!({"model": model.to_string()});
        request.model = Some(model);
        let by_policy = |action, reason| Some(Ruled { action, by: AnsweredBy::Policy, reason: Some(reason) });
        match request.budget.left(*spent) {
            Ok(left) => request.max_tokens = request.max_tokens.min(left),
            Err(why) => return by_policy(AnswerAction::Decline, why),
        }
        // A rule that denies all tools of a server denies it this too.
        if let Some(rule) = policy.denied_by(&format!("{source}__sampling"), &told) {
            return by_policy(AnswerAction::Decline, rule);
        }
        let name = format!("{source}{RULED_AS}");
        let verdict = policy.decide(turn.settings().approve, &name, Declared::default(), &told);
        match verdict.action {
            Action::Allow => {
                spent.requests = spent.requests.saturating_add(1);
                spent.output_tokens = spent.output_tokens.saturating_add(request.max_tokens);
                by_policy(AnswerAction::Accept, verdict.rule)
            }
            Action::Deny => by_policy(AnswerAction::Decline, verdict.rule),
            Action::Ask if reach == Reach::Now && inner.is_unattended.load(Ordering::Relaxed) => {
                Some(Ruled { action: AnswerAction::Decline, by: AnsweredBy::Nobody, reason: None })
            }
            Action::Ask => None,
        }
    }
}

/// The questions to models that are under way. What is dropped is not asked any more.
#[derive(Default)]
pub(super) struct Samplings(Vec<Running>);

struct Running {
    id: ElicitationId,
    job: Pin<Box<dyn Future<Output = SamplingOutcome> + Send>>,
}

impl Samplings {
    /// Asks what is to be asked, and drops what is not any more. Gives those for which the driver of `epoch` has to reserve before.
    pub(super) fn follow(&mut self, inner: &Arc<Inner>, live: &Arc<Live>, epoch: u64) -> Vec<ElicitationId> {
        let due: Vec<(ElicitationId, Sampling, Leave)> = {
            let state = live.lock();
            let Some(turn) = state.journal.open_turn() else {
                self.0.clear();
                return Vec::new();
            };
            let leave = |id| leave(inner, state.journal.books(), Purpose::Sampling(id), epoch, None);
            turn.samplings().map(|(id, request)| (id, request.clone(), leave(id))).collect()
        };
        self.0.retain(|running| due.iter().any(|(id, ..)| *id == running.id));
        let mut unreserved = Vec::new();
        for (id, mut request, leave) in due {
            if self.0.iter().any(|running| running.id == id) {
                continue;
            }
            match leave {
                Leave::NotYet => {
                    unreserved.push(id);
                    continue;
                }
                Leave::Reserved(_, reserved) => request.max_tokens = request.max_tokens.min(longest_answer(&reserved)),
                Leave::Free => {}
            }
            self.0.push(Running { id, job: Box::pin(asked(inner, &live.id, &request)) });
        }
        unreserved
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next answer.
    pub(super) async fn next(&mut self) -> Entry {
        poll_fn(|context| {
            let done = self.0.iter_mut().enumerate().find_map(|(at, running)| match running.job.as_mut().poll(context) {
                Poll::Ready(outcome) => Some((at, outcome)),
                Poll::Pending => None,
            });
            let Some((at, outcome)) = done else { return Poll::Pending };
            let Running { id, .. } = self.0.swap_remove(at);
            Poll::Ready(Entry::Sampled(Sampled { question: id, outcome }))
        })
        .await
    }
}

/// Asks the model.
fn asked(
    inner: &Inner,
    conversation: &ConversationId,
    request: &Sampling,
) -> impl Future<Output = SamplingOutcome> + Send + use<> {
    let model = request.model.clone().unwrap_or_else(|| ModelRef::new("", ""));
    let question = request.request(&model);
    let is_plain = request.tools.is_empty();
    let provider = inner.providers.get(model.provider());
    let dialect = provider.as_ref().map(|provider| provider.dialect().to_owned()).unwrap_or_default();
    let prompt = question.prompt();
    let span = spans::model_call(conversation, &dialect, &model);
    let mut report = Report::new(inner.telemetry().clone(), span.clone(), &prompt);
    let stream = provider.and_then(|provider| span.in_scope(|| ask(&*provider, &model, &prompt)));
    let stream = hidden(stream, inner.secrets());
    let origin = Origin { dialect, provider: model.provider().to_owned(), model: model.model().to_owned() };
    let asked = async move {
        let mut assembler = Assembler::default();
        let told = match stream {
            Ok(stream) => timeout(MAX_TIME, take(stream, &mut assembler, &mut report))
                .await
                .unwrap_or_else(|_| Err(ProviderFailure::new(ProviderFailureKind::Timeout, "the model took too long"))),
            Err(failure) => Err(failure),
        };
        let message = assembler.complete(origin.clone(), Seq::FIRST);
        match &told {
            Ok(()) => report.complete(&origin, &message),
            Err(failure) => report.fail(&origin, failure),
        }
        match told {
            Ok(()) if message.text().is_empty() && (is_plain || message.calls().next().is_none()) => {
                let failure = ProviderFailure::new(ProviderFailureKind::Malformed, "the model said nothing");
                SamplingOutcome::Failed { failure, usage: message.usage }
            }
            Ok(()) => SamplingOutcome::Answered(message),
            Err(failure) => SamplingOutcome::Failed { failure, usage: message.usage },
        }
    };
    asked.instrument(span)
}

async fn take(mut stream: Hidden, assembler: &mut Assembler, report: &mut Report) -> Result<(), ProviderFailure> {
    let mut bytes = 0_usize;
    while let Some(deltas) = stream.next().await {
        for delta in deltas? {
            report.hear(&delta);
            if let StreamDelta::Text(text) | StreamDelta::Reasoning(text) | StreamDelta::CallArguments { text, .. } = &delta {
                bytes = bytes.saturating_add(text.len());
            }
            assembler.push(delta);
        }
        if bytes > MAX_BYTES {
            let text = format!("the answer is over {MAX_BYTES} bytes long");
            return Err(ProviderFailure::new(ProviderFailureKind::Limit, text));
        }
    }
    Ok(())
}
