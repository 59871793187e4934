//! What a running call asks of people.

use serde_json::{Value, json};
use turnwright_core::{
    AnswerAction, Answered, AnsweredBy, ApproveMode, CallId, CallNeed, Control, Elicitation, ElicitationId, Elicited, Entry,
    Hold, QuestionReason, Resumption, Settled, Step, SyntheticResult, TurnSettings, TurnStatus, Verdict, Waits, Wants,
};

use crate::told::{Told, call_id, cancel, claimed, failed, question, seq, settings, started, success, user_message, with_mode};

fn settled(key: &str, answer: Answered) -> Settled {
    Settled { ask: form(key).into(), answer: answer.into(), sampled: None }
}

fn form(key: &str) -> Elicitation {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    Elicitation { key: key.to_owned(), message: "Your name?".to_owned(), wants: Wants::Form { schema } }
}

fn parks(call: CallId, keys: &[&str]) -> Entry {
    let asks = keys.iter().map(|key| form(key)).collect();
    let waits = Waits::Parked { resume: json!({"keys": keys}) };
    Entry::Elicited(Elicited { call, source: "shop".to_owned(), asks, waits })
}

fn holds(call: CallId) -> Entry {
    let waits = Waits::Open { until_ms: 600_000 };
    Entry::Elicited(Elicited { call, source: "shop".to_owned(), asks: vec![form("")], waits })
}

fn answered(call: CallId, index: u32, action: AnswerAction) -> Answered {
    Answered { question: ElicitationId { call, index }, action, content: None, by: AnsweredBy::Person, reason: None }
}

fn answer(call: CallId, index: u32) -> Entry {
    Entry::Answered(answered(call, index, AnswerAction::Accept))
}

fn need(need: CallNeed) -> Step {
    Step::Calls(vec![turnwright_core::PendingCall { call: call_id(3, 0), need }])
}

fn open(told: &Told) -> Vec<u32> {
    told.turn().questions().map(|question| question.id.index).collect()
}

/// A call that runs.
fn running() -> Told {
    let id = call_id(3, 0);
    Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false))
}

#[test]
fn a_call_that_parks_to_ask_is_made_again_once_all_is_answered() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a", "b"]));
    assert_eq!((told.step(), open(&told)), (Step::Park, vec![0, 1]));
    assert_eq!(told.turn().resumption(id), None);
    let told = told.tell(Entry::Control(Control::Suspended)).tell(claimed(2)).tell(answer(id, 1));
    assert_eq!((told.step(), open(&told)), (Step::Park, vec![0]));
    let told = told.tell(Entry::Answered(answered(id, 0, AnswerAction::Decline)));
    assert_eq!((told.step(), open(&told)), (need(CallNeed::Start), vec![]));
    let expected = Resumption {
        resume: json!({"keys": ["a", "b"]}).into(),
        answers: vec![
            settled("a", answered(id, 0, AnswerAction::Decline)),
            settled("b", answered(id, 1, AnswerAction::Accept)),
        ],
    };
    assert_eq!(told.turn().resumption(id), Some(expected.clone()));
    let told = told.tell(started(id, false));
    assert_eq!((told.step(), told.turn().resumption(id)), (need(CallNeed::Wait), Some(expected)));
    assert_eq!(told.tell(success(id)).step(), Step::CallModel { allow_calls: true });
}

#[test]
fn it_may_ask_again_and_then_only_the_new_answers_count() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a"])).tell(answer(id, 0)).tell(started(id, false)).tell(parks(id, &["b"]));
    assert_eq!((told.step(), open(&told), told.turn().rounds(id)), (Step::Park, vec![1], 2));
    assert_eq!(told.turn().next_question(id), ElicitationId { call: id, index: 2 });
    let told = told.tell(answer(id, 1));
    let answers = told.turn().resumption(id).expect("it is answered").answers;
    assert_eq!(answers, [settled("b", answered(id, 1, AnswerAction::Accept))]);
}

