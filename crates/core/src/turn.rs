//! The turn machine: from one user message to its end.
//!
//! `Turn::apply` is the only mutation and takes stored entries only; [`Turn::step`] is pure and says what comes next
//! (docs/journal.md). A live turn and a resumed turn are the same value.

use std::sync::Arc;

use crate::budgets::Purpose;
use crate::{
    BudgetStop, CallId, Claim, CutOffCause, FinishReason, ModelRef, ProviderFailure, Question, Repetition, SamplingSpent, Seq,
    ToolDefinition, TurnId, TurnSettings, TurnStatus,
};

mod apply;
mod asking;
mod call;
mod rounds;
mod sampling;
mod step;

pub use asking::{Hold, OpenQuestion, Resumption, Settled};
use call::{Call, CallState};
pub use call::{CallNeed, CallView, PendingCall, RunsAt, SyntheticResult};
use rounds::Rounds;

/// A turn that keeps failing at the same place is given up after this many resumptions.
const MAX_RESUMPTIONS: u32 = 3;

/// What a turn needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model, [`Turn::model`].
    CallModel {
        /// Whether it may ask for tools. In the last allowed step it may not, so that it must answer.
        allow_calls: bool,
    },
    /// The conversation is too long for the model: put a summary in the place of its beginning. Where there is nothing that
    /// a summary could stand for, the turn is over.
    Compact,
    /// Tell the model, beside the result of this call, that it goes in circles.
    Nudge {
        /// Which call.
        call: CallId,
        /// What it is told.
        text: String,
    },
    /// Look after these calls. Those that only a person can move on are not among them.
    Calls(Vec<PendingCall>),
    /// The turn is over; store that.
    End(TurnStatus),
    /// Nothing here moves it on: a person must, or the client whose call it is.
    Park,
    /// It is over and stored.
    Done,
}

/// One turn, as its entries tell it.
///
/// Made by [`Turn::open`] from the user message that opens it, changed by applying stored entries alone. [`Turn::step`] asks what
/// is next; the other methods look without changing.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    id: TurnId,
    settings: Arc<TurnSettings>,
    /// What it ran with before people asked anew while the model may have been answering, each with the place of what took its place.
    settings_before: Vec<(Seq, Arc<TurnSettings>)>,
    newest_user: Seq,
    last: Option<Last>,
    calls: Vec<Call>,
    /// Model calls since the newest user message that was applied.
    steps_for_user: u32,
    steps: u32,
    length_strikes: u32,
    /// Calls of tools on this side that the messages before the newest made, and all of before it was taken up again.
    calls_before: usize,
    /// The place of the newest cancel that nothing was asked after.
    cancel: Option<Seq>,
    claim: Option<Claim>,
    /// Whether the claim was let go: the turn parked or ended under it.
    released: bool,
    resumptions: u32,
    suspended: bool,
    failure: Option<ProviderFailure>,
    /// The newest failure of a model that finds the conversation too long, until it is compacted.
    overflow: Option<ProviderFailure>,
    /// Whether the conversation was compacted for this turn and no model answered since.
    just_compacted: bool,
    /// How many models of the chain failed.
    fallen: usize,
    demand: Demand,
    runs: Runs,
    /// What each source had of models.
    spent: Vec<(Arc<str>, SamplingSpent)>,
    rounds: Rounds,
    /// The budget for the sake of which the newest answer was asked for shorter than it would have been.
    lowered_by: Option<BudgetStop>,
    ended: Option<TurnStatus>,
}

/// Where the calls of a turn run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// Here, once they are decided.
    Here,
    /// They ran elsewhere, and their results were taken over.
    Elsewhere,
}

/// Whether the model called what its settings demand, since the newest user message or since they were chosen anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Demand {
    Open,
    Met,
}

/// What is remembered of the newest assistant message.
#[derive(Debug, Clone, PartialEq)]
struct Last {
    seq: Seq,
    saw: Seq,
    finish: FinishReason,
    cut_off: Option<CutOffCause>,
    /// Whether the model was told not to call although it was in the middle of calling.
    forced: bool,
}

/// Why an entry does not fit a turn.
pub(crate) type Misfit = &'static str;

impl Turn {
    /// The turn that the user message at `seq` opens.
    pub fn open(seq: Seq, settings: TurnSettings) -> Self {
        Self {
            id: TurnId(seq),
            settings: Arc::new(settings),
            settings_before: Vec::new(),
            newest_user: seq,
            last: None,
            calls: Vec::new(),
            steps_for_user: 0,
            steps: 0,
            length_strikes: 0,
            calls_before: 0,
            cancel: None,
            claim: None,
            released: false,
            resumptions: 0,
            suspended: false,
            failure: None,
            overflow: None,
            just_compacted: false,
            fallen: 0,
            demand: Demand::Open,
            runs: Runs::Here,
            spent: Vec::new(),
            rounds: Rounds::default(),
            lowered_by: None,
            ended: None,
        }
    }

    /// Its name.
    pub fn id(&self) -> TurnId {
        self.id
    }

    /// What it runs with.
    pub fn settings(&self) -> &TurnSettings {
        &self.settings
    }

    /// Whether the model did not yet call what its settings demand, since the newest user message or since whoever asks chose them
    /// anew.
    pub fn has_open_demand(&self) -> bool {
        self.demand == Demand::Open
    }

    /// The model that is asked: the settings' own, or the one of the fallback chain at which the turn is.
    pub fn model(&self) -> &ModelRef {
        self.fallen.checked_sub(1).and_then(|at| self.settings.fallback.get(at)).unwrap_or(&self.settings.model)
    }

    /// The models that are asked in turn where the one that is asked is not available.
    pub fn next_models(&self) -> &[ModelRef] {
        self.settings.fallback.get(self.fallen..).unwrap_or_default()
    }

