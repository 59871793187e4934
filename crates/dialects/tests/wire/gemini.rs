//! Gemini.

mod backward;
mod golden;
mod quirks;
mod request;

use turnwright_core::AssistantBlock;
use turnwright_core::NativeBlock;
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::{Dialect, Offered, Profile};

use crate::support::{Decoded, decode_reply, every_way};

fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_as("text/event-stream", chunks)
}

fn decode_as(content_type: &str, chunks: &[&[u8]]) -> Decoded {
    let decoder = Gemini.decoder(&Profile::COMPATIBLE, &Offered::default());
    decode_reply(decoder, Some(content_type), chunks)
}

fn good(body: &str) -> Decoded {
    let decoded = every_way(body, decode);
    assert_eq!(decoded.failure, None);
    decoded
}

/// A stream of these lists of parts, one a chunk.
fn stream(parts: &[&str], finish: &str) -> String {
    let chunk =
        |parts: &&str| format!("data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{parts}]}}}}]}}\r\n\r\n");
    let end = format!("data: {{\"candidates\":[{{\"finishReason\":\"{finish}\",\"index\":0}}]}}\r\n\r\n");
    parts.iter().map(chunk).collect::<String>() + &end
}

fn native(text: &str) -> NativeBlock {
    NativeBlock(text.to_owned())
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.to_owned(), native: None }
}
