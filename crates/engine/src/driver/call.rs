//! One tool call: runs it within its limits and gives its result, whatever happens.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use turnwright_core::secrets::Secrets;
use turnwright_core::{CallId, Elicited, Outcome, Resumption, ToolErrorKind, ToolResult, Turn, UserId, Waits};

use super::asked::{Asker, Word};
use super::attempt::{Made, Parking, make};
use super::fence::{Fence, STOPS_WITHIN};
use super::key::Keyed;
use super::moved::Moved;
use crate::inner::Inner;
use crate::live::Live;
use crate::result_cache::ResultCache;
use crate::ruler::Ready;
use crate::shelf::put_away;
use crate::spool::PAGE_TOOL;
use crate::telemetry::spans;
use crate::{
    CallContext, ChosenTools, Event, Fact, Progress, ProgressSink, SourceCall, Spool, Telemetry, ToolError, ToolOutput,
    ToolReply,
};

/// How long a call that is told to end may take to give its real result.
const GRACE: Duration = Duration::from_secs(5);
/// How long of that passes before watchers are told.
const UNTOLD_STOP: Duration = Duration::from_millis(100);

/// A call that was started.
pub(super) struct CallJob {
    pub(super) id: CallId,
    pub(super) keyed: Keyed,
    pub(super) ready: Ready,
    pub(super) cancel: CancellationToken,
    /// Fires where the driver ends and the turn does not: a task goes on without it.
    pub(super) halts: CancellationToken,
    pub(super) live: Arc<Live>,
    pub(super) asking: Asking,
    pub(super) aids: Aids,
    /// The right of its driver; it has none outside of a turn.
    pub(super) fence: Option<Fence>,
    /// Where the calls before it left what it may need, where that is another process.
    pub(super) moved: Option<Moved>,
}

/// What every call of an engine is run with.
#[derive(Debug, Clone)]
pub(crate) struct Aids {
    telemetry: Telemetry,
    /// What is hidden in what it says.
    secrets: Arc<Secrets>,
    cache: Arc<ResultCache>,
    /// Where its result goes that is too large, where there is such a place.
    spool: Option<Spool>,
    large: Large,
}

/// What becomes of a result that is too large for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Large {
    /// It is kept, and shown in part.
    PutAway,
    /// It stays as it is.
    Whole,
}

impl Aids {
    /// Those of a call for this user.
    pub(crate) fn of(inner: &Inner, user: &UserId) -> Self {
        Self {
            telemetry: inner.telemetry().clone(),
            secrets: inner.secrets(),
            cache: inner.result_cache.clone(),
            spool: inner.spool(user),
            large: Large::PutAway,
        }
    }

    /// The same where the turn has none but these tools: which read on of a large result is said where they are there.
    #[must_use]
    pub(super) fn among(self, tools: Option<&[String]>) -> Self {
        let can_read = tools.is_none_or(|globs| ChosenTools::of(globs).has(PAGE_TOOL));
        if can_read { self } else { Self { spool: self.spool.map(Spool::unread), ..self } }
    }

    /// The same for whoever takes results whole.
    #[must_use]
    pub(super) fn giving_whole(self) -> Self {
        Self { large: Large::Whole, ..self }
    }
}

/// How a call asks people.
pub(super) enum Asking {
    /// By its turn.
    Turn {
        /// Where it asks while it runs.
        questions: mpsc::Sender<Box<Word>>,
        /// The answers to what it asked before.
        resume: Option<Resumption>,
        /// What its source needs to ask how far it is.
        task: Option<Arc<serde_json::Value>>,
    },
    /// It belongs to no turn.
    Nobody,
}

/// How a call came to rest.
#[derive(Debug)]
pub(super) enum Rest {
    /// With its one result.
    Result(ToolResult),
    /// It is over until people have answered.
    Asks(Elicited),
    /// Its tool is not the one any more that was allowed, and was not called: what it comes to where nobody can be asked.
    Changed(ToolResult),
}

