//! What a failed model call leads to: the next model of the chain, a shorter conversation, or the end of the turn.

use turnwright_core::prompt::{self, PromptMessage};
use turnwright_core::{
    ApproveMode, CallId, Compacted, Control, Entry, FinishReason, ModelRef, Next, Plan, ProviderFailure,
    ProviderFailureKind as Kind, Ruler, Ruling, StartRuling, Step, TurnSettings, TurnStatus, Usage, compaction, plan, text_of,
};

use crate::told::{Told, call_id, cancel, ended, hidden, retried, seq, settings, text, tool_call, user_message, with_mode};

fn failed(kind: Kind) -> Entry {
    Entry::Control(Control::Failed(ProviderFailure::new(kind, "it failed")))
}

fn compacted(through: u64, summary: &str) -> Entry {
    Entry::Control(Control::Compacted(Compacted {
        turn: Some(turnwright_core::TurnId(seq(1))),
        through: seq(through),
        summary: summary.to_owned(),
        origin: None,
        usage: Usage::default(),
    }))
}

fn with_chain() -> TurnSettings {
    TurnSettings { fallback: vec![ModelRef::new("b", "two"), ModelRef::new("c", "three")], ..settings() }
}

fn model(told: &Told) -> String {
    told.turn().model().to_string()
}

fn ask() -> Step {
    Step::CallModel { allow_calls: true }
}

fn fails(reason: &str) -> Step {
    Step::End(TurnStatus::Failed { reason: reason.to_owned() })
}

/// Each message of the prompt in a few words.
pub(crate) fn shown(told: &Told) -> Vec<String> {
    let messages = prompt::messages(&told.journal).into_iter();
    let messages = messages.map(|message| match message {
        PromptMessage::User { seq, message } => {
            let text = text_of(&message.content);
            format!("{seq} user {}", text.rsplit('\n').next().unwrap_or_default())
        }
        PromptMessage::Context { seq, context } => format!("{seq} context {}", context.text),
        PromptMessage::Assistant { seq, message } => format!("{seq} assistant {}", message.text()),
        PromptMessage::Results(results) => format!("{} results", results.len()),
    });
    messages.collect()
}

struct NoRules;

impl Ruler for NoRules {
    fn rule(&mut self, _: &turnwright_core::CallView<'_>) -> Ruling {
        Ruling::Deny { rule: "none".to_owned() }
    }

    fn start(&mut self, _: &turnwright_core::CallView<'_>) -> StartRuling {
        StartRuling::Later
    }
}

fn planned(told: &Told) -> Plan {
    plan(&told.journal, Vec::new(), &mut NoRules).expect("nothing that does not fit")
}

#[test]
fn an_outage_moves_on_along_the_chain_to_its_end() {
    let told = Told::new(with_chain());
    assert_eq!(model(&told), "scripted/model");
    let told = told.tell(failed(Kind::Overloaded));
    assert_eq!((told.step(), model(&told)), (ask(), "b/two".to_owned()));
    let told = told.tell(failed(Kind::Timeout));
    assert_eq!((told.step(), model(&told)), (ask(), "c/three".to_owned()));
    let told = told.tell(failed(Kind::RateLimit));
    assert_eq!(told.step(), fails("it failed; failed before it: `scripted/model`, `b/two`"));
    assert_eq!(told.turn().failure().map(|failure| failure.kind), Some(Kind::RateLimit));
}

#[test]
fn every_kind_of_failure_moves_on_or_does_not() {
    let kinds = [
        (Kind::RateLimit, true),
        (Kind::Overloaded, true),
        (Kind::Server, true),
        (Kind::Timeout, true),
        (Kind::Connect, true),
        (Kind::CutOff, true),
        (Kind::Auth, false),
        (Kind::Permission, false),
        (Kind::Quota, false),
        (Kind::NotFound, false),
        (Kind::TooLarge, false),
        (Kind::ContentFilter, false),
        (Kind::InvalidRequest, false),
        (Kind::Malformed, false),
        (Kind::Limit, false),
        (Kind::Unavailable, false),
    ];
    for (kind, moves_on) in kinds {
        let told = Told::new(with_chain()).tell(failed(kind));
        assert_eq!(told.step() == ask(), moves_on, "{kind:?}");
    }
}

#[test]
fn after_content_nothing_is_asked_silently() {
    let mut failure = ProviderFailure::new(Kind::Overloaded, "it failed");
    failure.after_content = true;
    let told = Told::new(with_chain()).tell(Entry::Control(Control::Failed(failure)));
    assert_eq!(told.step(), fails("it failed"));
    let told = Told::new(with_chain()).gets_cut_off_by_provider(vec![text("half")]);
    assert!(matches!(told.step(), Step::End(TurnStatus::Failed { .. })));
}

