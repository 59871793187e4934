//! What the targets of the stream decoders share.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::{AssistantBlock, Assembler, Declared, ProviderFailureKind, ToolDefinition};
use turnwright_dialects::{Offered, Profile, ReplyDecoder, by_name};

/// The answer is not said to be a stream of events.
const NO_CONTENT_TYPE: u8 = 1;
/// The endpoint is the format's own, not a compatible one.
const OWN_PROFILE: u8 = 2;
/// A tool is offered, so its calls are looked for in text.
const TOOL_OFFERED: u8 = 4;

/// Any bytes are one answer or one failure, however the network cuts them. The first byte says how they are read, the second
/// into pieces of what size they are cut.
pub fn answer(dialect: &str, data: &[u8]) {
    let [flags, size, body @ ..] = data else { return };
    let whole = decode(dialect, *flags, body, body.len().max(1));
    let cut = decode(dialect, *flags, body, usize::from(*size).max(1));
    assert_eq!(whole, cut, "in pieces of {size}");
}

fn decode(dialect: &str, flags: u8, body: &[u8], size: usize) -> (Vec<AssistantBlock>, Option<ProviderFailureKind>) {
    let dialect = by_name(dialect).expect("a dialect has this name");
    let profile = if flags & OWN_PROFILE == 0 { Profile::COMPATIBLE } else { Profile::OPENAI };
    let offered = if flags & TOOL_OFFERED == 0 { Offered::default() } else { Offered::to_call(vec![tool()]) };
    let content_type = (flags & NO_CONTENT_TYPE == 0).then_some("text/event-stream");
    let mut reply = ReplyDecoder::new(dialect.decoder(&profile, &offered), content_type);
    let mut out = Vec::new();
    let pushed = body.chunks(size).try_for_each(|chunk| reply.push(chunk, &mut out));
    let answer = pushed.and_then(|()| reply.end(&mut out));
    let mut assembler = Assembler::default();
    for delta in out {
        assembler.push(delta);
    }
    (assembler.blocks().to_vec(), answer.err().map(|failure| failure.kind))
}

fn tool() -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: "get_weather".to_owned(),
        source: "weather".to_owned(),
        tool: "get_weather".to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        annotations: None,
        declared: Declared::default(),
    })
}