    /// The models that failed before the one that is asked, in their order.
    pub fn failed_models(&self) -> impl Iterator<Item = &ModelRef> {
        std::iter::once(&self.settings.model).chain(&self.settings.fallback).take(self.fallen)
    }

    /// Whether a model of the chain is asked in the place of one that failed, and there is another after it.
    pub fn has_fallen_short_of_the_last(&self) -> bool {
        self.fallen > 0 && !self.next_models().is_empty()
    }

    /// Who drives it, or did last.
    pub fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// Who holds it: `None` where nobody claimed it, or where whoever did let it go as it parked or ended. Only a holder
    /// whose process is gone was interrupted, so only then does [`crate::Control::Resumed`] go with the next claim.
    pub fn holder(&self) -> Option<&Claim> {
        self.claim.as_ref().filter(|_| !self.released)
    }

    /// How it ended; `None` while it is open.
    pub fn ended(&self) -> Option<&TurnStatus> {
        self.ended.as_ref()
    }

    /// The failure of the provider that ended it, where one did.
    pub fn failure(&self) -> Option<&ProviderFailure> {
        match &self.last {
            Some(Last { cut_off: Some(CutOffCause::Provider(failure)), .. }) => Some(failure),
            _ => self.failure.as_ref(),
        }
    }

    /// Why the conversation is to be compacted, where it is.
    pub(crate) fn overflow(&self) -> Option<&ProviderFailure> {
        self.overflow.as_ref()
    }

    pub(crate) fn settings_arc(&self) -> Arc<TurnSettings> {
        Arc::clone(&self.settings)
    }

    pub(crate) fn newest_user(&self) -> Seq {
        self.newest_user
    }

    /// Whether the conversation was compacted for this turn and no model answered since: another summary would be of no more
    /// use.
    pub fn is_just_compacted(&self) -> bool {
        self.just_compacted
    }

    /// How often the model was asked.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Whether a person asked it to stop what it does. Not any more once everything stopped and a user message that came
    /// after the cancel is to be answered.
    pub fn is_cancelling(&self) -> bool {
        let Some(cancel) = self.cancel else { return false };
        self.ended.is_none() && (self.newest_user < cancel || self.calls.iter().any(|call| !call.is_answered()))
    }

    /// Whether a model call that was shown the entries up to `saw` is to stop: a cancel came after them.
    pub fn cancels(&self, saw: Seq) -> bool {
        self.ended.is_none() && self.cancel.is_some_and(|cancel| cancel > saw)
    }

    /// Whether nothing can go on before a person answers: [`Turn::step`] says [`Step::Park`].
    pub fn is_parked(&self) -> bool {
        self.ended.is_none()
            && self.calls.iter().any(|call| !call.is_answered())
            && self.calls.iter().all(|call| self.need(call).is_none())
    }

    /// Whether [`crate::Control::Suspended`] was stored and nothing moved since.
    pub fn is_suspended(&self) -> bool {
        self.suspended && self.ended.is_none()
    }

    /// The count that [`crate::Control::Resumed`] must carry if a driver takes the turn over now.
    pub fn next_resumption(&self) -> u32 {
        self.resumptions.saturating_add(1)
    }

    /// The calls of the newest message, answered ones too.
    pub fn calls(&self) -> impl Iterator<Item = CallView<'_>> {
        self.calls.iter().map(Call::view)
    }

    /// One call of the newest message.
    pub fn call(&self, id: CallId) -> Option<CallView<'_>> {
        call::find(&self.calls, id).map(Call::view)
    }

    /// The calls about which a person is asked, with the question.
    pub fn waiting(&self) -> impl Iterator<Item = (CallView<'_>, &Question)> {
        let open = self.ended.is_none();
        self.calls.iter().filter(move |_| open).filter_map(|call| match &call.state {
            CallState::Asked(question) => Some((call.view(), question)),
            CallState::Undecided
            | CallState::Allowed
            | CallState::Denied
            | CallState::Started { .. }
            | CallState::Parked
            | CallState::Settled(_)
            | CallState::Answered => None,
        })
    }

    /// What is offered from here on.
    pub(crate) fn offer<'a>(&mut self, definitions: impl Iterator<Item = &'a Arc<ToolDefinition>>) {
        self.rounds.offer(definitions);
    }

    /// The newest rounds of calls, which are what came before them once more with the same results.
    pub fn repetition(&self) -> Option<Repetition> {
        self.rounds.repetition()
    }

    /// The loop that a call without a decision would take further, where a person should be asked about that.
    pub(crate) fn loop_to_ask_about(&self, call: CallId) -> Option<Repetition> {
        self.rounds.to_ask(call, self.settings.loops.ask.filter(|_| self.can_ask()))
    }

    /// Whether a model is to be asked for this.
    pub fn asks_for(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Answer => matches!(self.step(), Step::CallModel { .. }),
            Purpose::Summary => self.step() == Step::Compact,
            Purpose::SummaryByHand => false,
            Purpose::Sampling(question) => self.samplings().any(|(id, _)| id == question),
        }
    }

    /// The place of the message of which a call has no result yet.
    pub(crate) fn unanswered_message(&self) -> Option<Seq> {
        let mut unanswered = self.calls.iter().filter(|call| self.ended.is_none() && !call.is_answered());
        unanswered.next().map(|call| call.id.message)
    }

    /// Whether a call runs under the claim that holds.
    pub(crate) fn is_running_a_call(&self) -> bool {
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        self.calls.iter().any(|call| matches!(&call.state, CallState::Started { epoch: started, .. } if *started == epoch))
    }

    /// Whether `claim` is the one that holds.
    pub fn is_held_by(&self, claim: &Claim) -> bool {
        self.claim.as_ref() == Some(claim)
    }
}
