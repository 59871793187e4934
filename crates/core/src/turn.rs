//! The turn machine: from one user message to its end.
//!
//! [`Turn::apply`] is the only mutation and takes stored entries only; [`Turn::step`] is pure and says what comes next
//! (DESIGN section 4). A live turn and a resumed turn are the same value.

use crate::{
    AssistantMessage, CallId, Claim, Completion, Control, CutOffCause, DecidedBy, Decision, Entry, FinishReason, Outcome,
    ProviderFailure, Question, QuestionReason, Seq, StopReason, TurnId, TurnSettings, TurnStatus, Verdict,
};

mod call;
use call::{Call, CallState};
pub use call::{CallNeed, CallView, PendingCall, SyntheticResult};

/// A turn that keeps failing at the same place is given up after this many resumptions (DESIGN section 4).
const MAX_RESUMPTIONS: u32 = 3;
/// How often a model that reaches its output limit in the middle of calls is asked again.
const MAX_LENGTH_STRIKES: u32 = 1;

/// What a turn needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model.
    CallModel {
        /// Whether it may ask for tools. In the last allowed step it may not, so that it must answer.
        allow_calls: bool,
    },
    /// Look after these calls. Those that only a person can move on are not among them.
    Calls(Vec<PendingCall>),
    /// The turn is over; store that.
    End(TurnStatus),
    /// Only a person can move it on.
    Park,
    /// It is over and stored.
    Done,
}

/// One turn, as its entries tell it.
///
/// Made by [`Turn::open`] from the user message that opens it, changed by [`Turn::apply`] alone. [`Turn::step`] asks what
/// is next; the other methods look without changing.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    id: TurnId,
    settings: TurnSettings,
    newest_user: Seq,
    last: Option<Last>,
    calls: Vec<Call>,
    /// Model calls since the newest user message that was applied.
    steps: u32,
    total_steps: u32,
    length_strikes: u32,
    cancel: bool,
    claim: Option<Claim>,
    resumptions: u32,
    suspended: bool,
    failure: Option<ProviderFailure>,
    ended: Option<TurnStatus>,
}

/// What is remembered of the newest assistant message.
#[derive(Debug, Clone, PartialEq)]
struct Last {
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
            settings,
            newest_user: seq,
            last: None,
            calls: Vec::new(),
            steps: 0,
            total_steps: 0,
            length_strikes: 0,
            cancel: false,
            claim: None,
            resumptions: 0,
            suspended: false,
            failure: None,
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

    /// Who drives it, or did last.
    pub fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
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

    /// How often the model was asked.
    pub fn steps(&self) -> u32 {
        self.total_steps
    }

    /// Whether a person asked it to stop.
    pub fn is_cancelling(&self) -> bool {
        self.cancel && self.ended.is_none()
    }

    /// Whether nothing can go on before a person answers.
    pub fn is_parked(&self) -> bool {
        matches!(self.step(), Step::Park)
    }

    /// Whether [`Control::Suspended`] was stored and nothing moved since.
    pub fn is_suspended(&self) -> bool {
        self.suspended && self.ended.is_none()
    }

    /// The count that [`Control::Resumed`] must carry if a driver takes the turn over now.
    pub fn next_resumption(&self) -> u32 {
        self.resumptions.saturating_add(1)
    }