impl Rest {
    pub(super) fn call(&self) -> CallId {
        match self {
            Self::Result(result) | Self::Changed(result) => result.call,
            Self::Asks(elicited) => elicited.call,
        }
    }
}

/// How the waiting for a call ended.
enum Ending {
    Returned(Result<Made, ToolError>),
    Panicked,
    /// It was told to end. What its source said to that, where it is more than that the call was cancelled.
    Stopped(Stop, Option<ToolError>),
}

/// Whether a call starts for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    First,
    /// This driver or another started it before: what came of that is not known.
    Again,
}

impl Start {
    fn of(live: &Live, id: CallId) -> Self {
        let is_again = live.lock().journal.turn().and_then(|turn| turn.call(id)).is_some_and(|call| call.starts > 1);
        if is_again { Self::Again } else { Self::First }
    }
}

/// Why a call was told to end.
#[derive(Debug, Clone, Copy)]
enum Stop {
    IdleTooLong(Duration),
    TooLong(Duration),
    Cancelled,
}

impl Ending {
    /// Whether it is its source's own word, of this call.
    fn has_called(&self) -> bool {
        match self {
            Self::Returned(Ok(made)) => !made.is_cached && made.reply != ToolReply::Changed,
            Self::Returned(Err(_)) => true,
            Self::Panicked | Self::Stopped(..) => false,
        }
    }

    /// The one result of the call `id` of the tool `name`.
    fn result(self, id: CallId, name: &str) -> ToolResult {
        match self {
            Self::Returned(Ok(Made { reply: ToolReply::Asks { .. }, .. })) => {
                let text = format!("`{name}` wants something of the user and does not say what.");
                ToolResult::failed(id, ToolErrorKind::ExecutionFailed, text)
            }
            Self::Returned(Ok(Made { reply: ToolReply::Changed, .. })) => changed(id, name, Start::First),
            Self::Returned(Ok(Made { reply: ToolReply::Done(output), is_cached })) => ToolResult {
                call: id,
                outcome: if output.is_error { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success },
                content: output.content,
                structured_content: output.structured_content,
                diagnostic: output.diagnostic,
                duration_ms: None,
                is_cached,
            },
            Self::Returned(Err(error)) => {
                let mut result = ToolResult::failed(id, error.kind, error.model_text);
                result.diagnostic = error.diagnostic;
                result
            }
            Self::Panicked => {
                let text = format!("`{name}` failed inside; this is a fault of the tool.");
                ToolResult::failed(id, ToolErrorKind::ExecutionFailed, text)
            }
            Self::Stopped(stop, said) => {
                let (kind, why) = stop.in_words(name);
                stopped(id, kind, &why, said)
            }
        }
    }
}

impl Stop {
    fn in_words(self, name: &str) -> (ToolErrorKind, String) {
        match self {
            Self::IdleTooLong(limit) => {
                let why = format!("`{name}` gave no sign of life for {} s and was stopped.", limit.as_secs_f64());
                (ToolErrorKind::Timeout, why)
            }
            Self::TooLong(limit) => {
                (ToolErrorKind::Timeout, format!("`{name}` was not done after {} s and was stopped.", limit.as_secs_f64()))
            }
            Self::Cancelled => (ToolErrorKind::Interrupted, format!("The user stopped the turn while `{name}` ran.")),
        }
    }
}