#[test]
fn the_model_that_answered_is_kept_for_the_turn_and_a_retry_begins_with_the_first() {
    let told = Told::new(with_chain()).tell(failed(Kind::Server)).asks_for(1).runs(call_id(4, 0));
    assert_eq!((told.step(), model(&told)), (ask(), "b/two".to_owned()));
    let told = told.tell(failed(Kind::Auth)).tell(ended(1, TurnStatus::Failed { reason: String::new() })).tell(retried(1));
    assert_eq!((told.step(), model(&told)), (ask(), "scripted/model".to_owned()));
}

#[test]
fn a_stop_comes_before_the_next_model() {
    let told = Told::new(with_chain()).tell(cancel(1)).tell(failed(Kind::Overloaded));
    assert_eq!(told.step(), Step::End(TurnStatus::Cancelled));
}

#[test]
fn a_conversation_that_is_too_long_is_compacted_once_before_an_answer() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).tell(failed(Kind::ContextLength));
    assert_eq!(told.step(), Step::Compact);
    assert_eq!(planned(&told), Plan { entries: Vec::new(), run: Vec::new(), next: Next::Compact });
    let told = told.tell(compacted(3, "a summary"));
    assert_eq!(told.step(), ask());
    let told = told.tell(failed(Kind::ContextLength));
    assert_eq!(told.step(), fails("it failed; its beginning was put into a summary, and it is still too long"));
}

#[test]
fn a_summary_that_another_overtook_while_it_was_made_is_not_stored() {
    let too_long = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).asks_for(1);
    let newest = too_long.journal.last_seq().expect("there is an entry").get();
    let too_long = too_long.runs(call_id(newest, 0)).tell(failed(Kind::ContextLength));
    let planned = |told: &Told| {
        let plan = plan(&told.journal, vec![compacted(3, "slow")], &mut NoRules).expect("nothing that does not fit");
        assert_eq!(turnwright_core::check(&told.journal, &plan.entries), Ok(()), "what is planned fits");
        (plan.entries.len(), plan.next)
    };
    assert_eq!(planned(&too_long), (1, Next::CallModel { allow_calls: true }));
    let overtaken = too_long.tell(compacted(newest, "quick"));
    assert_eq!(planned(&overtaken), (0, Next::CallModel { allow_calls: true }));
    // It is too long all the same: what stands for less is no help.
    let again = overtaken.asks_for(1);
    let last = again.journal.last_seq().expect("there is an entry").get();
    let again = again.runs(call_id(last, 0)).tell(failed(Kind::ContextLength));
    assert_eq!(planned(&again), (0, Next::Compact));
}

#[test]
fn a_conversation_that_becomes_too_long_again_after_an_answer_is_compacted_again() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).tell(failed(Kind::ContextLength));
    let told = told.tell(compacted(3, "a summary")).asks_for(1);
    let newest = told.journal.last_seq().expect("there is an entry").get();
    let told = told.runs(call_id(newest, 0)).tell(failed(Kind::ContextLength));
    assert_eq!(told.step(), Step::Compact);
    assert_eq!(compaction::cut(&told.journal).map(|cut| cut.through), Some(seq(newest)), "it gets further than the first");
    let told = told.tell(compacted(newest, "another"));
    assert_eq!(told.step(), ask());
    assert_eq!(shown(&told), ["1 user hello".to_owned(), format!("{} user another", told.journal.last_seq().expect("it"))]);
    let told = told.tell(failed(Kind::ContextLength));
    assert_eq!(told.step(), fails("it failed; its beginning was put into a summary, and it is still too long"));
}

#[test]
fn what_a_person_says_meanwhile_makes_no_summary_shorter() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).tell(failed(Kind::ContextLength));
    let told = told.tell(compacted(3, "a summary")).user("and this").tell(failed(Kind::ContextLength));
    assert_eq!(told.step(), fails("it failed; its beginning was put into a summary, and it is still too long"));
}

#[test]
fn where_there_is_nothing_to_compact_the_turn_ends_and_says_so() {
    let told = Told::new(settings()).tell(failed(Kind::ContextLength));
    assert_eq!(told.step(), Step::Compact);
    let planned = planned(&told);
    assert!(
        matches!(&planned.next, Next::Ended(TurnStatus::Failed { reason }) if reason.starts_with("it failed; there is nothing before")),
        "{planned:?}"
    );
    let told = planned.entries.into_iter().fold(told, Told::tell);
    assert_eq!(told.turn().failure().map(|failure| failure.kind), Some(Kind::ContextLength));
    assert_eq!(told.tell(retried(1)).step(), ask());
}

