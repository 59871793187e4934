//! Events in, text out.

use std::sync::Arc;

use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Entry, Finish, FinishReason, MessageId, NativeBlock,
    Origin, Seq, Usage, Verdict,
};
use turnwright_engine::Event;
use turnwright_terminal::{Look, Piece, Renderer, Stream};

const SCREEN: Look = Look { answer_is_on_terminal: true, is_one_screen: true, has_color: false };
const PIPE: Look = Look { answer_is_on_terminal: false, is_one_screen: false, has_color: false };

fn message(seq: u64) -> MessageId {
    MessageId(Seq::new(seq).unwrap())
}

fn call(seq: u64, index: u32) -> CallId {
    CallId { message: Seq::new(seq).unwrap(), index }
}

fn step(seq: u64) -> Event {
    Event::StepStarted { message_id: message(seq) }
}

fn text(offset: u64, text: &str) -> Event {
    Event::TextDelta { block: 0, offset, text: text.to_owned() }
}

fn step_finished(seq: u64) -> Event {
    Event::StepFinished { message_id: message(seq), finish_reason: "stop", usage: Usage::default() }
}

fn ready(id: CallId, name: &str, arguments: &str) -> Event {
    Event::ToolInputReady { call_id: id, name: name.to_owned(), arguments: arguments.to_owned() }
}

fn finished(id: CallId, outcome: &'static str, content: &str, duration_ms: Option<u64>) -> Event {
    Event::ToolFinished {
        call_id: id,
        outcome,
        is_error: outcome != "success",
        content: vec![ContentBlock::text(content)],
        structured_content: None,
        duration_ms,
    }
}

fn ended() -> Event {
    Event::TurnFinished { turn_id: "turn_1".parse().unwrap(), status: "completed", stop: None, stop_summary: None, error: None }
}

/// What the events become, the answer and what is said beside it, pieces joined.
fn render(look: Look, events: &[Event]) -> Vec<(Stream, String)> {
    let mut renderer = Renderer::new(look);
    let mut shown: Vec<(Stream, String)> = Vec::new();
    for event in events {
        let mut pieces = Vec::new();
        renderer.render(event, &mut pieces);
        for Piece { stream, text } in pieces {
            match shown.last_mut() {
                Some((last, before)) if *last == stream => before.push_str(&text),
                _ => shown.push((stream, text)),
            }
        }
    }
    shown
}

fn answer(text: &str) -> (Stream, String) {
    (Stream::Answer, text.to_owned())
}

fn aside(text: &str) -> (Stream, String) {
    (Stream::Aside, text.to_owned())
}

#[test]
fn a_turn_with_tools_reads_from_top_to_bottom() {
    let (first, second) = (call(4, 0), call(4, 1));
    let events = [
        step(4),
        text(0, "Let me "),
        text(7, "look."),
        step_finished(4),
        ready(first, "filesystem__read", "{\"path\":\"a\"}"),
        ready(second, "command__run", "{\"command\":\"x\"}"),
        Event::ToolStarted { call_id: first },
        Event::ToolStarted { call_id: second },
        Event::ToolProgress { call_id: second, progress: 1.0, total: Some(3.0), message: Some("one\x1b".to_owned()) },
        finished(first, "success", "text", Some(12)),
        finished(second, "timeout", "\n took too long \nmore", Some(61_240)),
        step(9),
        text(0, "Done"),
        step_finished(9),
        ended(),
    ];
    let expected = [
        answer("Let me look.\n"),
        aside(
            "→ filesystem__read {\"path\":\"a\"}\n\
             → command__run {\"command\":\"x\"}\n\
             … command__run 1 of 3 one␛\n\
             ✓ filesystem__read {\"path\":\"a\"} (12 ms)\n\
             ✗ command__run {\"command\":\"x\"} timeout (61.2 s): took too long\n",
        ),
        answer("Done\n"),
    ];
    assert_eq!(render(SCREEN, &events), expected);
    assert_eq!(render(PIPE, &events), expected);
}

#[test]
fn a_call_that_never_ran_says_so_with_its_arguments() {
    let events = [ready(call(4, 0), "a__b", "{\"x\":1}"), finished(call(4, 0), "denied", "denied by rule 1", None)];
    assert_eq!(render(SCREEN, &events), [aside("✗ a__b {\"x\":1} denied: denied by rule 1\n")]);
}

#[test]
fn changed_arguments_are_shown_as_they_run() {
    let id = call(4, 0);
    let decided = Event::ToolApprovalDecided {
        call_id: id,
        decision: Verdict::Allow,
        rule: None,
        arguments: Some("{\"x\":2}".to_owned()),
        reason: None,
    };
    let events = [ready(id, "a__b", "{\"x\":1}"), decided, Event::ToolStarted { call_id: id }];
    assert_eq!(render(SCREEN, &events), [aside("→ a__b {\"x\":2}\n")]);
}

