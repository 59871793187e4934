//! A character of which one event holds the first half and a later one the second.
//!
//! Gateways that count a text in UTF-16 cut it within a character: `…\ud83d"` in one event, `"\ude00…` in the next of the same
//! text. Read by itself each half is no character, and a command or a file's name would be another one. So an event of which a
//! text ends with a first half waits for the next of that text, and its half goes over to it. Nothing waits for long: whatever
//! cannot be more of the same kind ends it, and the half is then what the dialect makes of it. *Not here:* halves that stand
//! alone within a text, which [`crate::json::mended`] replaces.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::sse::SseEvent;

/// How many events wait at most: those of other texts may come between.
const MAX_WAITING: usize = 8;

/// How deep in an event a text may stand.
const MAX_DEPTH: usize = 12;

/// The members of an object that say which of several it is more of.
const IDENTITIES: [&str; 4] = ["index", "output_index", "content_index", "summary_index"];

/// The length of an escape of four digits.
const ESCAPE: usize = 6;

/// Puts the events of a stream together where a character was cut. Give it every event with [`Halves::push`], and call
/// [`Halves::release`] where no more come.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    /// The first of them ends with the half.
    waiting: Vec<Waiting>,
}

/// An event that waits.
#[derive(Debug)]
struct Waiting {
    name: String,
    data: String,
}

/// Where in an event a text stands: the names on the way to it, and which of several things it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    names: String,
    identities: String,
}

/// What an event is to a half that waits.
enum Next {
    /// It has the second half: both events as they are with the character whole.
    Joined(String, String),
    /// It may come before the second half.
    Between,
    /// No second half comes.
    Other,
}

impl Halves {
    /// Takes the next event and gives those that wait for nothing to `on_event`, in their order.
    ///
    /// # Errors
    /// Whatever `on_event` answers; nothing waits after that.
    pub(crate) fn push<E>(
        &mut self,
        event: SseEvent<'_>,
        on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(first) = self.waiting.first() else {
            if !ends_in_half(event.data) {
                return on_event(event);
            }
            self.wait(event);
            return Ok(());
        };
        let (first, data) = match next(&first.data, event) {
            Next::Between if self.waiting.len() < MAX_WAITING => {
                self.wait(event);
                return Ok(());
            }
            Next::Joined(first, data) => (Some(first), Cow::Owned(data)),
            Next::Between | Next::Other => (None, Cow::Borrowed(event.data)),
        };
        self.go_on(first.as_deref(), on_event)?;
        self.push(SseEvent { data: &data, ..event }, on_event)
    }

    /// Gives what waits to `on_event`.
    ///
    /// # Errors
    /// As [`Halves::push`].
    pub(crate) fn release<E>(&mut self, on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        while !self.waiting.is_empty() {
            self.go_on(None, on_event)?;
        }
        Ok(())
    }

    /// Gives the event that ended with the half to `on_event`, as `first` where it is given; those behind it may wait anew.
    fn go_on<E>(&mut self, first: Option<&str>, on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut waiting = std::mem::take(&mut self.waiting).into_iter();
        if let Some(Waiting { name, data }) = waiting.next() {
            on_event(SseEvent { name: &name, data: first.unwrap_or(&data) })?;
        }
        waiting.try_for_each(|Waiting { name, data }| self.push(SseEvent { name: &name, data: &data }, on_event))
    }

    fn wait(&mut self, event: SseEvent<'_>) {
        self.waiting.push(Waiting { name: event.name.to_owned(), data: event.data.to_owned() });
    }
}

/// What `event` is to the half that a text of `first` ends with.
fn next(first: &str, event: SseEvent<'_>) -> Next {
    let held = texts(first);
    let Some((place, before)) = held.iter().rev().find(|(_, text)| half_at_end(text).is_some()) else { return Next::Other };
    let found = texts(event.data);
    match found.iter().find(|(at, text)| at == place && *text != "\"\"") {
        Some((_, after)) if is_second(after.get(1..).unwrap_or_default()) => {
            joined(first, before, event.data, after).map_or(Next::Other, |(first, data)| Next::Joined(first, data))
        }
        Some(_) => Next::Other,
        None => {
            let is_alike = found.iter().any(|(at, _)| at.names == place.names);
            let is_ping = found.iter().any(|(at, text)| at.names == ".type" && *text == "\"ping\"");
            if is_alike || is_ping { Next::Between } else { Next::Other }
        }
    }
}

/// Both events, with the half at the end of `before`, a text of `first`, at the beginning of `after`, a text of `second`.
fn joined(first: &str, before: &str, second: &str, after: &str) -> Option<(String, String)> {
    let half = half_at_end(before)?;
    let end = offset(first, before)? + before.len() - 1;
    let (head, tail) = (first.get(..end - ESCAPE)?, first.get(end..)?);
    let (opened, rest) = second.split_at_checked(offset(second, after)? + 1)?;
    Some((format!("{head}{tail}"), format!("{opened}{half}{rest}")))
}

/// Where `part`, a piece of `whole`, begins in it.
fn offset(whole: &str, part: &str) -> Option<usize> {
    (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)
}

/// Whether a text of `data` ends with the escape of a first half.
fn ends_in_half(data: &str) -> bool {
    let mut rest = data.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (_, escape) = rest.split_at(at);
        if let [_, b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _, b'"', ..] = escape {
            return true;
        }
        rest = escape.get(2..).unwrap_or_default();
    }
    false
}

