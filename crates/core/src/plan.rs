//! What belongs in one append.
//!
//! Something happened: a message ended, a result came, a person spoke. [`plan`] runs the turn ahead from there, as far as
//! it gets without touching the world, and gives the entries of that way as one append (docs/journal.md, "One
//! append"): a message with the decisions of the policy and the first `Started`s, the last entry
//! with `Ended`, a question with `Suspended`.

use std::sync::Arc;

use crate::budgets::{self, Purpose};
use crate::compaction::Compaction;
use crate::{
    Answered, AnsweredBy, CallId, CallNeed, CallView, Control, DecidedBy, Decision, Entry, Journal, JournalError, Question,
    QuestionReason, Repetition, Seq, Started, Step, StopReason, SyntheticResult, ToolDefinition, ToolResult, Turn, TurnStatus,
    Verdict, compaction, loops,
};

/// What the policy says about a call that nobody decided about.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// It may run.
    Allow {
        /// The rule that says so.
        rule: String,
        /// The hash of the definition that the rule was applied to.
        definition_hash: String,
    },
    /// It may not.
    Deny {
        /// The rule that says so.
        rule: String,
    },
    /// A person must say.
    Ask {
        /// The rule that asks.
        rule: String,
    },
    /// It is the client's: it runs there, and its result is waited for.
    HandOver,
    /// It cannot run at all: no such tool, arguments that do not fit. Nobody is asked.
    Refuse(ToolResult),
}

/// What is known outside of the journal and needed to plan: the policy, the tools of this moment, the free slots.
pub trait Ruler {
    /// What the policy says about `call`.
    fn rule(&mut self, call: &CallView<'_>) -> Ruling;

    /// The tool that a call names although it is held back: it is offered from here on.
    fn reveal(&mut self, _call: &CallView<'_>) -> Option<Arc<ToolDefinition>> {
        None
    }

    /// Whether an allowed call may start, and how.
    fn start(&mut self, call: &CallView<'_>) -> StartRuling;

    /// Whether what a driver before began has surely stopped. Until then nobody is told or asked that a call's outcome is unknown:
    /// they might have it run again while it still runs.
    fn is_quiet(&self) -> bool {
        true
    }
}

/// Whether an allowed call may start.
#[derive(Debug, Clone, PartialEq)]
pub enum StartRuling {
    /// It has its slot.
    Start {
        /// Whether the operator declared it replayable.
        replayable: bool,
    },
    /// The search for tools that are held back: it touches nothing, and is over as it starts.
    Found {
        /// What it found that was not offered before, the best first.
        definitions: Vec<Arc<ToolDefinition>>,
        /// What the model is told.
        result: ToolResult,
    },
    /// No slot is free; ask again when one is.
    Later,
    /// The definition changed since it was allowed.
    DefinitionChanged {
        /// The hash of the one there is.
        definition_hash: String,
    },
    /// It cannot run: its tool is gone.
    Refuse(ToolResult),
}

/// What to append, and what to do once that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The entries of one append; may be empty.
    pub entries: Vec<Entry>,
    /// The calls to run once the entries are stored.
    pub run: Vec<CallId>,
    /// What comes after.
    pub next: Next,
}

/// What a driver does after its append.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Ask the model.
    CallModel {
        /// Whether it may ask for tools.
        allow_calls: bool,
    },
    /// Make a summary of what [`compaction::cut`] gives and store it as [`Control::Compacted`].
    Compact,
    /// Wait until a call has its result, or somebody appends something.
    Wait,
    /// Let go: only a person can move the turn on.
    Parked,
    /// Let go: the turn is over.
    Ended(TurnStatus),
}

