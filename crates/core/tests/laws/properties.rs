//! What holds for every journal that can be told at all.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;
use turnwright_core::prompt::{self, PromptMessage};
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, ApproveMode, CallId, CallView, Compacted, Completion, Control, CutOffCause,
    Elicitation, ElicitationId, Elicited, Entry, FinishReason, Journal, MessageId, ModelRef, Outcome, ProviderFailure,
    ProviderFailureKind as Kind, QuestionReason, Ruler, Ruling, Seq, StartRuling, Step, StoredEntry, ToolErrorKind, ToolResult,
    TurnSettings, TurnStatus, Usage, Verdict, Waits, Wants, check, fork, fork_given, plan,
};

use crate::told::{
    Told, cancel, claimed, decision, ended, hidden, message, question, resumed, retried, seq, settings, started, text,
    tool_call, user_message,
};

/// An idea for the next entry; numbers are taken modulo what there is. Most ideas do not fit and are passed over.
#[derive(Debug, Clone)]
enum Idea {
    User,
    Assistant {
        unseen: u64,
        reason: FinishReason,
        calls: usize,
        cut_off: Option<bool>,
    },
    Decision {
        call: usize,
        verdict: Verdict,
        edited: bool,
    },
    Question {
        call: usize,
        reason: QuestionReason,
    },
    Started {
        call: usize,
        replayable: bool,
    },
    Result {
        call: usize,
        outcome: Outcome,
    },
    Elicited {
        call: usize,
        asks: usize,
        parks: bool,
    },
    Answered {
        call: usize,
        index: u32,
        is_person: bool,
    },
    Claimed,
    Resumed,
    Cancel,
    Suspended,
    Failed(Kind),
    Compacted(u64),
    Ended(TurnStatus),
    Retried,
    Hidden(u64),
    /// Whatever the machine plans here.
    Planned {
        slots: usize,
    },
}

fn idea() -> impl Strategy<Value = Idea> {
    use FinishReason as F;
    let reason = prop::sample::select(vec![
        F::Stop,
        F::ToolCalls,
        F::ToolCalls,
        F::Length,
        F::ContentFilter,
        F::Refusal,
        F::Pause,
        F::Error,
    ]);
    let verdict =
        prop::sample::select(vec![Verdict::Allow, Verdict::Deny, Verdict::Happened, Verdict::RunAgain, Verdict::Skip]);
    let why = prop::sample::select(vec![
        QuestionReason::Approval,
        QuestionReason::UnknownOutcome,
        QuestionReason::DefinitionChanged,
        QuestionReason::Loop,
    ]);
    let outcome = prop::sample::select(vec![Outcome::Success, Outcome::Denied, Outcome::Error(ToolErrorKind::ExecutionFailed)]);
    let status = prop::sample::select(vec![
        TurnStatus::Completed,
        TurnStatus::Cancelled,
        TurnStatus::StepLimit,
        TurnStatus::Failed { reason: String::new() },
    ]);
    let call = 0..4_usize;
    prop_oneof![
        1 => Just(Idea::User),
        4 => (0..3_u64, reason, 0..4_usize, prop::option::weighted(0.2, any::<bool>()))
            .prop_map(|(unseen, reason, calls, cut_off)| Idea::Assistant { unseen, reason, calls, cut_off }),
        4 => (call.clone(), verdict, any::<bool>()).prop_map(|(call, verdict, edited)| Idea::Decision { call, verdict, edited }),
        2 => (call.clone(), why).prop_map(|(call, reason)| Idea::Question { call, reason }),
        4 => (call.clone(), any::<bool>()).prop_map(|(call, replayable)| Idea::Started { call, replayable }),
        4 => (call.clone(), outcome).prop_map(|(call, outcome)| Idea::Result { call, outcome }),
        2 => (call.clone(), 1..3_usize, any::<bool>())
            .prop_map(|(call, asks, parks)| Idea::Elicited { call, asks, parks }),
        3 => (call.clone(), 0..4_u32, any::<bool>())
            .prop_map(|(call, index, is_person)| Idea::Answered { call, index, is_person }),
        2 => Just(Idea::Claimed),
        1 => Just(Idea::Resumed),
        1 => Just(Idea::Cancel),
        1 => Just(Idea::Suspended),
        1 => prop::sample::select(vec![Kind::Server, Kind::ContextLength, Kind::Auth]).prop_map(Idea::Failed),
        1 => (1..40_u64).prop_map(Idea::Compacted),
        1 => status.prop_map(Idea::Ended),
        1 => Just(Idea::Retried),
        1 => (1..40_u64).prop_map(Idea::Hidden),
        4 => (0..3_usize).prop_map(|slots| Idea::Planned { slots }),
    ]
}