/// The escape of a first half with which `text`, a string of JSON, ends.
fn half_at_end(text: &str) -> Option<&str> {
    let start = text.len().checked_sub(ESCAPE + 1)?;
    // Of several backslashes before it the last may belong to another escape.
    if ends_in_half(text) { text.get(start..text.len() - 1) } else { None }
}

/// Whether `text` begins with the escape of a second half.
fn is_second(text: &str) -> bool {
    let is_high = |digit: &u8| matches!(digit, b'c'..=b'f' | b'C'..=b'F');
    matches!(text.as_bytes(), [b'\\', b'u', b'd' | b'D', digit, _, _, ..] if is_high(digit))
}

/// The strings that are values in `data`, as they are written, and where each stands.
fn texts(data: &str) -> Vec<(Place, &str)> {
    let mut found = Vec::new();
    gather(data.trim(), &Place::default(), MAX_DEPTH, &mut found);
    found
}

fn gather<'a>(raw: &'a str, place: &Place, depth: usize, found: &mut Vec<(Place, &'a str)>) {
    match raw.as_bytes().first() {
        Some(b'"') => found.push((place.clone(), raw)),
        Some(b'{') if depth > 0 => {
            let members = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw).unwrap_or_default();
            let mut place = place.clone();
            for name in IDENTITIES {
                // Some servers leave out what is zero.
                if let Some(value) = members.get(name).filter(|value| !matches!(value.get(), "0" | "null")) {
                    place.identities.push_str(value.get());
                }
                place.identities.push(',');
            }
            for (name, value) in members {
                let names = format!("{}.{name}", place.names);
                gather(value.get(), &Place { names, identities: place.identities.clone() }, depth - 1, found);
            }
        }
        Some(b'[') if depth > 0 => {
            for value in serde_json::from_str::<Vec<&RawValue>>(raw).unwrap_or_default() {
                gather(value.get(), place, depth - 1, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of events, each as it is given on.
    fn through(events: &[&str]) -> Vec<String> {
        let mut given = Vec::new();
        let mut on_event = |event: SseEvent<'_>| -> Result<(), ()> {
            given.push(event.data.to_owned());
            Ok(())
        };
        let mut halves = Halves::default();
        for data in events {
            halves.push(SseEvent { name: "", data }, &mut on_event).unwrap();
        }
        halves.release(&mut on_event).unwrap();
        given
    }

    #[test]
    fn the_first_half_of_a_character_goes_over_to_the_event_that_has_the_second() {
        assert_eq!(
            through(&[r#"{"t":"a\uD83D"}"#, r#"{"t":"\uDE00\ud83d"}"#, r#"{"t":"\ude00b"}"#]),
            [r#"{"t":"a"}"#, r#"{"t":"\uD83D\uDE00"}"#, r#"{"t":"\ud83d\ude00b"}"#]
        );
    }

    #[test]
    fn a_half_waits_for_more_of_its_own_text_alone() {
        let [a, b] = [r#"{"d":[{"index":0,"t":"a\ud83d"}]}"#, r#"{"d":[{"index":1,"t":"b\ud83c"}]}"#];
        let [more_of_a, more_of_b] = [r#"{"d":[{"index":0,"t":"\ude00"}]}"#, r#"{"d":[{"index":1,"t":"\udf0d"}]}"#];
        assert_eq!(
            through(&[a, b, r#"{"type":"ping"}"#, more_of_a, more_of_b]),
            [
                r#"{"d":[{"index":0,"t":"a"}]}"#,
                r#"{"d":[{"index":1,"t":"b"}]}"#,
                r#"{"type":"ping"}"#,
                r#"{"d":[{"index":0,"t":"\ud83d\ude00"}]}"#,
                r#"{"d":[{"index":1,"t":"\ud83c\udf0d"}]}"#,
            ]
        );
    }

    #[test]
    fn an_event_that_ends_the_wait_loses_nothing() {
        for last in [r#"{"t":"b"}"#, r#"{"done":true}"#, "[DONE]", "{", r#"{"t":null}"#, r#"{"t":"b\ud83d"}"#] {
            let events = [r#"{"t":"a\ud83d"}"#, r#"{"t":""}"#, last];
            assert_eq!(through(&events), events);
        }
    }

    #[test]
    fn no_more_than_a_few_events_wait() {
        let events = [&[r#"{"t":"a\ud83d"}"#][..], &[r#"{"type":"ping"}"#; 2 * MAX_WAITING], &[r#"{"t":"\ude00"}"#]].concat();
        assert_eq!(through(&events), events);
    }

    #[test]
    fn only_a_text_that_ends_with_a_first_half_is_one() {
        for (data, expected) in [
            (r#"{"t":"\ud83d"}"#, true),
            (r#"{"t":"\\\uDBFF"}"#, true),
            (r#"{"t":"\ud83d\ude00"}"#, false),
            (r#"{"t":"\\ud83d"}"#, false),
            (r#"{"t":"\"\\ud83d\""}"#, false),
            (r#"{"t":"\ud83d a"}"#, false),
            (r#"{"t":"\ude00"}"#, false),
            (r#"{"t":"\ud83"#, false),
        ] {
            assert_eq!(ends_in_half(data), expected, "{data}");
        }
    }
}
