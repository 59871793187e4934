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
        chunks_of(&"conv_1".parse().unwrap(), TurnId(seq(1)), None, &events[..end], Arc::from([]), (version, Begin::Apart));
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

fn names(messages: &[Shown]) -> Vec<&str> {
    messages.iter().map(|(id, _)| id.as_str()).collect()
}

fn texts(messages: &[Shown]) -> Vec<String> {
    let said = |(_, parts): &Shown| parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>();
    messages.iter().map(said).collect()
}

#[test]
fn a_history_and_the_stream_taken_up_there_are_what_the_history_is_in_the_end() {
    let turn = joined_turn();
    for version in [UiVersion::V6, UiVersion::V7] {
        let whole = history(version, &turn);
        assert_eq!(names(&whole), ["turn_1", "turn_1_4", "turn_1_6"]);
        assert_eq!(texts(&whole), ["I look.", "Sun. All day.", "Yes."]);
        assert_eq!(whole[0].1[2]["state"], "output-available");
        for cut in 7..=turn.len() {
            assert_eq!(resumed(version, &turn, cut, Begin::Apart(seq(6))), whole, "{version:?}, cut at {cut}");
        }
        // What is said later has no place there yet; its answer is the one of the history all the same.
        for cut in 4..7 {
            let mut page = resumed(version, &turn, cut, Begin::Apart(seq(4)));
            for (_, parts) in &mut page {
                parts.retain(|part| part["type"] != "steering-message");
            }
            assert_eq!(page, whole, "{version:?}, cut at {cut}");
        }
    }
}

#[test]
fn who_comes_back_before_anybody_joined_is_told_each_later_answer_under_its_own_name() {
    let turn = joined_turn();
    for version in [UiVersion::V6, UiVersion::V7] {
        let whole = history(version, &turn);
        for cut in 1..4 {
            let mut page = resumed(version, &turn, cut, Begin::Apart(seq(1)));
            for (_, parts) in &mut page {
                parts.retain(|part| part["type"] != "steering-message");
            }
            assert_eq!(page, whole, "{version:?}, cut at {cut}");
        }
    }
}

#[test]
fn where_nobody_joined_yet_it_can_be_come_back_to_as_to_a_turn() {
    let alone: Vec<_> = joined_turn().into_iter().take(3).chain([vec![finished_tool(3, "success")]]).collect();
    let told = |begin| fold_all(&mut fold_of(UiVersion::V7, begin), alone.clone());
    assert_eq!(told(Begin::Apart(seq(1))), told(Begin::Turn));
    let all = fold_all(&mut fold_of(UiVersion::V7, Begin::Apart(seq(1))), joined_turn());
    let ids: Vec<&str> = all.lines().filter(|line| line.starts_with("id")).collect();
    let cleared = ids.iter().position(|id| *id == "id").unwrap();
    assert!(cleared > 0 && ids[cleared..].iter().all(|id| *id == "id"), "{ids:?}");
}

/// What a page has that comes back again and again, each time with all that people said up to then, and breaks off each time.
fn come_back_to(version: UiVersion, begins: impl Fn(usize) -> Begin, frames: &[Vec<Event>], cuts: &[usize]) -> Vec<Shown> {
    let mut page: Vec<Shown> = Vec::new();
    for (from, to) in cuts.iter().zip(cuts.iter().skip(1)) {
        let told_now = std::iter::once(replayed(&frames[..*from])).chain(frames[*from..*to].iter().cloned());
        let chunks = told(version, begins(*from), told_now);
        let raw = chunks.iter().filter(|chunk| *chunk != "[DONE]").map(|chunk| RawValue::from_string(chunk.clone()).unwrap());
        for (id, parts) in shown(messages_of(&raw.collect::<Vec<_>>())).into_iter().filter(|(id, _)| !id.is_empty()) {
            match page.iter_mut().find(|(known, _)| *known == id) {
                Some(message) => message.1 = parts,
                None => page.push((id, parts)),
            }
        }
    }
    page
}

/// A turn that one person's message joins while a call runs, and another's before the next answer.
fn joined_twice() -> Vec<Vec<Event>> {
    vec![
        vec![user(1, "first"), started(), offered(2)],
        vec![step(3), text(0, 0, "I look.")],
        vec![input_started(3), assistant(3), step_finished(3, "tool_calls"), input_ready(3, "{}")],
        vec![user(4, "A")],
        vec![user(5, "B")],
        vec![entry(6, Entry::Control(Control::Resumed { count: 1 })), finished_tool(3, "success"), usage()],
        vec![step(7), text(0, 0, "Both.")],
        vec![input_started(7), answered_to(6, 7, Completion::Complete), step_finished(7, "tool_calls"), input_ready(7, "{}")],
        vec![user(8, "C")],
        vec![entry(9, Entry::Control(Control::Resumed { count: 2 })), finished_tool(7, "success"), usage()],
        vec![step(10), text(0, 0, "The end.")],
        vec![answered_to(9, 10, Completion::Complete), step_finished(10, "stop"), usage(), finished("completed")],
    ]
}

