//! What decoding a stream allocates does not grow with the answer: the hundred-thousandth event costs what the thousandth did.
#![expect(clippy::unwrap_used, reason = "a test says so where it fails")]

use allocation_counter::measure;
use turnwright_dialects::{Offered, Profile, ReplyDecoder, by_name};

#[path = "../benches/shared/streams.rs"]
mod streams;

/// A stream of so many deltas.
type Stream = fn(u32) -> String;

/// How much is read at once.
const READ: usize = 16 * 1024;

/// How often memory is taken to decode `body`, and how much of it, in bytes.
fn allocations(dialect: &str, profile: &Profile, body: &str) -> (u64, u64) {
    let content_type = (dialect != "ollama").then_some("text/event-stream");
    let decoder = by_name(dialect).unwrap().decoder(profile, &Offered::default());
    let mut reply = ReplyDecoder::new(decoder, content_type);
    let mut out = Vec::new();
    let taken = measure(|| {
        for chunk in body.as_bytes().chunks(READ) {
            reply.push(chunk, &mut out).unwrap();
            out.clear();
        }
        reply.end(&mut out).unwrap();
    });
    assert!(reply.is_done());
    (taken.count_total, taken.bytes_total)
}

#[test]
fn no_decoder_allocates_more_for_an_event_of_a_longer_answer() {
    let streams: [(&str, Stream); 5] = [
        ("openai-chat", streams::chat),
        ("openai-responses", streams::responses),
        ("anthropic", streams::anthropic),
        ("gemini", streams::gemini),
        ("ollama", streams::ollama),
    ];
    for (dialect, stream) in streams {
        for profile in [Profile::OPENAI, Profile::COMPATIBLE] {
            let taken = [1_000, 10_000, 100_000].map(|deltas| allocations(dialect, &profile, &stream(deltas)));
            println!("{dialect}: {taken:?}");
            let [(count, bytes), longer @ ..] = taken;
            for ((longer_count, longer_bytes), times) in longer.into_iter().zip([10, 100]) {
                assert!(longer_count <= count * times, "{dialect}, {times} times the events: {taken:?}");
                // What grows by doubling may be at its smallest in one and at its largest in the other.
                assert!(longer_bytes <= bytes * times * 2, "{dialect}, {times} times the events: {taken:?}");
            }
            // A text for each event, and the lists around it.
            assert!(count <= 5_500, "{dialect}: {taken:?}");
        }
    }
}