impl CallJob {
    /// Runs the call to its rest, and tells of it. Boxed, since each `async fn` that is given a value keeps room for it twice.
    pub(super) async fn run(self: Box<Self>) -> Rest {
        let begun = Instant::now();
        let definition = self.ready.tool.definition.clone();
        let telemetry = self.aids.telemetry.clone();
        let span = spans::tool_call(self.keyed.conversation(&self.live), self.id, &definition.source, &definition.name);
        if telemetry.records_content && !span.is_disabled() {
            spans::called_with(&span, &self.ready.arguments);
        }
        let secrets = self.aids.secrets.clone();
        let mut rest = self.run_to_rest(begun).instrument(span.clone()).await;
        if let Rest::Asks(elicited) = &mut rest {
            elicited.asks.iter_mut().for_each(|ask| secrets.hide_in_question(ask));
        }
        let outcome = match &rest {
            Rest::Asks(_) => "parked",
            Rest::Changed(_) => "changed",
            Rest::Result(result) => match result.outcome {
                Outcome::Success => "success",
                Outcome::Denied => "denied",
                Outcome::Error(kind) => {
                    spans::failed(&span, kind.as_str());
                    kind.as_str()
                }
            },
        };
        if let (true, Rest::Result(result)) = (telemetry.records_content && !span.is_disabled(), &rest) {
            spans::came_to(&span, &result.content);
        }
        let (source, tool) = (definition.source.as_str(), definition.name.as_str());
        telemetry.tell(&Fact::ToolCalled { source, tool, outcome, duration: begun.elapsed() });
        rest
    }

    async fn run_to_rest(self: Box<Self>, begun: Instant) -> Rest {
        let Ready { tool, arguments, permit } = self.ready;
        let signs = Arc::new(Notify::new());
        let (id, live, secrets) = (self.id, self.live.clone(), self.aids.secrets.clone());
        let progress = Arc::new(Reporter { id, live, signs: signs.clone(), secrets });
        let limits = tool.source.limits(&tool.definition.tool);
        let idempotency_key = self.keyed.key(&self.live, self.id, &tool.definition.name, &arguments);
        let call = SourceCall { tool: tool.definition.tool.clone(), arguments, idempotency_key };
        let mut context = CallContext::new(self.cancel.clone(), progress).of(&self.live.owner);
        context.conversation = self.keyed.conversation(&self.live).cloned();
        let standstill = context.standstill.clone();
        context.trace = self.aids.telemetry.current_context();
        context.spool.clone_from(&self.aids.spool);
        let parking = match self.asking {
            Asking::Turn { questions, resume, task } => {
                let (source, live) = (tool.source.name().to_owned(), self.live.clone());
                let asker = Asker { call: self.id, source, live, standstill: standstill.clone(), questions };
                let asker = Arc::new(asker);
                (context.asks, context.tasks) = (asker.clone(), asker);
                (context.resume, context.task) = (resume, task);
                Parking::Possible
            }
            Asking::Nobody => Parking::Impossible,
        };
        if self.fence.as_ref().is_some_and(|fence| !fence.holds()) {
            // The driver hears of it and halts; whether it is run is for the next to decide.
            self.halts.cancelled().await;
            return Rest::Result(stopped(self.id, ToolErrorKind::Interrupted, "It was not begun by this process.", None));
        }
        let start = Start::of(&self.live, self.id);
        if context.task.is_none() && (self.cancel.is_cancelled() || is_stopped(&self.live)) {
            return Rest::Result(not_begun(self.id, &tool.definition.name, start));
        }
        let work = Box::pin(make(&self.aids.cache, &tool, call, context, parking));
        let work = AssertUnwindSafe(under(self.fence.as_ref(), &self.cancel, work)).catch_unwind();
        tokio::pin!(work);
        let ended = |joined: Result<Result<Made, ToolError>, _>| joined.map_or(Ending::Panicked, Ending::Returned);
        let total = standstill.run_out(limits.total);
        tokio::pin!(total);
        let idle = standstill.run_out(limits.idle);
        tokio::pin!(idle);
        let lost = lost(self.fence.clone());
        tokio::pin!(lost);
        let is_task = || self.live.lock().journal.turn().is_some_and(|turn| turn.task(self.id).is_some());
        let mut is_halting = false;
        let ending = loop {
            tokio::select! {
                biased;
                // First: the work must not see that it is cancelled.
                () = self.halts.cancelled(), if !is_halting => {
                    is_halting = true;
                    if is_task() {
                        return Rest::Result(stopped(self.id, ToolErrorKind::Interrupted, "It goes on as a task.", None));
                    }
                }
                // Also where its driver waits for the store: another may soon make this call.
                () = &mut lost => {
                    if is_task() {
                        return Rest::Result(stopped(self.id, ToolErrorKind::Interrupted, "It goes on as a task.", None));
                    }
                    break Ending::Stopped(Stop::Cancelled, None);
                }
                done = &mut work => break ended(done),
                () = self.cancel.cancelled() => break Ending::Stopped(Stop::Cancelled, None),
                () = signs.notified() => idle.set(standstill.run_out(limits.idle)),
                () = &mut total => break Ending::Stopped(Stop::TooLong(limits.total), None),
                () = &mut idle => break Ending::Stopped(Stop::IdleTooLong(limits.idle), None),
            }
        };
        let ending = match ending {
            Ending::Returned(_) | Ending::Panicked => ending,
            Ending::Stopped(stop, _) => {
                self.cancel.cancel();
                let has_lost = self.fence.as_ref().is_some_and(Fence::has_lost);
                let grace = if has_lost { STOPS_WITHIN } else { GRACE };
                match wound_down(&self.live, &tool.definition.name, grace, work.as_mut()).await {
                    // A real result counts also when it comes late; that a tool was cancelled is known.
                    Some(done @ Ok(Ok(_))) => ended(done),
                    Some(Ok(Err(said))) if said.kind != ToolErrorKind::Cancelled => Ending::Stopped(stop, Some(said)),
                    Some(_) | None => ending,
                }
            }
        };
        drop(permit);
        let name = &tool.definition.name;
        let has_called;
        let mut result = match ending {
            Ending::Returned(Ok(Made { reply: ToolReply::Asks { asks, resume }, .. })) if !asks.is_empty() => {
                let source = tool.source.name().to_owned();
                return Rest::Asks(Elicited { call: self.id, source, asks, waits: Waits::Parked { resume } });
            }
            Ending::Returned(Ok(Made { reply: ToolReply::Changed, .. })) => return Rest::Changed(changed(id, name, start)),
            ending => {
                has_called = ending.has_called();
                ending.result(self.id, name)
            }
        };
        result.duration_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        make_storable(&self.aids, name, &mut result, &self.cancel).await;
        if let Some(moved) = self.moved.filter(|_| has_called) {
            moved.note(tool.source.name(), &mut result).await;
        }
        Rest::Result(result)
    }
}

