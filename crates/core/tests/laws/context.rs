//! What is shown besides what was said.

use turnwright_core::context::{standing, wanting};
use turnwright_core::prompt::{self, PromptMessage};
use turnwright_core::{
    Compacted, Context, ContextKind, ContextPart, ContextPlace, Control, Entry, Journal, MessageId, TurnStatus, Usage, fork,
    text_of,
};

use crate::told::{Told, ended, hidden, seq, settings};

fn part(kind: ContextKind, document: &str, version: Option<&str>) -> ContextPart {
    let place = (kind == ContextKind::Knowledge).then_some(ContextPlace::Lines { first: 3, last: 9 });
    ContextPart { kind, source: "notes".into(), document: document.into(), place, version: version.map(str::to_owned) }
}

fn gathered(message: u64, text: &str, parts: Vec<ContextPart>) -> Entry {
    let context = Context { message: MessageId(seq(message)), text: text.into(), parts, notices: Vec::new() };
    Entry::Control(Control::Context(context))
}

fn over(turn: u64) -> Entry {
    ended(turn, TurnStatus::Completed)
}

fn found(message: u64, text: &str) -> Entry {
    gathered(message, text, vec![part(ContextKind::Knowledge, "a.md", Some("1"))])
}

fn instructs(message: u64, text: &str, version: Option<&str>) -> Entry {
    gathered(message, text, vec![part(ContextKind::Instructions, "AGENTS.md", version)])
}

fn shown(journal: &Journal) -> Vec<String> {
    let line = |message: &PromptMessage<'_>| match message {
        PromptMessage::User { message, .. } => format!("user {}", text_of(&message.content)),
        PromptMessage::Context { context, .. } => format!("context {}", context.text),
        PromptMessage::Assistant { message, .. } => format!("assistant {}", message.text()),
        PromptMessage::Results(results) => format!("{} results", results.len()),
    };
    prompt::messages(journal).iter().map(line).collect()
}

#[test]
fn what_was_gathered_stands_before_its_message_and_stays_there() {
    let told = Told::new(settings()).tell(found(1, "facts")).answers("hi").user("more");
    let told = told.tell(found(5, "others")).answers("well");
    let expected = ["context facts", "user hello", "assistant hi", "context others", "user more", "assistant well"];
    assert_eq!(shown(&told.journal), expected);
}

#[test]
fn what_comes_too_late_changes_nothing_that_was_shown() {
    let told = Told::new(settings()).answers("hi");
    let before = shown(&told.journal);
    let told = told.user("and?").tell(found(1, "late"));
    let after = shown(&told.journal);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after[before.len()..], ["user and?", "context late"]);
}

#[test]
fn only_messages_that_no_answer_saw_want_something_and_once() {
    let told = Told::new(settings());
    assert_eq!(wanting(&told.journal), [MessageId(seq(1))]);
    let told = told.tell(found(1, "facts"));
    assert_eq!(wanting(&told.journal), []);
    let told = told.asks_for(1).user("also");
    let newest = told.journal.last_seq().map(MessageId);
    assert_eq!(wanting(&told.journal).first().copied(), newest);
}

#[test]
fn the_newest_version_of_instructions_holds_until_they_are_gone() {
    let told = Told::new(settings()).tell(instructs(1, "first", Some("1"))).answers("hi").user("more");
    let told = told.tell(instructs(5, "second", Some("2")));
    assert_eq!(standing(&told.journal), [part(ContextKind::Instructions, "AGENTS.md", Some("2"))]);
    let told = told.answers("well").user("again").tell(instructs(8, "gone", None));
    assert_eq!(standing(&told.journal), []);
}

#[test]
fn what_was_found_goes_with_a_hidden_message_and_instructions_stay() {
    let told = Told::new(settings()).tell(instructs(1, "rules", Some("1"))).tell(found(1, "facts")).answers("hi");
    let told = told.tell(over(1)).tell(hidden(1));
    assert_eq!(shown(&told.journal), ["context rules", "assistant hi"]);
}

#[test]
fn a_summary_stands_for_what_was_found_and_not_for_what_holds() {
    let told = Told::new(settings()).tell(instructs(1, "old", Some("1"))).tell(found(1, "facts")).answers("hi").tell(over(1));
    let told = told.user("more").tell(instructs(7, "rules", Some("2")));
    let turn = told.journal.open_turn().expect("a turn is open").id();
    let cut = turnwright_core::compaction::cut(&told.journal).expect("there is something to compact");
    assert_eq!(cut.turn, Some(turn));
    let compacted =
        Compacted { turn: Some(turn), through: cut.through, summary: "so far".into(), origin: None, usage: Usage::default() };
    let told = told.tell(Entry::Control(Control::Compacted(compacted)));
    let shown = shown(&told.journal);
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(shown[0].ends_with("so far"), "{shown:?}");
    assert_eq!(shown[1..], ["assistant hi", "context rules", "user more"]);
    assert_eq!(standing(&told.journal), [part(ContextKind::Instructions, "AGENTS.md", Some("2"))]);
}

#[test]
fn a_copy_shows_what_was_gathered_too() {
    let told = Told::new(settings()).tell(found(1, "facts")).answers("hi").tell(over(1));
    let copied = fork(&told.journal, None).into_iter().fold(Told::default(), |copy, (entry, _)| copy.tell(entry));
    assert_eq!(shown(&copied.journal), shown(&told.journal));
}

#[test]
fn a_place_reads_as_people_write_it() {
    let place = |part: ContextPart| part.to_string();
    assert_eq!(place(part(ContextKind::Knowledge, "a.md", None)), "a.md, lines 3-9");
    let page = ContextPart { place: Some(ContextPlace::Pages { first: 2, last: 2 }), ..part(ContextKind::Memory, "b", None) };
    assert_eq!(place(page), "b, page 2");
}