#[test]
fn a_summary_is_shown_in_the_place_of_what_it_stands_for() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).asks_for(2);
    let told = told.runs(call_id(7, 0)).runs(call_id(7, 1)).tell(failed(Kind::ContextLength));
    let before = told.journal.entries().to_vec();
    let told = told.tell(compacted(3, "a summary"));
    assert_eq!(shown(&told), ["1 user hello", "15 user a summary", "7 assistant ", "2 results"]);
    assert_eq!(told.journal.entries().get(..before.len()), Some(before.as_slice()), "the journal is as it was");
    let told = told.tell(ended(1, TurnStatus::Cancelled)).user("and now");
    let expected = ["1 user hello", "15 user a summary", "7 assistant ", "2 results", "17 user and now"];
    assert_eq!(shown(&told), expected);
}

#[test]
fn a_summary_of_earlier_turns_stands_before_the_open_one() {
    let told = Told::new(settings()).answers("hi").tell(ended(1, TurnStatus::Completed)).user("and now");
    let compacted = Compacted {
        turn: Some(told.turn().id()),
        through: seq(3),
        summary: "a summary".to_owned(),
        origin: None,
        usage: Usage::default(),
    };
    let told = told.tell(Entry::Control(Control::Compacted(compacted)));
    assert_eq!(shown(&told), ["6 user a summary", "5 user and now"]);
}

#[test]
fn a_summary_goes_with_a_message_that_it_may_tell_of() {
    let told = Told::new(settings()).asks_for(1).runs(call_id(3, 0)).tell(compacted(3, "a summary")).tell(hidden(3));
    assert_eq!(shown(&told), ["1 user hello"]);
}

#[test]
fn a_summary_stands_for_nothing_that_comes_later_or_is_open() {
    let told = Told::new(settings()).asks_for(1);
    assert_eq!(told.refuses(compacted(3, "")), "a call has no result yet");
    let told = told.runs(call_id(3, 0));
    assert_eq!(told.refuses(compacted(7, "")), "the summary claims to stand for what comes after it");
}

/// A turn in which a tool was called so often, each result so many bytes long.
pub(crate) fn long_turn(steps: u64, bytes: usize) -> Told {
    let mut told = Told::new(with_mode(ApproveMode::All));
    for step in 0..steps {
        let arguments = format!(r#"{{"step":{step}}}"#);
        told = told.says(FinishReason::ToolCalls, vec![text("I look"), tool_call("read", &arguments)]);
        let id = CallId { message: told.journal.last_seq().expect("there is an entry"), index: 0 };
        let result = turnwright_core::ToolResult::of(id, turnwright_core::Outcome::Success, "x".repeat(bytes));
        told = told.decides(id, turnwright_core::Verdict::Allow).tell(crate::told::started(id, false));
        told = told.tell(Entry::Result(result));
    }
    told
}

#[test]
fn of_one_enormous_turn_the_older_steps_are_compacted() {
    let told = long_turn(8, 10_000);
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    // Of eight steps the newest stay that are a quarter at most: one, since with its call it is a little more than an eighth.
    assert_eq!((cut.turn, cut.through), (Some(told.turn().id()), seq(23)));
    let digest = cut.digest();
    assert!(digest.len() < 12_000, "{}", digest.len());
    assert!(digest.contains("Assistant called read {\"step\":0}\nResult of read (done): xxx"), "{digest}");
    assert!(digest.contains("bytes are left out"), "{digest}");
    let asked = cut.request(&compaction::Asked {
        model: &ModelRef::new("p", "m"),
        facts: &turnwright_core::ModelFacts::default(),
        measure: &|_| None,
    });
    let prompt = asked.prompt();
    assert_eq!((prompt.messages.len(), prompt.tools.len(), prompt.allow_calls), (1, 0, false));
}

#[test]
fn one_enormous_result_is_compacted_with_its_call() {
    let told = long_turn(1, 1_000_000);
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    assert_eq!(cut.through, seq(3));
    assert!(cut.digest().len() < 33_000);
}

#[test]
fn a_huge_message_of_an_earlier_turn_can_be_compacted_though_nothing_answered_it() {
    let told = Told::default().tell(user_message(&"y".repeat(1_000_000), settings()));
    let told = told.tell(failed(Kind::ContextLength)).tell(ended(1, TurnStatus::Failed { reason: String::new() }));
    let told = told.user("never mind");
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    assert_eq!(cut.through, seq(1));
}

#[test]
fn a_digest_of_many_messages_keeps_the_oldest_and_the_newest() {
    let mut told = Told::new(settings());
    for number in 0..2_000 {
        told = told.answers(&format!("answer {number} {}", "z".repeat(150)));
        let turn = told.turn().id().0.get();
        told = told.tell(ended(turn, TurnStatus::Completed)).user(&format!("question {number}"));
    }
    let digest = compaction::cut(&told.journal).expect("there is something to compact").digest();
    assert!(digest.len() <= 32_100, "{}", digest.len());
    let first = digest.find("Assistant: answer 0 ").expect("the first is told");
    let left_out = digest.find("parts are left out").expect("what is left out is counted");
    assert!(first < left_out && digest.lines().count() > 100, "{digest}");
}