    /// The calls of the newest message, answered ones too.
    pub fn calls(&self) -> impl Iterator<Item = CallView<'_>> {
        self.calls.iter().map(Call::view)
    }

    /// One call of the newest message.
    pub fn call(&self, id: CallId) -> Option<CallView<'_>> {
        self.calls.iter().find(|call| call.id == id).map(Call::view)
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
            | CallState::Settled(_)
            | CallState::Answered => None,
        })
    }

    /// Whether `claim` is the one that holds.
    pub fn is_held_by(&self, claim: &Claim) -> bool {
        self.claim.as_ref() == Some(claim)
    }

    /// Takes the next stored entry.
    ///
    /// # Errors
    /// Says why the entry cannot stand here. The turn is unchanged then.
    pub(crate) fn apply(&mut self, seq: Seq, entry: &Entry) -> Result<(), Misfit> {
        let over = self.ended.is_some();
        match entry {
            Entry::Control(Control::Retried { turn, settings }) => {
                return self.reopen(*turn, settings.as_deref());
            }
            Entry::Control(Control::Hidden { .. } | Control::Offered { .. }) => return Ok(()),
            _ if over => return Err("the turn is over"),
            Entry::User(_) => {
                self.newest_user = seq;
                self.steps = 0;
                self.length_strikes = 0;
            }
            Entry::Assistant(message) => self.apply_assistant(seq, message)?,
            Entry::Decision(decision) => self.apply_decision(decision)?,
            Entry::Question(question) => self.apply_question(question)?,
            Entry::Started(started) => {
                let epoch = self.claim.as_ref().ok_or("nobody has claimed the turn")?.epoch;
                self.call_mut(started.call)?.start(epoch, started.replayable)?;
                self.suspended = false;
                // Starting again is no progress: a call that takes its host down each time must end.
                return Ok(());
            }
            Entry::Result(result) => self.call_mut(result.call)?.answer(result.outcome == Outcome::Success)?,
            Entry::Control(Control::Claimed(claim)) => {
                if self.claim.as_ref().is_some_and(|held| held.epoch >= claim.epoch) {
                    return Err("the claim's epoch is not above the one that holds");
                }
                self.claim = Some(claim.clone());
                self.suspended = false;
                return Ok(());
            }
            Entry::Control(Control::Resumed { count }) => {
                self.resumptions = *count;
                return Ok(());
            }
            Entry::Control(Control::CancelRequested { turn }) => {
                if *turn != self.id {
                    return Err("the cancel is for another turn");
                }
                self.cancel = true;
            }
            Entry::Control(Control::Suspended) => {
                self.suspended = true;
                self.resumptions = 0;
                return Ok(());
            }
            Entry::Control(Control::Failed(failure)) => self.failure = Some(failure.clone()),
            Entry::Control(Control::Ended { turn, status }) => {
                if *turn != self.id {
                    return Err("the end is of another turn");
                }
                if self.calls.iter().any(|call| !call.is_answered()) {
                    return Err("a call has no result yet");
                }
                self.ended = Some(status.clone());
            }
        }
        self.resumptions = 0;
        self.suspended = false;
        Ok(())
    }

    fn apply_assistant(&mut self, seq: Seq, message: &AssistantMessage) -> Result<(), Misfit> {
        if self.calls.iter().any(|call| !call.is_answered()) {
            return Err("a call of the message before has no result yet");
        }
        let in_chain = !self.calls.is_empty();
        let forced = in_chain && self.steps.saturating_add(1) >= self.settings.max_steps;
        self.calls =
            message.calls().zip(0_u32..).map(|(call, index)| Call::new(CallId { message: seq, index }, call)).collect();
        let cut_off = match &message.completion {
            Completion::Complete => None,
            Completion::CutOff(cause) => Some(cause.clone()),
        };
        let at_limit = message.finish.reason == FinishReason::Length && !self.calls.is_empty();
        self.length_strikes = if at_limit { self.length_strikes.saturating_add(1) } else { 0 };
        self.last = Some(Last { saw: message.saw, finish: message.finish.reason, cut_off, forced });
        // A message that had not seen the newest user message leaves that message's steps whole.
        if message.saw >= self.newest_user {
            self.steps = self.steps.saturating_add(1);
        }
        self.total_steps = self.total_steps.saturating_add(1);
        Ok(())
    }

    fn apply_decision(&mut self, decision: &Decision) -> Result<(), Misfit> {
        let call = self.call_mut(decision.call)?;
        let asked = match &call.state {
            CallState::Asked(question) => Some(question.reason),
            _ => None,
        };
        let next = match (decision.verdict, &call.state, asked) {
            (Verdict::Allow, CallState::Undecided, _)
            | (Verdict::Allow, _, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged)) => CallState::Allowed,
            (Verdict::Deny, CallState::Undecided, _)
            | (Verdict::Deny, _, Some(QuestionReason::Approval | QuestionReason::DefinitionChanged)) => CallState::Denied,
            (Verdict::Happened, _, Some(QuestionReason::UnknownOutcome)) => CallState::Settled(SyntheticResult::Happened),
            (Verdict::Skip, _, Some(QuestionReason::UnknownOutcome)) => CallState::Settled(SyntheticResult::Skipped),
            (Verdict::RunAgain, _, Some(QuestionReason::UnknownOutcome)) => CallState::Allowed,
            (Verdict::Allow | Verdict::Deny, _, Some(QuestionReason::UnknownOutcome)) => {
                return Err("the call's outcome is unknown: decide happened, run_again or skip");
            }
            (Verdict::Happened | Verdict::Skip | Verdict::RunAgain, _, _) => {
                return Err("the call's outcome is not unknown: decide allow or deny");
            }
            (Verdict::Allow | Verdict::Deny, _, None) => {
                return Err("the call does not wait for a decision");
            }
        };
        call.state = next;
        call.decided_hash.clone_from(&decision.definition_hash);
        call.attempt = call.attempt.saturating_add(1);
        call.denial = match (&decision.by, decision.verdict) {
            (DecidedBy::Policy { rule }, Verdict::Deny) => Some(format!("denied by {rule}")),
            (DecidedBy::Person, Verdict::Deny) => Some(
                decision
                    .reason
                    .as_ref()
                    .map_or_else(|| "denied by the user".to_owned(), |why| format!("denied by the user: {why}")),
            ),
            _ => None,
        };
        if let Some(arguments) = &decision.arguments {
            call.arguments.clone_from(arguments);
            call.edited = true;
        }
        Ok(())
    }

    fn apply_question(&mut self, question: &Question) -> Result<(), Misfit> {
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        let call = self.call_mut(question.call)?;
        let fits = match (question.reason, &call.state) {
            (QuestionReason::Approval, CallState::Undecided) | (QuestionReason::DefinitionChanged, CallState::Allowed) => true,
            (QuestionReason::UnknownOutcome, CallState::Started { epoch: started, .. }) => *started < epoch,
            _ => false,
        };
        if !fits {
            return Err("the question does not fit the call's state");
        }
        call.state = CallState::Asked(question.clone());
        Ok(())
    }

    fn reopen(&mut self, turn: TurnId, settings: Option<&TurnSettings>) -> Result<(), Misfit> {
        match &self.ended {
            _ if turn != self.id => return Err("only the last turn can be retried"),
            None => return Err("the turn is still open"),
            Some(TurnStatus::Completed) => return Err("the turn is completed"),
            Some(_) => {}
        }
        if let Some(settings) = settings {
            self.settings = settings.clone();
        }
        if self.last.as_ref().is_some_and(|last| last.cut_off.is_some() || last.finish != FinishReason::ToolCalls) {
            self.calls.clear();
        }
        self.ended = None;
        self.last = None;
        self.failure = None;
        self.cancel = false;
        self.steps = 0;
        self.length_strikes = 0;
        self.resumptions = 0;
        Ok(())
    }

    fn call_mut(&mut self, id: CallId) -> Result<&mut Call, Misfit> {
        self.calls.iter_mut().find(|call| call.id == id).ok_or("there is no such call in the newest message")
    }

    /// What comes next: the first line of DESIGN section 4's table that applies. Pure; ask twice, same answer.
    pub fn step(&self) -> Step {
        if self.ended.is_some() {
            return Step::Done;
        }
        let pending: Vec<PendingCall> = self.calls.iter().filter_map(|call| self.need(call)).collect();
        if !pending.is_empty() {
            return Step::Calls(pending);
        }
        if self.calls.iter().any(|call| !call.is_answered()) {
            return Step::Park;
        }
        self.after_calls()
    }

    /// What comes next once every call has its result.
    fn after_calls(&self) -> Step {
        if self.cancel {
            return Step::End(TurnStatus::Cancelled);
        }
        if let Some(failure) = self.failure() {
            return Step::End(TurnStatus::Failed { reason: failure.message.clone() });
        }
        if self.is_given_up() {
            let reason = format!("the turn was resumed {MAX_RESUMPTIONS} times without getting further");
            return Step::End(TurnStatus::Failed { reason });
        }
        let Some(last) = &self.last else {
            return self.ask();
        };
        if last.saw < self.newest_user {
            return self.ask();
        }
        let out_of_steps = self.steps >= self.settings.max_steps;
        let called = !self.calls.is_empty();
        match last.finish {
            FinishReason::ContentFilter | FinishReason::Refusal => {
                Step::End(TurnStatus::Stopped { reason: StopReason::Refused })
            }
            FinishReason::Error => {
                Step::End(TurnStatus::Failed { reason: "the provider ended the answer with an error".to_owned() })
            }
            FinishReason::Length if called && self.length_strikes > MAX_LENGTH_STRIKES => Step::End(TurnStatus::Failed {
                reason: "the model reached its output limit twice in the middle of its tool calls".to_owned(),
            }),
            FinishReason::Length if !called => Step::End(TurnStatus::Completed),
            FinishReason::Pause if !out_of_steps => self.ask(),
            FinishReason::Pause => Step::End(TurnStatus::StepLimit),
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length if called => {
                if out_of_steps {
                    Step::End(TurnStatus::StepLimit)
                } else {
                    self.ask()
                }
            }
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length => {
                Step::End(if last.forced { TurnStatus::StepLimit } else { TurnStatus::Completed })
            }
        }
    }

    fn ask(&self) -> Step {
        Step::CallModel { allow_calls: self.steps.saturating_add(1) < self.settings.max_steps }
    }

    fn is_given_up(&self) -> bool {
        self.resumptions >= MAX_RESUMPTIONS
    }

    /// What a call needs from the driver; `None` where it is answered or waits for a person.
    fn need(&self, call: &Call) -> Option<PendingCall> {
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        let give_up = self.reason_not_to_run();
        let need = match &call.state {
            CallState::Answered => return None,
            CallState::Settled(result) => CallNeed::Answer(*result),
            CallState::Denied => CallNeed::Answer(SyntheticResult::Denied),
            CallState::Started { epoch: started, .. } if *started == epoch => CallNeed::Wait,
            CallState::Started { replayable, .. } => match give_up {
                Some(_) => CallNeed::Answer(SyntheticResult::Interrupted),
                None if *replayable => CallNeed::Start,
                None if self.can_ask() => CallNeed::Ask(QuestionReason::UnknownOutcome),
                None => CallNeed::Answer(SyntheticResult::Interrupted),
            },
            CallState::Asked(question) => match (give_up, question.reason) {
                (None, _) => return None,
                (Some(_), QuestionReason::UnknownOutcome) => CallNeed::Answer(SyntheticResult::Interrupted),
                (Some(result), QuestionReason::Approval | QuestionReason::DefinitionChanged) => CallNeed::Answer(result),
            },
            CallState::Undecided | CallState::Allowed if give_up.is_some() => {
                CallNeed::Answer(give_up.unwrap_or(SyntheticResult::Cancelled))
            }
            CallState::Undecided => CallNeed::Decide,
            CallState::Allowed => CallNeed::Start,
        };
        Some(PendingCall { call: call.id, need })
    }

    /// Why no call of this message may start any more.
    fn reason_not_to_run(&self) -> Option<SyntheticResult> {
        let last = self.last.as_ref()?;
        if self.cancel {
            return Some(SyntheticResult::Cancelled);
        }
        if self.is_given_up() {
            return Some(SyntheticResult::GivenUp);
        }
        match (&last.cut_off, last.finish) {
            (Some(CutOffCause::Cancelled), _) => Some(SyntheticResult::Cancelled),
            (Some(CutOffCause::Provider(_)), _) | (None, FinishReason::Error) => Some(SyntheticResult::CutOff),
            (None, FinishReason::Length) => Some(SyntheticResult::LengthLimit),
            (None, FinishReason::ContentFilter | FinishReason::Refusal) => Some(SyntheticResult::Refused),
            (None, FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause) => {
                let last_step = last.saw >= self.newest_user && self.steps >= self.settings.max_steps;
                last_step.then_some(SyntheticResult::StepLimit)
            }
        }
    }

    /// Whether a person can be asked about an unknown outcome: only where the approve mode asks people.
    fn can_ask(&self) -> bool {
        self.settings.approve == crate::ApproveMode::Ask
    }
}

#[cfg(test)]
mod tests;
