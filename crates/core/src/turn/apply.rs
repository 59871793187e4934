//! How an entry changes a turn.

use std::sync::Arc;

use super::call::{self, Call, CallState, CallView, RunsAt};
use super::{Demand, Last, Misfit, Runs, SyntheticResult, Turn};
use crate::budgets::Purpose;
use crate::{
    AssistantMessage, CallId, Compacted, Completion, Control, DecidedBy, Decision, Entry, FinishReason, Outcome,
    ProviderFailure, ProviderFailureKind, Question, QuestionReason, Seq, ToolResult, TurnId, TurnSettings, TurnStatus, Verdict,
};

impl Turn {
    /// Takes the next stored entry.
    ///
    /// # Errors
    /// Says why the entry cannot stand here. The turn is unchanged then.
    pub(crate) fn apply(&mut self, seq: Seq, entry: &Entry) -> Result<(), Misfit> {
        let over = self.ended.is_some();
        match entry {
            Entry::Control(Control::Retried { turn, settings, .. }) => {
                return self.reopen(*turn, settings.as_deref());
            }
            Entry::Control(Control::Offered { definitions }) => {
                self.offer(definitions.iter());
                return Ok(());
            }
            Entry::Control(Control::Found { definitions }) => {
                self.rounds.offer_more(definitions.iter());
                return Ok(());
            }
            Entry::Control(Control::Hidden { .. } | Control::Settled { .. }) => return Ok(()),
            // People do so at any time, so that nothing else changes: a turn that waits for them waits.
            Entry::Control(Control::Compacted(compacted)) => return self.compact(seq, compacted),
            Entry::Control(Control::Uncompacted { .. }) => {
                self.just_compacted = false;
                return Ok(());
            }
            // A call may be made by hand where no turn is open. That it is about to be made is no progress.
            Entry::Control(Control::Reserved(reserved)) => {
                if reserved.purpose == Purpose::Answer {
                    self.lowered_by = reserved.lowered_by;
                }
                return Ok(());
            }
            _ if over => return Err("the turn is over"),
            Entry::User(message) => self.take_up(seq, &message.settings),
            Entry::Assistant(message) => self.apply_assistant(seq, message)?,
            Entry::Decision(decision) => self.apply_decision(decision)?,
            Entry::Question(question) => self.apply_question(question)?,
            Entry::Started(started) => {
                let epoch = self.claim.as_ref().ok_or("nobody has claimed the turn")?.epoch;
                self.call_mut(started.call)?.start(epoch, started)?;
                self.suspended = false;
                // Starting again is no progress: a call that takes its host down each time must end.
                return Ok(());
            }
            Entry::TaskAccepted(accepted) => self.apply_accepted(accepted)?,
            Entry::Elicited(elicited) => {
                let epoch = self.epoch();
                self.call_mut(elicited.call)?.elicit(epoch, elicited)?;
            }
            Entry::Answered(answered) => self.apply_answered(answered)?,
            Entry::Sampled(sampled) => self.apply_sampled(sampled)?,
            Entry::Result(result) => {
                self.apply_result(result)?;
                if self.is_given_up() {
                    // The last results of a turn that is given up take it nowhere.
                    self.suspended = false;
                    return Ok(());
                }
            }
            Entry::Control(Control::Claimed(claim)) => {
                if self.claim.as_ref().is_some_and(|held| held.epoch >= claim.epoch) {
                    return Err("the claim's epoch is not above the one that holds");
                }
                self.claim = Some(claim.clone());
                self.released = false;
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
                self.cancel = Some(seq);
            }
            Entry::Control(Control::Suspended) => {
                self.suspended = true;
                self.released = true;
                self.resumptions = 0;
                return Ok(());
            }
            Entry::Control(Control::Settings { settings }) => return self.ask_anew(seq, settings),
            Entry::Control(Control::Imported { .. }) => {
                if self.claim.is_some() || self.last.is_some() {
                    return Err("the turn began here and cannot be taken over from elsewhere");
                }
                self.runs = Runs::Elsewhere;
            }
            // Gathering is no progress: what takes its host down each time must end.
            Entry::Control(Control::Context(context)) => return context.fits_at(seq),
            Entry::Control(Control::Failed(failure)) => self.fail(failure),
            Entry::Control(Control::Nudged { call, .. }) => return self.apply_nudged(*call),
            Entry::Control(Control::Ended { turn, status }) => {
                if *turn != self.id {
                    return Err("the end is of another turn");
                }
                self.end(status)?;
            }
        }
        self.resumptions = 0;
        self.suspended = false;
        Ok(())
    }

