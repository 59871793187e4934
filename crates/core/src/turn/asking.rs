//! What a call asks of people, and which of it is open.

use std::sync::Arc;

use serde_json::Value;

use super::call::{self, Call, CallState};
use super::{CallNeed, Misfit, Turn};
use crate::{
    AnswerAction, Answered, AnsweredBy, CallId, CallView, Elicitation, ElicitationId, Elicited, Entry, Sampled, TaskAccepted,
    Waits, Wants,
};

/// What a call asked so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asking {
    source: Arc<str>,
    questions: Vec<Asked>,
    /// How often it was parked since it was last decided about.
    rounds: u32,
    /// What its source needs to make it again, with the number of the first question that belongs to it.
    resume: Option<(Arc<Value>, usize)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Asked {
    ask: Arc<Elicitation>,
    waits: Waiting,
    answer: Option<Arc<Answered>>,
    /// What the model said, where it was to be asked.
    sampled: Option<Arc<Sampled>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Open { epoch: u64, until_ms: u64 },
    Parked,
}

/// A question that nobody answered.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion<'a> {
    /// Its name.
    pub id: ElicitationId,
    /// The call that asks.
    pub call: CallView<'a>,
    /// Who asks: the tool source's name.
    pub source: &'a str,
    /// The question.
    pub ask: &'a Elicitation,
    /// What the call does meanwhile.
    pub hold: Hold,
}

/// What a call does while its question is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It holds its connection until then, in milliseconds since 1970 UTC, and the question is closed with it.
    Connection {
        /// Until when.
        until_ms: u64,
    },
    /// Nothing: the turn waits as it does for an approval.
    Nothing,
}

/// What a call that was parked needs to be made again.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumption {
    /// What its source stored for this.
    pub resume: Arc<Value>,
    /// Its questions with their answers, in order.
    pub answers: Vec<Settled>,
}

/// A question with all that came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// What was asked.
    pub ask: Arc<Elicitation>,
    /// What was answered.
    pub answer: Arc<Answered>,
    /// What the model said, where that was asked and allowed.
    pub sampled: Option<Arc<Sampled>>,
}

impl Asking {
    pub(super) fn source(&self) -> &Arc<str> {
        &self.source
    }

    pub(super) fn ask(&self, index: u32) -> Option<&Elicitation> {
        Some(&self.questions.get(usize::try_from(index).ok()?)?.ask)
    }
}

impl Asked {
    /// Whether a model may be asked and was not.
    fn is_due(&self) -> bool {
        let is_allowed = self.answer.as_ref().is_some_and(|answer| answer.action == AnswerAction::Accept);
        is_allowed && self.sampled.is_none() && matches!(self.ask.wants, Wants::Sampling { .. })
    }

    fn settled(&self) -> Option<Settled> {
        let answer = self.answer.clone().filter(|_| !self.is_due())?;
        Some(Settled { ask: self.ask.clone(), answer, sampled: self.sampled.clone() })
    }
}

