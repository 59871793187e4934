//! What it costs to decode a stream, beside parsing each of its events as plain JSON.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]

use std::fmt::Write;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;
use turnwright_dialects::{Dialect, Offered, Profile, ReplyDecoder, SseError, SseFramer, by_name};

/// How many deltas a stream has; the cost of one should not depend on it.
const LENGTHS: [u32; 3] = [1_000, 10_000, 100_000];
/// How much is read at once.
const READ: usize = 16 * 1024;

/// A dialect, and a stream in it of so many deltas of text.
struct Case {
    dialect: &'static dyn Dialect,
    stream: fn(u32) -> String,
}

fn cases() -> [Case; 4] {
    let case = |name, stream| Case { dialect: by_name(name).unwrap(), stream };
    [case("openai-chat", chat), case("openai-responses", responses), case("anthropic", anthropic), case("gemini", gemini)]
}

fn chat(deltas: u32) -> String {
    let mut body = String::new();
    for number in 0..deltas {
        write!(
            body,
            "data: {{\"id\":\"chatcmpl-9HpyGSWv1hoKdGaUaiFhfxzTEVlZo\",\"object\":\"chat.completion.chunk\",\"created\":1714038380,\
             \"model\":\"gpt-x\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" word{number}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null}}\n\n"
        )
        .unwrap();
    }
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    body
}

fn responses(deltas: u32) -> String {
    const ID: &str = "msg_68c9f2f3a4b88190a1b2c3d4e5f60718";
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| {
        write!(body, "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":1,{rest}}}\n\n").unwrap();
    };
    let item = |text: &str, status: &str| {
        format!(
            r#"{{"id":"{ID}","type":"message","status":"{status}","content":[{{"type":"output_text","annotations":[],"text":"{text}"}}],"role":"assistant"}}"#
        )
    };
    event("response.created", r#""response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}"#);
    event("response.output_item.added", &format!(r#""output_index":0,"item":{}"#, item("", "in_progress")));
    let mut text = String::new();
    for number in 0..deltas {
        write!(text, " word{number}").unwrap();
        let rest = format!(
            r#""item_id":"{ID}","output_index":0,"content_index":0,"delta":" word{number}","logprobs":[],"obfuscation":"abcdefgh""#
        );
        event("response.output_text.delta", &rest);
    }
    event("response.output_item.done", &format!(r#""output_index":0,"item":{}"#, item(&text, "completed")));
    let response = format!(
        r#""response":{{"id":"resp_1","object":"response","status":"completed","output":[{}],"usage":{{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}}"#,
        item(&text, "completed")
    );
    event("response.completed", &response);
    body
}

fn anthropic(deltas: u32) -> String {
    let mut body = String::new();
    let mut event = |kind: &str, rest: &str| {
        let comma = if rest.is_empty() { "" } else { "," };
        write!(body, "event: {kind}\ndata: {{\"type\":\"{kind}\"{comma}{rest}}}\n\n").unwrap();
    };
    event(
        "message_start",
        r#""message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}"#,
    );
    event("content_block_start", r#""index":0,"content_block":{"type":"text","text":""}"#);
    for number in 0..deltas {
        event("content_block_delta", &format!(r#""index":0,"delta":{{"type":"text_delta","text":" word{number}"}}"#));
    }
    event("content_block_stop", r#""index":0"#);
    event("message_delta", r#""delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":100}"#);
    event("message_stop", "");
    body
}

fn gemini(deltas: u32) -> String {
    let mut body = String::new();
    for number in 0..deltas {
        write!(
            body,
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\" word{number}\"}}],\"role\":\"model\"}},\"index\":0}}],\
             \"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":{number},\"totalTokenCount\":99}},\
             \"modelVersion\":\"gemini-x\",\"responseId\":\"abc\"}}\r\n\r\n"
        )
        .unwrap();
    }
    body.push_str("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\"}]}\r\n\r\n");
    body
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
                    if let Some(data) = line.strip_prefix(b"data: ") {
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
    let body = chat(10_000);
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