#[test]
fn a_call_that_holds_its_connection_while_it_asks_does_not_park_the_turn() {
    let id = call_id(3, 0);
    let told = running().tell(holds(id));
    assert_eq!((told.step(), open(&told)), (need(CallNeed::Wait), vec![0]));
    let asked = told.turn().questions().next().expect("it is open");
    assert_eq!((asked.source, asked.hold), ("shop", Hold::Connection { until_ms: 600_000 }));
    let told = told.tell(answer(id, 0));
    let stored = told.turn().answer(ElicitationId { call: id, index: 0 }).map(|answer| answer.action);
    assert_eq!((told.step(), open(&told), stored), (need(CallNeed::Wait), vec![], Some(AnswerAction::Accept)));
    assert_eq!(told.tell(success(id)).step(), Step::CallModel { allow_calls: true });
}

#[test]
fn a_turn_is_held_while_nothing_but_a_person_moves_a_call_that_holds_its_connection() {
    let (one, two) = (call_id(3, 0), call_id(3, 1));
    let alone = running().tell(holds(one));
    assert!(alone.turn().is_held());
    let by = |by| Entry::Answered(Answered { by, ..answered(one, 0, AnswerAction::Decline) });
    for (next, is_held) in [
        (None, true),
        (Some(by(AnsweredBy::Person)), true),
        (Some(by(AnsweredBy::Deadline)), true),
        (Some(by(AnsweredBy::Nobody)), false),
        (Some(by(AnsweredBy::Policy)), false),
    ] {
        assert_eq!(alone.turn().is_held_since(&holds(one), next.as_ref()), is_held, "{next:?}");
    }
    assert!(!alone.turn().is_held_since(&user_message("well?", settings()), None), "it was held before");
    for over in [answer(one, 0), cancel(1), claimed(2), success(one)] {
        assert!(!alone.clone().tell(over.clone()).turn().is_held(), "{over:?}");
    }
    assert!(!running().tell(parks(one, &["a"])).turn().is_held(), "it is parked");

    let both = Told::new(settings()).asks_for(2).decides(one, Verdict::Allow).tell(started(one, false));
    let asked = both.clone().tell(question(two, QuestionReason::Approval)).tell(holds(one));
    assert!(asked.turn().is_held(), "the other waits for a person too");
    let other = both.decides(two, Verdict::Allow).tell(holds(one));
    assert!(!other.turn().is_held(), "the other is about to run");
    let other = other.tell(started(two, false));
    assert!(!other.turn().is_held(), "the other runs");
    assert!(other.tell(success(two)).turn().is_held());
    let one_at_a_time = TurnSettings { parallel_calls: Some(false), ..settings() };
    let told = Told::new(one_at_a_time).asks_for(2).decides(one, Verdict::Allow).decides(two, Verdict::Allow);
    assert!(told.tell(started(one, false)).tell(holds(one)).turn().is_held(), "the other waits for its turn");
}

#[test]
fn what_a_call_asked_over_its_connection_is_closed_when_its_driver_is_gone() {
    let id = call_id(3, 0);
    let told = running().tell(holds(id)).tell(claimed(2));
    assert_eq!((told.step(), open(&told)), (need(CallNeed::Ask(QuestionReason::UnknownOutcome)), vec![]));
    assert_eq!(told.refuses(answer(id, 0)), "the question is closed: the call that asked is over");
    let told = running().tell(holds(id)).tell(success(id));
    assert_eq!(told.refuses(answer(id, 0)), "the question is closed: the call that asked is over");
}

#[test]
fn a_question_is_answered_once() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a", "b"])).tell(answer(id, 0));
    assert_eq!(told.refuses(answer(id, 0)), "the question has its answer");
    assert_eq!(told.refuses(answer(id, 2)), "there is no such question");
    assert_eq!(told.refuses(answer(call_id(3, 1), 0)), "there is no such call in the newest message");
    let told = told.tell(answer(id, 1)).tell(started(id, false)).tell(parks(id, &["c"]));
    assert_eq!(told.refuses(answer(id, 0)), "the question has its answer");
}

#[test]
fn only_a_call_that_runs_can_ask() {
    let id = call_id(3, 0);
    let asked = Told::new(settings()).asks_for(1);
    let allowed = asked.clone().decides(id, Verdict::Allow);
    let parked = running().tell(parks(id, &["a"]));
    let after_takeover = running().tell(claimed(2));
    let done = running().tell(success(id));
    for told in [&asked, &allowed, &parked, &after_takeover, &done] {
        assert_eq!(told.refuses(parks(id, &["a"])), "the call does not run and cannot ask");
        assert_eq!(told.refuses(holds(id)), "the call does not run and cannot ask");
    }
    assert_eq!(running().refuses(parks(id, &[])), "nothing is asked");
    assert_eq!(parked.refuses(started(id, false)), "the call waits for answers");
    assert_eq!(parked.refuses(success(id)), "a call that never ran cannot have succeeded");
}

