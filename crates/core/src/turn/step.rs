//! What a turn needs next.

use super::call::{self, Call, CallState, RunsAt};
use super::{CallNeed, Last, MAX_RESUMPTIONS, PendingCall, Runs, Step, SyntheticResult, Turn};
use crate::{
    ApproveMode, CallId, CutOffCause, FinishReason, ProviderFailure, ProviderFailureKind, QuestionReason, Repetition,
    StopReason, TurnStatus,
};

/// How often a model that reaches its output limit in the middle of calls is asked again.
const MAX_LENGTH_STRIKES: u32 = 1;

impl Turn {
    /// What comes next: the first line of the table in docs/journal.md that applies. Pure; ask twice, same answer.
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
        // A user message that came after the cancel is answered all the same (law 10).
        if self.cancel.is_some_and(|cancel| self.newest_user < cancel) {
            return Step::End(TurnStatus::Cancelled);
        }
        if let Some(failure) = self.failure() {
            return Step::End(TurnStatus::Failed { reason: self.reason(failure) });
        }
        if self.is_given_up() {
            let reason = format!("the turn was resumed {MAX_RESUMPTIONS} times without getting further");
            return Step::End(TurnStatus::Failed { reason });
        }
        if self.overflow.is_some() {
            return Step::Compact;
        }
        let Some(last) = &self.last else {
            return self.ask();
        };
        if last.saw < self.newest_user {
            return self.ask();
        }
        if last.cut_off == Some(CutOffCause::Cancelled) {
            return Step::End(TurnStatus::Cancelled);
        }
        let out_of_steps = self.steps_for_user >= self.settings.max_steps;
        let called = !self.calls.is_empty();
        match last.finish {
            FinishReason::ContentFilter | FinishReason::Refusal => Step::End(TurnStatus::stopped(StopReason::Refused)),
            FinishReason::Error => {
                Step::End(TurnStatus::Failed { reason: "the provider ended the answer with an error".to_owned() })
            }
            FinishReason::Length if called && self.length_strikes > MAX_LENGTH_STRIKES => Step::End(TurnStatus::Failed {
                reason: "the model reached its output limit twice in the middle of its tool calls".to_owned(),
            }),
            FinishReason::Length if !called => Step::End(match self.lowered_by {
                Some(stop) => TurnStatus::stopped(StopReason::Budget(stop)),
                None => TurnStatus::Completed,
            }),
            FinishReason::Pause if !out_of_steps => self.after_results(),
            FinishReason::Pause => Step::End(TurnStatus::StepLimit),
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length if called => match self.after_results() {
                Step::CallModel { .. } | Step::Nudge { .. } if out_of_steps => Step::End(TurnStatus::StepLimit),
                step => step,
            },
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length => {
                Step::End(if last.forced { TurnStatus::StepLimit } else { TurnStatus::Completed })
            }
        }
    }

    /// Why the turn failed, with what was tried before.
    fn reason(&self, failure: &ProviderFailure) -> String {
        let mut reason = failure.message.clone();
        if failure.kind == ProviderFailureKind::ContextLength && self.just_compacted {
            reason.push_str("; its beginning was put into a summary, and it is still too long");
        }
        let failed: Vec<String> = self.failed_models().map(|model| format!("`{model}`")).collect();
        if !failed.is_empty() {
            reason.push_str("; failed before it: ");
            reason.push_str(&failed.join(", "));
        }
        reason
    }

    /// The model has not seen the newest results. Where they are what it got before for the same calls, again and again, it
    /// is told, and in the end not asked any more.
    fn after_results(&self) -> Step {
        let limits = self.settings.loops;
        let is_over = |repetition: &Repetition| limits.stop.is_some_and(|stop| repetition.times >= stop);
        if !self.calls.is_empty() && self.rounds.repetition().as_ref().is_some_and(is_over) {
            return Step::End(TurnStatus::stopped(StopReason::Loop));
        }
        match self.rounds.to_tell(limits.nudge) {
            Some((repetition, call)) if call::find(&self.calls, call).is_some() => {
                Step::Nudge { call, text: repetition.nudge(limits) }
            }
            Some(_) | None => self.ask(),
        }
    }

    fn ask(&self) -> Step {
        let is_last = self.steps_for_user.saturating_add(1) >= self.settings.max_steps;
        // A client's tools are not counted, and may be called all the same.
        let is_used_up = self.is_beyond(self.calls_made()) && self.settings.client_tools.is_empty();
        Step::CallModel { allow_calls: !is_last && !is_used_up }
    }

    /// How many calls of tools on this side the turn made so far, without those that could not run here. What was called before
    /// it was taken up again was counted as it was.
    pub(super) fn calls_made(&self) -> usize {
        let is_run = |last: &Last| self.runs == Runs::Here && self.reason_of_message(last).is_none();
        let newest = if self.last.as_ref().is_some_and(is_run) { self.own_calls().count() } else { 0 };
        self.calls_before.saturating_add(newest)
    }

    /// The calls of the newest message that are no client's to run.
    fn own_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.runs_at == RunsAt::Here)
    }

    /// Whether no call of a tool on this side may follow on so many.
    fn is_beyond(&self, made: usize) -> bool {
        self.settings.max_tool_calls.is_some_and(|most| usize::try_from(most).is_ok_and(|most| made >= most))
    }

    /// The result of a call that is one too many.
    fn one_too_many(&self, call: &Call) -> Option<SyntheticResult> {
        self.settings.max_tool_calls?;
        let place = self.own_calls().position(|own| own.id == call.id)?;
        self.is_beyond(self.calls_before.saturating_add(place)).then_some(SyntheticResult::CallLimit)
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.resumptions >= MAX_RESUMPTIONS
    }

    /// What a call needs from the driver; `None` where it is answered or waits for a person.
    pub(super) fn need(&self, call: &Call) -> Option<PendingCall> {
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        let give_up = self.reason_not_to_run();
        let need = match &call.state {
            CallState::Answered => return None,
            CallState::Settled(result) => CallNeed::Answer(*result),
            CallState::Denied => CallNeed::Answer(SyntheticResult::Denied),
            CallState::Started { epoch: started, .. } if *started == epoch => CallNeed::Wait,
            CallState::Started { replayable, .. } => match give_up {
                None if *replayable || call.task.is_some() => CallNeed::Start,
                None if self.can_ask() => CallNeed::Ask(QuestionReason::UnknownOutcome),
                Some(_) | None => CallNeed::Answer(SyntheticResult::Interrupted),
            },
            CallState::Asked(question) => match (give_up, question.reason) {
                (None, _) => return None,
                (Some(_), QuestionReason::UnknownOutcome) => CallNeed::Answer(SyntheticResult::Interrupted),
                (
                    Some(result),
                    QuestionReason::Approval
                    | QuestionReason::DefinitionChanged
                    | QuestionReason::ClientTool
                    | QuestionReason::Loop,
                ) => CallNeed::Answer(Self::in_place_of(result, call)),
            },
            CallState::Undecided => give_up.or_else(|| self.one_too_many(call)).map_or(CallNeed::Decide, CallNeed::Answer),
            CallState::Allowed => give_up.map_or(CallNeed::Start, |result| CallNeed::Answer(Self::in_place_of(result, call))),
            CallState::Parked => match give_up {
                Some(_) => CallNeed::Answer(SyntheticResult::Unanswered),
                None if call.has_all_answers() => CallNeed::Start,
                // A model is asked for it.
                None if call.due(epoch).next().is_some() => CallNeed::Wait,
                None => return None,
            },
        };
        Some(PendingCall { call: call.id, need })
    }

    /// The result of a call that starts no more: of one that was to start once more it is not known what the first time came to.
    fn in_place_of(result: SyntheticResult, call: &Call) -> SyntheticResult {
        if call.starts == 0 { result } else { SyntheticResult::Interrupted }
    }

    /// What an allowed call needs whose tool is not the one any more that it was allowed with. One that was started before
    /// is another matter: it may have happened, and the new tool is no repetition of the old.
    pub(crate) fn need_where_definition_changed(&self, id: CallId) -> CallNeed {
        match call::find(&self.calls, id).map(|call| &call.state) {
            Some(CallState::Started { .. }) if self.can_ask() => CallNeed::Ask(QuestionReason::UnknownOutcome),
            Some(CallState::Started { .. }) => CallNeed::Answer(SyntheticResult::Interrupted),
            Some(
                CallState::Undecided
                | CallState::Asked(_)
                | CallState::Allowed
                | CallState::Denied
                | CallState::Parked
                | CallState::Settled(_)
                | CallState::Answered,
            )
            | None => CallNeed::Ask(QuestionReason::DefinitionChanged),
        }
    }

    /// Why no call of this message may start any more.
    fn reason_not_to_run(&self) -> Option<SyntheticResult> {
        let last = self.last.as_ref()?;
        if self.cancel.is_some() {
            return Some(SyntheticResult::Cancelled);
        }
        if self.is_given_up() {
            return Some(SyntheticResult::GivenUp);
        }
        self.reason_of_message(last)
    }

    /// Why no call of this message runs, whatever came after it.
    fn reason_of_message(&self, last: &Last) -> Option<SyntheticResult> {
        match (&last.cut_off, last.finish) {
            (Some(CutOffCause::Cancelled), _) => Some(SyntheticResult::Cancelled),
            (Some(CutOffCause::Provider(_)), _) | (None, FinishReason::Error) => Some(SyntheticResult::CutOff),
            (None, FinishReason::Length) => Some(SyntheticResult::LengthLimit),
            (None, FinishReason::ContentFilter | FinishReason::Refusal) => Some(SyntheticResult::Refused),
            (None, FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Pause) => {
                let last_step = last.saw >= self.newest_user && self.steps_for_user >= self.settings.max_steps;
                last_step.then_some(SyntheticResult::StepLimit)
            }
        }
    }

    /// Whether a person can be asked about an unknown outcome or a loop: only where the approve mode asks people.
    pub(super) fn can_ask(&self) -> bool {
        self.settings.approve == ApproveMode::Ask
    }
}
