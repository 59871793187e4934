//! Recorded answers with bytes changed, lost, repeated and put in: never a panic, and never another answer where the network
//! cuts it otherwise.

use turnwright_dialects::{Offered, Profile, by_name};

use crate::recordings::{Case, cases};
use crate::support::{decode, decode_every_way, decode_reply, decode_with, every_way, stream};

/// How many bytes of a body are mangled: one that is long has nothing in it that its beginning has not.
const MAX_BYTES: usize = 16 * 1024;
const ROUNDS: usize = 24;

/// Numbers that are always the same (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

/// What tends to be where it should not.
const WORDS: [&[u8]; 14] = [
    b"\n\n",
    b"\r",
    b"null",
    b"\"",
    b"{",
    b"]}",
    b"data: [DONE]\n\n",
    b"data: {\"error\":{\"message\":\"m\",\"code\":500}}\n\n",
    b"event: error\n",
    b"10000000",
    b"-1e999",
    b"\\ud800",
    b"\xff\xfe",
    b"<html>",
];

fn mangled(body: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut body = body[..body.len().min(MAX_BYTES)].to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(body.len());
        let end = (at + 1 + numbers.below(64)).min(body.len());
        match numbers.below(4) {
            0 if at < body.len() => body[at] ^= 1 << numbers.below(8),
            1 => drop(body.drain(at..end)),
            2 => {
                let piece = body[at..end].to_vec();
                body.splice(at..at, piece);
            }
            _ => drop(body.splice(at..at, WORDS[numbers.below(WORDS.len())].iter().copied())),
        }
    }
    body
}

fn check(case: &Case, body: &[u8]) {
    let whole = case.decode(&[body]);
    let pieces: Vec<&[u8]> = body.chunks(97).collect();
    let cut = case.decode(&pieces);
    let shown = || String::from_utf8_lossy(body).into_owned();
    assert_eq!(cut.message.blocks, whole.message.blocks, "{}: {}", case.name, shown());
    let kind = |failure: &Option<turnwright_core::ProviderFailure>| failure.as_ref().map(|failure| failure.kind);
    assert_eq!(kind(&cut.failure), kind(&whole.failure), "{}: {}", case.name, shown());
}

#[test]
fn a_mangled_answer_is_one_answer_or_one_failure_however_it_is_cut() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut count = 0;
    for case in &cases() {
        let Some(body) = case.answer_body() else { continue };
        for _ in 0..ROUNDS {
            check(case, &mangled(body, &mut numbers));
            count += 1;
        }
    }
    println!("{count} mangled answers were decoded");
}

#[test]
fn half_a_surrogate_pair_in_an_answer_becomes_a_replacement_character() {
    for (name, content_type, body) in [
        (
            "openai-chat",
            "text/event-stream",
            r#"data: {"choices":[{"delta":{"content":"a\ud83d"},"finish_reason":"stop"}]}|data: [DONE]"#,
        ),
        (
            "openai-responses",
            "text/event-stream",
            r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}|data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a\ud83d"}|data: {"type":"response.completed","response":{"status":"completed","output":[]}}"#,
        ),
        (
            "anthropic",
            "text/event-stream",
            r#"data: {"type":"message_start","message":{"content":[]}}|data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}|data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}|data: {"type":"content_block_stop","index":0}|data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}|data: {"type":"message_stop"}"#,
        ),
        (
            "gemini",
            "text/event-stream",
            r#"data: {"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]},"finishReason":"STOP"}]}"#,
        ),
        (
            "ollama",
            "application/x-ndjson",
            r#"{"message":{"role":"assistant","content":"a\ud83d"},"done":true,"done_reason":"stop"}"#,
        ),
    ] {
        let body = format!("{}\n\n", body.replace('|', "\n\n"));
        let reader = by_name(name).unwrap().decoder(&Profile::COMPATIBLE, &Offered::default());
        let decoded = decode_reply(reader, Some(content_type), &[body.as_bytes()]);
        assert_eq!((decoded.message.text().as_str(), decoded.failure), ("a\u{fffd}", None), "{name}");
    }
}

