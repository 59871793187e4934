//! Questions that calls ask while they hold their connections.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, ApproveMode, CallId, Elicitation, ElicitationId, Elicited, Entry, ToolErrorKind,
    ToolResult, Turn, TurnSettings, Waits,
};

use crate::inner::Inner;
use crate::live::Live;
use crate::{Asks, Reply, Standstill};

/// How many questions may wait to be stored.
const QUEUE: usize = 32;

/// How often a call may be made again with answers before it is given up.
const MAX_ROUNDS: u32 = 10;

/// A question on its way from a call to the journal.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) call: CallId,
    source: String,
    ask: Elicitation,
    reply: oneshot::Sender<Reply>,
}

/// What is new of the questions of a driver's calls.
#[derive(Debug)]
pub(super) enum News {
    /// A call asks.
    Asked(Question),
    /// Nobody answers any more; the answer to store.
    Over(Entry),
}

/// Where calls ask.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) call: CallId,
    pub(super) source: String,
    pub(super) live: Arc<Live>,
    pub(super) standstill: Standstill,
    pub(super) questions: mpsc::Sender<Box<Question>>,
}

#[async_trait]
impl Asks for Asker {
    async fn ask(&self, ask: Elicitation) -> Reply {
        let _held = self.standstill.hold();
        let (reply, answer) = oneshot::channel();
        let question = Question { call: self.call, source: self.source.clone(), ask, reply };
        if self.questions.send(Box::new(question)).await.is_err() {
            return Reply::of(AnswerAction::Cancel);
        }
        answer.await.unwrap_or(Reply::of(AnswerAction::Cancel))
    }

    fn whose(&self) -> Option<&str> {
        Some(self.live.id.as_str())
    }
}

/// The questions of this driver's calls that are open.
#[derive(Debug)]
pub(super) struct Asked {
    /// Boxed, since a channel keeps room for its queue from the beginning, and every driver has one.
    sender: mpsc::Sender<Box<Question>>,
    receiver: mpsc::Receiver<Box<Question>>,
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    id: ElicitationId,
    reply: oneshot::Sender<Reply>,
    deadline: Instant,
}

impl Default for Asked {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        Self { sender, receiver, open: Vec::new() }
    }
}

/// Whether people can be asked by a turn with these settings.
pub(super) fn can_ask(settings: &TurnSettings) -> bool {
    match settings.approve {
        ApproveMode::Ask | ApproveMode::All => true,
        ApproveMode::None | ApproveMode::ReadOnly => false,
    }
}

impl Asked {
    /// Where the calls of this driver ask.
    pub(super) fn door(&self) -> mpsc::Sender<Box<Question>> {
        self.sender.clone()
    }

    /// The next question that a call asks, or that is over.
    pub(super) async fn next(&mut self) -> News {
        let Self { receiver, open, .. } = self;
        tokio::select! {
            biased;
            Some(question) = receiver.recv() => News::Asked(*question),
            over = next_over(open) => News::Over(over),
        }
    }

    /// The entries of a question of a call that runs.
    pub(super) fn entries(&mut self, inner: &Inner, turn: &Turn, question: Question) -> Vec<Entry> {
        let Question { call, source, ask, reply } = question;
        let limit = Duration::from_millis(inner.question_limit_ms.load(Ordering::Relaxed));
        let until_ms = inner.clock.now_ms().saturating_add(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let id = turn.next_question(call);
        let elicited = Elicited { call, source, asks: vec![ask], waits: Waits::Open { until_ms } };
        let mut entries = vec![Entry::Elicited(elicited)];
        if !can_ask(turn.settings()) || inner.is_unattended.load(Ordering::Relaxed) {
            entries.push(answer(id, AnswerAction::Decline, AnsweredBy::Nobody));
        }
        let deadline = Instant::now().checked_add(limit).unwrap_or_else(far);
        self.open.push(Open { id, reply, deadline });
        entries
    }

    /// Hands on the answers that are stored. What is closed is answered too, so that nobody waits for ever.
    pub(super) fn deliver(&mut self, turn: Option<&Turn>) {
        let is_closed = turn.is_none_or(|turn| turn.ended().is_some() || turn.is_cancelling());
        let (open, done): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|open| !is_closed && turn.is_some_and(|turn| turn.answer(open.id).is_none()));
        self.open = open;
        for Open { id, reply, .. } in done {
            let stored = turn.and_then(|turn| turn.answer(id));
            let told = stored.map_or(Reply::of(AnswerAction::Cancel), |answered| Reply {
                action: answered.action,
                content: answered.content.clone(),
            });
            // Whoever asked may be gone.
            let _ = reply.send(told);
        }
    }
}

/// The answer to the next question that nobody answers any more: its time is over, or whoever asked took it back.
async fn next_over(open: &mut [Open]) -> Entry {
    let Some(first) = open.iter().map(|open| open.deadline).min() else { return std::future::pending().await };
    let mut late = std::pin::pin!(tokio::time::sleep_until(first));
    poll_fn(|context| {
        let taken_back = open.iter_mut().find_map(|open| open.reply.poll_closed(context).is_ready().then_some(open.id));
        if let Some(id) = taken_back {
            return Poll::Ready(answer(id, AnswerAction::Cancel, AnsweredBy::Asker));
        }
        let is_late = late.as_mut().poll(context).is_ready();
        let late = open.iter().find(|open| is_late && open.deadline <= first);
        late.map_or(Poll::Pending, |open| Poll::Ready(answer(open.id, AnswerAction::Cancel, AnsweredBy::Deadline)))
    })
    .await
}

/// The entries of a call that is over until people have answered.
pub(super) fn parked(turn: &Turn, elicited: Elicited) -> Vec<Entry> {
    if turn.rounds(elicited.call) >= MAX_ROUNDS {
        let text = format!("The tool asked the user for something {MAX_ROUNDS} times and still wants more. It did not finish.");
        return vec![Entry::Result(ToolResult::failed(elicited.call, ToolErrorKind::ExecutionFailed, text))];
    }
    let first = turn.next_question(elicited.call);
    let declined = (0_u32..).take(elicited.asks.len()).map(|at| {
        let id = ElicitationId { index: first.index.saturating_add(at), ..first };
        answer(id, AnswerAction::Decline, AnsweredBy::Nobody)
    });
    let declined: Vec<_> = if can_ask(turn.settings()) { Vec::new() } else { declined.collect() };
    std::iter::once(Entry::Elicited(elicited)).chain(declined).collect()
}

fn answer(question: ElicitationId, action: AnswerAction, by: AnsweredBy) -> Entry {
    Entry::Answered(Answered { question, action, content: None, by })
}

/// A moment that never comes.
fn far() -> Instant {
    Instant::now() + Duration::from_hours(24 * 365)
}
