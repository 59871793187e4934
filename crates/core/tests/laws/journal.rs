//! What a journal takes, what it refuses, and what it tells.

use std::sync::Arc;

use turnwright_core::{
    Claim, Control, DriverId, Entry, FinishReason, Journal, JournalError, MessageId, ModelRef, ProviderFailure,
    ProviderFailureKind, QuestionReason, StoredEntry, ToolDefinition, TurnId, TurnSettings, TurnStatus, Verdict, check,
};

use crate::told::{
    Told, call_id, claimed, decision, ended, failed, hidden, message, question, retried, seq, settings, started, success, text,
    tool_call, user_message, with_max_steps,
};

fn failure() -> TurnStatus {
    TurnStatus::Failed { reason: "why".to_owned() }
}

fn definition(name: &str) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: "source".to_owned(),
        tool: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: serde_json::json!({"type": "object"}),
        annotations: None,
        declared: turnwright_core::Declared::default(),
    })
}

#[test]
fn what_ran_elsewhere_comes_with_its_results_alone() {
    let imported = || Entry::Control(Control::Imported { source: "chatgpt".to_owned() });
    let asks = || Entry::Assistant(message(seq(2), FinishReason::ToolCalls, vec![tool_call("tool", "{}")]));
    let mut told = Told::default();
    for entry in
        [user_message("hello", settings()), imported(), asks(), success(call_id(3, 0)), ended(1, TurnStatus::Cancelled)]
    {
        told = told.tell(entry);
    }
    assert_eq!(told.journal.open_turn(), None);
    // Taken up here again, it runs like any other turn.
    let mut told = told.tell(retried(1)).tell(claimed(1));
    let error = told.offer(imported()).expect_err("it is this process's now");
    let why = "the turn began here and cannot be taken over from elsewhere";
    assert_eq!(error, JournalError::Misfit { seq: seq(8), kind: "imported", why });
}

#[test]
fn entries_out_of_order_do_not_fit() {
    let mut journal = Journal::default();
    let entry = Arc::new(user_message("hello", settings()));
    let error = journal.apply(StoredEntry { seq: seq(2), at_ms: 0, entry }).expect_err("entry 1 is missing");
    assert_eq!(error, JournalError::OutOfOrder { expected: seq(1), found: seq(2) });
    assert_eq!(error.to_string(), "entry 2 where entry 1 was expected");
    assert_eq!((error.seq(), journal), (seq(2), Journal::default()));
}

#[test]
fn an_entry_that_does_not_fit_names_its_place_its_kind_and_why() {
    let error = Told::default().offer(claimed(1)).expect_err("nothing is there to claim");
    assert_eq!(error, JournalError::Misfit { seq: seq(1), kind: "claimed", why: "no turn is open" });
    assert_eq!(error.to_string(), "entry 1 (claimed) does not fit: no turn is open");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let id = call_id(3, 0);
    let open = Told::new(settings());
    let asked = open.clone().asks_for(1);
    let waiting = asked.clone().tell(question(id, QuestionReason::Approval));
    let allowed = asked.clone().decides(id, Verdict::Allow);
    let running = allowed.clone().tell(started(id, false));
    let unknown = running.clone().tell(claimed(2)).tell(question(id, QuestionReason::UnknownOutcome));
    let answered = running.clone().tell(success(id));
    let over = open.clone().answers("hi").tell(ended(1, TurnStatus::Completed));
    let entry = |verdict| Entry::Decision(decision(id, verdict));
    let saw_itself = Entry::Assistant(message(seq(3), FinishReason::Stop, vec![text("hi")]));
    let cases = [
        (&open, claimed(1), "the claim's epoch is not above the one that holds"),
        (&open, saw_itself, "the message claims to have seen what comes after it"),
        (&open, success(id), "there is no such call in the newest message"),
        (&open, retried(1), "the turn is still open"),
        (&open, retried(2), "only the last turn can be retried"),
        (&open, ended(2, TurnStatus::Completed), "the end is of another turn"),
        (&asked, ended(1, TurnStatus::Completed), "a call has no result yet"),
        (&asked, success(id), "a call that never ran cannot have succeeded"),
        (&asked, started(id, true), "the call is not allowed to run"),
        (&asked, entry(Verdict::RunAgain), "the call's outcome is not unknown: decide allow or deny"),
        (&asked, question(id, QuestionReason::UnknownOutcome), "the question does not fit the call's state"),
        (&asked, question(call_id(3, 1), QuestionReason::Approval), "there is no such call in the newest message"),
        (&waiting, started(id, true), "the call is not allowed to run"),
        (&waiting, question(id, QuestionReason::Approval), "the question does not fit the call's state"),
        (&allowed, entry(Verdict::Deny), "the call does not wait for a decision"),
        (&running, started(id, false), "the call was started before and may not run twice"),
        (&running, entry(Verdict::Allow), "the call does not wait for a decision"),
        (&running, question(id, QuestionReason::UnknownOutcome), "the question does not fit the call's state"),
        (&unknown, entry(Verdict::Allow), "the call's outcome is unknown: decide happened, run_again or skip"),
        (&answered, success(id), "the call has its result"),
        (&answered, failed(id), "the call has its result"),
        (&answered, started(id, true), "the call has its result"),
        (&over, success(id), "the turn is over"),
        (&over, claimed(2), "the turn is over"),
        (&over, ended(1, TurnStatus::Completed), "the turn is over"),
        (&over, retried(1), "the turn is completed"),
        (&over, hidden(2), "there is no such message"),
        (&over, hidden(9), "there is no such message"),
    ];
    for (told, entry, why) in cases {
        assert_eq!(told.refuses(entry.clone()), why, "{entry:?}");
        let error = check(&told.journal, std::slice::from_ref(&entry)).expect_err("check says the same");
        let kind = entry.kind();
        assert!(matches!(error, JournalError::Misfit { why: told, kind: of, .. } if told == why && of == kind), "{error}");
    }
}

