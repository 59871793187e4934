//! What is said, as the conventions write it into spans (`gen_ai.input.messages`, `gen_ai.output.messages`).

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{AssistantBlock, AssistantMessage, CallId, Seq, text_of};

/// The messages of a prompt.
pub(crate) fn prompt(prompt: &Prompt<'_>) -> String {
    let system = prompt.settings.system_prompt.iter().map(|text| message("system", &[text_part(text)]));
    let messages = prompt.messages.iter().map(|said| match said {
        PromptMessage::User { message: said, .. } => message("user", &[text_part(&text_of(&said.content))]),
        PromptMessage::Context { context, .. } => message("user", &[text_part(&context.text)]),
        PromptMessage::Assistant { seq, message: said } => message("assistant", &parts(said, Some(*seq))),
        PromptMessage::Results(results) => {
            let part = |result: &turnwright_core::prompt::PromptResult<'_>| json!({"type": "tool_call_response", "id": result.id.to_string(), "response": result.text()});
            message("tool", &results.iter().map(part).collect::<Vec<_>>())
        }
    });
    Value::Array(system.chain(messages).collect()).to_string()
}

/// An answer.
pub(crate) fn output(said: &AssistantMessage) -> String {
    let finish_reason = said.finish.reason.as_contract();
    json!([{"role": "assistant", "parts": parts(said, None), "finish_reason": finish_reason}]).to_string()
}

/// The parts of a message, its calls with their ids where its place is known.
fn parts(said: &AssistantMessage, place: Option<Seq>) -> Vec<Value> {
    let mut calls = 0_u32..;
    let part = |block: &AssistantBlock| match block {
        AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => Some(text_part(text)),
        AssistantBlock::Reasoning { text, .. } => Some(json!({"type": "reasoning", "content": text})),
        AssistantBlock::Call(call) => {
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()));
            let id = place.zip(calls.next()).map(|(message, index)| CallId { message, index }.to_string());
            Some(match id {
                Some(id) => json!({"type": "tool_call", "id": id, "name": call.name, "arguments": arguments}),
                None => json!({"type": "tool_call", "name": call.name, "arguments": arguments}),
            })
        }
        AssistantBlock::Opaque { .. } => None,
    };
    said.blocks.iter().filter_map(part).collect()
}

fn message(role: &str, parts: &[Value]) -> Value {
    json!({"role": role, "parts": parts})
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "content": text})
}
