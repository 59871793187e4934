//! Messages.

mod backward;
mod effort;
mod failures;
mod golden;
mod prefix;
mod quirks;
mod request;
mod tools;

use std::fmt::Write;

use turnwright_core::{AssistantBlock, NativeBlock, ToolCall};
use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::{Dialect, Offered, Profile};

use crate::support::{Decoded, decode_reply, every_way};

/// Decodes a stream that comes in these chunks.
fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_as("text/event-stream", chunks)
}

/// Decodes a body of this type that comes in these chunks.
fn decode_as(content_type: &str, chunks: &[&[u8]]) -> Decoded {
    decode_reply(Anthropic.decoder(&Profile::COMPATIBLE, &Offered::default()), Some(content_type), chunks)
}

fn decode_every_way(body: &str) -> Decoded {
    every_way(body, decode)
}

fn good(body: &str) -> Decoded {
    let decoded = decode_every_way(body);
    assert_eq!(decoded.failure, None);
    decoded
}

/// A stream of these events, each by its JSON.
fn stream(events: &[&str]) -> String {
    let mut body = String::new();
    for event in events {
        let kind = serde_json::from_str::<serde_json::Value>(event).unwrap()["type"].as_str().unwrap().to_owned();
        write!(body, "event: {kind}\ndata: {event}\n\n").unwrap();
    }
    body
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

/// The events of one answer with these blocks' events between its beginning and its end.
fn answer(events: &[&str], stop_reason: &str) -> String {
    let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop_reason}"}},"usage":{{"output_tokens":9}}}}"#);
    stream(&[&[START], events, &[&end, STOP]].concat())
}

fn start(index: u64, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn delta(index: u64, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn stop(index: u64) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

fn opaque(text: &str) -> AssistantBlock {
    AssistantBlock::Opaque { native: NativeBlock(text.to_owned()) }
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: None }
}

fn call(name: &str, id: Option<&str>, arguments: &str) -> AssistantBlock {
    AssistantBlock::Call(ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        provider_id: id.map(str::to_owned),
        native: None,
        recovered: false,
    })
}