/// Rules that differ from call to call.
struct Rules {
    slots: usize,
}

impl Ruler for Rules {
    fn rule(&mut self, call: &CallView<'_>) -> Ruling {
        match (call.id.message.get() + u64::from(call.id.index)) % 4 {
            0 => Ruling::Ask { rule: "ask".to_owned() },
            1 => Ruling::Deny { rule: "deny".to_owned() },
            2 => Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::NotFound, "no")),
            _ => Ruling::Allow { rule: "allow".to_owned(), definition_hash: "hash".to_owned() },
        }
    }

    fn start(&mut self, call: &CallView<'_>) -> StartRuling {
        if self.slots == 0 {
            return StartRuling::Later;
        }
        self.slots -= 1;
        match call.id.index {
            3 => StartRuling::DefinitionChanged { definition_hash: "another".to_owned() },
            2 => StartRuling::Refuse(ToolResult::failed(call.id, ToolErrorKind::Unavailable, "gone")),
            index => StartRuling::Start { replayable: index == 0 },
        }
    }
}

fn entries(told: &Told, idea: &Idea, settings: &TurnSettings) -> Vec<Entry> {
    let Some(turn) = told.journal.turn() else { return vec![user_message("hello", settings.clone())] };
    let calls: Vec<CallId> = turn.calls().map(|call| call.id).collect();
    let nth = |index: &usize| calls.get(index % calls.len().max(1)).copied().unwrap_or(CallId { message: seq(1), index: 0 });
    let last = told.journal.last_seq().map_or(1, Seq::get);
    let turn = turn.id().0.get();
    let entry = match idea {
        Idea::User => user_message("also", settings.clone()),
        Idea::Assistant { unseen, reason, calls, cut_off } => {
            let mut blocks = vec![text("hi")];
            blocks.extend((0..*calls).map(|call| tool_call("tool", if call == 1 { "{\"a" } else { "{}" })));
            let mut message = message(seq(last.saturating_sub(*unseen).max(1)), *reason, blocks);
            message.completion = match cut_off {
                None => Completion::Complete,
                Some(true) => Completion::CutOff(CutOffCause::Cancelled),
                Some(false) => Completion::CutOff(CutOffCause::Provider(Box::new(ProviderFailure::cut_off()))),
            };
            Entry::Assistant(message)
        }
        Idea::Decision { call, verdict, edited } => {
            let mut decision = decision(nth(call), *verdict);
            decision.arguments = edited.then(|| "{}".to_owned());
            Entry::Decision(decision)
        }
        Idea::Question { call, reason } => question(nth(call), *reason),
        Idea::Started { call, replayable } => started(nth(call), *replayable),
        Idea::Result { call, outcome } => Entry::Result(ToolResult::of(nth(call), *outcome, "result")),
        Idea::Elicited { call, asks, parks } => {
            let ask = || Elicitation { key: String::new(), message: "?".to_owned(), wants: Wants::Url { url: String::new() } };
            let waits = if *parks { Waits::Parked { resume: Value::Null } } else { Waits::Open { until_ms: 0 } };
            let asks = std::iter::repeat_with(ask).take(*asks).collect();
            Entry::Elicited(Elicited { call: nth(call), source: "s".to_owned(), asks, waits })
        }
        Idea::Answered { call, index, is_person } => Entry::Answered(Answered {
            question: ElicitationId { call: nth(call), index: *index },
            action: AnswerAction::Accept,
            content: None,
            by: if *is_person { AnsweredBy::Person } else { AnsweredBy::Deadline },
            reason: None,
        }),
        Idea::Claimed => claimed(told.journal.next_epoch()),
        Idea::Resumed => resumed(told.turn().next_resumption()),
        Idea::Cancel => cancel(turn),
        Idea::Suspended => Entry::Control(Control::Suspended),
        Idea::Failed(kind) => Entry::Control(Control::Failed(ProviderFailure::new(*kind, "down"))),
        Idea::Compacted(through) => Entry::Control(Control::Compacted(Compacted {
            turn: Some(told.turn().id()),
            through: seq(through % (last + 1) + 1),
            summary: "summary".to_owned(),
            origin: None,
            usage: Usage::default(),
        })),
        Idea::Ended(status) => ended(turn, status.clone()),
        Idea::Retried => retried(turn),
        Idea::Hidden(message) => hidden(message % last + 1),
        Idea::Planned { slots } => {
            let planned = plan(&told.journal, Vec::new(), &mut Rules { slots: *slots });
            return planned.map(|plan| plan.entries).unwrap_or_default();
        }
    };
    vec![entry]
}

