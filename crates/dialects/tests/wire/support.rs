//! What these tests share.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;
use turnwright_core::prompt::Prompt;
use turnwright_core::{
    Assembler, AssistantMessage, CutOffCause, Declared, ModelRef, Origin, ProviderFailure, Seq, ToolDefinition, TurnSettings,
};
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::{Dialect, HttpRequest, Kept, ModelFacts, Offered, Profile, ReplyDecoder, StreamDecoder, Target};

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) message: AssistantMessage,
    pub(crate) failure: Option<ProviderFailure>,
}

pub(crate) fn origin() -> Origin {
    Origin { dialect: "openai-chat".to_owned(), provider: "p".to_owned(), model: "m".to_owned() }
}

pub(crate) fn tool(name: &str, schema: Value) -> Arc<ToolDefinition> {
    Arc::new(ToolDefinition {
        name: name.to_owned(),
        source: "s".to_owned(),
        tool: name.to_owned(),
        title: None,
        description: format!("Does {name}"),
        input_schema: schema,
        annotations: None,
        declared: Declared::default(),
    })
}

pub(crate) fn offered(names: &[&str]) -> Offered {
    let tools: Vec<_> = names.iter().map(|name| tool(name, Value::Null)).collect();
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    Offered::of(&Prompt {
        conversation: None,
        settings: &settings,
        messages: Vec::new(),
        tools: &tools,
        allow_calls: true,
        has_open_demand: false,
    })
}

/// The request that a dialect makes of a prompt.
pub(crate) fn request(dialect: &dyn Dialect, prompt: &Prompt<'_>, profile: &Profile) -> HttpRequest {
    let (origin, model) = (Origin { dialect: dialect.name().to_owned(), ..origin() }, ModelFacts::default());
    dialect.request(&Target { origin: &origin, profile, model: &model }, prompt, &mut Kept::default())
}

/// Decodes a body of Chat Completions that comes in these chunks.
pub(crate) fn decode_with(profile: &Profile, offered: &Offered, content_type: Option<&str>, chunks: &[&[u8]]) -> Decoded {
    decode_reply(OpenAiChat.decoder(profile, offered), content_type, chunks)
}

/// Decodes a body that comes in these chunks.
pub(crate) fn decode_reply(decoder: Box<dyn StreamDecoder>, content_type: Option<&str>, chunks: &[&[u8]]) -> Decoded {
    let mut reply = ReplyDecoder::new(decoder, content_type);
    let mut out = Vec::new();
    let mut answer = Ok(());
    for chunk in chunks {
        answer = reply.push(chunk, &mut out);
        if answer.is_err() {
            break;
        }
    }
    if answer.is_ok() {
        answer = reply.end(&mut out);
    }
    let mut assembler = Assembler::default();
    for delta in out {
        assembler.push(delta);
    }
    match answer {
        Ok(()) => Decoded { message: assembler.complete(origin(), Seq::FIRST), failure: None },
        Err(failure) => {
            let cause = CutOffCause::Provider(Box::new(failure.clone()));
            Decoded { message: assembler.cut_off(origin(), Seq::FIRST, cause), failure: Some(failure) }
        }
    }
}

pub(crate) fn decode(chunks: &[&[u8]]) -> Decoded {
    decode_with(&Profile::COMPATIBLE, &Offered::default(), Some("text/event-stream"), chunks)
}

/// Decodes a body whole, cut in two at every byte, and byte by byte: all must be the same.
pub(crate) fn decode_every_way(body: &str) -> Decoded {
    every_way(body, decode)
}

/// As [`decode_every_way`], with another way to decode chunks.
pub(crate) fn every_way(body: &str, decode: impl Fn(&[&[u8]]) -> Decoded) -> Decoded {
    let whole = decode(&[body.as_bytes()]);
    for cut in 0..=body.len() {
        let (head, tail) = body.as_bytes().split_at(cut);
        assert_eq!(decode(&[head, tail]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(decode(&bytes), whole, "byte by byte");
    whole
}

/// A stream of these chunks' choices, with a usage chunk and `[DONE]`.
pub(crate) fn stream(deltas: &[&str], finish: &str) -> String {
    let mut body = String::new();
    for delta in deltas {
        write!(body, "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n").unwrap();
    }
    write!(body, "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\n").unwrap();
    body.push_str("data: [DONE]\n\n");
    body
}

/// The calls as `(id, name, arguments)`.
pub(crate) fn calls(message: &AssistantMessage) -> Vec<(Option<&str>, &str, &str)> {
    message.calls().map(|call| (call.provider_id.as_deref(), call.name.as_str(), call.arguments.as_str())).collect()
}
