//! What comes next: the table of docs/journal.md, row by row.

use serde_json::json;
use turnwright_core::{
    ApproveMode, CallNeed, CutOffCause, Entry, FinishReason, PendingCall, ProviderFailure, ProviderFailureKind, QuestionReason,
    Step, StopReason, SyntheticResult, TaskAccepted, TurnStatus, Verdict, text_of,
};

use crate::told::{
    Told, call_id, cancel, claimed, decision, ended, failed, question, resumed, retried, settings, started, text, tool_call,
    with_mode,
};

const FIRST: u64 = 3;

fn needs(told: &Told) -> Vec<CallNeed> {
    match told.step() {
        Step::Calls(pending) => pending.into_iter().map(|pending| pending.need).collect(),
        step => panic!("{step:?} instead of calls"),
    }
}

fn ask() -> Step {
    Step::CallModel { allow_calls: true }
}

#[test]
fn a_new_turn_asks_the_model() {
    assert_eq!(Told::new(settings()).step(), ask());
}

#[test]
fn a_plain_answer_completes_the_turn() {
    assert_eq!(Told::new(settings()).answers("hi").step(), Step::End(TurnStatus::Completed));
}

#[test]
fn a_turn_that_is_over_needs_nothing() {
    let told = Told::new(settings()).answers("hi").tell(ended(1, TurnStatus::Completed));
    assert_eq!((told.step(), told.turn().holder()), (Step::Done, None));
}

#[test]
fn a_failed_model_call_ends_the_turn_as_failed() {
    let failure = ProviderFailure::new(ProviderFailureKind::Auth, "the key is wrong");
    let told = Told::new(settings()).tell(Entry::Control(turnwright_core::Control::Failed(failure.clone())));
    assert_eq!(told.step(), Step::End(TurnStatus::Failed { reason: "the key is wrong".to_owned() }));
    assert_eq!(told.turn().failure(), Some(&failure));
}

#[test]
fn a_cut_off_message_never_runs_its_calls_and_fails_the_turn() {
    let told = Told::new(settings()).gets_cut_off_by_provider(vec![text("let me"), tool_call("tool", "{\"a")]);
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::CutOff)]);
    let told = told.tell(failed(call_id(FIRST, 0)));
    let reason = "the provider's answer ended before its end".to_owned();
    assert_eq!(told.step(), Step::End(TurnStatus::Failed { reason }));
}

#[test]
fn a_message_that_its_provider_ends_with_an_error_never_runs_its_calls_and_fails_the_turn() {
    let told = Told::new(settings()).says(FinishReason::Error, vec![tool_call("tool", "{}")]);
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::CutOff)]);
    let told = told.tell(failed(call_id(FIRST, 0)));
    assert!(matches!(told.step(), Step::End(TurnStatus::Failed { .. })));
}

#[test]
fn a_message_that_a_person_cut_off_never_runs_its_calls_and_cancels_the_turn() {
    let told = Told::new(settings()).gets_cut_off(CutOffCause::Cancelled, vec![tool_call("tool", "{}")]);
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Cancelled)]);
    assert_eq!(told.tell(failed(call_id(FIRST, 0))).step(), Step::End(TurnStatus::Cancelled));
}

#[test]
fn a_message_at_its_length_limit_runs_none_of_its_calls_and_the_model_is_asked_once_more() {
    let told = Told::new(settings()).says(FinishReason::Length, vec![tool_call("tool", "{}"), tool_call("tool", "{\"a")]);
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::LengthLimit); 2]);
    let told = told.tell(failed(call_id(FIRST, 0))).tell(failed(call_id(FIRST, 1)));
    assert_eq!(told.step(), ask());
    let told = told.says(FinishReason::Length, vec![tool_call("tool", "{\"a")]).tell(failed(call_id(6, 0)));
    let reason = "the model reached its output limit twice in the middle of its tool calls".to_owned();
    assert_eq!(told.step(), Step::End(TurnStatus::Failed { reason }));
}