    /// A message that joins the turn may change who answers it. All else stays as the turn began: what may run was promised
    /// to whoever began it.
    fn go_on_with(&mut self, settings: &TurnSettings) {
        if settings.model == self.settings.model {
            return;
        }
        let TurnSettings { model, fallback, .. } = settings.clone();
        self.settings = Arc::new(TurnSettings { model, fallback, ..TurnSettings::clone(&self.settings) });
        self.fallen = 0;
    }

    /// Whoever runs tools itself asks for the rest of the turn, as they would for a turn of its own.
    fn ask_anew(&mut self, seq: Seq, settings: &TurnSettings) -> Result<(), Misfit> {
        if self.runs == Runs::Elsewhere {
            return Err("the turn ran elsewhere, where nothing can be chosen for it");
        }
        if settings.model != self.settings.model {
            self.fallen = 0;
        }
        let before = std::mem::replace(&mut self.settings, Arc::new(settings.clone()));
        self.settings_before.push((seq, before));
        self.demand = Demand::Open;
        Ok(())
    }

    fn apply_nudged(&mut self, call: CallId) -> Result<(), Misfit> {
        if !self.call_mut(call)?.is_answered() {
            return Err("the call that it is told beside has no result yet");
        }
        self.rounds.tell();
        Ok(())
    }

    /// A model call failed before it said anything. An outage, and a model without a price, move on along the chain, and a
    /// conversation that is too long is compacted; after anything else the turn is over. Where an answer came after a summary, the summary was short enough
    /// and what came since can be compacted in its turn; where none did, another would be of no more use. So there are no
    /// more summaries than answers, and those are limited.
    fn fail(&mut self, failure: &ProviderFailure) {
        if failure.passes_on() && self.fallen < self.settings.fallback.len() {
            self.fallen = self.fallen.saturating_add(1);
        } else if failure.kind == ProviderFailureKind::ContextLength && !self.just_compacted {
            self.overflow = Some(failure.clone());
        } else {
            self.failure = Some(failure.clone());
        }
    }

    /// A new message of a person begins the counting anew.
    fn take_up(&mut self, seq: Seq, settings: &TurnSettings) {
        self.go_on_with(settings);
        self.newest_user = seq;
        self.steps_for_user = 0;
        self.length_strikes = 0;
        self.demand = Demand::Open;
        self.rounds.forget();
    }

    fn apply_result(&mut self, result: &ToolResult) -> Result<(), Misfit> {
        let is_clients = |(call, question): (CallView<'_>, &Question)| {
            call.id == result.call && question.reason == QuestionReason::ClientTool
        };
        if self.waiting().any(is_clients) {
            // Whoever runs the tool is there between two steps and may go on as they like.
            self.steps_for_user = 0;
        }
        let is_run_here = result.outcome == Outcome::Success && self.runs == Runs::Here;
        let call = self.call_mut(result.call)?;
        call.answer(is_run_here)?;
        let is_declined = call.is_declined_loop && result.outcome == Outcome::Denied;
        self.rounds.take(result, is_declined);
        if self.calls.iter().all(Call::is_answered) {
            self.rounds.close(self.settings.loops.ask);
        }
        Ok(())
    }

    fn end(&mut self, status: &TurnStatus) -> Result<(), Misfit> {
        if self.calls.iter().any(|call| !call.is_answered()) {
            return Err("a call has no result yet");
        }
        if matches!(status, TurnStatus::Failed { .. }) {
            self.failure = self.failure.take().or(self.overflow.take());
        }
        self.ended = Some(status.clone());
        self.released = true;
        Ok(())
    }