fn well_formed(journal: &Journal) -> Result<(), TestCaseError> {
    let mut due: Vec<CallId> = Vec::new();
    for message in &prompt::messages(journal) {
        match message {
            PromptMessage::User { .. } | PromptMessage::Context { .. } => prop_assert!(due.is_empty()),
            PromptMessage::Assistant { seq, message } => {
                prop_assert!(due.is_empty());
                due = message.calls().zip(0..).map(|(_, index)| CallId { message: *seq, index }).collect();
            }
            PromptMessage::Results(results) => {
                let given: Vec<CallId> = results.iter().map(|result| result.id).collect();
                prop_assert_eq!(&given, &due);
                due.clear();
            }
        }
    }
    prop_assert!(due.is_empty());
    Ok(())
}

/// What is shown of a message, besides where it stands and that arguments were changed.
fn shown(message: &PromptMessage<'_>) -> String {
    match message {
        PromptMessage::User { message, .. } => format!("{:?}", message.content),
        PromptMessage::Context { context, .. } => context.text.clone(),
        PromptMessage::Assistant { message, .. } => format!("{:?}", (&message.blocks, &message.finish, &message.completion)),
        PromptMessage::Results(results) => {
            let results = results.iter().map(|result| (&result.result.outcome, &result.result.content));
            format!("{:?}", results.collect::<Vec<_>>())
        }
    }
}

/// A copy up to `before` is a journal whose turns are over, with the messages that are shown before it and whose calls have their results.
fn forks_as_it_is_shown(journal: &Journal, before: Option<Seq>) -> Result<(), TestCaseError> {
    let cut = before.unwrap_or(journal.next_seq());
    let copied = fork(journal, before.map(MessageId)).into_iter().zip(1..);
    let copied = copied.map(|((entry, at_ms), place)| StoredEntry { seq: seq(place), at_ms, entry: Arc::new(entry) });
    let copy = Journal::replay(copied);
    prop_assert!(copy.is_ok(), "{:?}", copy);
    let Ok(copy) = copy else { return Ok(()) };
    prop_assert_eq!(copy.open_turn(), None);
    well_formed(&copy)?;
    // A message that joined a turn is shown behind what had not seen it, with all that came of that.
    let is_joined = before.is_some_and(|at| {
        let is_user = journal.entry(at).is_some_and(|stored| matches!(&*stored.entry, Entry::User(_)));
        is_user && !opens_turn(journal, at)
    });
    let ends = |stored: &&StoredEntry| {
        let is_other_turn = matches!(&*stored.entry, Entry::User(_)) && opens_turn(journal, stored.seq);
        stored.seq > cut && (is_other_turn || matches!(&*stored.entry, Entry::Control(Control::Ended { .. })))
    };
    let end = if is_joined { journal.entries().iter().find(ends).map_or(journal.next_seq(), |end| end.seq) } else { cut };
    let has_result = |call: CallId| {
        let mut before = journal.entries().iter().take_while(|stored| stored.seq < end);
        before.any(|stored| matches!(&*stored.entry, Entry::Result(result) if result.call == call))
    };
    let mut is_in = false;
    let history = prompt::history(journal);
    let expected = history.iter().filter(|message| {
        is_in = match message {
            PromptMessage::User { seq, .. } | PromptMessage::Context { seq, .. } => *seq < cut,
            PromptMessage::Assistant { seq, message } => {
                let mut calls = message.calls().zip(0..).map(|(_, index)| CallId { message: *seq, index });
                let is_before = *seq < cut || (*seq < end && message.saw < cut);
                is_before && calls.all(has_result)
            }
            PromptMessage::Results(_) => is_in,
        };
        is_in
    });
    let expected: Vec<String> = expected.map(shown).collect();
    prop_assert_eq!(prompt::history(&copy).iter().map(shown).collect::<Vec<_>>(), expected);
    Ok(())
}

/// Whether no turn was open where a message of a person's stands.
fn opens_turn(journal: &Journal, at: Seq) -> bool {
    let mut is_open = false;
    for stored in journal.entries().iter().take_while(|stored| stored.seq < at) {
        match &*stored.entry {
            Entry::User(_) | Entry::Control(Control::Retried { .. }) => is_open = true,
            Entry::Control(Control::Ended { .. }) => is_open = false,
            _ => {}
        }
    }
    !is_open
}