#[test]
fn the_next_message_waits_for_all_results() {
    let told = Told::new(settings()).asks_for(1);
    let next = Entry::Assistant(message(seq(3), FinishReason::Stop, vec![text("hi")]));
    assert_eq!(told.refuses(next), "a call of the message before has no result yet");
}

#[test]
fn nothing_starts_in_a_turn_that_nobody_claimed() {
    let told = Told::default().tell(user_message("hello", settings())).asks_for(1).decides(call_id(2, 0), Verdict::Allow);
    assert_eq!(told.refuses(started(call_id(2, 0), true)), "nobody has claimed the turn");
}

#[test]
fn what_would_fit_is_checked_entry_by_entry() {
    let told = Told::new(settings()).asks_for(1);
    let id = call_id(3, 0);
    let fits = [Entry::Decision(decision(id, Verdict::Allow)), started(id, false), success(id)];
    let before = told.journal.clone();
    assert_eq!(check(&told.journal, &fits), Ok(()));
    let error = check(&told.journal, &[fits[0].clone(), fits[2].clone()]).expect_err("it did not start");
    assert_eq!(error.seq(), seq(5));
    assert_eq!(told.journal, before);
}

#[test]
fn a_check_knows_the_entries_before_it_in_the_same_list() {
    let told = Told::new(settings());
    let answer = Entry::Assistant(message(seq(2), FinishReason::Stop, vec![text("hi")]));
    let end = ended(1, TurnStatus::Completed);
    assert_eq!(check(&told.journal, &[answer.clone(), end.clone(), hidden(3)]), Ok(()));
    assert!(check(&told.journal, &[answer, hidden(4), end]).is_err());
}

#[test]
fn what_joins_a_turn_may_change_its_model_and_nothing_else() {
    let other =
        TurnSettings { model: ModelRef::new("other", "m"), fallback: vec![ModelRef::new("last", "m")], ..with_max_steps(9) };
    let joined = TurnSettings { max_steps: 2, ..other.clone() };
    let outage = || Entry::Control(Control::Failed(ProviderFailure::new(ProviderFailureKind::Overloaded, "busy")));
    let fallen = Told::new(TurnSettings { fallback: other.fallback.clone(), ..with_max_steps(2) }).tell(outage());
    assert_eq!(fallen.turn().model(), &ModelRef::new("last", "m"));
    let told = fallen.tell(user_message("also", other));
    assert_eq!((told.turn().settings(), told.turn().model()), (&joined, &ModelRef::new("other", "m")));

    let told = Told::new(with_max_steps(2)).tell(user_message("also", with_max_steps(9)));
    assert_eq!(told.turn().settings(), &with_max_steps(2));
    let told = told.answers("hi").tell(ended(1, TurnStatus::Completed)).tell(user_message("next", with_max_steps(9)));
    assert_eq!((told.turn().id(), told.turn().settings()), (TurnId(seq(6)), &with_max_steps(9)));
}

#[test]
fn a_retry_may_bring_other_settings() {
    let told = Told::new(with_max_steps(2)).tell(ended(1, failure()));
    let other: TurnSettings = with_max_steps(9);
    let entry = Entry::Control(Control::Retried { turn: TurnId(seq(1)), settings: Some(Box::new(other.clone())), hides: None });
    assert_eq!(told.tell(entry).turn().settings(), &other);
}