    /// A summary takes the place of what was said up to some place: where the turn asked for one, or a person did.
    fn compact(&mut self, seq: Seq, compacted: &Compacted) -> Result<(), Misfit> {
        match compacted.turn {
            Some(turn) if turn != self.id => return Err("the conversation was compacted for another turn"),
            // Of a turn that ran elsewhere nothing is asked any more.
            None if self.ended.is_none() && self.runs == Runs::Here && compacted.through >= self.id.0 => {
                return Err("the summary stands for what is said in the open turn");
            }
            Some(_) | None => {}
        }
        if compacted.through >= seq {
            return Err("the summary claims to stand for what comes after it");
        }
        if self.unanswered_message().is_some_and(|message| compacted.through >= message) {
            return Err("a call has no result yet");
        }
        if self.ended.is_none() {
            // Who is asked now may have been asked before a person did this, and find the conversation too long all the same.
            self.just_compacted |= self.overflow.take().is_some();
            self.resumptions = 0;
        }
        Ok(())
    }

    fn apply_assistant(&mut self, seq: Seq, message: &AssistantMessage) -> Result<(), Misfit> {
        if self.calls.iter().any(|call| !call.is_answered()) {
            return Err("a call of the message before has no result yet");
        }
        if message.saw >= seq {
            return Err("the message claims to have seen what comes after it");
        }
        self.calls_before = self.calls_made();
        let in_chain = !self.calls.is_empty();
        let forced = in_chain && self.steps_for_user.saturating_add(1) >= self.settings.max_steps;
        let before = self.settings_before.drain(..).find(|(replaced, _)| *replaced > message.saw);
        let shown = before.map_or_else(|| Arc::clone(&self.settings), |(_, settings)| settings);
        let calls = message.calls().zip(0_u32..).map(|(call, index)| {
            let runs_at = shown.client_tool(&call.name).map_or(RunsAt::Here, |_| RunsAt::Client);
            Call::new(CallId { message: seq, index }, call, runs_at)
        });
        self.calls = calls.collect();
        if self.runs == Runs::Here && !self.settings.loops.is_off() {
            self.rounds.open(&self.calls);
        }
        let cut_off = match &message.completion {
            Completion::Complete => None,
            Completion::CutOff(cause) => Some(cause.clone()),
        };
        let at_limit = message.finish.reason == FinishReason::Length && !self.calls.is_empty();
        self.length_strikes = if at_limit { self.length_strikes.saturating_add(1) } else { 0 };
        let finish = if message.is_refusal() { FinishReason::Refusal } else { message.finish.reason };
        self.last = Some(Last { seq, saw: message.saw, finish, cut_off, forced });
        self.just_compacted = false;
        // The model was asked again after the cancel, for the sake of a user message that came later still.
        if self.cancel.is_some_and(|cancel| cancel < message.saw && cancel < self.newest_user) {
            self.cancel = None;
        }
        // A message that had not seen the newest user message leaves that message's steps whole, and its demand open.
        if message.saw >= self.newest_user {
            self.steps_for_user = self.steps_for_user.saturating_add(1);
            if self.settings.is_met_by(message.calls().map(|call| call.name.as_str())) {
                self.demand = Demand::Met;
            }
        }
        self.steps = self.steps.saturating_add(1);
        Ok(())
    }

    fn apply_decision(&mut self, decision: &Decision) -> Result<(), Misfit> {
        let call = self.call_mut(decision.call)?;
        let is_outcome_unknown = match &call.state {
            CallState::Undecided => false,
            CallState::Asked(question) => match question.reason {
                QuestionReason::ClientTool if decision.verdict != Verdict::Deny => {
                    return Err("the call is its client's to run: decide deny, or wait for its result");
                }
                QuestionReason::Approval
                | QuestionReason::DefinitionChanged
                | QuestionReason::ClientTool
                | QuestionReason::Loop => false,
                QuestionReason::UnknownOutcome => true,
            },
            CallState::Allowed
            | CallState::Denied
            | CallState::Started { .. }
            | CallState::Parked
            | CallState::Settled(_)
            | CallState::Answered => return Err("the call does not wait for a decision"),
        };
        let next = match (decision.verdict, is_outcome_unknown) {
            (Verdict::Allow, false) | (Verdict::RunAgain, true) => CallState::Allowed,
            (Verdict::Deny, false) => CallState::Denied,
            (Verdict::Happened, true) => CallState::Settled(SyntheticResult::Happened),
            (Verdict::Skip, true) => CallState::Settled(SyntheticResult::Skipped),
            (Verdict::Allow | Verdict::Deny, true) => {
                return Err("the call's outcome is unknown: decide happened, run_again or skip");
            }
            (Verdict::Happened | Verdict::RunAgain | Verdict::Skip, false) => {
                return Err("the call's outcome is not unknown: decide allow or deny");
            }
        };
        let is_about_loop = matches!(&call.state, CallState::Asked(question) if question.reason == QuestionReason::Loop);
        call.is_declined_loop = is_about_loop && next == CallState::Denied;
        // Answers were given to what was asked then; where it begins anew, it asks anew.
        call.forget_answers();
        call.task = None;
        call.state = next;
        call.decided_hash = decision.definition_hash.as_deref().map(Arc::from);
        call.attempt = call.attempt.saturating_add(1);
        call.denial = match (&decision.by, decision.verdict) {
            (DecidedBy::Policy { rule }, Verdict::Deny) => Some(format!("denied by {rule}").into()),
            (DecidedBy::Person, Verdict::Deny) => Some(match &decision.reason {
                Some(why) => format!("denied by the user: {why}").into(),
                None => "denied by the user".into(),
            }),
            (
                DecidedBy::Policy { .. } | DecidedBy::Person,
                Verdict::Allow | Verdict::Happened | Verdict::RunAgain | Verdict::Skip,
            ) => None,
        };
        if let Some(arguments) = decision.changed_arguments() {
            call.arguments = arguments.into();
            call.edited = true;
        }
        if is_about_loop {
            self.rounds.let_go_on(decision.verdict == Verdict::Allow);
        }
        Ok(())
    }