#[test]
fn an_answer_has_the_name_of_the_newest_message_that_it_saw_whenever_it_is_told() {
    let turn = joined_twice();
    for version in [UiVersion::V6, UiVersion::V7] {
        let whole = history(version, &turn);
        assert_eq!(names(&whole), ["turn_1", "turn_1_5", "turn_1_8"]);
        assert_eq!(texts(&whole), ["I look.", "Both.", "The end."]);
        let known = |at| {
            if at < 5 {
                4
            } else if at < 9 {
                5
            } else {
                8
            }
        };
        for first in 4..turn.len() {
            for second in first..turn.len() {
                let cuts = [first, second, turn.len()];
                let page = come_back_to(version, |at| Begin::Apart(seq(known(at))), &turn, &cuts);
                assert_eq!(names(&page), names(&whole), "{version:?}, {cuts:?}");
                assert_eq!(texts(&page), texts(&whole), "{version:?}, {cuts:?}");
            }
        }
    }
}

#[test]
fn what_a_page_said_itself_is_answered_under_the_name_that_it_has_when_the_page_comes_back() {
    let turn = joined_twice();
    for version in [UiVersion::V6, UiVersion::V7] {
        let live = told(version, Begin::Join(seq(4)), turn[..8].to_vec());
        let starts: Vec<&String> = live.iter().filter(|chunk| chunk.contains(r#""type":"start""#)).collect();
        assert_eq!(starts.len(), 1);
        assert!(starts[0].contains("turn_1_5"), "{starts:?}");
        // Whoever joins before the turn's first answer.
        let before = [vec![user(1, "first"), started()], vec![user(2, "A")], vec![step(3), text(0, 0, "Yes.")]];
        let live = told(version, Begin::Turn, before.clone());
        let later = told(version, Begin::Apart(seq(2)), [replayed(&before)]);
        for chunks in [live, later] {
            assert!(chunks[0].starts_with(r#"{"type":"start","messageId":"turn_1_2""#), "{chunks:?}");
        }
    }
}

#[test]
fn a_client_that_takes_one_message_is_told_the_last_that_has_begun() {
    let turn = joined_turn();
    let whole = history(UiVersion::V5, &turn);
    for cut in [9, 10] {
        assert_eq!(resumed(UiVersion::V5, &turn, cut, Begin::Answer(seq(6))), whole, "cut at {cut}");
    }
    for cut in [4, 5] {
        let page = resumed(UiVersion::V5, &turn, cut, Begin::Answer(seq(4)));
        assert_eq!((names(&page), texts(&page)), (vec!["turn_1"], vec!["I look.Sun. All day.Yes.".to_owned()]), "cut at {cut}");
    }
    // The answer to what joined last has not begun.
    let turn = joined_twice();
    for cut in [9, 10] {
        let page = resumed(UiVersion::V5, &turn, cut, Begin::Answer(seq(8)));
        assert_eq!(names(&page), ["turn_1", "turn_1_5"], "cut at {cut}");
        assert_eq!(texts(&page), ["I look.", "Both.The end."], "cut at {cut}");
        assert_eq!(page[1].1[2]["state"], "output-available");
    }
}

/// A turn that a message joins while the model answers, whose answer breaks off, and that is tried again.
fn joined_and_retried() -> Vec<Vec<Event>> {
    let failure = ProviderFailure::new(ProviderFailureKind::CutOff, "cut off");
    let cut_off = Completion::CutOff(turnwright_core::CutOffCause::Provider(Box::new(failure)));
    vec![
        vec![user(1, "first"), started(), offered(2)],
        vec![step(3), text(0, 0, "abc")],
        vec![user(3, "A")],
        vec![answered_to(2, 4, cut_off), step_finished(4, "error")],
        vec![usage(), finished("failed")],
        vec![entry(6, Entry::Control(Control::Retried { turn: TurnId(seq(1)), settings: None, hides: None })), started()],
        vec![step(7), text(0, 0, "def"), input_started(7)],
        vec![answered_to(6, 7, Completion::Complete), step_finished(7, "tool_calls"), input_ready(7, "{}")],
        vec![entry(8, Entry::Control(Control::Suspended)), asked(7), suspended()],
    ]
}

#[test]
fn an_answer_that_is_tried_again_is_told_where_the_history_has_it() {
    let turn = joined_and_retried();
    for version in [UiVersion::V6, UiVersion::V7] {
        let whole = history(version, &turn);
        assert_eq!((names(&whole), texts(&whole)), (vec!["turn_1_3"], vec!["def".to_owned()]));
        assert_eq!(whole[0].1[2]["state"], "approval-requested");
        for cut in 6..=turn.len() {
            assert_eq!(resumed(version, &turn, cut, Begin::Apart(seq(3))), whole, "{version:?}, cut at {cut}");
        }
        // So does the page that tries it again itself.
        let again = told(version, Begin::Turn, [replayed(&turn)]);
        assert!(again[0].starts_with(r#"{"type":"start","messageId":"turn_1_3""#), "{again:?}");
        assert!(!again.iter().any(|chunk| chunk.contains("abc")), "{again:?}");
    }
    let page = resumed(UiVersion::V5, &turn, turn.len(), Begin::Answer(seq(3)));
    assert_eq!((names(&page), texts(&page)), (vec!["turn_1_3"], vec!["def".to_owned()]));
    assert_eq!(page[0].1[2]["state"], "input-available");
}

#[test]
fn an_answer_that_another_model_gives_to_what_was_said_meanwhile_is_told_where_the_history_has_it() {
    let failure = ProviderFailure::new(ProviderFailureKind::Overloaded, "busy");
    let turn = [
        vec![user(1, "first"), started(), offered(2)],
        vec![step(3), text(0, 0, "I look."), input_started(3)],
        vec![assistant(3), step_finished(3, "tool_calls"), input_ready(3, "{}")],
        vec![user(4, "A")],
        vec![entry(5, Entry::Control(Control::Resumed { count: 1 })), finished_tool(3, "success"), usage()],
        vec![step(6), text(0, 0, "wrong")],
        vec![user(6, "B")],
        vec![entry(7, Entry::Control(Control::Failed(failure)))],
        vec![step(8), text(0, 0, "right")],
        vec![answered_to(7, 8, Completion::Complete), step_finished(8, "stop"), usage(), finished("completed")],
    ];
    for (version, cut) in [(UiVersion::V7, 5), (UiVersion::V7, 8), (UiVersion::V6, 9)] {
        let mut page = resumed(version, &turn, cut, Begin::Apart(seq(4)));
        page.retain(|(_, parts)| parts.iter().any(|part| part["type"] == "text"));
        assert_eq!((names(&page), texts(&page)), (vec!["turn_1", "turn_1_6"], vec!["I look.".to_owned(), "right".to_owned()]));
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

#[test]
fn who_joins_while_the_model_answers_is_told_what_another_model_answers_in_its_place() {
    let failure = ProviderFailure::new(ProviderFailureKind::Overloaded, "busy");
    let turn = [
        vec![user(1, "first"), started(), offered(2)],
        vec![step(3)],
        vec![user(3, "A")],
        vec![entry(4, Entry::Control(Control::Failed(failure)))],
        vec![step(5), text(0, 0, "Yes.")],
        vec![answered_to(4, 5, Completion::Complete), step_finished(5, "stop"), finished("completed")],
    ];
    let chunks = told(UiVersion::V7, Begin::Join(seq(3)), turn);
    assert!(chunks[0].starts_with(r#"{"type":"start","messageId":"turn_1_3""#), "{chunks:?}");
    assert_eq!(assembled(&chunks), [json!({"type": "step-start"}), json!({"type": "text", "text": "Yes."})]);
}

#[test]
fn a_picture_that_joins_a_turn_is_told_beside_its_words() {
    let content =
        vec![ContentBlock::text("look"), ContentBlock::Image { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() }];
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    let joined = entry(3, Entry::User(UserMessage { content, settings }));
    let steered = told(UiVersion::V7, Begin::Turn, [vec![user(1, "first"), started(), step(2), joined, finished("completed")]]);
    let steering = concat!(
        r#"{"type":"steering-message","id":"msg_3","parts":[{"type":"text","text":"look\n[image, image/png]"}],"#,
        r#""content":[{"type":"text","text":"look"},{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#
    );
    assert!(steered.iter().any(|chunk| chunk == steering), "{steered:?}");
}

#[test]
fn the_next_turn_is_no_part_of_the_message() {
    let next = Event::TurnStarted { turn_id: TurnId(seq(9)), model: ModelRef::new("p", "m") };
    let events =
        vec![user(1, "hi"), started(), step(2), finished("completed"), user(9, "more"), next, step(10), text(0, 0, "other")];
    let stream = told(UiVersion::V7, Begin::Turn, [events]);
    assert!(!stream.iter().any(|chunk| chunk.contains("other") || chunk.contains("more")), "{stream:?}");
    assert_eq!(stream.last().unwrap(), "[DONE]");
}
