//! What belongs in one append.

use turnwright_core::{
    ApproveMode, CallView, Entry, FinishReason, Journal, JournalError, KeyForm, Next, Plan, QuestionReason, Ruler, Ruling,
    StartRuling, Started, SyntheticResult, ToolErrorKind, ToolResult, TurnSettings, TurnStatus, Verdict, plan,
};

use crate::told::{
    Told, call_id, cancel, claimed, message, resumed, seq, settings, started, success, text, tool_call, with_mode,
};

/// Rules by the tool's name; so many slots.
struct Rules {
    slots: usize,
    start: fn(&CallView<'_>) -> StartRuling,
}

fn starts(_: &CallView<'_>) -> StartRuling {
    StartRuling::Start { replayable: false }
}

impl Rules {
    fn new() -> Self {
        Self { slots: usize::MAX, start: starts }
    }
}

impl Ruler for Rules {
    fn rule(&mut self, call: &CallView<'_>) -> Ruling {
        let rule = "rule".to_owned();
        match call.name {
            "allowed" => Ruling::Allow { rule, definition_hash: "hash".to_owned() },
            "denied" => Ruling::Deny { rule },
            "asked" => Ruling::Ask { rule },
            _ => Ruling::Refuse(ToolResult::failed(call.id, ToolErrorKind::NotFound, "no such tool")),
        }
    }

    fn start(&mut self, call: &CallView<'_>) -> StartRuling {
        if self.slots == 0 {
            return StartRuling::Later;
        }
        self.slots -= 1;
        (self.start)(call)
    }
}

fn planned(journal: &Journal, first: Vec<Entry>, rules: &mut Rules) -> Plan {
    let plan = plan(journal, first, rules).expect("it fits");
    assert_eq!(turnwright_core::check(journal, &plan.entries), Ok(()), "what is planned fits");
    plan
}

fn kinds(plan: &Plan) -> Vec<&'static str> {
    plan.entries.iter().map(Entry::kind).collect()
}

fn answer(calls: &[&str]) -> Entry {
    let blocks = calls.iter().map(|name| tool_call(name, "{}")).collect();
    Entry::Assistant(message(seq(2), FinishReason::ToolCalls, blocks))
}

#[test]
fn a_message_goes_with_its_decisions_and_the_first_starts() {
    let told = Told::new(settings());
    let plan = planned(&told.journal, vec![answer(&["allowed", "denied", "nowhere", "allowed"])], &mut Rules::new());
    let expected = ["assistant", "decision", "decision", "result", "decision", "started", "result", "started"];
    assert_eq!(kinds(&plan), expected);
    assert_eq!((plan.run, plan.next), (vec![call_id(3, 0), call_id(3, 3)], Next::Wait));
}

#[test]
fn a_call_without_a_slot_starts_later() {
    let told = Told::new(settings());
    let plan = planned(&told.journal, vec![answer(&["allowed", "allowed"])], &mut Rules { slots: 1, ..Rules::new() });
    assert_eq!((kinds(&plan), plan.run), (vec!["assistant", "decision", "decision", "started"], vec![call_id(3, 0)]));
}

#[test]
fn calls_run_one_after_another_where_a_turn_says_so() {
    let told = Told::new(TurnSettings { parallel_calls: Some(false), ..settings() });
    let plan = planned(&told.journal, vec![answer(&["allowed", "denied", "allowed"])], &mut Rules::new());
    assert_eq!((&plan.run, &plan.next), (&vec![call_id(3, 0)], &Next::Wait));
    let told = plan.entries.into_iter().fold(told, Told::tell);
    let plan = planned(&told.journal, vec![success(call_id(3, 0))], &mut Rules::new());
    assert_eq!((kinds(&plan), plan.run), (vec!["result", "started"], vec![call_id(3, 2)]));
}

#[test]
fn a_question_goes_with_the_suspension() {
    let told = Told::new(settings());
    let plan = planned(&told.journal, vec![answer(&["asked"])], &mut Rules::new());
    assert_eq!((kinds(&plan), plan.next), (vec!["assistant", "question", "suspended"], Next::Parked));
}

#[test]
fn a_suspended_turn_is_not_suspended_twice() {
    let told = Told::new(settings()).says(FinishReason::ToolCalls, vec![tool_call("asked", "{}")]);
    let first = planned(&told.journal, Vec::new(), &mut Rules::new());
    let told = first.entries.into_iter().fold(told, Told::tell);
    let again = planned(&told.journal, Vec::new(), &mut Rules::new());
    assert_eq!((again.entries, again.next), (Vec::new(), Next::Parked));
}

#[test]
fn an_allowed_call_runs_before_the_turn_suspends() {
    let told = Told::new(settings());
    let plan = planned(&told.journal, vec![answer(&["asked", "allowed"])], &mut Rules::new());
    assert_eq!((kinds(&plan), &plan.next), (vec!["assistant", "question", "decision", "started"], &Next::Wait));
    let told = plan.entries.into_iter().fold(told, Told::tell);
    let plan = planned(&told.journal, vec![success(call_id(3, 1))], &mut Rules::new());
    assert_eq!((kinds(&plan), plan.next), (vec!["result", "suspended"], Next::Parked));
}

