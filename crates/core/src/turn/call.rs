//! One tool call inside a turn.

use std::sync::Arc;

use serde_json::Value;

use super::Misfit;
use super::asking::Asking;
use crate::{ApprovalId, CallId, KeyForm, Question, QuestionReason, Started, ToolCall, ToolErrorKind, ToolResult};

/// A call and what it needs from the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingCall {
    /// Which call.
    pub call: CallId,
    /// What it needs.
    pub need: CallNeed,
}

/// What a call needs from the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallNeed {
    /// The policy must decide.
    Decide,
    /// It may run: take a slot, store `Started`, run it.
    Start,
    /// A person must be asked; store the question.
    Ask(QuestionReason),
    /// It will not run; store this result.
    Answer(SyntheticResult),
    /// It runs under the claim that holds.
    Wait,
}

/// Where a call runs: as the model was asked that made it, whatever was asked anew since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsAt {
    /// On this side, once it is decided.
    Here,
    /// At the client whose tool it is.
    Client,
}

/// A result that no tool gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticResult {
    /// A person or a rule denied it.
    Denied,
    /// The turn was stopped before it began.
    Cancelled,
    /// It began, and its end is unknown.
    Interrupted,
    /// Its message was cut off.
    CutOff,
    /// Its message reached the output limit.
    LengthLimit,
    /// Its message was withheld or a refusal.
    Refused,
    /// It was asked for in the last allowed step.
    StepLimit,
    /// The turn has made as many calls as it may.
    CallLimit,
    /// The turn was given up.
    GivenUp,
    /// A person saw that it happened.
    Happened,
    /// A person wants to go on without it.
    Skipped,
    /// It asked people for something, and the turn was stopped or given up before it got an answer.
    Unanswered,
}

/// A call as others see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallView<'a> {
    /// Its name.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: &'a str,
    /// Where it runs.
    pub runs_at: RunsAt,
    /// The arguments to run with: the model's, or a person's where [`CallView::is_edited`].
    pub arguments: &'a str,
    /// Whether a person changed the arguments.
    pub is_edited: bool,
    /// Whether its result is stored.
    pub is_answered: bool,
    /// Whether it may run or runs: allowed and not answered.
    pub is_allowed: bool,
    /// The hash of the definition that it was allowed with.
    pub decided_hash: Option<&'a str>,
    /// Counts the decisions about it, part of its idempotency key.
    pub attempt: u32,
    /// How often it was started so far: where it was, it may have happened, whatever became of it.
    pub starts: u32,
    /// Of what that key is made: as it was where it started before.
    pub key: KeyForm,
    /// Why it was denied, where it was.
    pub denial: Option<&'a str>,
    /// What its source needs to be asked how far it is, where it goes on there by itself.
    pub task: Option<&'a Value>,
}

impl CallView<'_> {
    /// The question about it that is open, or would come next.
    pub fn approval(&self) -> ApprovalId {
        ApprovalId { call: self.id, number: self.attempt.saturating_add(1) }
    }
}

/// A call in its state. Its texts are shared: planning copies the turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) name: Arc<str>,
    pub(super) runs_at: RunsAt,
    pub(super) arguments: Arc<str>,
    pub(super) edited: bool,
    pub(super) decided_hash: Option<Arc<str>>,
    pub(super) attempt: u32,
    /// How often it was started, but where its source found before that it should not be.
    pub(super) starts: u32,
    /// Of what its idempotency key is made, once it has started.
    key: KeyForm,
    pub(super) denial: Option<Arc<str>>,
    /// Whether a person declined it as a repetition.
    pub(super) is_declined_loop: bool,
    /// What it asked of people; shared, few calls ask.
    pub(super) asking: Option<Arc<Asking>>,
    /// What its source needs to ask how far it is, where it goes on there by itself; shared, few do.
    pub(super) task: Option<Arc<Value>>,
    /// The claim under which its source said last that it goes on with the task.
    heard: Option<u64>,
    pub(super) state: CallState,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallState {
    Undecided,
    Asked(Question),
    Allowed,
    Denied,
    Started {
        epoch: u64,
        replayable: bool,
    },
    /// It is over until it is made again with the answers to what it asked.
    Parked,
    /// A person settled its unknown outcome.
    Settled(SyntheticResult),
    Answered,
}

