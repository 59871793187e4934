//! From deltas to a message.

use turnwright_core::{
    Assembler, AssistantBlock, AssistantMessage, Completion, CutOffCause, Finish, FinishReason, NativeBlock, Origin,
    ProviderFailure, StreamDelta, ToolCall, Usage,
};

use crate::told::{message, seq, text, tool_call};

fn origin() -> Origin {
    message(seq(1), FinishReason::Stop, Vec::new()).origin
}

fn assembled(deltas: impl IntoIterator<Item = StreamDelta>) -> AssistantMessage {
    let mut assembler = Assembler::default();
    deltas.into_iter().for_each(|delta| assembler.push(delta));
    assembler.complete(origin(), seq(1))
}

fn words(text: &str) -> StreamDelta {
    StreamDelta::Text(text.to_owned())
}

fn thought(text: &str) -> StreamDelta {
    StreamDelta::Reasoning(text.to_owned())
}

fn begins(key: u32, name: &str) -> StreamDelta {
    StreamDelta::CallStarted { key, name: name.to_owned(), provider_id: None }
}

fn arguments(key: u32, text: &str) -> StreamDelta {
    StreamDelta::CallArguments { key, text: text.to_owned() }
}

fn ends(reason: FinishReason) -> StreamDelta {
    StreamDelta::Finished(Finish { reason, raw: Some("word".to_owned()) })
}

fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

#[test]
fn pieces_of_one_kind_make_one_block() {
    let blocks = assembled([thought("so"), thought(" be it"), words("he"), words(""), words("llo"), thought("hm")]).blocks;
    let reasoning = |text: &str| AssistantBlock::Reasoning { text: text.to_owned(), native: None };
    assert_eq!(blocks, [reasoning("so be it"), text("hello"), reasoning("hm")]);
}

#[test]
fn a_closed_block_is_not_gone_on_with() {
    let blocks = assembled([
        words("one"),
        StreamDelta::BlockEnded { native: Some(native("{}")) },
        words("two"),
        StreamDelta::BlockEnded { native: None },
        words("three"),
    ])
    .blocks;
    let first = AssistantBlock::Text { text: "one".to_owned(), native: Some(native("{}")) };
    assert_eq!(blocks, [first, text("two"), text("three")]);
}

#[test]
fn an_answer_that_is_rewritten_counts_in_place_of_its_pieces() {
    let blocks = vec![text("right"), tool_call("first", "{}")];
    let rewritten = StreamDelta::Rewritten(blocks.clone());
    let message = assembled([words("wrong"), begins(7, "other"), rewritten, arguments(7, "x"), ends(FinishReason::Stop)]);
    assert_eq!((message.blocks, message.finish.reason), (blocks, FinishReason::ToolCalls));
    let without_calls = [begins(7, "other"), StreamDelta::Rewritten(vec![text("right")]), ends(FinishReason::ToolCalls)];
    assert_eq!(assembled(without_calls).finish.reason, FinishReason::Stop);
}

#[test]
fn calls_may_interleave() {
    let deltas = [
        begins(7, "first"),
        begins(9, "second"),
        arguments(9, "{\"b\""),
        arguments(7, "{\"a\":"),
        arguments(9, ":2}"),
        arguments(7, "1}"),
        arguments(8, "of no call"),
        ends(FinishReason::ToolCalls),
    ];
    let expected = [tool_call("first", "{\"a\":1}"), tool_call("second", "{\"b\":2}")];
    assert_eq!(assembled(deltas).blocks, expected);
}

#[test]
fn a_call_keeps_the_providers_id_its_form_and_its_origin() {
    let deltas = [
        StreamDelta::CallStarted { key: 0, name: "tool".to_owned(), provider_id: Some("id".to_owned()) },
        words("between"),
        StreamDelta::CallNative { key: 0, native: native("{ }") },
        StreamDelta::CallRecovered { key: 0 },
        StreamDelta::Opaque(native("[ ]")),
    ];
    let call = AssistantBlock::Call(ToolCall {
        name: "tool".to_owned(),
        arguments: String::new(),
        provider_id: Some("id".to_owned()),
        native: Some(native("{ }")),
        recovered: true,
    });
    assert_eq!(assembled(deltas).blocks, [call, text("between"), AssistantBlock::Opaque { native: native("[ ]") }]);
}

#[test]
fn a_key_that_comes_again_names_the_newest_call() {
    let mut assembler = Assembler::default();
    for delta in [begins(0, "first"), arguments(0, "{}"), begins(0, "second"), arguments(0, "[]")] {
        assembler.push(delta);
    }
    assert_eq!(assembler.blocks(), [tool_call("first", "{}"), tool_call("second", "[]")]);
    assert_eq!((assembler.call_index(0), assembler.call_index(1)), (Some(1), None));
}

#[test]
fn the_finish_says_whether_there_are_calls() {
    let finish = |deltas: Vec<StreamDelta>| assembled(deltas).finish.reason;
    assert_eq!(finish(vec![begins(0, "tool"), ends(FinishReason::Stop)]), FinishReason::ToolCalls);
    assert_eq!(finish(vec![begins(0, "tool")]), FinishReason::ToolCalls);
    assert_eq!(finish(vec![words("hi"), ends(FinishReason::ToolCalls)]), FinishReason::Stop);
    assert_eq!(finish(vec![words("hi")]), FinishReason::Stop);
    for reason in [FinishReason::Length, FinishReason::Refusal, FinishReason::Pause, FinishReason::ContentFilter] {
        assert_eq!(finish(vec![begins(0, "tool"), ends(reason)]), reason);
    }
}

#[test]
fn the_providers_word_for_its_finish_is_kept() {
    let finish = assembled([begins(0, "tool"), ends(FinishReason::Stop)]).finish;
    assert_eq!(finish, Finish { reason: FinishReason::ToolCalls, raw: Some("word".to_owned()) });
}

#[test]
fn the_last_report_of_tokens_counts() {
    let usage = |tokens| Usage { output_tokens: Some(tokens), ..Usage::default() };
    let message = assembled([StreamDelta::Usage(usage(1)), words("hi"), StreamDelta::Usage(usage(2))]);
    assert_eq!(message.usage, usage(2));
}

#[test]
fn a_cut_off_message_keeps_what_came_and_says_why_it_ended() {
    let mut assembler = Assembler::default();
    assert!(assembler.is_empty());
    for delta in [words("let me"), begins(0, "tool"), arguments(0, "{\"a"), ends(FinishReason::ToolCalls)] {
        assembler.push(delta);
    }
    let cause = CutOffCause::Provider(Box::new(ProviderFailure::cut_off()));
    let mut expected = message(seq(1), FinishReason::Error, vec![text("let me"), tool_call("tool", "{\"a")]);
    expected.completion = Completion::CutOff(cause.clone());
    expected.finish.raw = Some("word".to_owned());
    assert_eq!(assembler.cut_off(origin(), seq(1), cause), expected);
}
