//! Questions that calls ask while they hold their connections.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, ApproveMode, CallId, Elicitation, ElicitationId, Elicited, Entry, TaskAccepted,
    ToolErrorKind, ToolResult, Turn, TurnSettings, Waits, Wants,
};

use crate::inner::Inner;
use crate::live::Live;
use crate::{Asks, Reply, Standstill, Tasks};

use super::Driver;
use super::sampling::{Reach, Ruled, ruled};

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

/// A task on its way from a call to the journal.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) task: TaskAccepted,
    stored: oneshot::Sender<()>,
}

/// What a call says to its driver.
#[derive(Debug)]
pub(super) enum Word {
    /// It asks.
    Asks(Question),
    /// It goes on by itself.
    Accepted(Accepted),
}

/// Both ends of what calls say to their driver.
type Words = (mpsc::Sender<Box<Word>>, mpsc::Receiver<Box<Word>>);

/// What is new of the questions of a driver's calls.
#[derive(Debug)]
pub(super) enum News {
    /// A call asks.
    Asked(Question),
    /// A call goes on by itself.
    Accepted(Accepted),
    /// Nobody answers any more; the question, and the answer to store.
    Over(ElicitationId, Box<Entry>),
}

/// Where calls ask.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) call: CallId,
    pub(super) source: String,
    pub(super) live: Arc<Live>,
    pub(super) standstill: Standstill,
    pub(super) questions: mpsc::Sender<Box<Word>>,
}

#[async_trait]
impl Asks for Asker {
    async fn ask(&self, ask: Elicitation) -> Option<Reply> {
        let _held = self.standstill.hold();
        let (reply, answer) = oneshot::channel();
        let question = Question { call: self.call, source: self.source.clone(), ask, reply };
        self.questions.send(Box::new(Word::Asks(question))).await.ok()?;
        answer.await.ok()
    }

    fn whose(&self) -> Option<&str> {
        Some(self.live.id.as_str())
    }

    fn by(&self) -> Option<&str> {
        Some(self.live.owner.as_str())
    }
}

#[async_trait]
impl Tasks for Asker {
    async fn accepted(&self, task: Value) {
        let (stored, is_stored) = oneshot::channel();
        let task = TaskAccepted { call: self.call, source: self.source.clone(), task };
        let accepted = Box::new(Word::Accepted(Accepted { task, stored }));
        if self.questions.send(accepted).await.is_ok() {
            // Where it could not be stored, the next process does not know of it; this one goes on all the same.
            let _ = is_stored.await;
        }
    }
}

/// The questions of this driver's calls that are open.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Where they ask; `None` before the first of them: most answers stream without one. Boxed, since a channel keeps room for its queue
    /// from the beginning.
    door: Option<Words>,
    open: Vec<Open>,
    /// The tasks that are being stored.
    accepted: Vec<(CallId, oneshot::Sender<()>)>,
}

#[derive(Debug)]
struct Open {
    id: ElicitationId,
    reply: oneshot::Sender<Reply>,
    deadline: Instant,
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
    pub(super) fn door(&mut self) -> mpsc::Sender<Box<Word>> {
        let (sender, _) = self.door.get_or_insert_with(|| mpsc::channel(QUEUE));
        sender.clone()
    }

    /// The next question that a call asks, or that is over.
    pub(super) async fn next(&mut self) -> News {
        let Self { door, open, .. } = self;
        tokio::select! {
            biased;
            Some(word) = next_word(door) => match *word {
                Word::Asks(question) => News::Asked(question),
                Word::Accepted(accepted) => News::Accepted(accepted),
            },
            (id, over) = next_over(open) => News::Over(id, Box::new(over)),
        }
    }

    /// The entry of a call that goes on by itself.
    pub(super) fn keep(&mut self, accepted: Accepted) -> Entry {
        self.accepted.push((accepted.task.call, accepted.stored));
        Entry::TaskAccepted(accepted.task)
    }

