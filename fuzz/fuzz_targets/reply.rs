//! Every decoder: any bytes are one answer or one failure, however the network cuts them.
//!
//! The first byte chooses the dialect and whether the answer is said to be an event stream, the second how it is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turnwright_core::{AssistantBlock, Assembler, ProviderFailureKind};
use turnwright_dialects::{Dialect, Offered, Profile, ReplyDecoder, by_name};

const DIALECTS: [&str; 5] = ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"];

fn decode(dialect: &dyn Dialect, content_type: Option<&str>, body: &[u8], size: usize) -> (Vec<AssistantBlock>, Option<ProviderFailureKind>) {
    let mut reply = ReplyDecoder::new(dialect.decoder(&Profile::COMPATIBLE, &Offered::default()), content_type);
    let mut out = Vec::new();
    let pushed = body.chunks(size).try_for_each(|chunk| reply.push(chunk, &mut out));
    let answer = pushed.and_then(|()| reply.end(&mut out));
    let mut assembler = Assembler::default();
    for delta in out {
        assembler.push(delta);
    }
    (assembler.blocks().to_vec(), answer.err().map(|failure| failure.kind))
}

fuzz_target!(|data: &[u8]| {
    let [choice, size, body @ ..] = data else { return };
    let name = DIALECTS[usize::from(*choice) % DIALECTS.len()];
    let Some(dialect) = by_name(name) else { return };
    let content_type = (*choice & 0x80 == 0).then_some("text/event-stream");
    let whole = decode(dialect, content_type, body, body.len().max(1));
    let cut = decode(dialect, content_type, body, usize::from(*size).max(1));
    assert_eq!(whole, cut, "{name} in pieces of {size}");
});