#[test]
fn half_a_surrogate_pair_in_arguments_loses_none_of_them() {
    let body = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":\"\ud83d\"}"}}]},"finish_reason":"tool_calls"}]}"#;
    let decoded = decode(&[format!("{body}\n\ndata: [DONE]\n\n").as_bytes()]);
    let calls: Vec<_> = decoded.message.calls().map(|call| call.arguments.clone()).collect();
    assert_eq!(calls, ["{\"a\":\"\u{fffd}\"}"]);
}

#[test]
fn a_character_that_was_cut_in_two_events_is_whole() {
    for (name, body) in [
        (
            "openai-chat",
            r#"data: {"choices":[{"index":0,"delta":{"content":"a\ud83d"}}]}|data: {"choices":[{"index":0,"delta":{"content":"\uDE00b"}}]}|data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}|data: [DONE]"#,
        ),
        (
            "openai-responses",
            r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}|data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a\ud83d"}|data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"\ude00b"}|data: {"type":"response.output_text.done","output_index":0,"content_index":0,"text":"a\ud83d\ude00b"}|data: {"type":"response.completed","response":{"status":"completed","output":[]}}"#,
        ),
        (
            "anthropic",
            r#"data: {"type":"message_start","message":{"content":[]}}|data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}|data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}|data: {"type":"ping"}|data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00b"}}|data: {"type":"content_block_stop","index":0}|data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}|data: {"type":"message_stop"}"#,
        ),
        (
            "gemini",
            r#"data: {"candidates":[{"content":{"parts":[{"text":"a\ud83d"}]}}]}|data: {"candidates":[{"content":{"parts":[{"text":"\ude00b"}]},"index":0,"finishReason":"STOP"}]}"#,
        ),
        (
            "ollama",
            "{\"message\":{\"content\":\"a\\ud83d\"},\"done\":false}|{\"message\":{\"content\":\"\\ude00b\"},\"done\":false}|{\"message\":{\"content\":\"\"},\"done\":true}",
        ),
    ] {
        let body = format!("{}\n\n", body.replace('|', "\n\n"));
        let content_type = if name == "ollama" { "application/x-ndjson" } else { "text/event-stream" };
        let decoded = every_way(&body, |chunks| {
            let reader = by_name(name).unwrap().decoder(&Profile::COMPATIBLE, &Offered::default());
            decode_reply(reader, Some(content_type), chunks)
        });
        assert_eq!((decoded.message.text().as_str(), decoded.failure), ("a\u{1f600}b", None), "{name}");
    }
}

#[test]
fn a_character_that_was_cut_in_two_events_is_whole_in_the_arguments_of_its_call() {
    let delta =
        |index: u32, text: &str| format!(r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":"{text}"}}}}]}}"#);
    let named = |index: u32| format!(r#"{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"f"}}}}]}}"#);
    let deltas = [
        named(0),
        named(1),
        delta(0, r#"{\"a\":\"\ud83d"#),
        delta(1, r#"{\"b\":\"\ud83c"#),
        delta(0, r#"\ude00\"}"#),
        delta(1, r#"\udf0d\"}"#),
    ];
    let decoded = decode_every_way(&stream(&deltas.each_ref().map(String::as_str), "tool_calls"));
    let calls: Vec<_> = decoded.message.calls().map(|call| call.arguments.clone()).collect();
    assert_eq!(calls, ["{\"a\":\"\u{1f600}\"}", "{\"b\":\"\u{1f30d}\"}"]);
}

#[test]
fn half_a_character_before_the_connection_broke_is_told() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\n";
    let decoded = decode_every_way(body);
    assert_eq!((decoded.message.text().as_str(), decoded.failure.is_some()), ("a\u{fffd}", true));
}

#[test]
fn a_whole_reply_may_begin_with_a_byte_order_mark() {
    let body = "\u{feff}{\"choices\":[{\"message\":{\"content\":\"Yes\"},\"finish_reason\":\"stop\"}]}";
    let decoded =
        every_way(body, |chunks| decode_with(&Profile::COMPATIBLE, &Offered::default(), Some("application/json"), chunks));
    assert_eq!((decoded.message.text().as_str(), decoded.failure), ("Yes", None));
}