    /// Whoever asked this does not wait any more, and the answer is there: nothing is left to say.
    pub(super) fn forget(&mut self, id: ElicitationId) {
        self.open.retain(|open| open.id != id);
    }

    /// The entries of a question of a call that runs.
    pub(super) fn entries(&mut self, inner: &Inner, live: &Live, turn: &Turn, question: Question) -> Vec<Entry> {
        let Question { call, source, ask, reply } = question;
        let limit = Duration::from_millis(inner.question_limit_ms.load(Ordering::Relaxed));
        let until_ms = inner.clock.now_ms().saturating_add(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let id = turn.next_question(call);
        let is_sampling = matches!(ask.wants, Wants::Sampling { .. });
        let mut asks = vec![ask];
        let ruled = ruled(inner, &inner.policy_of(live, turn.id()), turn, &source, &mut asks, Reach::Now);
        let mut entries = vec![Entry::Elicited(Elicited { call, source, asks, waits: Waits::Open { until_ms } })];
        entries.extend(ruled.into_iter().flatten().map(|ruled| answer_ruled(id, ruled)));
        if !is_sampling && (!can_ask(turn.settings()) || inner.is_unattended.load(Ordering::Relaxed)) {
            entries.push(answer(id, AnswerAction::Decline, AnsweredBy::Nobody));
        }
        let deadline = Instant::now().checked_add(limit).unwrap_or_else(far);
        self.open.push(Open { id, reply, deadline });
        entries
    }

    /// Lets go of those who wait for a task to be stored.
    pub(super) fn release(&mut self) {
        for (_, stored) in std::mem::take(&mut self.accepted) {
            // Whoever waits for it may be gone.
            let _ = stored.send(());
        }
    }

    /// Hands on the answers that are stored. What a stop closed is answered too, so that nobody waits for ever.
    pub(super) fn deliver(&mut self, turn: Option<&Turn>) {
        self.release();
        let is_closed = turn.is_none_or(|turn| turn.ended().is_some() || turn.is_cancelling());
        let (open, done): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open).into_iter().partition(|open| {
            let is_over = |turn: &Turn| turn.call(open.id.call).is_none_or(|call| call.is_answered);
            !is_closed && turn.is_some_and(|turn| turn.settled(open.id).is_none() && !is_over(turn))
        });
        self.open = open;
        for open in &mut self.open {
            // It is allowed, and a model is asked: people are not waited for any more.
            if turn.is_some_and(|turn| turn.answer(open.id).is_some()) {
                open.deadline = far();
            }
        }
        for Open { id, reply, .. } in done {
            let settled = turn.and_then(|turn| turn.settled(id));
            if settled.is_none() && !is_closed {
                // Its call is over, and nothing is said in anybody's name.
                drop(reply);
                continue;
            }
            let told = settled.map_or(Reply::of(AnswerAction::Cancel), |settled| Reply {
                action: settled.answer.action,
                content: settled.answer.content.clone(),
                sampled: settled.sampled,
                reason: settled.answer.reason.clone(),
            });
            // Whoever asked may be gone.
            let _ = reply.send(told);
        }
    }
}

impl Driver {
    /// A call goes on by itself at its source.
    pub(super) fn hear_accepted(&mut self, accepted: Accepted) -> Option<Entry> {
        // One that came to rest meanwhile has its result.
        if !self.running.contains_key(&accepted.task.call) {
            return None;
        }
        Some(self.asked.keep(accepted))
    }

    /// Nobody answers a question any more, unless somebody did.
    pub(super) fn hear_over(&mut self, id: ElicitationId, answer: Entry) -> Option<Entry> {
        let is_answered = self.live.lock().journal.turn().is_some_and(|turn| turn.answer(id).is_some());
        if is_answered {
            self.asked.forget(id);
            return None;
        }
        Some(answer)
    }

