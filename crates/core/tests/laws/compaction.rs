//! Summaries that people have made and undone, and what they stand for.

use turnwright_core::{
    Compacted, Control, Entry, FinishReason, Journal, MessageId, Seq, TurnId, TurnStatus, Usage, Verdict, compaction, fork,
};

use crate::failures::{long_turn, shown};
use crate::told::{Told, call_id, ended, hidden, seq, settings, started, success, text, tool_call, user_message};

/// A summary that a person has made where no turn was open.
fn by_hand(through: u64, summary: &str) -> Entry {
    of(None, through, summary)
}

fn of(turn: Option<u64>, through: u64, summary: &str) -> Entry {
    let turn = turn.map(|turn| TurnId(seq(turn)));
    let (summary, usage) = (summary.to_owned(), Usage::default());
    Entry::Control(Control::Compacted(Compacted { turn, through: seq(through), summary, origin: None, usage }))
}

fn undone(summary: u64) -> Entry {
    Entry::Control(Control::Uncompacted { summary: seq(summary) })
}

/// `hello` and `and now`, each answered; entries 1 to 4 (with a claim) and 5 to 7.
fn two_turns() -> Told {
    let told = Told::new(settings()).answers("hi").tell(ended(1, TurnStatus::Completed));
    told.user("and now").answers("then").tell(ended(5, TurnStatus::Completed))
}

#[test]
fn what_was_said_is_compacted_where_no_turn_is_open_and_comes_back_whole() {
    let told = two_turns();
    let before = shown(&told);
    let at = told.journal.next_seq().get();
    let told = told.tell(by_hand(6, "a summary"));
    assert_eq!(shown(&told), [format!("{at} user a summary")]);
    assert_eq!(told.turn().ended(), Some(&TurnStatus::Completed), "the turn is as over as it was");
    let told = told.tell(undone(at));
    assert_eq!(shown(&told), before);
    assert_eq!(told.journal.compaction(), None);
}

#[test]
fn of_two_summaries_the_newest_is_undone_first_and_the_older_one_is_shown_again() {
    let told = two_turns().tell(by_hand(3, "one"));
    let with_one = shown(&told);
    let told = told.tell(by_hand(6, "two"));
    assert_eq!(told.refuses(undone(8)), "another summary is shown");
    let told = told.tell(undone(9));
    assert_eq!(shown(&told), with_one);
    let told = told.tell(undone(8));
    assert_eq!(told.refuses(undone(8)), "no summary is shown");
    assert_eq!(shown(&told), shown(&two_turns()));
}

#[test]
fn who_looks_back_sees_summaries_of_earlier_turns_undone_and_followed() {
    let told = two_turns().tell(by_hand(3, "one")).tell(by_hand(6, "two")).user("more").tell(undone(9)).tell(undone(8));
    let told = told.tell(by_hand(7, "three")).tell(hidden(6)).answers("then");
    let entries = told.journal.entries();
    for after in 0..entries.len() {
        let mut seen = Vec::new();
        told.journal.look_back(Seq::new(after as u64), |turn, stored| seen.push((turn.cloned(), stored.seq)));
        let stood = |at: usize| Journal::replay(entries[..at].iter().cloned()).expect("it fits").turn().cloned();
        let expected: Vec<_> = (after..entries.len()).map(|at| (stood(at + 1), entries[at].seq)).collect();
        assert_eq!(seen, expected, "after {after}");
    }
}

#[test]
fn a_hidden_message_takes_only_the_summaries_that_may_tell_of_it() {
    let told = two_turns().tell(by_hand(3, "one")).tell(by_hand(6, "two")).tell(hidden(6));
    assert_eq!(shown(&told), ["8 user one", "5 user and now"]);
    assert_eq!(told.refuses(undone(9)), "another summary is shown");
}