#[test]
fn a_claim_holds_until_the_turn_parks_or_ends() {
    let first = Claim { driver: DriverId("driver 1".to_owned()), epoch: 1, folder: None };
    let id = call_id(3, 0);
    let told = Told::new(settings());
    assert_eq!((told.turn().holder(), told.turn().is_held_by(&first)), (Some(&first), true));
    let parked = told.clone().asks_for(1).tell(question(id, QuestionReason::Approval));
    let parked = parked.tell(Entry::Control(Control::Suspended));
    assert_eq!((parked.turn().holder(), parked.turn().claim(), parked.turn().is_suspended()), (None, Some(&first), true));
    let decided = parked.decides(id, Verdict::Allow);
    assert_eq!((decided.turn().holder(), decided.turn().is_suspended()), (None, false));
    let told = told.answers("hi").tell(ended(1, failure())).tell(retried(1));
    assert_eq!((told.turn().holder(), told.journal.next_epoch()), (None, 2));
    assert!(told.tell(claimed(2)).turn().holder().is_some());
}

#[test]
fn epochs_rise_over_all_turns_of_a_conversation() {
    let told = Told::new(settings()).answers("hi").tell(ended(1, TurnStatus::Completed)).user("next");
    assert_eq!(told.journal.next_epoch(), 2);
    assert_eq!(told.refuses(claimed(1)), "the claim's epoch is not above the one that holds");
}

#[test]
fn offers_replace_one_another_and_are_found_by_name() {
    let offer =
        |names: &[&str]| Entry::Control(Control::Offered { definitions: names.iter().map(|name| definition(name)).collect() });
    let told = Told::new(settings()).tell(offer(&["one", "two"])).tell(offer(&["two", "three"]));
    let names: Vec<&str> = told.journal.offered().iter().map(|definition| definition.name.as_str()).collect();
    assert_eq!(names, ["two", "three"]);
    assert!(told.journal.definition("three").is_some() && told.journal.definition("one").is_none());
}

#[test]
fn a_message_of_a_turn_that_is_over_may_be_hidden() {
    let told = Told::new(settings()).answers("hi").tell(ended(1, TurnStatus::Completed)).tell(hidden(1)).tell(hidden(3));
    assert!(told.journal.is_hidden(MessageId(seq(1))) && told.journal.is_hidden(MessageId(seq(3))));
}

#[test]
fn a_user_message_that_is_being_answered_cannot_be_hidden() {
    let told = Told::new(settings());
    assert_eq!(told.refuses(hidden(1)), "the message is being answered: cancel its turn first");
}

#[test]
fn a_turn_whose_message_is_hidden_cannot_be_retried() {
    let told = Told::new(settings()).tell(ended(1, failure())).tell(hidden(1));
    assert_eq!(told.refuses(retried(1)), "the message that it answers is hidden");
}

#[test]
fn results_are_found_by_their_call() {
    let told = Told::new(settings()).asks_for(2).runs(call_id(3, 1)).runs(call_id(3, 0)).asks_for(1);
    let of = |id| told.journal.result(id).map(|result| result.call);
    assert_eq!(of(call_id(3, 0)), Some(call_id(3, 0)));
    assert_eq!(of(call_id(3, 1)), Some(call_id(3, 1)));
    assert_eq!((of(call_id(3, 2)), of(call_id(10, 0)), of(call_id(99, 0))), (None, None, None));
}

#[test]
fn a_turns_entries_go_to_the_next_turn() {
    let told = Told::new(settings()).tell(ended(1, failure())).tell(retried(1)).user("joins").answers("hi");
    let told = told.tell(ended(1, TurnStatus::Completed)).user("opens").tell(claimed(2));
    let of = |turn| {
        let seqs = told.journal.turn_entries(TurnId(seq(turn))).map(|stored| stored.seq.get());
        seqs.collect::<Vec<u64>>()
    };
    assert_eq!((of(1), of(8), of(99)), ((1..=7).collect(), vec![8, 9], vec![]));
}

#[test]
fn who_looks_back_from_anywhere_sees_each_entry_with_the_turn_as_it_stood() {
    let told = Told::new(settings()).tell(ended(1, failure())).tell(hidden(1)).user("next").tell(claimed(2)).asks_for(1);
    let told =
        told.runs(call_id(7, 0)).answers("done").tell(ended(5, failure())).tell(retried(5)).tell(claimed(3)).user("joins");
    let entries = told.journal.entries();
    let stood = |at: usize| Journal::replay(entries[..at].iter().cloned()).expect("it fits").turn().cloned();
    for after in 0..=entries.len() {
        let mut seen = Vec::new();
        told.journal
            .look_back(turnwright_core::Seq::new(after as u64), |turn, stored| seen.push((turn.cloned(), stored.clone())));
        let expected: Vec<_> = (after..entries.len()).map(|at| (stood(at + 1), entries[at].clone())).collect();
        assert_eq!(seen, expected, "after {after}");
    }
}

#[test]
fn entries_are_found_by_their_place() {
    let told = Told::new(settings());
    assert_eq!(told.journal.entry(seq(2)).map(|stored| stored.entry.kind()), Some("claimed"));
    assert_eq!((told.journal.entry(seq(3)), told.journal.last_seq()), (None, Some(seq(2))));
}
