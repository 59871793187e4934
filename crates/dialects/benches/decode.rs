//! Throughput of framing and decoding, beside parsing each event as plain JSON; and the cost of a request.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run should stop")]

use std::borrow::Cow;
use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Finish, FinishReason, ModelRef, Origin, Outcome, Seq,
    ToolCall, ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::{Dialect, Kept, ModelFacts, Offered, Profile, ReplyDecoder, SseError, SseFramer, Target};

/// A stream of 10,000 text deltas, as it comes in reads of 16 KiB.
fn stream() -> Vec<u8> {
    let mut body = String::new();
    for number in 0..10_000 {
        write!(
            body,
            "data: {{\"id\":\"chatcmpl-9HpyGSWv1hoKdGaUaiFhfxzTEVlZo\",\"object\":\"chat.completion.chunk\",\"created\":1714038380,\
             \"model\":\"gpt-x\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1\",\"choices\":[{{\"index\":0,\
             \"delta\":{{\"content\":\" word{number}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null}}\n\n"
        )
        .unwrap();
    }
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    body.into_bytes()
}

const READ: usize = 16 * 1024;

fn decode(c: &mut Criterion) {
    let body = stream();
    let mut group = c.benchmark_group("stream");
    group.throughput(Throughput::Bytes(body.len() as u64));
    group.bench_function("frame", |b| {
        b.iter(|| {
            let mut framer = SseFramer::default();
            let mut bytes = 0;
            for chunk in body.chunks(READ) {
                framer
                    .push(chunk, |event| {
                        bytes += event.data.len();
                        Ok::<(), SseError>(())
                    })
                    .unwrap();
            }
            black_box(bytes)
        });
    });
    for (name, profile) in [("decode openai", Profile::OPENAI), ("decode compatible", Profile::COMPATIBLE)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let decoder = OpenAiChat.decoder(&profile, &Offered::default());
                let mut reply = ReplyDecoder::new(decoder, Some("text/event-stream"));
                let mut out = Vec::new();
                for chunk in body.chunks(READ) {
                    reply.push(chunk, &mut out).unwrap();
                    black_box(&out);
                    out.clear();
                }
            });
        });
    }
    group.bench_function("plain JSON of each event", |b| {
        b.iter(|| {
            for line in body.split(|byte| *byte == b'\n') {
                if let Some(data) = line.strip_prefix(b"data: ") {
                    black_box(serde_json::from_slice::<serde_json::Value>(data).ok());
                }
            }
        });
    });
    group.finish();
}

fn request(c: &mut Criterion) {
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    let origin = Origin { dialect: "openai-chat".to_owned(), provider: "p".to_owned(), model: "m".to_owned() };
    let words = "Some words that somebody said, with a \"quote\" and a line\nbreak. ".repeat(5);
    let user = UserMessage { content: vec![ContentBlock::text(words.clone())], settings: settings.clone() };
    let call = ToolCall {
        name: "filesystem__read".to_owned(),
        arguments: "{\"path\":\"/home/somebody/file.txt\",\"lines\":[1,200]}".to_owned(),
        provider_id: None,
        native: None,
        recovered: false,
    };
    let message = AssistantMessage {
        origin: origin.clone(),
        saw: Seq::FIRST,
        blocks: vec![AssistantBlock::Text { text: words.clone(), native: None }, AssistantBlock::Call(call.clone())],
        finish: Finish { reason: FinishReason::ToolCalls, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    };
    let mut messages = Vec::new();
    for number in 1..=66 {
        let seq = Seq::new(number * 3).unwrap();
        let id = CallId { message: seq, index: 0 };
        let result = Cow::Owned(ToolResult::of(id, Outcome::Success, words.clone()));
        messages.push(PromptMessage::User { seq: Seq::FIRST, message: &user });
        messages.push(PromptMessage::Assistant { seq, message: &message });
        messages.push(PromptMessage::Results(vec![PromptResult { id, call: &call, result, note: None }]));
    }
    let prompt = Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true };
    let target = Target { origin: &origin, profile: &Profile::OPENAI, model: &ModelFacts::default() };
    c.bench_function("request of 200 messages", |b| {
        b.iter(|| OpenAiChat.request(&target, black_box(&prompt), &mut Kept::default()));
    });
    let mut kept = Kept::default();
    c.bench_function("request of 200 messages, written before", |b| {
        b.iter(|| OpenAiChat.request(&target, black_box(&prompt), &mut kept));
    });
}

criterion_group!(benches, decode, request);
criterion_main!(benches);