/// Plans the append that follows from `first`, the entries of what just happened, in `journal`.
///
/// # Errors
/// [`JournalError::Misfit`], where an entry of `first` does not fit the turn, which is a fault of the driver's. What others may
/// overtake, such as an answer that the host gives in the place of a person, is dropped before.
pub fn plan(journal: &Journal, first: Vec<Entry>, ruler: &mut dyn Ruler) -> Result<Plan, JournalError> {
    let Some(turn) = journal.turn() else {
        let seq = journal.next_seq();
        return Err(JournalError::Misfit { seq, kind: "plan", why: "there is no turn" });
    };
    let mut draft = Draft { turn: turn.clone(), next: journal.next_seq(), entries: Vec::new(), run: Vec::new() };
    for entry in first {
        if is_overtaken(journal, &draft.turn, &entry) {
            continue;
        }
        match entry {
            Entry::Control(Control::Ended { turn, status }) => {
                let status = with_summary(status, journal, &draft);
                draft.push(Entry::Control(Control::Ended { turn, status }))?;
            }
            entry => draft.push(entry)?,
        }
    }
    loop {
        match draft.turn.step() {
            Step::Done => {
                return Ok(draft.finish(|turn| Next::Ended(turn.ended().cloned().unwrap_or(TurnStatus::Completed))));
            }
            Step::CallModel { allow_calls } => {
                return Ok(draft.finish(|_| Next::CallModel { allow_calls }));
            }
            Step::Compact if compaction::cut(journal).is_some() => return Ok(draft.finish(|_| Next::Compact)),
            Step::Compact => {
                let failure = draft.turn.overflow().map(|failure| failure.message.as_str()).unwrap_or_default();
                let reason = format!("{failure}; there is nothing before the newest message that could be put into a summary");
                draft.push(Entry::Control(Control::Ended { turn: draft.turn.id(), status: TurnStatus::Failed { reason } }))?;
            }
            Step::Park => {
                if !draft.turn.is_suspended() {
                    draft.push(Entry::Control(Control::Suspended))?;
                }
                return Ok(draft.finish(|_| Next::Parked));
            }
            Step::Nudge { call, text } => draft.push(Entry::Control(Control::Nudged { call, text }))?,
            Step::End(status) => {
                let status = with_summary(status, journal, &draft);
                draft.push(Entry::Control(Control::Ended { turn: draft.turn.id(), status }))?;
            }
            Step::Calls(pending) => {
                let mut moved = false;
                for pending in pending {
                    moved |= draft.look_after(pending.call, pending.need, ruler)?;
                }
                if !moved {
                    return Ok(draft.finish(|_| Next::Wait));
                }
            }
        }
    }
}

/// The status of a turn that went in circles, or reached a budget, with what was done in it.
fn with_summary(status: TurnStatus, journal: &Journal, draft: &Draft) -> TurnStatus {
    let stored = || journal.turn_entries(draft.turn.id()).map(|stored| &*stored.entry).chain(&draft.entries);
    match (status, draft.turn.repetition()) {
        (TurnStatus::Stopped { reason: StopReason::Loop, summary: None }, Some(repetition)) => {
            let summary = Some(loops::summary(repetition, stored()));
            TurnStatus::Stopped { reason: StopReason::Loop, summary }
        }
        (TurnStatus::Stopped { reason: reason @ StopReason::Budget(stop), summary: None }, _) => {
            TurnStatus::Stopped { reason, summary: Some(budgets::summary(&stop, &draft.turn, stored())) }
        }
        (status, _) => status,
    }
}

/// Whether an entry says what nobody needs to know any more.
fn is_overtaken(journal: &Journal, turn: &Turn, entry: &Entry) -> bool {
    match entry {
        Entry::Answered(Answered { question, by: AnsweredBy::Nobody | AnsweredBy::Deadline | AnsweredBy::Asker, .. }) => {
            turn.answer(*question).is_some() || !turn.questions().any(|open| open.id == *question)
        }
        // What it came to is known by now.
        Entry::TaskAccepted(accepted) => turn.is_heard_of(accepted.call),
        Entry::Sampled(sampled) => !turn.samplings().any(|(id, _)| id == sampled.question),
        // Another message chose another model, whose chain is at its beginning.
        Entry::Control(Control::Failed(failure)) => failure.is_unpriced() && !turn.has_fallen_short_of_the_last(),
        Entry::Control(Control::Reserved(reserved)) => !turn.asks_for(reserved.purpose),
        // A person's summary, which stands for as much or more, was stored while this one was made.
        Entry::Control(Control::Compacted(compacted)) => {
            let is_less = |shown: &Compaction| compacted.through < shown.through();
            !turn.asks_for(Purpose::Summary) || journal.compaction().is_some_and(is_less)
        }
        // Another question to a model was not allowed, and none is to be asked any more.
        Entry::Control(Control::Ended { status: TurnStatus::Stopped { reason: StopReason::Budget(_), .. }, .. }) => {
            !turn.asks_for(Purpose::Answer) && !turn.asks_for(Purpose::Summary)
        }
        Entry::Answered(Answered { by: AnsweredBy::Person | AnsweredBy::Policy, .. })
        | Entry::User(_)
        | Entry::Assistant(_)
        | Entry::Decision(_)
        | Entry::Question(_)
        | Entry::Started(_)
        | Entry::Elicited(_)
        | Entry::Result(_)
        | Entry::Control(_) => false,
    }
}

struct Draft {
    turn: Turn,
    next: Seq,
    entries: Vec<Entry>,
    run: Vec<CallId>,
}

impl Draft {
    fn push(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.turn.apply(self.next, &entry).map_err(|why| JournalError::Misfit { seq: self.next, kind: entry.kind(), why })?;
        self.next = self.next.next();
        self.entries.push(entry);
        Ok(())
    }

