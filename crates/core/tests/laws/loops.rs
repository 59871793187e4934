//! Models that go in circles (docs/loops.md).

use std::sync::Arc;

use serde_json::json;
use turnwright_core::prompt::{self, PromptMessage};
use turnwright_core::{
    ApproveMode, AssistantBlock, CallView, Control, Declared, Entry, FinishReason, LoopLimits, Next, Outcome, Plan,
    QuestionReason, Ruler, Ruling, StartRuling, StopReason, ToolDefinition, ToolErrorKind, ToolResult, TurnSettings,
    TurnStatus, Verdict, plan,
};

use crate::told::{Told, call_id, decision, ended, message, retried, settings, tool, tool_call, user_message, with_mode};

/// All may run, but for what is forbidden.
struct All;

impl Ruler for All {
    fn rule(&mut self, call: &CallView<'_>) -> Ruling {
        match call.name {
            "forbidden" => Ruling::Deny { rule: "rule 1".to_owned() },
            _ => Ruling::Allow { rule: "all".to_owned(), definition_hash: "hash".to_owned() },
        }
    }

    fn start(&mut self, _: &CallView<'_>) -> StartRuling {
        StartRuling::Start { replayable: false }
    }
}

/// A turn as it goes on.
#[derive(Clone)]
struct Going {
    told: Told,
    next: Next,
    newest: Vec<Entry>,
}

impl Going {
    fn new(settings: TurnSettings) -> Self {
        let told = Told::new(settings);
        Self { told, next: Next::Wait, newest: Vec::new() }
    }

    fn polling(name: &str) -> Self {
        let declared = Declared { polled: true, ..Declared::default() };
        let definition = ToolDefinition { declared, ..Arc::unwrap_or_clone(tool(name)) };
        let going = Self::new(settings());
        let offered = Entry::Control(Control::Offered { definitions: vec![Arc::new(definition)] });
        Self { told: going.told.tell(offered), ..going }
    }

    fn take(mut self, first: Vec<Entry>) -> Self {
        let Plan { entries, next, .. } = plan(&self.told.journal, first, &mut All).expect("it fits");
        self.newest.clone_from(&entries);
        self.told = entries.into_iter().fold(self.told, Told::tell);
        self.next = next;
        self
    }

    /// The model asks for these.
    fn asks(self, calls: &[(&str, &str)]) -> Self {
        let blocks: Vec<AssistantBlock> = calls.iter().map(|(name, arguments)| tool_call(name, arguments)).collect();
        let saw = self.told.journal.last_seq().expect("there is an entry");
        self.take(vec![Entry::Assistant(message(saw, FinishReason::ToolCalls, blocks))])
    }

    /// What runs gets these results.
    fn gets(self, results: impl IntoIterator<Item = ToolResult>) -> Self {
        let open: Vec<_> =
            self.told.turn().calls().filter(|call| call.is_allowed && !call.is_answered).map(|call| call.id).collect();
        let results = open.into_iter().zip(results).map(|(call, result)| Entry::Result(ToolResult { call, ..result }));
        let results = results.collect();
        self.take(results)
    }

    fn round(self, name: &str, arguments: &str, result: &str) -> Self {
        self.asks(&[(name, arguments)]).gets([said(result)])
    }