impl Call {
    pub(super) fn new(id: CallId, call: &ToolCall, runs_at: RunsAt) -> Self {
        Self {
            id,
            name: call.name.as_str().into(),
            runs_at,
            arguments: call.arguments.as_str().into(),
            edited: false,
            decided_hash: None,
            attempt: 0,
            starts: 0,
            key: KeyForm::OfConversation,
            denial: None,
            is_declined_loop: false,
            asking: None,
            task: None,
            heard: None,
            state: CallState::Undecided,
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.state == CallState::Answered
    }

    pub(super) fn start(&mut self, epoch: u64, started: &Started) -> Result<(), Misfit> {
        match &self.state {
            CallState::Allowed => {}
            CallState::Parked if self.has_all_answers() => {}
            CallState::Parked => return Err("the call waits for answers"),
            CallState::Started { epoch: before, replayable: true } if *before < epoch => {}
            // It is not made again: its source is asked how far it is.
            CallState::Started { epoch: before, .. } if *before < epoch && self.task.is_some() => {}
            CallState::Started { .. } => {
                return Err("the call was started before and may not run twice");
            }
            CallState::Undecided | CallState::Asked(_) | CallState::Denied | CallState::Settled(_) => {
                return Err("the call is not allowed to run");
            }
            CallState::Answered => return Err("the call has its result"),
        }
        self.state = CallState::Started { epoch, replayable: started.replayable };
        self.key = started.key;
        self.starts = self.starts.saturating_add(1);
        Ok(())
    }

    /// It goes on by itself at its source. Each driver that takes it up says so once: that its source goes on with it is
    /// progress, where only taking it up is none.
    pub(super) fn accept(&mut self, epoch: u64, task: &Value) -> Result<(), Misfit> {
        match &self.state {
            CallState::Started { epoch: started, .. } if *started == epoch && !self.is_heard_of(epoch) => {}
            CallState::Started { .. } if self.task.is_some() => return Err("the call is a task already"),
            _ => return Err("the call does not run and cannot become a task"),
        }
        self.task = Some(Arc::new(task.clone()));
        self.heard = Some(epoch);
        Ok(())
    }

    /// Whether its source said under this claim that it goes on with its task.
    pub(super) fn is_heard_of(&self, epoch: u64) -> bool {
        self.heard == Some(epoch)
    }

    /// Takes the result. `success` says that it ran here and worked.
    pub(super) fn answer(&mut self, success: bool) -> Result<(), Misfit> {
        match &self.state {
            CallState::Answered => return Err("the call has its result"),
            // A person is asked whether it happened; the real result, where somebody still holds it, settles that. A
            // client's call runs at the client.
            CallState::Started { .. }
            | CallState::Asked(Question { reason: QuestionReason::UnknownOutcome | QuestionReason::ClientTool, .. })
            | CallState::Settled(SyntheticResult::Happened) => {}
            CallState::Undecided
            | CallState::Asked(_)
            | CallState::Allowed
            | CallState::Denied
            | CallState::Parked
            | CallState::Settled(_)
                if success =>
            {
                return Err("a call that never ran cannot have succeeded");
            }
            CallState::Undecided
            | CallState::Asked(_)
            | CallState::Allowed
            | CallState::Denied
            | CallState::Parked
            | CallState::Settled(_) => {}
        }
        self.state = CallState::Answered;
        Ok(())
    }

    pub(super) fn view(&self) -> CallView<'_> {
        CallView {
            id: self.id,
            name: &self.name,
            runs_at: self.runs_at,
            arguments: &self.arguments,
            is_edited: self.edited,
            is_answered: self.is_answered(),
            is_allowed: matches!(self.state, CallState::Allowed | CallState::Started { .. } | CallState::Parked),
            decided_hash: self.decided_hash.as_deref(),
            attempt: self.attempt,
            starts: self.starts,
            key: match self.state {
                CallState::Started { .. } | CallState::Parked => self.key,
                CallState::Undecided
                | CallState::Asked(_)
                | CallState::Allowed
                | CallState::Denied
                | CallState::Settled(_)
                | CallState::Answered => KeyForm::OfConversation,
            },
            denial: self.denial.as_deref(),
            task: self.task.as_deref(),
        }
    }
}

/// The call `id` among the calls of one message, where each stands at its index.
pub(super) fn find(calls: &[Call], id: CallId) -> Option<&Call> {
    calls.get(usize::try_from(id.index).ok()?).filter(|call| call.id == id)
}

/// The call `id` among the calls of one message, to change it.
pub(super) fn find_mut(calls: &mut [Call], id: CallId) -> Option<&mut Call> {
    calls.get_mut(usize::try_from(id.index).ok()?).filter(|call| call.id == id)
}

impl SyntheticResult {
    /// The stored result, in words for the model.
    pub fn result(self, call: &CallView<'_>) -> ToolResult {
        use ToolErrorKind as K;
        let (kind, text) = match self {
            Self::Happened => {
                let text =
                    "The connection was lost while this ran. The user has checked that it happened; its output is not known.";
                return ToolResult::of(call.id, crate::Outcome::Success, text);
            }
            Self::Denied => {
                let denied = call.denial.unwrap_or("denied");
                let text = match call.starts {
                    0 => format!("This call was {denied}. It did not run."),
                    _ => format!("This call was {denied}. It did not run again; before that it may or may not have happened."),
                };
                return ToolResult::of(call.id, crate::Outcome::Denied, text);
            }
            Self::Cancelled => (K::Cancelled, "The user stopped the turn before this ran."),
            Self::Interrupted => {
                (K::Interrupted, "This was interrupted: it may or may not have happened. Check before you repeat it.")
            }
            Self::CutOff => (K::Cancelled, "The message that asked for this was cut off. It did not run."),
            Self::LengthLimit => (
                K::Cancelled,
                "The message that asked for this reached the output limit and may be incomplete. It did not run. Ask again with shorter arguments, or for fewer calls at once.",
            ),
            Self::Refused => (K::Cancelled, "The message that asked for this was withheld. It did not run."),
            Self::StepLimit => (K::Cancelled, "The step limit of this turn is reached. It did not run."),
            Self::CallLimit => {
                (K::Cancelled, "This turn has made as many tool calls as it may. It did not run. Answer with what you know.")
            }
            Self::GivenUp => (K::Cancelled, "The turn was given up before this ran."),
            Self::Unanswered => (
                K::Cancelled,
                "This asked the user for something and the turn was stopped before there was an answer. It did not finish.",
            ),
            Self::Skipped => (
                K::Interrupted,
                "This was interrupted, it is not known whether it happened. It was decided to go on without it.",
            ),
        };
        ToolResult::failed(call.id, kind, text)
    }
}
