//! What it costs to decode a stream, beside parsing each of its events as plain JSON.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;
use turnwright_dialects::{Dialect, Offered, Profile, ReplyDecoder, SseError, SseFramer, by_name};

#[path = "shared/streams.rs"]
mod streams;

/// How many deltas a stream has; the cost of one should not depend on it.
const LENGTHS: [u32; 3] = [1_000, 10_000, 100_000];
/// How much is read at once.
const READ: usize = 16 * 1024;

/// A dialect, and a stream in it of so many deltas of text.
struct Case {
    dialect: &'static dyn Dialect,
    stream: fn(u32) -> String,
}

fn cases() -> [Case; 5] {
    let case = |name, stream| Case { dialect: by_name(name).unwrap(), stream };
    [
        case("openai-chat", streams::chat),
        case("openai-responses", streams::responses),
        case("anthropic", streams::anthropic),
        case("gemini", streams::gemini),
        case("ollama", streams::ollama),
    ]
}

fn read_all(dialect: &dyn Dialect, body: &[u8]) {
    let decoder = dialect.decoder(&Profile::OPENAI, &Offered::default());
    let mut reply = ReplyDecoder::new(decoder, Some("text/event-stream"));
    let mut out = Vec::new();
    for chunk in body.chunks(READ) {
        reply.push(chunk, &mut out).unwrap();
        black_box(&out);
        out.clear();
    }
    reply.end(&mut out).unwrap();
}

fn decode(c: &mut Criterion) {
    for case in cases() {
        let mut group = c.benchmark_group(format!("stream {}", case.dialect.name()));
        for deltas in LENGTHS {
            let body = (case.stream)(deltas);
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_with_input(BenchmarkId::new("decode", deltas), body.as_bytes(), |b, body| {
                b.iter(|| read_all(case.dialect, body));
            });
        }
        let body = (case.stream)(10_000);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_with_input("plain JSON of each event", body.as_bytes(), |b, body| {
            b.iter(|| {
                for line in body.split(|byte| *byte == b'\n') {
                    let data = line.strip_prefix(b"data: ").unwrap_or(line);
                    if data.starts_with(b"{") {
                        black_box(serde_json::from_slice::<Value>(data).ok());
                    }
                }
            });
        });
        group.bench_with_input("frame", body.as_bytes(), |b, body| {
            b.iter(|| {
                let mut framer = SseFramer::default();
                let mut bytes = 0;
                for chunk in body.chunks(READ) {
                    let count = |event: turnwright_dialects::SseEvent<'_>| {
                        bytes += event.data.len();
                        Ok::<(), SseError>(())
                    };
                    framer.push(chunk, count).unwrap();
                }
                black_box(bytes)
            });
        });
        group.finish();
    }
    // Recovery of calls from text looks at every delta.
    let body = streams::chat(10_000);
    let mut group = c.benchmark_group("stream openai-chat, compatible");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("decode", |b| {
        b.iter(|| {
            let decoder = by_name("openai-chat").unwrap().decoder(&Profile::COMPATIBLE, &Offered::default());
            let mut reply = ReplyDecoder::new(decoder, Some("text/event-stream"));
            let mut out = Vec::new();
            for chunk in body.as_bytes().chunks(READ) {
                reply.push(chunk, &mut out).unwrap();
                black_box(&out);
                out.clear();
            }
        });
    });
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