/// What a call does, which looks whether its driver still has the right to it each time that something it waited for has come:
/// what a source does next it does at once. Where the right is lost nothing of it goes on before it is told to end.
fn under<'a, T>(
    fence: Option<&'a Fence>,
    cancel: &'a CancellationToken,
    mut work: impl Future<Output = T> + Unpin + 'a,
) -> impl Future<Output = T> + Unpin + 'a {
    poll_fn(move |context| {
        if !cancel.is_cancelled() && fence.is_some_and(|fence| !fence.holds()) {
            // Whoever polls it hears of the loss.
            return Poll::Pending;
        }
        work.poll_unpin(context)
    })
}

/// Ends once a call's driver has lost the right to it, where it has one.
async fn lost(fence: Option<Fence>) {
    match fence {
        Some(fence) => fence.lost().await,
        None => std::future::pending().await,
    }
}

/// Hides what must not be seen in a result, before any of it is stored, and puts away what is too large for who asked.
async fn make_storable(aids: &Aids, name: &str, result: &mut ToolResult, cancel: &CancellationToken) {
    aids.secrets.hide_in_result(result);
    if let Some(spool) = aids.spool.as_ref().filter(|_| aids.large == Large::PutAway) {
        let large = ToolOutput {
            content: std::mem::take(&mut result.content),
            structured_content: result.structured_content.take(),
            ..ToolOutput::default()
        };
        let shown = Box::pin(put_away(spool, name, large, cancel)).await;
        (result.content, result.structured_content) = (shown.content, shown.structured_content);
    }
}

