//! Which model answered, as each provider names it.

use turnwright_dialects::anthropic::Anthropic;
use turnwright_dialects::gemini::Gemini;
use turnwright_dialects::ollama::Ollama;
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::openai_responses::OpenAiResponses;
use turnwright_dialects::{Dialect, Offered, Profile, ReplyDecoder};

/// The model that a body names, and whether the answer is whole.
fn named(dialect: &dyn Dialect, body: &str) -> (Option<String>, bool) {
    let mut reply = ReplyDecoder::new(dialect.decoder(&Profile::COMPATIBLE, &Offered::default()), None);
    let mut out = Vec::new();
    let is_whole = reply.push(body.as_bytes(), &mut out).and_then(|()| reply.end(&mut out)).is_ok();
    (reply.model().map(str::to_owned), is_whole)
}

#[test]
fn each_dialect_tells_which_model_answered_in_a_stream_and_in_a_whole_reply() {
    let event = |data: &str| format!("data: {data}\n\n");
    let chat = r#"{"model":"m-2026","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let message = r#"{"type":"message","model":"m-2026","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#;
    let start = r#"{"type":"message_start","message":{"model":"m-2026","content":[]}}"#;
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let gemini = r#"{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"modelVersion":"m-2026"}"#;
    let ollama = r#"{"model":"m-2026","message":{"content":"Hi"},"done":true}"#;
    let response = r#"{"model":"m-2026","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}"#;
    let completed = format!(r#"{{"type":"response.completed","response":{response}}}"#);
    let table: [(&dyn Dialect, String); 10] = [
        (&OpenAiChat, event(chat) + "data: [DONE]\n\n"),
        (&OpenAiChat, chat.replace("delta", "message")),
        (&Anthropic, event(start) + &event(stop) + &event(r#"{"type":"message_stop"}"#)),
        (&Anthropic, message.to_owned()),
        (&Gemini, event(gemini)),
        (&Gemini, gemini.to_owned()),
        (&Ollama, format!("{}\n{ollama}\n", ollama.replace("true", "false"))),
        (&Ollama, ollama.to_owned()),
        (&OpenAiResponses, event(&completed)),
        (&OpenAiResponses, response.to_owned()),
    ];
    for (dialect, body) in &table {
        assert_eq!(named(*dialect, body), (Some("m-2026".to_owned()), true), "{}: {body}", dialect.name());
        // One that is not named, named by nothing, or by too much, is not known; the answer is whole all the same.
        for name in [String::new(), "null".to_owned(), "\"\"".to_owned(), format!("\"{}\"", "m".repeat(257))] {
            let field = if name.is_empty() { "\"other\":1".to_owned() } else { format!("\"model\":{name}") };
            let other = body.replace("\"modelVersion\"", "\"model\"").replace("\"model\":\"m-2026\"", &field);
            let other = if dialect.name() == "gemini" { other.replace("\"model\"", "\"modelVersion\"") } else { other };
            assert_eq!(named(*dialect, &other), (None, true), "{}: {other}", dialect.name());
        }
    }
    // The first name counts, and one in escapes is read.
    let two = event(&chat.replace("m-2026", r"m\/1")) + &event(&chat.replace("2026", "2027")) + "data: [DONE]\n\n";
    assert_eq!(named(&OpenAiChat, &two), (Some("m/1".to_owned()), true));
}