    /// Moves a call on as far as it gets; says whether it moved.
    fn look_after(&mut self, id: CallId, need: CallNeed, ruler: &mut dyn Ruler) -> Result<bool, JournalError> {
        let Some(call) = self.turn.call(id) else {
            return Ok(false);
        };
        let revealed = if need == CallNeed::Decide { ruler.reveal(&call) } else { None };
        if let Some(definition) = revealed {
            self.push(Entry::Control(Control::Found { definitions: vec![definition] }))?;
        }
        let Some(call) = self.turn.call(id) else {
            return Ok(false);
        };
        if is_about_unknown_outcome(need) && !ruler.is_quiet() {
            return Ok(false);
        }
        let entry = match need {
            CallNeed::Wait => return Ok(false),
            CallNeed::Answer(synthetic) => Entry::Result(synthetic.result(&call)),
            CallNeed::Ask(reason) => Entry::Question(Question::new(id, reason)),
            CallNeed::Decide => match ruler.rule(&call) {
                Ruling::Refuse(result) => Entry::Result(result),
                Ruling::HandOver => Entry::Question(Question::new(id, QuestionReason::ClientTool)),
                // Who lets it go on has seen what is to run. What the rules deny stays denied.
                Ruling::Allow { .. } | Ruling::Ask { .. } if self.turn.loop_to_ask_about(id).is_some() => {
                    let rule = self.turn.loop_to_ask_about(id).map(Repetition::rule);
                    Entry::Question(Question { rule, ..Question::new(id, QuestionReason::Loop) })
                }
                Ruling::Ask { rule } => {
                    Entry::Question(Question { rule: Some(rule), ..Question::new(id, QuestionReason::Approval) })
                }
                Ruling::Allow { rule, definition_hash } => decision(id, Verdict::Allow, rule, Some(definition_hash)),
                Ruling::Deny { rule } => decision(id, Verdict::Deny, rule, None),
            },
            // Not every API can be told to call one tool at a time: what came together waits its turn.
            CallNeed::Start if self.turn.settings().parallel_calls == Some(false) && self.turn.is_running_a_call() => {
                return Ok(false);
            }
            CallNeed::Start => match ruler.start(&call) {
                StartRuling::Later => return Ok(false),
                StartRuling::Refuse(result) => Entry::Result(result),
                StartRuling::DefinitionChanged { definition_hash } => match self.turn.need_where_definition_changed(id) {
                    need if is_about_unknown_outcome(need) && !ruler.is_quiet() => return Ok(false),
                    CallNeed::Answer(synthetic) => Entry::Result(synthetic.result(&call)),
                    CallNeed::Ask(reason) => {
                        let definition_hash = (reason == QuestionReason::DefinitionChanged).then_some(definition_hash);
                        Entry::Question(Question { definition_hash, ..Question::new(id, reason) })
                    }
                    CallNeed::Decide | CallNeed::Start | CallNeed::Wait => return Ok(false),
                },
                StartRuling::Found { definitions, result } => {
                    self.push(Entry::Started(Started::new(id, true)))?;
                    if !definitions.is_empty() {
                        self.push(Entry::Control(Control::Found { definitions }))?;
                    }
                    Entry::Result(result)
                }
                StartRuling::Start { replayable } => {
                    self.run.push(id);
                    Entry::Started(Started { call: id, replayable, key: call.key })
                }
            },
        };
        self.push(entry)?;
        Ok(true)
    }

    fn finish(self, next: impl FnOnce(&Turn) -> Next) -> Plan {
        let next = next(&self.turn);
        Plan { entries: self.entries, run: self.run, next }
    }
}

/// Whether a call was begun by a driver that is gone, and that is to be settled.
fn is_about_unknown_outcome(need: CallNeed) -> bool {
    match need {
        CallNeed::Ask(QuestionReason::UnknownOutcome) | CallNeed::Answer(SyntheticResult::Interrupted) => true,
        CallNeed::Ask(_) | CallNeed::Answer(_) | CallNeed::Decide | CallNeed::Start | CallNeed::Wait => false,
    }
}

fn decision(call: CallId, verdict: Verdict, rule: String, definition_hash: Option<String>) -> Entry {
    Entry::Decision(Decision {
        call,
        verdict,
        by: DecidedBy::Policy { rule },
        definition_hash,
        arguments: None,
        reason: None,
        remembered: None,
    })
}

/// Whether `entries` would fit after `journal` as it stands.
///
/// # Errors
/// The first that does not.
pub fn check(journal: &Journal, entries: &[Entry]) -> Result<(), JournalError> {
    journal.check(entries)
}