    /// A call asks people while it runs. One that came to rest meanwhile does not ask any more.
    pub(super) fn hear_question(&mut self, question: Question) -> Option<Vec<Entry>> {
        if !self.running.contains_key(&question.call) {
            return None;
        }
        let state = self.live.lock();
        let turn = state.journal.open_turn().filter(|turn| turn.is_held_by(&self.claim))?;
        Some(self.asked.entries(&self.inner, &self.live, turn, question))
    }
}

/// What a call says next.
async fn next_word(door: &mut Option<Words>) -> Option<Box<Word>> {
    match door {
        Some((_, receiver)) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

/// The answer to the next question that nobody answers any more: its time is over, or whoever asked took it back.
async fn next_over(open: &mut [Open]) -> (ElicitationId, Entry) {
    let Some(first) = open.iter().map(|open| open.deadline).min() else { return std::future::pending().await };
    let mut late = std::pin::pin!(tokio::time::sleep_until(first));
    poll_fn(|context| {
        let taken_back = open.iter_mut().find_map(|open| open.reply.poll_closed(context).is_ready().then_some(open.id));
        if let Some(id) = taken_back {
            return Poll::Ready((id, answer(id, AnswerAction::Cancel, AnsweredBy::Asker)));
        }
        let is_late = late.as_mut().poll(context).is_ready();
        let late = open.iter().find(|open| is_late && open.deadline <= first);
        late.map_or(Poll::Pending, |open| Poll::Ready((open.id, answer(open.id, AnswerAction::Cancel, AnsweredBy::Deadline))))
    })
    .await
}

/// The entries of a call that is over until people have answered.
pub(super) fn parked(inner: &Inner, live: &Live, turn: &Turn, mut elicited: Elicited) -> Vec<Entry> {
    if turn.rounds(elicited.call) >= MAX_ROUNDS {
        let text = format!("The tool asked the user for something {MAX_ROUNDS} times and still wants more. It did not finish.");
        return vec![Entry::Result(ToolResult::failed(elicited.call, ToolErrorKind::ExecutionFailed, text))];
    }
    let first = turn.next_question(elicited.call);
    let policy = inner.policy_of(live, turn.id());
    let ruled = ruled(inner, &policy, turn, &elicited.source, &mut elicited.asks, Reach::Later);
    let can_ask = can_ask(turn.settings());
    let answers: Vec<_> = (0_u32..)
        .zip(elicited.asks.iter().zip(ruled))
        .filter_map(|(at, (ask, ruled))| {
            let id = ElicitationId { index: first.index.saturating_add(at), ..first };
            match (&ask.wants, ruled) {
                (_, Some(ruled)) => Some(answer_ruled(id, ruled)),
                (Wants::Form { .. } | Wants::Url { .. }, None) if !can_ask => {
                    Some(answer(id, AnswerAction::Decline, AnsweredBy::Nobody))
                }
                (Wants::Form { .. } | Wants::Url { .. } | Wants::Sampling { .. }, None) => None,
            }
        })
        .collect();
    std::iter::once(Entry::Elicited(elicited)).chain(answers).collect()
}

fn answer(question: ElicitationId, action: AnswerAction, by: AnsweredBy) -> Entry {
    answer_ruled(question, Ruled { action, by, reason: None })
}

fn answer_ruled(question: ElicitationId, ruled: Ruled) -> Entry {
    let Ruled { action, by, reason } = ruled;
    Entry::Answered(Answered { question, action, content: None, by, reason })
}

/// A moment that never comes.
fn far() -> Instant {
    Instant::now() + Duration::from_hours(24 * 365)
}

/// Whether an entry says what cannot be had again.
pub(super) fn is_dear(entry: &Entry) -> bool {
    matches!(entry, Entry::Result(_) | Entry::Assistant(_) | Entry::TaskAccepted(_) | Entry::Elicited(_) | Entry::Sampled(_))
}