#[test]
fn what_is_said_beside_an_open_line_ends_it_on_one_screen_alone() {
    let notice = Event::Notice { level: "warning", text: "slow\nserver".to_owned() };
    let events = [step(4), text(0, "abc"), notice, text(3, "def"), step_finished(4)];
    let on_screen = [answer("abc\n"), aside("warning: slow\\nserver\n"), answer("def\n")];
    assert_eq!(render(SCREEN, &events), on_screen);
    let in_pipe = [answer("abc"), aside("warning: slow\\nserver\n"), answer("def\n")];
    assert_eq!(render(PIPE, &events), in_pipe);
}

#[test]
fn a_message_that_is_told_again_is_shown_once() {
    // The watcher came back, the place of the message moved, and the message grew meanwhile.
    let events = [
        step(4),
        text(0, "one "),
        text(4, "two"),
        step(4),
        text(0, "one two thr"),
        Event::StepReset,
        step(5),
        text(0, "one two three"),
        text(13, " four"),
        step_finished(5),
    ];
    assert_eq!(render(PIPE, &events), [answer("one two three four\n")]);
}

#[test]
fn an_answer_that_begins_again_differently_is_shown_whole() {
    let events = [step(4), text(0, "Hello w"), Event::StepReset, text(0, "Hel"), text(3, "p!"), step_finished(4)];
    let expected = [answer("Hello w\n"), aside("note: the answer had to begin again\n"), answer("Help!\n")];
    assert_eq!(render(SCREEN, &events), expected);
}

#[test]
fn a_second_step_with_the_same_words_is_shown_again() {
    let events = [step(4), text(0, "Same"), step_finished(4), step(9), text(0, "Same"), step_finished(9)];
    assert_eq!(render(PIPE, &events), [answer("Same\nSame\n")]);
}

#[test]
fn only_a_terminal_is_protected_from_control_characters() {
    let events = [step(4), text(0, "a\x1b[2J\r\nb\tc"), step_finished(4)];
    assert_eq!(render(SCREEN, &events), [answer("a␛[2J\nb\tc\n")]);
    assert_eq!(render(PIPE, &events), [answer("a\x1b[2J\r\nb\tc\n")]);
}

#[test]
fn a_refusal_is_no_answer() {
    let refusal = |text: &str| Event::RefusalDelta { block: 0, offset: 0, text: text.to_owned() };
    let events = [step(4), refusal("I will "), refusal("not."), step_finished(4)];
    assert_eq!(render(PIPE, &events), [aside("refused: I will not.\n")]);
}

#[test]
fn colour_says_nothing_that_is_not_said_without_it() {
    let look = Look { has_color: true, ..SCREEN };
    let events = [ready(call(4, 0), "a__b", "{}"), finished(call(4, 0), "success", "", Some(1))];
    assert_eq!(render(look, &events), [aside("\x1b[32m✓\x1b[0m \x1b[1ma__b\x1b[0m\x1b[2m (1 ms)\x1b[0m\n")]);
}

#[test]
fn an_empty_answer_is_said_to_be_one() {
    let events = [step(4), step_finished(4), ended()];
    assert_eq!(render(PIPE, &events), [aside("note: the model ended with an empty answer\n")]);
}

#[test]
fn an_answer_that_ends_at_its_models_limit_is_said_to_be_cut() {
    let at_limit = |seq| Event::StepFinished { message_id: message(seq), finish_reason: "length", usage: Usage::default() };
    let cut = aside("note: the answer ends here: the model's limit for one answer is reached\n");
    let events = [step(4), text(0, "1. stop"), at_limit(4), ended()];
    assert_eq!(render(PIPE, &events), [answer("1. stop\n"), cut]);
    let nothing = aside("note: the model reached its limit for one answer before it said anything\n");
    assert_eq!(render(PIPE, &[step(4), at_limit(4), ended()]), [nothing]);
    let went_on = [step(4), text(0, "1."), at_limit(4), step(6), text(0, "Done"), step_finished(6), ended()];
    assert_eq!(render(PIPE, &went_on), [answer("1.\nDone\n")]);
}

#[test]
fn a_picture_in_an_answer_is_said_to_be_there() {
    let native = NativeBlock(r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#.to_owned());
    let stored = Event::Entry {
        seq: message(4).0,
        at_ms: 0,
        entry: Arc::new(Entry::Assistant(AssistantMessage {
            origin: Origin { dialect: "gemini".to_owned(), provider: "g".to_owned(), model: "m".to_owned() },
            saw: message(1).0,
            blocks: vec![AssistantBlock::Opaque { native }],
            finish: Finish { reason: FinishReason::Stop, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        })),
    };
    let expected = aside("note: the model answered with [image, image/png], which is not shown here\n");
    assert_eq!(render(PIPE, &[step(4), stored, step_finished(4), ended()]), [expected]);
}

#[test]
fn arguments_that_a_model_spreads_over_lines_are_shown_on_one() {
    let id = call(4, 0);
    let events =
        [step(4), step_finished(4), ready(id, "f__list", "{\n    \"path\": \"docs\"\n}"), Event::ToolStarted { call_id: id }];
    assert_eq!(render(PIPE, &events), [aside("→ f__list {\"path\":\"docs\"}\n")]);
}
