//! Answers to what joined a turn, as messages of their own.

use serde_json::value::RawValue;
use turnwright_core::TurnId;

use super::super::assembled::{Assembled, assembled as messages_of};
use super::super::history::chunks_of;
use super::resuming::replayed;
use super::*;

/// A message of a model's: its name and its parts.
type Shown = (String, Vec<Value>);

fn shown(messages: Vec<Assembled>) -> Vec<Shown> {
    messages.into_iter().map(|message| (message.id, message.parts.into_iter().map(Value::Object).collect())).collect()
}

/// A turn that two people's messages join: one while a call runs, and one while the model answers.
fn joined_turn() -> Vec<Vec<Event>> {
    vec![
        vec![user(1, "first"), started(), offered(2)],
        vec![step(3), text(0, 0, "I look.")],
        vec![input_started(3), assistant(3), step_finished(3, "tool_calls"), input_ready(3, "{}")],
        vec![user(4, "second")],
        vec![entry(5, Entry::Control(Control::Resumed { count: 1 })), finished_tool(3, "success"), usage()],
        vec![step(6), text(0, 0, "Sun.")],
        vec![user(6, "third")],
        vec![text(0, 4, " All day."), answered_to(5, 7, Completion::Complete), step_finished(7, "stop"), usage()],
        vec![step(8), text(0, 0, "Yes")],
        vec![
            text(0, 3, "."),
            answered_to(7, 8, Completion::Complete),
            step_finished(8, "stop"),
            usage(),
            finished("completed"),
        ],
    ]
}

/// The history of what is stored of this, without what is in flight.
fn history(version: UiVersion, frames: &[Vec<Event>]) -> Vec<Shown> {
    let events = replayed(frames);
    let is_last = |event: &Event| matches!(event, Event::StepStarted { .. });
    let stored = events.iter().rposition(|event| matches!(event, Event::Entry { .. })).unwrap_or_default();
    let end = events[stored..].iter().position(is_last).map_or(events.len(), |at| stored + at);
    let chunks: Vec<Box<RawValue>> =
        chunks_of(&"conv_1".parse().unwrap(), TurnId(seq(1)), None, &events[..end], Arc::from([]), version);
    let mut messages = shown(messages_of(&chunks));
    messages.retain(|(_, parts)| !parts.is_empty());
    messages
}

/// What a page has in the end that begins with the history of the first frames, and takes up the stream there.
fn resumed(version: UiVersion, frames: &[Vec<Event>], cut: usize, begin: Begin) -> Vec<Shown> {
    let mut page = history(version, &frames[..cut]);
    let rest = std::iter::once(replayed(&frames[..cut])).chain(frames[cut..].iter().cloned());
    let chunks = told(version, begin, rest);
    let raw = chunks.iter().filter(|chunk| *chunk != "[DONE]").map(|chunk| RawValue::from_string(chunk.clone()).unwrap());
    for (id, parts) in shown(messages_of(&raw.collect::<Vec<_>>())) {
        match page.iter_mut().find(|(known, _)| *known == id) {
            Some(message) => message.1 = parts,
            None => page.push((id, parts)),
        }
    }
    page
}

#[test]
fn a_history_and_the_stream_taken_up_there_are_what_the_history_is_in_the_end() {
    let turn = joined_turn();
    for version in [UiVersion::V6, UiVersion::V7] {
        let whole = history(version, &turn);
        let names: Vec<&str> = whole.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(names, ["turn_1", "turn_1_4", "turn_1_6"]);
        let said = |(_, parts): &Shown| parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>();
        assert_eq!(whole.iter().map(said).collect::<Vec<_>>(), ["I look.", "Sun. All day.", "Yes."]);
        assert_eq!(whole[0].1[2]["state"], "output-available");
        for cut in 7..=turn.len() {
            assert_eq!(resumed(version, &turn, cut, Begin::Apart(seq(6))), whole, "{version:?}, cut at {cut}");
        }
        // What is said later is not at its place there.
        for cut in 4..7 {
            let page = resumed(version, &turn, cut, Begin::Apart(seq(4)));
            assert_eq!(page.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["turn_1", "turn_1_4"]);
            assert_eq!(page[0], whole[0], "{version:?}, cut at {cut}");
            assert_eq!(said(&page[1]), "Sun. All day.Yes.");
        }
    }
}

#[test]
fn a_client_that_takes_one_message_is_told_the_answer_that_began_or_the_whole_turn() {
    let turn = joined_turn();
    let whole = history(UiVersion::V5, &turn);
    for cut in [9, 10] {
        assert_eq!(resumed(UiVersion::V5, &turn, cut, Begin::Answer(seq(6))), whole, "cut at {cut}");
    }
    let said = |(_, parts): &Shown| parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>();
    for (cut, known) in [(4, 4), (5, 4)] {
        let page = resumed(UiVersion::V5, &turn, cut, Begin::Answer(seq(known)));
        assert_eq!(page.iter().map(said).collect::<Vec<_>>(), ["I look.Sun. All day.Yes."]);
    }
}

#[test]
fn who_joins_while_the_model_answers_is_not_told_the_rest_of_that_answer() {
    let turn = joined_turn();
    let live = told(UiVersion::V7, Begin::Join(seq(6)), turn.clone());
    let later = told(UiVersion::V7, Begin::Join(seq(6)), [replayed(&turn)]);
    for chunks in [live, later] {
        let texts: Vec<Value> = assembled(&chunks).into_iter().filter(|part| part["type"] == "text").collect();
        assert_eq!(texts, [json!({"type": "text", "text": "Yes."})], "{chunks:?}");
    }
}