    fn rounds(self, count: usize) -> Self {
        (0..count).fold(self, |going, _| going.round("look", r#"{"at":1}"#, "nothing"))
    }

    /// What the model is told beside the newest results.
    fn notes(&self) -> Vec<Option<String>> {
        let messages = prompt::messages(&self.told.journal);
        match messages.last() {
            Some(PromptMessage::Results(results)) => results.iter().map(prompt::PromptResult::note).collect(),
            _ => Vec::new(),
        }
    }

    fn is_told(&self) -> bool {
        self.notes().iter().any(Option::is_some)
    }

    fn asks_people(&self) -> bool {
        self.told.turn().waiting().any(|(_, question)| question.reason == QuestionReason::Loop)
    }

    fn decides(self, verdict: Verdict) -> Self {
        let call = self.told.turn().waiting().next().expect("it waits").0.id;
        self.take(vec![Entry::Decision(decision(call, verdict))])
    }

    fn ended(&self) -> Option<&TurnStatus> {
        self.told.turn().ended()
    }
}

fn said(text: &str) -> ToolResult {
    ToolResult::of(call_id(3, 0), Outcome::Success, text)
}

fn everything_runs() -> TurnSettings {
    with_mode(ApproveMode::All)
}

fn limits(loops: LoopLimits) -> TurnSettings {
    TurnSettings { loops, ..everything_runs() }
}

#[test]
fn the_third_same_result_is_shown_with_a_note_stored_in_the_same_append() {
    let going = Going::new(settings()).rounds(2);
    assert!(!going.is_told());
    let going = going.rounds(1);
    let kinds: Vec<&str> = going.newest.iter().map(Entry::kind).collect();
    assert_eq!((kinds, &going.next), (vec!["result", "nudged"], &Next::CallModel { allow_calls: true }));
    let note = going.notes().remove(0).expect("it is told");
    assert!(note.contains("3 times in a row") && note.contains("stopped if it comes 5 more times"), "{note}");
    let before = prompt::messages(&going.told.journal).len();
    let later = going.rounds(1);
    let shown = prompt::messages(&later.told.journal);
    let Some(PromptMessage::Results(results)) = shown.get(before - 1) else { panic!("{shown:?}") };
    assert_eq!(results[0].note(), Some(note), "what was said stays as it was said");
}

#[test]
fn a_cycle_of_rounds_is_a_loop_and_is_told_when_it_is_whole() {
    let cycle = |going: Going| going.round("a", "{}", "1").round("b", "{}", "2").round("c", "{}", "3");
    let twice = cycle(cycle(Going::new(settings())));
    let thrice = cycle(twice.clone());
    assert!(!twice.is_told() && thrice.is_told());
    assert!(!twice.round("a", "{}", "1").is_told(), "the third is not whole");
    let note = thrice.notes().remove(0).expect("it is told");
    assert!(note.contains("the same 3 rounds of calls 3 times in a row"), "{note}");
}

#[test]
fn a_result_that_changed_is_progress() {
    let going = (0..20).fold(Going::new(settings()), |going, number| going.round("look", "{}", &number.to_string()));
    assert!(!going.is_told() && going.told.turn().repetition().is_none());
}

#[test]
fn other_calls_in_between_are_no_loop() {
    let going = (0..12).fold(Going::new(settings()), |going, number| {
        going.round("test", "{}", "1 failed").round("edit", &format!(r#"{{"line":{number}}}"#), "done")
    });
    assert!(!going.is_told() && going.ended().is_none());
}

#[test]
fn the_same_arguments_may_be_written_in_another_way() {
    let going = Going::new(settings());
    let going = going.round("look", r#"{"a":1,"b":{"c":[1.5,null],"d":"x"}}"#, "no");
    let going = going.round("look", r#"{ "b": {"d":"x", "c":[1.5, null]}, "a": 1.0 }"#, "no");
    assert!(going.round("look", r#"{"a":1,"b":{"c":[1.5,null],"d":"\u0078"}}"#, "no").is_told());
    let none = Going::new(settings()).round("look", "", "no").round("look", "{}", "no").round("look", " { } ", "no");
    assert!(none.is_told());
    let other = Going::new(settings()).round("look", r#"{"a":1}"#, "no").round("look", r#"{"a":"1"}"#, "no");
    assert!(other.told.turn().repetition().is_none());
}

#[test]
fn how_long_it_took_is_no_part_of_a_result() {
    let took = |going: Going, duration: u32| {
        let structured = json!({"exit_code": 1, "duration_ms": duration});
        let result = ToolResult { structured_content: Some(structured.clone()), ..said(&structured.to_string()) };
        going.asks(&[("run", "{}")]).gets([ToolResult { duration_ms: Some(u64::from(duration)), ..result }])
    };
    assert!([5, 7, 6].into_iter().fold(Going::new(settings()), took).is_told());
}

#[test]
fn failures_of_one_kind_are_the_same_whatever_their_words() {
    let fails = |kind| {
        move |going: Going, words: &str| going.asks(&[("get", "{}")]).gets([ToolResult::failed(call_id(3, 0), kind, words)])
    };
    let failed = ["request 1", "request 2"].into_iter().fold(Going::new(settings()), fails(ToolErrorKind::ExecutionFailed));
    assert!(fails(ToolErrorKind::ExecutionFailed)(failed.clone(), "request 3").is_told());
    assert!(!fails(ToolErrorKind::Timeout)(failed, "request 3").is_told());
}

#[test]
fn what_comes_in_one_message_is_one_round_in_whatever_order() {
    let (a, b) = (("a", "{}"), ("b", "{}"));
    let going = Going::new(settings()).asks(&[a, a, a, a, a, a, a, a, a]).gets((0..9).map(|_| said("x")));
    assert!(!going.is_told() && going.ended().is_none(), "nothing was seen before the last was asked for");
    let going = Going::new(settings()).asks(&[a, b]).gets([said("1"), said("2")]);
    let going = going.asks(&[b, a]).gets([said("2"), said("1")]).asks(&[a, b]).gets([said("1"), said("2")]);
    assert_eq!(going.notes().iter().filter(|note| note.is_some()).count(), 1);
}

#[test]
fn what_is_polled_is_not_counted() {
    let going = (0..12).fold(Going::polling("poll"), |going, _| going.round("poll", "{}", "not yet"));
    assert!(!going.is_told() && going.ended().is_none());
    let mixed = (0..3).fold(Going::polling("poll"), |going, _| {
        going.round("poll", "{}", "not yet").asks(&[("look", "{}"), ("poll", "{}")]).gets([said("nothing"), said("not yet")])
    });
    assert_eq!(mixed.notes().iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_person_is_asked_about_the_sixth_and_the_turn_stops_after_the_eighth() {
    let going = Going::new(settings()).rounds(5).asks(&[("look", r#"{"at":1}"#)]);
    assert!(going.asks_people() && going.next == Next::Parked);
    let rule = going.told.turn().waiting().next().and_then(|(_, question)| question.rule.clone());
    assert_eq!(rule.as_deref(), Some("the model repeats itself: this 5 times in a row, with the same result"));
    let going = going.decides(Verdict::Allow).gets([said("nothing")]).rounds(2);
    let Some(TurnStatus::Stopped { reason: StopReason::Loop, summary: Some(summary) }) = going.ended() else {
        panic!("{:?}", going.ended());
    };
    assert_eq!(
        summary,
        "The model made the same call 8 times in a row, with the same result each time:\n- look {\"at\":1}: success: nothing"
    );
}

#[test]
fn what_a_person_declines_counts_on_and_is_asked_about_again() {
    let declined = |going: Going| going.asks(&[("look", r#"{"at":1}"#)]).decides(Verdict::Deny);
    let going = declined(Going::new(settings()).rounds(5));
    assert!(going.is_told(), "{:?}", going.notes());
    let going = declined(declined(going));
    assert!(matches!(going.ended(), Some(TurnStatus::Stopped { reason: StopReason::Loop, .. })), "{:?}", going.ended());
}

#[test]
fn something_else_after_the_question_is_no_loop() {
    let going = Going::new(settings()).rounds(5).round("other", "{}", "found");
    assert!(!going.asks_people() && going.told.turn().repetition().is_none());
    let again = going.rounds(5).asks(&[("look", r#"{"at":1}"#)]);
    assert!(again.asks_people());
}

#[test]
fn each_round_of_a_cycle_that_goes_on_is_asked_about_until_somebody_lets_it() {
    let cycle = |going: Going| going.round("a", "{}", "1").round("b", "{}", "2");
    let going = (0..5).fold(Going::new(settings()), |going, _| cycle(going));
    let going = going.asks(&[("a", "{}")]);
    assert!(going.asks_people());
    let going = going.decides(Verdict::Allow).gets([said("1")]).asks(&[("b", "{}")]);
    assert!(!going.asks_people());
}

#[test]
fn where_nobody_is_asked_it_goes_on_to_the_stop() {
    for mode in [ApproveMode::All, ApproveMode::ReadOnly, ApproveMode::None] {
        let going = Going::new(with_mode(mode)).rounds(7);
        assert!(going.ended().is_none() && !going.asks_people());
        assert!(matches!(going.rounds(1).ended(), Some(TurnStatus::Stopped { reason: StopReason::Loop, .. })));
    }
}

#[test]
fn what_the_rules_deny_is_not_asked_about_and_stops_too() {
    let going = (0..7).fold(Going::new(settings()), |going, _| going.asks(&[("forbidden", "{}")]));
    assert!(!going.asks_people() && going.ended().is_none());
    let going = going.asks(&[("forbidden", "{}")]);
    assert!(matches!(going.ended(), Some(TurnStatus::Stopped { reason: StopReason::Loop, .. })));
}

#[test]
fn each_can_be_off() {
    let unnoticed = Going::new(limits(LoopLimits::OFF)).rounds(20);
    assert!(!unnoticed.is_told() && unnoticed.ended().is_none());
    let stop = Going::new(limits(LoopLimits { stop: Some(2), ..LoopLimits::OFF })).rounds(1);
    assert!(stop.ended().is_none() && stop.rounds(1).ended().is_some());
    let told = Going::new(limits(LoopLimits { stop: None, ..LoopLimits::default() })).rounds(20);
    assert!(told.is_told() && told.ended().is_none());
    let words = told.notes().remove(0).expect("it is told");
    assert!(words.contains("20 times") && !words.contains("stopped"), "{words}");
}

#[test]
fn a_person_who_says_something_and_a_retry_begin_anew() {
    let going = Going::new(everything_runs()).rounds(7);
    let said = going.clone().take(vec![user_message("go on", everything_runs())]);
    assert!(said.rounds(7).ended().is_none());
    let stopped = going.rounds(1);
    let status = stopped.ended().cloned().expect("it is over");
    let told = Told { journal: stopped.told.journal };
    assert_eq!(told.refuses(ended(1, status)), "the turn is over");
    let again = Going { told: told.tell(retried(1)), next: Next::Wait, newest: Vec::new() };
    assert!(again.rounds(7).ended().is_none());
}

#[test]
fn the_summary_tells_what_was_tried_before() {
    let going = Going::new(everything_runs()).round("find", r#"{"name":"x"}"#, "two\nlines").round("a", "{}", "1");
    let going = (0..8).fold(going, |going, _| going.asks(&[("b", "{}")]).gets([said(&"long ".repeat(100))]));
    let Some(TurnStatus::Stopped { summary: Some(summary), .. }) = going.ended() else { panic!("{:?}", going.ended()) };
    let lines: Vec<&str> = summary.lines().collect();
    assert_eq!(lines[2..], ["Before that it tried:", "- find {\"name\":\"x\"}: success: two lines", "- a {}: success: 1"]);
    assert!(lines[1].starts_with("- b {}: success: long long") && lines[1].ends_with('…'), "{}", lines[1]);
}

#[test]
fn a_note_beside_a_call_without_a_result_does_not_fit() {
    let told = Told::new(settings()).asks_for(1);
    let nudged = Entry::Control(Control::Nudged { call: call_id(3, 0), text: "again".to_owned() });
    assert_eq!(told.refuses(nudged), "the call that it is told beside has no result yet");
}