impl Turn {
    /// The questions of its calls that are open.
    pub fn questions(&self) -> impl Iterator<Item = OpenQuestion<'_>> {
        let epoch = self.epoch();
        let open = self.ended.is_none() && !self.is_cancelling();
        self.calls.iter().filter(move |_| open).flat_map(move |call| call.open_questions(epoch))
    }

    /// Whether nothing goes on before a person answers although calls hold their connections for it, so that it is not parked.
    pub fn is_held(&self) -> bool {
        let epoch = self.epoch();
        let one_at_a_time = self.settings.parallel_calls == Some(false);
        let moves_on = |call: &Call| match self.need(call).map(|pending| pending.need) {
            None => false,
            Some(CallNeed::Wait) => call.open_questions(epoch).next().is_none(),
            // It waits for the one that asks.
            Some(CallNeed::Start) => !one_at_a_time,
            Some(CallNeed::Decide | CallNeed::Ask(_) | CallNeed::Answer(_)) => true,
        };
        self.questions().any(|question| matches!(question.hold, Hold::Connection { .. })) && !self.calls.iter().any(moves_on)
    }

    /// Whether it is held ([`Turn::is_held`]) where `entry` is the newest that it took, and that one asked something or ended
    /// something else. What the `next` entry answers without a person, nobody was asked.
    pub fn is_held_since(&self, entry: &Entry, next: Option<&Entry>) -> bool {
        let is_asked = match next {
            Some(Entry::Answered(answered)) => !matches!(answered.by, AnsweredBy::Nobody | AnsweredBy::Policy),
            Some(_) | None => true,
        };
        is_asked && matches!(entry, Entry::Elicited(_) | Entry::Question(_) | Entry::Result(_)) && self.is_held()
    }

    /// A question of the newest message's calls with all that came of it, once nothing more is to come.
    pub fn settled(&self, id: ElicitationId) -> Option<Settled> {
        let asking = call::find(&self.calls, id.call)?.asking.as_ref()?;
        asking.questions.get(usize::try_from(id.index).ok()?)?.settled()
    }

    /// The answer to a question of the newest message's calls, where there is one.
    pub fn answer(&self, id: ElicitationId) -> Option<&Arc<Answered>> {
        let asking = call::find(&self.calls, id.call)?.asking.as_ref()?;
        asking.questions.get(usize::try_from(id.index).ok()?)?.answer.as_ref()
    }

    /// The name that the next question of a call takes.
    pub fn next_question(&self, call: CallId) -> ElicitationId {
        let asked = call::find(&self.calls, call).and_then(|call| call.asking.as_ref());
        ElicitationId { call, index: asked.map_or(0, |asking| u32::try_from(asking.questions.len()).unwrap_or(u32::MAX)) }
    }

    /// How often a call was parked to ask, since it was last decided about.
    pub fn rounds(&self, call: CallId) -> u32 {
        call::find(&self.calls, call).and_then(|call| call.asking.as_ref()).map_or(0, |asking| asking.rounds)
    }

    /// What a call needs to be made again, where it was parked to ask and all is answered.
    pub fn resumption(&self, call: CallId) -> Option<Resumption> {
        let asking = call::find(&self.calls, call)?.asking.as_ref()?;
        let (resume, first) = asking.resume.as_ref()?;
        let round = asking.questions.get(*first..)?.iter().filter(|asked| asked.waits == Waiting::Parked);
        let answers = round.map(Asked::settled).collect::<Option<_>>()?;
        Some(Resumption { resume: resume.clone(), answers })
    }

    pub(super) fn apply_answered(&mut self, answered: &Answered) -> Result<(), Misfit> {
        let epoch = self.epoch();
        self.call_mut(answered.question.call)?.take_answer(epoch, answered)?;
        self.reserve(answered);
        Ok(())
    }

    pub(super) fn apply_accepted(&mut self, accepted: &TaskAccepted) -> Result<(), Misfit> {
        let epoch = self.epoch();
        self.call_mut(accepted.call)?.accept(epoch, &accepted.task)
    }

    /// What the source of a call needs to ask how far it is, where it goes on there by itself.
    pub fn task(&self, call: CallId) -> Option<&Arc<Value>> {
        call::find(&self.calls, call)?.task.as_ref()
    }

    /// Whether the source of a call said to this driver that it goes on with its task, or the call is over.
    pub(crate) fn is_heard_of(&self, call: CallId) -> bool {
        call::find(&self.calls, call).is_none_or(|call| call.is_answered() || call.is_heard_of(self.epoch()))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.claim.as_ref().map_or(0, |claim| claim.epoch)
    }
}

impl Call {
    /// It asks people for something.
    pub(super) fn elicit(&mut self, epoch: u64, elicited: &Elicited) -> Result<(), Misfit> {
        match &self.state {
            CallState::Started { epoch: started, .. } if *started == epoch => {}
            _ => return Err("the call does not run and cannot ask"),
        }
        if elicited.asks.is_empty() {
            return Err("nothing is asked");
        }
        let none = || Asking { source: elicited.source.as_str().into(), questions: Vec::new(), rounds: 0, resume: None };
        let asking = Arc::make_mut(self.asking.get_or_insert_with(|| Arc::new(none())));
        let waits = match &elicited.waits {
            Waits::Open { until_ms } => Waiting::Open { epoch, until_ms: *until_ms },
            Waits::Parked { resume } => {
                asking.rounds = asking.rounds.saturating_add(1);
                asking.resume = Some((Arc::new(resume.clone()), asking.questions.len()));
                self.state = CallState::Parked;
                Waiting::Parked
            }
        };
        let asks = elicited.asks.iter().map(|ask| Asked { ask: Arc::new(ask.clone()), waits, answer: None, sampled: None });
        asking.questions.extend(asks);
        Ok(())
    }