/// What a call that was told to end comes to in time. Where it takes long, watchers are told that the stop has arrived.
async fn wound_down<T>(live: &Live, name: &str, grace: Duration, mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    if let Ok(done) = tokio::time::timeout(UNTOLD_STOP, work.as_mut()).await {
        return Some(done);
    }
    let text = format!("`{name}` was told to end and has not ended yet");
    live.lock().tell(vec![Event::Notice { level: "info", text }]);
    tokio::time::timeout(grace.saturating_sub(UNTOLD_STOP), work).await.ok()
}

/// Whether a stop of the turn is stored. Its driver may not have heard of it yet: a call that keeps the thread for itself keeps it
/// from that too.
fn is_stopped(live: &Live) -> bool {
    live.lock().journal.turn().is_some_and(Turn::is_cancelling)
}

/// Runs a call outside of any turn.
pub(crate) async fn run_alone(
    (id, keyed): (CallId, Keyed),
    ready: Ready,
    live: Arc<Live>,
    cancel: CancellationToken,
    aids: Aids,
) -> ToolResult {
    let halts = CancellationToken::new();
    let asking = Asking::Nobody;
    match Box::new(CallJob { id, keyed, ready, cancel, halts, live, asking, aids, fence: None, moved: None }).run().await {
        Rest::Result(result) | Rest::Changed(result) => result,
        Rest::Asks(_) => ToolResult::failed(id, ToolErrorKind::ExecutionFailed, "Nobody can be asked here."),
    }
}

/// What a call comes to that was told to end. A source that says itself how far the call came knows more than that; what else it says
/// may be its way to say that it stopped in the middle.
fn stopped(id: CallId, kind: ToolErrorKind, why: &str, said: Option<ToolError>) -> ToolResult {
    const UNKNOWN: &str = "It may or may not have happened.";
    let Some(said) = said else { return ToolResult::failed(id, kind, format!("{why} {UNKNOWN}")) };
    let text = match said.kind {
        ToolErrorKind::Interrupted => format!("{why} It says: {}", said.model_text),
        ToolErrorKind::InvalidArguments
        | ToolErrorKind::NotFound
        | ToolErrorKind::PermissionDenied
        | ToolErrorKind::ExecutionFailed
        | ToolErrorKind::Timeout
        | ToolErrorKind::Cancelled
        | ToolErrorKind::Unavailable => format!("{why} {UNKNOWN} It says: {}", said.model_text),
    };
    ToolResult { diagnostic: said.diagnostic, ..ToolResult::failed(id, kind, text) }
}

/// What a call comes to that was stopped before its tool was called.
fn not_begun(id: CallId, name: &str, start: Start) -> ToolResult {
    let text = match start {
        Start::First => format!("The user stopped the turn before `{name}` began; it did not run."),
        Start::Again => {
            format!("The user stopped the turn before `{name}` began again. Before that it may or may not have happened.")
        }
    };
    ToolResult::failed(id, ToolErrorKind::Interrupted, text)
}

fn changed(id: CallId, name: &str, start: Start) -> ToolResult {
    let why = "its definition changed since it was allowed";
    if start == Start::Again {
        let text = format!("`{name}` was interrupted: it may or may not have happened. It did not run again: {why}.");
        return ToolResult::failed(id, ToolErrorKind::Interrupted, text);
    }
    let text = format!("`{name}` did not run: {why}.");
    ToolResult::failed(id, ToolErrorKind::PermissionDenied, text)
}

/// Tells watchers how far a call is, and that it lives.
#[derive(Debug)]
struct Reporter {
    id: CallId,
    live: Arc<Live>,
    signs: Arc<Notify>,
    secrets: Arc<Secrets>,
}

impl ProgressSink for Reporter {
    fn report(&self, progress: Progress) {
        self.signs.notify_one();
        let Progress { progress, total, mut message } = progress;
        if let Some(message) = &mut message {
            self.secrets.hide_in(message);
        }
        self.live.lock().tell(vec![Event::ToolProgress { call_id: self.id, progress, total, message }]);
    }
}