    fn apply_question(&mut self, question: &Question) -> Result<(), Misfit> {
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        let call = self.call_mut(question.call)?;
        let fits = match (question.reason, &call.state) {
            (QuestionReason::Approval | QuestionReason::ClientTool | QuestionReason::Loop, CallState::Undecided)
            | (QuestionReason::DefinitionChanged, CallState::Allowed) => true,
            (QuestionReason::DefinitionChanged, CallState::Parked) => call.has_all_answers(),
            // Its source found the change, and did not call it.
            (QuestionReason::DefinitionChanged, CallState::Started { epoch: started, .. }) => *started == epoch,
            (QuestionReason::UnknownOutcome, CallState::Started { epoch: started, .. }) => *started < epoch,
            _ => false,
        };
        if !fits {
            return Err("the question does not fit the call's state");
        }
        if let (QuestionReason::DefinitionChanged, CallState::Started { .. }) = (question.reason, &call.state) {
            call.starts = call.starts.saturating_sub(1);
        }
        call.state = CallState::Asked(question.clone());
        Ok(())
    }

    /// The message that is not shown again if the turn is taken up again after its end: the answer that was cut off, or
    /// that nothing came after. Else the model would be shown its own words last, which not every API accepts; only after
    /// a pause that is how it is asked to go on.
    pub fn hidden_by_retry(&self) -> Option<Seq> {
        let last = self.last.as_ref()?;
        let is_broken = last.cut_off.is_some() || last.finish == FinishReason::Error;
        let is_shown_last = self.calls.is_empty() && last.finish != FinishReason::Pause && last.saw >= self.newest_user;
        (is_broken || is_shown_last).then_some(last.seq)
    }

    fn reopen(&mut self, turn: TurnId, settings: Option<&TurnSettings>) -> Result<(), Misfit> {
        match &self.ended {
            _ if turn != self.id => return Err("only the last turn can be retried"),
            None => return Err("the turn is still open"),
            Some(TurnStatus::Completed) => return Err("the turn is completed"),
            Some(_) => {}
        }
        self.calls_before = self.calls_made();
        if let Some(settings) = settings {
            self.settings = Arc::new(settings.clone());
        }
        if self.hidden_by_retry().is_some() {
            self.calls.clear();
        }
        self.ended = None;
        self.last = None;
        self.failure = None;
        self.overflow = None;
        self.just_compacted = false;
        self.fallen = 0;
        self.runs = Runs::Here;
        self.spent.clear();
        self.rounds.forget();
        self.lowered_by = None;
        self.cancel = None;
        self.steps_for_user = 0;
        self.length_strikes = 0;
        self.resumptions = 0;
        self.suspended = false;
        Ok(())
    }

    pub(super) fn call_mut(&mut self, id: CallId) -> Result<&mut Call, Misfit> {
        call::find_mut(&mut self.calls, id).ok_or("there is no such call in the newest message")
    }
}