    /// Takes the answer to one of its questions.
    pub(super) fn take_answer(&mut self, epoch: u64, answered: &Answered) -> Result<(), Misfit> {
        let index = usize::try_from(answered.question.index).unwrap_or(usize::MAX);
        let asked = self.asking.as_ref().and_then(|asking| asking.questions.get(index)).ok_or("there is no such question")?;
        if asked.answer.is_some() {
            return Err("the question has its answer");
        }
        if !self.is_open(epoch, index, asked) {
            return Err("the question is closed: the call that asked is over");
        }
        if let Some(asked) = self.asking.as_mut().and_then(|asking| Arc::make_mut(asking).questions.get_mut(index)) {
            asked.answer = Some(Arc::new(answered.clone()));
        }
        Ok(())
    }

    /// Whether all that it asked when it was parked is answered.
    pub(super) fn has_all_answers(&self) -> bool {
        let Some(asking) = &self.asking else { return false };
        let Some((_, first)) = &asking.resume else { return false };
        asking.questions.get(*first..).is_some_and(|round| round.iter().all(|asked| asked.answer.is_some() && !asked.is_due()))
    }

    /// The questions to models that are allowed, with nobody having asked yet.
    pub(super) fn due(&self, epoch: u64) -> impl Iterator<Item = (ElicitationId, &Arc<str>, &Arc<Elicitation>)> {
        let questions = self.asking.iter().flat_map(|asking| asking.questions.iter().map(move |asked| (asking, asked)));
        let due = questions.enumerate().filter(move |(index, (_, asked))| asked.is_due() && self.is_open(epoch, *index, asked));
        due.map(|(index, (asking, asked))| {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            (ElicitationId { call: self.id, index }, &asking.source, &asked.ask)
        })
    }

    /// Takes what a model said to one of its questions.
    pub(super) fn take_sampled(&mut self, epoch: u64, sampled: &Sampled) -> Result<(), Misfit> {
        if !self.due(epoch).any(|(id, _, _)| id == sampled.question) {
            return Err("no model is to be asked this");
        }
        let index = usize::try_from(sampled.question.index).unwrap_or(usize::MAX);
        if let Some(asked) = self.asking.as_mut().and_then(|asking| Arc::make_mut(asking).questions.get_mut(index)) {
            asked.sampled = Some(Arc::new(sampled.clone()));
        }
        Ok(())
    }

    /// It begins anew.
    pub(super) fn forget_answers(&mut self) {
        if let Some(asking) = &mut self.asking {
            let asking = Arc::make_mut(asking);
            asking.resume = None;
            asking.rounds = 0;
        }
    }

    fn open_questions(&self, epoch: u64) -> impl Iterator<Item = OpenQuestion<'_>> {
        let questions = self.asking.iter().flat_map(|asking| asking.questions.iter().map(move |asked| (asking, asked)));
        questions
            .enumerate()
            .filter(move |(index, (_, asked))| asked.answer.is_none() && self.is_open(epoch, *index, asked))
            .map(|(index, (asking, asked))| OpenQuestion {
                id: ElicitationId { call: self.id, index: u32::try_from(index).unwrap_or(u32::MAX) },
                call: self.view(),
                source: &asking.source,
                ask: &asked.ask,
                hold: match asked.waits {
                    Waiting::Open { until_ms, .. } => Hold::Connection { until_ms },
                    Waiting::Parked => Hold::Nothing,
                },
            })
    }

    /// Whether whoever asked can still be told. A call that holds its connection is gone with the driver that made it.
    fn is_open(&self, epoch: u64, index: usize, asked: &Asked) -> bool {
        match (&self.state, asked.waits) {
            (CallState::Started { epoch: started, .. }, Waiting::Open { epoch: asked, .. }) => {
                *started == epoch && asked == epoch
            }
            (CallState::Parked, Waiting::Parked) => {
                let round = self.asking.as_ref().and_then(|asking| asking.resume.as_ref());
                round.is_some_and(|(_, first)| index >= *first)
            }
            _ => false,
        }
    }
}