/// A copy with other results for the calls of a message ends with them, in a turn that can be taken up again.
fn forks_with_other_results(journal: &Journal, message: Seq) -> Result<(), TestCaseError> {
    let Some(Entry::Assistant(said)) = journal.entry(message).map(|stored| &*stored.entry) else { return Ok(()) };
    let calls = said.calls().zip(0..).map(|(_, index)| CallId { message, index });
    let given: Vec<ToolResult> = calls.map(|call| ToolResult::of(call, Outcome::Success, "other")).collect();
    let Some(entries) = fork_given(journal, &given) else {
        prop_assert!(given.is_empty() || journal.is_hidden(MessageId(message)));
        return Ok(());
    };
    let copied = entries.into_iter().zip(1..);
    let copied = copied.map(|((entry, at_ms), place)| StoredEntry { seq: seq(place), at_ms, entry: Arc::new(entry) });
    let copy = Journal::replay(copied);
    prop_assert!(copy.is_ok(), "{:?}", copy);
    let Ok(copy) = copy else { return Ok(()) };
    prop_assert_eq!(copy.turn().and_then(|turn| turn.ended()), Some(&TurnStatus::Cancelled));
    well_formed(&copy)?;
    let history = prompt::history(&copy);
    let results = history.iter().rev().find_map(|message| match message {
        PromptMessage::Results(results) => Some(results.iter().map(|result| &result.result.content).collect::<Vec<_>>()),
        _ => None,
    });
    prop_assert_eq!(results, Some(given.iter().map(|result| &result.content).collect()));
    Ok(())
}

/// What the machine says next can be done: the entries for it fit.
fn step_fits(told: &Told, slots: usize) -> Result<(), TestCaseError> {
    let Some(turn) = told.journal.turn() else { return Ok(()) };
    prop_assert_eq!(turn.step(), turn.step());
    prop_assert_eq!(turn.is_parked(), turn.step() == Step::Park);
    match plan(&told.journal, Vec::new(), &mut Rules { slots }) {
        Ok(planned) => prop_assert_eq!(check(&told.journal, &planned.entries), Ok(())),
        // Only a turn that nobody drives may have calls that cannot start.
        Err(error) => prop_assert!(turn.claim().is_none(), "{}", error),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_told_the_machine_knows_what_is_next_and_the_prompt_is_well_formed(
        ideas in prop::collection::vec(idea(), 1..60),
        mode in prop::sample::select(vec![ApproveMode::Ask, ApproveMode::All]),
        max_steps in 1..4_u32,
        slots in 0..3_usize,
        fallback in 0..2_usize,
    ) {
        let fallback = vec![ModelRef::new("scripted", "second"); fallback];
        let settings = TurnSettings { approve: mode, max_steps, fallback, ..settings() };
        let mut told = Told::default();
        for idea in &ideas {
            for entry in entries(&told, idea, &settings) {
                let fits = check(&told.journal, std::slice::from_ref(&entry));
                let before = told.journal.clone();
                let offered = told.offer(entry);
                prop_assert_eq!(&fits, &offered);
                if offered.is_err() {
                    prop_assert_eq!(&told.journal, &before);
                }
            }
            step_fits(&told, slots)?;
            well_formed(&told.journal)?;
        }
        for after in 0..told.journal.entries().len() {
            let mut newest = None;
            told.journal.look_back(Seq::new(after as u64), |turn, _| newest = turn.cloned());
            prop_assert_eq!(newest.as_ref(), told.journal.turn());
        }
        for cut in 0..=told.journal.entries().len() {
            forks_as_it_is_shown(&told.journal, Seq::new(cut as u64))?;
        }
        for stored in told.journal.entries() {
            forks_with_other_results(&told.journal, stored.seq)?;
        }
        let replayed = Journal::replay(told.journal.entries().iter().cloned());
        prop_assert_eq!(replayed, Ok(told.journal));
    }

    #[test]
    fn names_of_calls_are_read_as_they_are_written(message in 1..u64::MAX, index in any::<u32>()) {
        let id = CallId { message: seq(message), index };
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn what_is_shown_as_an_object_is_one(arguments in "[\\[\\]{}\":,a0-9eE.\\\\u -]{0,24}") {
        let AssistantCall(call) = assistant_call(&arguments);
        let object: Result<serde_json::Map<String, Value>, _> = serde_json::from_str(call.arguments_object());
        prop_assert!(object.is_ok());
        let is_one = serde_json::from_str::<serde_json::Map<String, Value>>(&arguments).is_ok();
        prop_assert_eq!(call.arguments_object() == arguments, is_one);
    }
}

struct AssistantCall(turnwright_core::ToolCall);

fn assistant_call(arguments: &str) -> AssistantCall {
    match tool_call("tool", arguments) {
        turnwright_core::AssistantBlock::Call(call) => AssistantCall(call),
        block => panic!("{block:?} is no call"),
    }
}
