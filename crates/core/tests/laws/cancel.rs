//! A person stops the turn.

use turnwright_core::{
    CallNeed, Completion, Control, CutOffCause, Entry, FinishReason, QuestionReason, Step, SyntheticResult, TurnStatus, Verdict,
};

use crate::told::{
    Told, call_id, cancel, claimed, ended, failed, message, question, seq, settings, started, success, text, tool_call,
};

fn needs(told: &Told) -> Vec<CallNeed> {
    match told.step() {
        Step::Calls(pending) => pending.into_iter().map(|pending| pending.need).collect(),
        step => panic!("{step:?} instead of calls"),
    }
}

#[test]
fn a_cancel_before_the_first_answer_ends_the_turn() {
    let told = Told::new(settings()).tell(cancel(1));
    assert_eq!((told.step(), told.turn().is_cancelling()), (Step::End(TurnStatus::Cancelled), true));
    let told = told.tell(ended(1, TurnStatus::Cancelled));
    assert!(!told.turn().is_cancelling());
}

#[test]
fn a_cancel_answers_what_did_not_start_and_waits_for_what_did() {
    let [undecided, asked, allowed, running] = [0, 1, 2, 3].map(|index| call_id(3, index));
    let told = Told::new(settings()).asks_for(4).tell(question(asked, QuestionReason::Approval));
    let told = told.decides(allowed, Verdict::Allow).decides(running, Verdict::Allow).tell(started(running, false));
    let told = told.tell(cancel(1));
    let cancelled = CallNeed::Answer(SyntheticResult::Cancelled);
    assert_eq!(needs(&told), [cancelled, cancelled, cancelled, CallNeed::Wait]);
    let told = told.tell(failed(undecided)).tell(failed(asked)).tell(failed(allowed)).tell(success(running));
    assert_eq!(told.step(), Step::End(TurnStatus::Cancelled));
}

#[test]
fn a_cancel_interrupts_what_a_driver_that_is_gone_had_started() {
    let [replayable, unsafe_call, asked] = [0, 1, 2].map(|index| call_id(3, index));
    let mut told = Told::new(settings()).asks_for(3);
    for (id, is_replayable) in [(replayable, true), (unsafe_call, false), (asked, false)] {
        told = told.decides(id, Verdict::Allow).tell(started(id, is_replayable));
    }
    let told = told.tell(claimed(2)).tell(question(asked, QuestionReason::UnknownOutcome)).tell(cancel(1));
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Interrupted); 3]);
}

#[test]
fn a_cancel_ends_a_parked_turn() {
    let id = call_id(3, 0);
    let told = Told::new(settings()).asks_for(1).tell(question(id, QuestionReason::Approval));
    let told = told.tell(Entry::Control(Control::Suspended)).tell(cancel(1));
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Cancelled)]);
    assert_eq!(told.tell(failed(id)).step(), Step::End(TurnStatus::Cancelled));
}

#[test]
fn a_cancel_of_another_turn_does_not_fit() {
    assert_eq!(Told::new(settings()).refuses(cancel(2)), "the cancel is for another turn");
    let told = Told::new(settings()).answers("hi").tell(ended(1, TurnStatus::Completed));
    assert_eq!(told.refuses(cancel(1)), "the turn is over");
}

#[test]
fn a_user_message_after_a_cancel_is_answered_once_everything_stopped() {
    let running = call_id(3, 0);
    let told = Told::new(settings()).asks_for(1).decides(running, Verdict::Allow).tell(started(running, false));
    let told = told.tell(cancel(1)).user("do this instead");
    assert_eq!((needs(&told), told.turn().is_cancelling()), (vec![CallNeed::Wait], true));
    let told = told.tell(success(running));
    assert_eq!((told.step(), told.turn().is_cancelling()), (Step::CallModel { allow_calls: true }, false));
    let told = told.asks_for(1);
    assert_eq!(needs(&told), [CallNeed::Decide], "the calls of the new answer are not cancelled");
    let told = told.runs(call_id(9, 0)).answers("done");
    assert_eq!(told.step(), Step::End(TurnStatus::Completed));
}

#[test]
fn a_model_call_that_was_in_flight_when_the_cancel_came_is_to_stop() {
    let told = Told::new(settings()).tell(cancel(1)).user("do this instead");
    assert!(told.turn().cancels(seq(2)), "shown the entries before the cancel");
    assert!(!told.turn().cancels(seq(4)), "shown the cancel and what came after");
    let mut stopped = message(seq(2), FinishReason::Error, vec![text("well"), tool_call("tool", "{}")]);
    stopped.completion = Completion::CutOff(CutOffCause::Cancelled);
    let told = told.tell(Entry::Assistant(stopped));
    assert_eq!(needs(&told), [CallNeed::Answer(SyntheticResult::Cancelled)]);
    assert_eq!(told.tell(failed(call_id(5, 0))).step(), Step::CallModel { allow_calls: true });
}

#[test]
fn a_cancel_after_that_user_message_ends_the_turn() {
    let told = Told::new(settings()).tell(cancel(1)).user("do this instead").tell(cancel(1));
    assert_eq!(told.step(), Step::End(TurnStatus::Cancelled));
}

#[test]
fn a_cancelled_turn_may_be_retried() {
    let told = Told::new(settings()).tell(cancel(1)).tell(ended(1, TurnStatus::Cancelled)).tell(crate::told::retried(1));
    assert_eq!((told.step(), told.turn().is_cancelling()), (Step::CallModel { allow_calls: true }, false));
}