#[test]
fn a_summary_stands_for_no_less_than_the_one_before_and_not_for_what_is_said_in_an_open_turn() {
    let told = two_turns().tell(by_hand(6, "a summary"));
    assert_eq!(told.refuses(by_hand(3, "")), "the summary stands for less than the one before it");
    let told = told.user("more");
    assert_eq!(told.refuses(by_hand(9, "")), "the summary stands for what is said in the open turn");
    assert_eq!(told.refuses(of(Some(5), 6, "")), "the conversation was compacted for another turn");
    // It was begun before somebody said more.
    assert_eq!(shown(&told.tell(by_hand(7, "late"))), ["10 user late", "9 user more"]);
}

#[test]
fn a_turn_is_compacted_by_hand_while_a_call_waits_and_the_call_is_not_parted_from_its_result() {
    let told = long_turn(6, 10_000).says(FinishReason::ToolCalls, vec![text("And"), tool_call("read", "{}")]);
    let waiting = told.journal.last_seq().expect("there is an entry");
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    assert!(cut.through < waiting, "{}", cut.through);
    let (turn, through, step) = (cut.turn, cut.through, told.step());
    let summary = Compacted { turn, through, summary: "so far".to_owned(), origin: None, usage: Usage::default() };
    assert_eq!(told.refuses(of(Some(1), waiting.get(), "")), "a call has no result yet");
    let told = told.tell(Entry::Control(Control::Compacted(summary)));
    assert_eq!(told.step(), step, "the call still needs what it needed");
    let last = shown(&told);
    assert_eq!(last.last().map(String::as_str), Some("1 results"), "{last:?}");
}

#[test]
fn a_second_summary_reaches_further_than_the_first_though_a_long_message_stayed_beside_that() {
    let long = "y".repeat(100_000);
    let told = Told::default().tell(user_message(&long, settings())).tell(crate::told::claimed(1));
    let told = told.answers("one").user("go on").answers("two").tell(of(Some(1), 3, "short"));
    let told = told.tell(ended(1, TurnStatus::Completed)).user("next").answers("three");
    let turn = told.turn().id().0.get();
    let told = told.tell(ended(turn, TurnStatus::Completed)).user("last");
    let cut = compaction::cut(&told.journal).expect("there is something to compact");
    assert!(cut.through >= seq(3), "what the first stands for is not shown again: {}", cut.through);
    assert!(cut.digest().contains("Summary of what was before: short"), "{}", cut.digest());
}

#[test]
fn a_copy_shows_what_the_conversation_shows() {
    let told = two_turns().tell(by_hand(6, "a summary"));
    let copy = fork(&told.journal, None).into_iter().fold(Told::default(), |copy, (entry, _)| copy.tell(entry));
    let words = |told: &Told| shown(told).iter().map(|line| line.split_once(' ').expect("a place").1.to_owned()).collect();
    let (copied, own): (Vec<String>, Vec<String>) = (words(&copy), words(&told));
    assert_eq!(copied, own);
    assert_eq!(copy.journal.open_turn().map(turnwright_core::Turn::id), None);
}

#[test]
fn a_copy_that_ends_before_a_message_that_joined_a_turn_has_what_had_not_seen_it() {
    // A call runs, and another is being asked for, as somebody says more.
    let call = call_id(3, 0);
    let ran = Told::new(settings()).asks_for(1).decides(call, Verdict::Allow).tell(started(call, false));
    let ran = ran.user("and more").tell(success(call)).answers("both").tell(ended(1, TurnStatus::Completed));
    let spoke = Told::new(settings()).user("and more").says_having_seen(2, FinishReason::Stop, vec![text("hi")]);
    let spoke = spoke.answers("both").tell(ended(1, TurnStatus::Completed));
    for (told, joined, expected) in
        [(ran, 6, vec!["1 user hello", "3 assistant ", "1 results"]), (spoke, 3, vec!["1 user hello", "3 assistant hi"])]
    {
        let copy = fork(&told.journal, Some(MessageId(seq(joined)))).into_iter();
        let copy = copy.fold(Told::default(), |copy, (entry, _)| copy.tell(entry));
        assert_eq!(shown(&copy), expected);
    }
}

#[test]
fn nothing_is_compacted_where_nothing_was_said() {
    assert!(compaction::cut(&Told::default().journal).is_none());
    assert_eq!(Told::default().refuses(by_hand(1, "")), "no turn is open");
}