#[test]
fn the_length_limit_counts_anew_after_a_message_that_ended_well() {
    let told = Told::new(settings()).says(FinishReason::Length, vec![tool_call("tool", "{}")]).tell(failed(call_id(FIRST, 0)));
    let told = told.asks_for(1).runs(call_id(5, 0));
    let told = told.says(FinishReason::Length, vec![tool_call("tool", "{}")]).tell(failed(call_id(9, 0)));
    assert_eq!(told.step(), ask());
}

#[test]
fn a_text_at_its_length_limit_completes_the_turn() {
    let told = Told::new(settings()).says(FinishReason::Length, vec![text("once upon")]);
    assert_eq!(told.step(), Step::End(TurnStatus::Completed));
}

#[test]
fn a_refusal_stops_the_turn_and_runs_no_call() {
    for reason in [FinishReason::Refusal, FinishReason::ContentFilter] {
        let told = Told::new(settings()).says(reason, vec![tool_call("tool", "{}")]);
        assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Refused)]);
        let told = told.tell(failed(call_id(FIRST, 0)));
        assert_eq!(told.step(), Step::End(TurnStatus::stopped(StopReason::Refused)));
    }
}

#[test]
fn a_pause_of_the_provider_asks_the_model_again() {
    assert_eq!(Told::new(settings()).says(FinishReason::Pause, vec![text("searching")]).step(), ask());
}

#[test]
fn a_call_without_decision_goes_to_the_policy() {
    let told = Told::new(settings()).asks_for(2);
    let pending = |index| PendingCall { call: call_id(FIRST, index), need: CallNeed::Decide };
    assert_eq!(told.step(), Step::Calls(vec![pending(0), pending(1)]));
}

#[test]
fn calls_that_say_stop_run_all_the_same() {
    let told = Told::new(settings()).says(FinishReason::Stop, vec![tool_call("tool", "{}")]);
    assert_eq!(needs(&told), [CallNeed::Decide]);
    assert_eq!(told.runs(call_id(FIRST, 0)).step(), ask());
}

#[test]
fn an_allowed_call_runs_while_another_waits_for_a_person_and_then_the_turn_parks() {
    let asked = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(2).tell(question(asked, QuestionReason::Approval));
    let told = told.decides(call_id(FIRST, 1), Verdict::Allow);
    assert_eq!(told.step(), Step::Calls(vec![PendingCall { call: call_id(FIRST, 1), need: CallNeed::Start }]));
    let told = told.tell(started(call_id(FIRST, 1), false));
    assert_eq!(needs(&told), [CallNeed::Wait]);
    let told = told.tell(crate::told::success(call_id(FIRST, 1)));
    assert_eq!(told.step(), Step::Park);
    let waiting: Vec<_> = told.turn().waiting().map(|(call, question)| (call.id, question.reason)).collect();
    assert_eq!(waiting, [(asked, QuestionReason::Approval)]);
}

#[test]
fn a_denied_call_is_answered_and_does_not_run() {
    let told = Told::new(settings()).asks_for(1).decides(call_id(FIRST, 0), Verdict::Deny);
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Denied)]);
}

#[test]
fn a_call_that_runs_is_waited_for() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false));
    assert_eq!(needs(&told), [CallNeed::Wait]);
}

#[test]
fn a_replayable_call_of_a_driver_that_is_gone_runs_again_with_the_same_attempt() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, true));
    let before = told.turn().call(id).map(|call| call.attempt);
    let told = told.tell(claimed(2)).tell(resumed(1));
    assert_eq!(needs(&told), [CallNeed::Start]);
    let told = told.tell(started(id, true));
    assert_eq!(needs(&told), [CallNeed::Wait]);
    assert_eq!((before, told.turn().call(id).map(|call| call.attempt)), (Some(1), Some(1)));
}

