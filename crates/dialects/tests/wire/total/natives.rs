//! A provider's own blocks go back to where they came from, byte for byte, and nowhere else (law 4): also after other models
//! have spoken.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, Completion, FinishReason, NativeBlock, ToolCall};
use turnwright_dialects::Kept;

use super::endpoint::{self, Endpoint};
use super::story::Story;

const JOURNALS: u64 = 6_000;

/// The messages of models that a prompt shows.
fn answers<'a>(prompt: &'a Prompt<'_>) -> impl Iterator<Item = &'a AssistantMessage> {
    prompt.messages.iter().filter_map(|message| match message {
        PromptMessage::Assistant { message, .. } => Some(*message),
        PromptMessage::User { .. } | PromptMessage::Context { .. } | PromptMessage::Results(_) => None,
    })
}

/// Whether nothing of an answer has to be shown in other words: it ended well, and its calls can be taken as they are.
fn is_sound(message: &AssistantMessage) -> bool {
    let ends_well = matches!(message.finish.reason, FinishReason::Stop | FinishReason::ToolCalls);
    let says_something = match message.blocks.last() {
        Some(AssistantBlock::Text { text, .. }) => !text.trim().is_empty(),
        Some(AssistantBlock::Call(_)) => true,
        _ => false,
    };
    let is_taken = |call: &ToolCall| {
        let has_name = (1..=64).contains(&call.name.len())
            && call.name.starts_with(|c: char| c.is_ascii_alphabetic())
            && call.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let needs_no_id = message.origin.dialect == "gemini" && call.provider_id.is_none();
        let has_id = needs_no_id
            || call.provider_id.as_deref().is_some_and(|id| {
                let is_word = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                (1..=40).contains(&id.len()) && is_word && id != "repeated" && id.parse::<CallId>().is_err()
            });
        has_name && has_id && call.arguments == call.arguments_object()
    };
    message.completion == Completion::Complete && ends_well && says_something && message.calls().all(is_taken)
}

/// The bytes that a native block must be in a request to its origin.
fn bytes_of<'a>(endpoint: &Endpoint, native: &'a NativeBlock) -> Vec<&'a str> {
    match endpoint.dialect.name() {
        // Its blocks are a message's fields: which field, and its items.
        "openai-chat" => {
            let fields: BTreeMap<String, &'a RawValue> = serde_json::from_str(&native.0).unwrap();
            let is_replayed = endpoint.origin.provider == "openrouter";
            let items = fields.get("value").filter(|_| is_replayed);
            let items = items.map(|value| serde_json::from_str::<Vec<&'a RawValue>>(value.get()).unwrap()).unwrap_or_default();
            items.into_iter().chain(fields.get("extra_content").copied()).map(RawValue::get).collect()
        }
        _ => vec![native.0.trim()],
    }
}

/// What nobody but the origin may see: signatures, ciphertext, the provider's names of items.
fn secrets(native: &NativeBlock) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value.as_str()) {
                        ("signature" | "data" | "encrypted_content" | "thoughtSignature", Some(text)) => {
                            found.push(text.to_owned());
                        }
                        ("id", Some(id))
                            if ["rs_", "msg_", "fc_", "ws_", "srvtoolu_"].iter().any(|kind| id.starts_with(kind)) =>
                        {
                            found.push(id.to_owned());
                        }
                        _ => collect(value, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::from_str(&native.0).unwrap(), &mut found);
    // Short ones are the same for many.
    found.retain(|secret| secret.len() >= 15);
    found
}

fn natives(message: &AssistantMessage) -> impl Iterator<Item = &NativeBlock> {
    message.blocks.iter().filter_map(|block| match block {
        AssistantBlock::Text { native, .. } | AssistantBlock::Reasoning { native, .. } => native.as_ref(),
        AssistantBlock::Call(call) => call.native.as_ref(),
        AssistantBlock::Opaque { native } => Some(native),
        AssistantBlock::Refusal { .. } => None,
    })
}

#[test]
fn native_blocks_go_back_byte_for_byte_to_their_origin_and_to_nobody_else() {
    // By dialect: blocks that went back, and those of them after which another model had spoken.
    let mut went_back: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut kept_away = 0;
    for seed in (0..JOURNALS).map(|number| 1_000_000 + number) {
        let (story, asked) = Story::told(seed);
        let prompt = story.prompt(&asked);
        let body =
            |endpoint: &Endpoint| String::from_utf8(endpoint.request(&prompt, &mut Kept::default()).body.into_vec()).unwrap();
        let is_origin = |endpoint: &&Endpoint| answers(&prompt).any(|message| message.origin == endpoint.origin);
        for endpoint in endpoint::all().iter().filter(is_origin) {
            let sent = body(endpoint);
            let last_other = answers(&prompt).collect::<Vec<_>>().iter().rposition(|message| message.origin != endpoint.origin);
            for (message, place) in answers(&prompt).zip(0..) {
                if message.origin != endpoint.origin || !is_sound(message) {
                    continue;
                }
                for bytes in natives(message).flat_map(|native| bytes_of(endpoint, native)) {
                    assert!(sent.contains(bytes), "seed {seed}: {:?} does not get back {bytes}\n{sent}", endpoint.origin);
                    let counts = went_back.entry(endpoint.dialect.name()).or_default();
                    counts.0 += 1;
                    counts.1 += usize::from(last_other.is_some_and(|last| last > place));
                }
            }
        }
        for endpoint in endpoint::one_of_each_dialect(seed * 8) {
            let sent = body(endpoint);
            let foreign = answers(&prompt).filter(|message| message.origin != endpoint.origin);
            for secret in foreign.flat_map(natives).flat_map(secrets) {
                assert!(!sent.contains(&secret), "seed {seed}: {:?} is shown {secret}\n{sent}", endpoint.origin);
                kept_away += 1;
            }
        }
    }
    println!("went back, and of those after another model spoke: {went_back:?}; kept from others: {kept_away}");
    assert!(kept_away > 1_000);
    for dialect in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        assert!(went_back.get(dialect).is_some_and(|(all, after)| *all > 100 && *after > 20), "{dialect}: {went_back:?}");
    }
}