#[test]
fn the_last_entry_goes_with_the_end() {
    let told = Told::new(settings());
    let hi = Entry::Assistant(message(seq(2), FinishReason::Stop, vec![text("hi")]));
    let plan = planned(&told.journal, vec![hi], &mut Rules::new());
    assert_eq!((kinds(&plan), plan.next), (vec!["assistant", "ended"], Next::Ended(TurnStatus::Completed)));
}

#[test]
fn the_last_result_asks_the_model() {
    let id = call_id(3, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false));
    let plan = planned(&told.journal, vec![success(id)], &mut Rules::new());
    assert_eq!((kinds(&plan), plan.next), (vec!["result"], Next::CallModel { allow_calls: true }));
}

#[test]
fn a_cancelled_turn_ends_in_one_append() {
    let told = Told::new(settings()).asks_for(2).tell(cancel(1));
    let plan = planned(&told.journal, Vec::new(), &mut Rules::new());
    assert_eq!((kinds(&plan), plan.next), (vec!["result", "result", "ended"], Next::Ended(TurnStatus::Cancelled)));
}

#[test]
fn a_turn_is_given_up_in_one_append() {
    let id = call_id(3, 0);
    let told = Told::new(settings()).asks_for(2).decides(id, Verdict::Allow).tell(started(id, true));
    let plan = planned(&told.journal, vec![claimed(2), resumed(3)], &mut Rules::new());
    assert_eq!(kinds(&plan), ["claimed", "resumed", "result", "result", "ended"]);
    assert!(matches!(plan.next, Next::Ended(TurnStatus::Failed { .. })), "{:?}", plan.next);
}

#[test]
fn a_call_that_is_made_again_keeps_the_form_of_its_key_also_where_an_older_version_started_it() {
    let id = call_id(3, 0);
    let allowed = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow);
    let old = Entry::decode(1, r#"{"started":{"call":"call_3_0","replayable":true}}"#).expect("it was written so");
    for (before, key) in [(old, KeyForm::OfNames), (started(id, true), KeyForm::OfConversation)] {
        let told = allowed.clone().tell(before);
        let plan = planned(&told.journal, vec![claimed(2)], &mut Rules::new());
        let again = Entry::Started(Started { call: id, replayable: false, key });
        assert_eq!((plan.entries.last(), &plan.run), (Some(&again), &vec![id]));
    }
    let plan = planned(&allowed.journal, Vec::new(), &mut Rules::new());
    assert_eq!(plan.entries, [started(id, false)], "what starts first has the newest");
}

#[test]
fn a_turn_that_is_over_needs_no_append() {
    let told = Told::new(settings()).answers("hi").tell(crate::told::ended(1, TurnStatus::Completed));
    let plan = planned(&told.journal, Vec::new(), &mut Rules::new());
    assert_eq!(plan, Plan { entries: Vec::new(), run: Vec::new(), next: Next::Ended(TurnStatus::Completed) });
}

#[test]
fn what_does_not_fit_is_not_planned() {
    let error = plan(&Journal::default(), Vec::new(), &mut Rules::new()).expect_err("there is no turn");
    assert_eq!(error, JournalError::Misfit { seq: seq(1), kind: "plan", why: "there is no turn" });
    let told = Told::new(settings());
    let error = plan(&told.journal, vec![success(call_id(3, 0))], &mut Rules::new()).expect_err("there is no such call");
    assert_eq!(error.seq(), seq(3));
}

fn changed(_: &CallView<'_>) -> StartRuling {
    StartRuling::DefinitionChanged { definition_hash: "another".to_owned() }
}

#[test]
fn a_call_whose_tool_changed_since_it_was_allowed_is_asked_about() {
    let told = Told::new(settings()).asks_for(1).decides(call_id(3, 0), Verdict::Allow);
    let plan = planned(&told.journal, Vec::new(), &mut Rules { start: changed, ..Rules::new() });
    assert_eq!(kinds(&plan), ["question", "suspended"]);
    let told = plan.entries.into_iter().fold(told, Told::tell);
    let asked: Vec<_> =
        told.turn().waiting().map(|(_, question)| (question.reason, question.definition_hash.as_deref())).collect();
    assert_eq!(asked, [(QuestionReason::DefinitionChanged, Some("another"))]);
    let plan = planned(&told.decides(call_id(3, 0), Verdict::Allow).journal, Vec::new(), &mut Rules::new());
    assert_eq!(plan.run, [call_id(3, 0)]);
}

#[test]
fn a_started_call_whose_tool_changed_may_have_happened() {
    let id = call_id(3, 0);
    let lost = |mode| {
        let told = Told::new(with_mode(mode)).asks_for(1).decides(id, Verdict::Allow).tell(started(id, true));
        planned(&told.journal, vec![claimed(2), resumed(1)], &mut Rules { start: changed, ..Rules::new() })
    };
    let asked = lost(ApproveMode::Ask);
    let question = crate::told::question(id, QuestionReason::UnknownOutcome);
    assert_eq!((asked.entries[2].clone(), asked.next), (question, Next::Parked));
    let interrupted = lost(ApproveMode::All);
    let told = Told::new(settings()).asks_for(1);
    let call = told.turn().call(id).expect("it is there");
    let result = Entry::Result(SyntheticResult::Interrupted.result(&call));
    assert_eq!((interrupted.entries[2].clone(), interrupted.next), (result, Next::CallModel { allow_calls: true }));
}