#[test]
fn an_unsafe_call_of_a_driver_that_is_gone_is_asked_about() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false)).tell(claimed(2));
    assert_eq!(needs(&told), [CallNeed::Ask(QuestionReason::UnknownOutcome)]);
    assert_eq!(told.refuses(started(id, false)), "the call was started before and may not run twice");
    let told = told.tell(question(id, QuestionReason::UnknownOutcome));
    assert_eq!(told.step(), Step::Park);
    let happened = told.clone().decides(id, Verdict::Happened);
    assert_eq!(needs(&happened), [CallNeed::Answer(SyntheticResult::Happened)]);
    let skipped = told.clone().decides(id, Verdict::Skip);
    assert_eq!(needs(&skipped), [CallNeed::Answer(SyntheticResult::Skipped)]);
    let again = told.decides(id, Verdict::RunAgain);
    assert_eq!(needs(&again), [CallNeed::Start]);
    assert_eq!(again.turn().call(id).map(|call| call.attempt), Some(2), "another decision, another idempotency key");
}

#[test]
fn a_call_that_may_have_run_is_not_said_not_to_have_when_it_does_not_run_again() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false)).tell(claimed(2));
    let again = told.tell(question(id, QuestionReason::UnknownOutcome)).decides(id, Verdict::RunAgain);
    assert_eq!(needs(&again.clone().tell(cancel(1))), [CallNeed::Answer(SyntheticResult::Interrupted)]);

    let asked = again.tell(question(id, QuestionReason::DefinitionChanged));
    assert_eq!(needs(&asked.clone().tell(cancel(1))), [CallNeed::Answer(SyntheticResult::Interrupted)]);
    let denied = asked.decides(id, Verdict::Deny);
    assert_eq!(needs(&denied), [CallNeed::Answer(SyntheticResult::Denied)]);
    let result = SyntheticResult::Denied.result(&denied.turn().call(id).unwrap());
    let said = "This call was denied by the user. It did not run again; before that it may or may not have happened.";
    assert_eq!(text_of(&result.content), said);
}

#[test]
fn a_call_whose_source_did_not_call_it_did_not_run() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false));
    let asked = told.tell(question(id, QuestionReason::DefinitionChanged));
    assert_eq!(needs(&asked.clone().tell(cancel(1))), [CallNeed::Answer(SyntheticResult::Cancelled)]);
    assert_eq!(asked.turn().call(id).map(|call| call.starts), Some(0));
}

#[test]
fn an_unsafe_call_of_a_driver_that_is_gone_is_interrupted_where_nobody_can_be_asked() {
    let id = call_id(FIRST, 0);
    for mode in [ApproveMode::All, ApproveMode::None, ApproveMode::ReadOnly] {
        let told = Told::new(with_mode(mode)).asks_for(1).decides(id, Verdict::Allow);
        let told = told.tell(started(id, false)).tell(claimed(2));
        assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Interrupted)]);
    }
}

#[test]
fn the_real_result_of_a_call_settles_the_question_whether_it_happened() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false)).tell(claimed(2));
    let told = told.tell(question(id, QuestionReason::UnknownOutcome)).tell(crate::told::success(id));
    assert_eq!((told.step(), told.turn().waiting().count()), (ask(), 0));
}

#[test]
fn a_clients_call_waits_for_its_result_and_takes_it_once() {
    let id = call_id(FIRST, 0);
    let told = Told::new(settings()).asks_for(2).tell(question(id, QuestionReason::ClientTool)).runs(call_id(FIRST, 1));
    assert_eq!(told.step(), Step::Park);
    let refused = "the call is its client's to run: decide deny, or wait for its result";
    assert_eq!(told.refuses(Entry::Decision(decision(id, Verdict::Allow))), refused);
    assert_eq!(needs(&told.clone().decides(id, Verdict::Deny)), [CallNeed::Answer(SyntheticResult::Denied)]);
    assert_eq!(needs(&told.clone().tell(cancel(1))), [CallNeed::Answer(SyntheticResult::Cancelled)]);
    let given = told.tell(crate::told::success(id));
    assert_eq!(given.step(), ask());
    assert_eq!(given.refuses(crate::told::success(id)), "the call has its result");
}