#[test]
fn a_stop_while_a_question_is_open_ends_the_turn() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a"])).tell(Entry::Control(Control::Suspended)).tell(cancel(1));
    assert_eq!((told.step(), open(&told)), (need(CallNeed::Answer(SyntheticResult::Unanswered)), vec![]));
    assert_eq!(told.tell(failed(id)).step(), Step::End(TurnStatus::Cancelled));
    let held = running().tell(holds(id)).tell(cancel(1));
    assert_eq!((held.step(), open(&held)), (need(CallNeed::Wait), vec![]), "its real result is waited for");
}

#[test]
fn a_call_that_was_made_again_and_lost_is_not_made_a_third_time_by_itself() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a"])).tell(answer(id, 0)).tell(started(id, false)).tell(claimed(2));
    assert_eq!(told.step(), need(CallNeed::Ask(QuestionReason::UnknownOutcome)));
    let told = told.tell(question(id, QuestionReason::UnknownOutcome)).decides(id, Verdict::RunAgain);
    assert_eq!((told.step(), told.turn().resumption(id)), (need(CallNeed::Start), None), "it begins anew and asks anew");
    let told = told.tell(started(id, false)).tell(parks(id, &["a"]));
    assert_eq!((open(&told), told.turn().rounds(id)), (vec![1], 1));
}

#[test]
fn a_replayable_call_that_was_made_again_and_lost_is_made_with_the_same_answers() {
    let id = call_id(3, 0);
    let told = Told::new(with_mode(ApproveMode::All)).asks_for(1).decides(id, Verdict::Allow).tell(started(id, true));
    let told = told.tell(parks(id, &["a"])).tell(answer(id, 0)).tell(started(id, true)).tell(claimed(2));
    assert_eq!(told.step(), need(CallNeed::Start));
    assert_eq!(told.turn().resumption(id).expect("it is kept").answers.len(), 1);
}

#[test]
fn a_tool_that_changed_while_it_waited_for_answers_is_asked_about() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a"]));
    let changed = question(id, QuestionReason::DefinitionChanged);
    assert_eq!(told.refuses(changed.clone()), "the question does not fit the call's state");
    let told = told.tell(answer(id, 0)).tell(changed).decides(id, Verdict::Allow);
    assert_eq!((told.step(), told.turn().resumption(id)), (need(CallNeed::Start), None));
}

#[test]
fn a_tool_that_its_source_finds_changed_as_it_starts_is_asked_about() {
    let id = call_id(3, 0);
    let changed = question(id, QuestionReason::DefinitionChanged);
    assert_eq!(changed.version(), 9);
    let told = running().tell(changed.clone()).decides(id, Verdict::Allow);
    assert_eq!(told.step(), need(CallNeed::Start));
    // It may have been called by a driver that is gone.
    assert_eq!(running().tell(claimed(2)).refuses(changed), "the question does not fit the call's state");
}

#[test]
fn a_message_that_comes_while_a_question_is_open_is_held() {
    let id = call_id(3, 0);
    let told = running().tell(parks(id, &["a"])).tell(user_message("well?", settings()));
    assert_eq!((told.step(), told.journal.last_seq()), (Step::Park, Some(seq(7))));
}

#[test]
fn a_question_id_is_read_as_it_is_written() {
    let id = ElicitationId { call: call_id(13, 0), index: 2 };
    assert_eq!((id.to_string().as_str(), "question_13_0_2".parse()), ("question_13_0_2", Ok(id)));
    for text in ["", "question_13_0", "question_13_0_2_", "question_13_0_02", "question_0_0_0", "call_13_0", "13_0_2"] {
        assert!(text.parse::<ElicitationId>().is_err(), "{text}");
    }
    assert_eq!(serde_json::to_value(id).ok(), Some(Value::from("question_13_0_2")));
}
