use turnwright_core::{AssistantBlock, CallId, MessageId, Seq};

use super::{Mirror, Place, complete, reconcile};
use crate::Event;
use crate::nodes::{LiveEvent, LiveFrame, LiveNews, TextKind};

fn seq(number: u64) -> Seq {
    (1..number).fold(Seq::FIRST, |seq, _| seq.next())
}

fn started(number: u64) -> LiveEvent {
    LiveEvent::StepStarted { message_id: MessageId(seq(number)) }
}

fn said(block: u32, offset: u64, text: &str) -> LiveEvent {
    LiveEvent::Delta { kind: TextKind::Text, block, offset, text: text.to_owned() }
}

fn told(block: u32, offset: u64, text: &str) -> Event {
    Event::TextDelta { block, offset, text: text.to_owned() }
}

fn reconciled(mirror: &mut Option<Mirror>, whole: &[LiveEvent]) -> Vec<Event> {
    let mut out = Vec::new();
    reconcile(mirror, whole, &mut out);
    out
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: None }
}

#[test]
fn of_what_overlaps_only_the_new_end_is_told_and_nothing_after_a_hole() {
    let mut mirror = Mirror::of(MessageId(seq(2)));
    assert_eq!(mirror.take(&said(0, 0, "Hel")), Some(told(0, 0, "Hel")));
    assert_eq!(mirror.take(&said(0, 2, "llo")), Some(told(0, 3, "lo")));
    assert_eq!(mirror.take(&said(0, 0, "Hello")), None);
    assert_eq!(mirror.take(&said(0, 9, "there")), None);
    assert_eq!(mirror.take(&said(1, 0, "Bye")), Some(told(1, 0, "Bye")));
}

#[test]
fn a_snapshot_tells_what_was_missed_and_nothing_twice() {
    let mut mirror = None;
    let first = [started(2), said(0, 0, "One ")];
    let begun = Event::StepStarted { message_id: MessageId(seq(2)) };
    assert_eq!(reconciled(&mut mirror, &first), [begun.clone(), told(0, 0, "One ")]);
    let later = [started(2), said(0, 0, "One two"), said(1, 0, "three")];
    assert_eq!(reconciled(&mut mirror, &later), [told(0, 4, "two"), told(1, 0, "three")]);
    assert_eq!(reconciled(&mut mirror, &later), []);
    let mut all = Vec::new();
    mirror.clone().unwrap().tell_all(&mut all);
    assert_eq!(all, [begun, told(0, 0, "One two"), told(1, 0, "three")]);
    // Another attempt says something else: what was told is taken back.
    let other = [started(2), said(0, 0, "Other")];
    let again = Event::StepStarted { message_id: MessageId(seq(2)) };
    assert_eq!(reconciled(&mut mirror, &other), [Event::StepReset, again, told(0, 0, "Other")]);
    assert_eq!(reconciled(&mut mirror, &[]), []);
    assert_eq!(mirror, None);
}

#[test]
fn calls_are_told_once_with_what_is_left_of_their_arguments() {
    let call_id = CallId { message: seq(2), index: 0 };
    let call = LiveEvent::CallStarted { call_id, block: 0, name: "t".to_owned() };
    let arguments = |text: &str| LiveEvent::Arguments { call_id, block: 0, offset: 0, text: text.to_owned() };
    let mut mirror = None;
    reconciled(&mut mirror, &[started(2), call.clone(), arguments("{\"a\"")]);
    let rest = reconciled(&mut mirror, &[started(2), call, arguments("{\"a\":1}")]);
    assert_eq!(rest, [Event::ToolInputDelta { call_id, block: 0, offset: 4, text: ":1}".to_owned() }]);
}

#[test]
fn a_stored_message_is_completed_where_its_end_was_not_told() {
    let mut mirror = None;
    reconciled(&mut mirror, &[started(2), said(0, 0, "One ")]);
    let mirror = mirror.unwrap();
    let mut out = Vec::new();
    complete(mirror.clone(), seq(2), &[text("One two")], &mut out);
    assert_eq!(out, [told(0, 4, "two")]);
    // Who was told all in order knows what those know who watch where it is driven.
    let exact = Mirror { is_exact: true, ..mirror.clone() };
    out.clear();
    complete(exact.clone(), seq(2), &[text("One two")], &mut out);
    assert_eq!(out, []);
    // Somebody else's entry took its place: its words stay.
    for moved in [exact, mirror.clone()] {
        out.clear();
        complete(moved, seq(3), &[text("One two")], &mut out);
        assert_eq!(out, [told(0, 4, "two")]);
    }
    out.clear();
    complete(mirror, seq(3), &[text("Others")], &mut out);
    let begun = Event::StepStarted { message_id: MessageId(seq(3)) };
    assert_eq!(out, [Event::StepReset, begun, told(0, 0, "Others")]);
}

#[test]
fn a_frame_follows_its_predecessor_of_the_same_relay_or_is_a_snapshot() {
    let frame = |relay: &str, number, news| LiveFrame { relay: relay.to_owned(), number, news };
    let snapshot = || LiveNews::Snapshot { seq: None, events: Vec::new() };
    let mut place = Place::default();
    assert!(!place.take(&frame("a", 4, LiveNews::Beat)));
    assert!(place.take(&frame("a", 5, snapshot())));
    assert!(place.take(&frame("a", 6, LiveNews::Beat)));
    assert!(!place.take(&frame("b", 7, LiveNews::Beat)));
    assert!(!place.take(&frame("a", 7, LiveNews::Beat)), "once lost only a snapshot counts");
    assert!(place.take(&frame("b", 0, snapshot())));
    assert!(!place.take(&frame("b", 2, LiveNews::Beat)));
}