#[test]
fn answered_calls_ask_the_model() {
    assert_eq!(Told::new(settings()).asks_for(1).runs(call_id(FIRST, 0)).step(), ask());
}

#[test]
fn a_turn_that_was_resumed_three_times_without_getting_further_fails() {
    let told = Told::new(settings());
    let told = told.tell(claimed(2)).tell(resumed(1)).tell(claimed(3)).tell(resumed(2));
    assert_eq!((told.step(), told.turn().next_resumption()), (ask(), 3));
    let told = told.tell(claimed(4)).tell(resumed(3));
    let reason = "the turn was resumed 3 times without getting further".to_owned();
    assert_eq!(told.step(), Step::End(TurnStatus::Failed { reason }));
}

#[test]
fn a_call_that_takes_its_host_down_each_time_fails_the_turn() {
    let (down, next) = (call_id(FIRST, 0), call_id(FIRST, 1));
    let mut told = Told::new(settings()).asks_for(2).decides(down, Verdict::Allow).tell(started(down, true));
    for epoch in 2..=3 {
        let count = told.turn().next_resumption();
        told = told.tell(claimed(epoch)).tell(resumed(count)).tell(started(down, true));
    }
    let count = told.turn().next_resumption();
    assert_eq!(count, 3, "starting again is no progress");
    let told = told.tell(claimed(4)).tell(resumed(count));
    let answers = [SyntheticResult::Interrupted, SyntheticResult::GivenUp].map(CallNeed::Answer);
    assert_eq!(needs(&told), answers);
    let told = told.tell(failed(down));
    assert_eq!(needs(&told), answers[1..], "the answer of one call is no progress");
    let told = told.tell(failed(next));
    assert!(matches!(told.step(), Step::End(TurnStatus::Failed { .. })), "{:?}", told.step());
}

#[test]
fn a_task_that_its_source_goes_on_with_is_waited_for_over_any_number_of_restarts() {
    let id = call_id(FIRST, 0);
    let task = || Entry::TaskAccepted(TaskAccepted { call: id, source: "shop".to_owned(), task: json!({"taskId": "t"}) });
    let mut told = Told::new(settings()).asks_for(1).decides(id, Verdict::Allow).tell(started(id, false)).tell(task());
    assert_eq!(told.refuses(task()), "the call is a task already");
    for epoch in 2..=9 {
        let count = told.turn().next_resumption();
        assert_eq!(count, 1, "epoch {epoch}");
        told = told.tell(claimed(epoch)).tell(resumed(count));
        assert_eq!(needs(&told), [CallNeed::Start]);
        told = told.tell(started(id, false)).tell(task());
        assert_eq!(told.refuses(task()), "the call is a task already");
    }
    // A source that says nothing any more is given up like all that takes its host down.
    for epoch in 10..=12 {
        let count = told.turn().next_resumption();
        told = told.tell(claimed(epoch)).tell(resumed(count));
    }
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Interrupted)]);
}

#[test]
fn real_progress_and_a_retry_count_resumptions_anew() {
    let told = Told::new(settings()).tell(claimed(2)).tell(resumed(1)).asks_for(1);
    assert_eq!(told.turn().next_resumption(), 1);
    let given_up = Told::new(settings()).tell(claimed(2)).tell(resumed(3));
    let told = given_up.tell(ended(1, TurnStatus::Failed { reason: String::new() })).tell(retried(1));
    assert_eq!((told.step(), told.turn().next_resumption(), told.turn().holder()), (ask(), 1, None));
}

#[test]
fn a_retry_asks_again_and_drops_the_calls_of_the_cut_off_message() {
    let told = Told::new(settings()).gets_cut_off_by_provider(vec![tool_call("tool", "{}")]).tell(failed(call_id(FIRST, 0)));
    let told = told.tell(ended(1, TurnStatus::Failed { reason: String::new() })).tell(retried(1));
    assert_eq!((told.step(), told.turn().calls().count(), told.turn().failure()), (ask(), 0, None));
    assert!(told.journal.is_hidden(turnwright_core::MessageId(crate::told::seq(FIRST))));
}
