//! Calls that were made elsewhere, where an endpoint demands of its own what no other gives.

use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{
    AssistantBlock, AssistantMessage, Completion, Finish, FinishReason, ModelRef, NativeBlock, Origin, Seq, ToolCall,
    TurnSettings, Usage,
};
use turnwright_dialects::openai_chat::OpenAiChat;
use turnwright_dialects::{Dialect, Kept, ModelFacts, Profile, ReasoningStyle, Target};

use crate::support::origin;

fn call(native: Option<&str>) -> AssistantBlock {
    let native = native.map(|native| NativeBlock(native.to_owned()));
    let arguments = "{}".to_owned();
    AssistantBlock::Call(ToolCall { name: "f".to_owned(), arguments, provider_id: None, recovered: false, native })
}

fn says(model: &str, blocks: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        origin: Origin { model: model.to_owned(), ..origin() },
        saw: Seq::FIRST,
        blocks,
        finish: Finish { reason: FinishReason::ToolCalls, raw: None },
        completion: Completion::Complete,
        usage: Usage::default(),
    }
}

/// How `model` of a preset is shown these messages.
fn shown(preset: &str, model: &str, facts: &ModelFacts, messages: &[AssistantMessage]) -> Vec<Value> {
    let (settings, profile) = (TurnSettings::new(ModelRef::new("p", model)), Profile::preset(preset).unwrap());
    let messages = messages.iter().map(|message| PromptMessage::Assistant { seq: Seq::FIRST, message }).collect();
    let prompt =
        Prompt { conversation: None, settings: &settings, messages, tools: &[], allow_calls: true, has_open_demand: false };
    let origin = Origin { model: model.to_owned(), ..origin() };
    let target = Target { origin: &origin, profile: &profile, model: facts };
    let body = OpenAiChat.request(&target, &prompt, &mut Kept::default()).body;
    serde_json::from_slice::<Value>(&body).unwrap()["messages"].as_array().unwrap().clone()
}

#[test]
fn a_message_with_calls_has_some_reasoning_where_kimi_demands_it() {
    let thought = |text: &str| AssistantBlock::Reasoning {
        text: text.to_owned(),
        native: Some(NativeBlock(r#"{"field":"reasoning_content"}"#.to_owned())),
    };
    let messages = |model| {
        [
            says("other", vec![call(None)]),
            says(model, vec![thought("why"), call(None)]),
            says(model, vec![thought(""), call(None)]),
            says(model, vec![call(None)]),
            says(model, vec![thought("why"), AssistantBlock::Text { text: "so".to_owned(), native: None }]),
        ]
    };
    let reasoning = |preset, model, facts| -> Vec<Value> {
        shown(preset, model, facts, &messages(model)).iter().map(|message| message["reasoning_content"].clone()).collect()
    };
    let unknown = ModelFacts::default();
    let filled = [json!(" "), json!("why"), json!(" "), json!(" "), Value::Null];
    for model in ["kimi-k2.5", "kimi-k2.6", "kimi-latest"] {
        assert_eq!(reasoning("moonshot", model, &unknown), filled, "{model}");
    }
    let own = [Value::Null, json!("why"), json!(""), Value::Null, Value::Null];
    assert_eq!(reasoning("moonshot", "moonshot-v1-32k", &unknown), own);
    let never = ModelFacts { reasoning: Some(ReasoningStyle::Never), ..unknown };
    assert_eq!(reasoning("moonshot", "kimi-k2-0905-preview", &never), own);
    assert_eq!(reasoning("groq", "kimi-k2.5", &unknown), own);
}

#[test]
fn the_first_call_of_a_message_is_marked_where_gemini_demands_a_signature() {
    let signed = r#"{"extra_content":{"google":{"thought_signature":"c2ln"}}}"#;
    let messages = |model| {
        [
            says("other", vec![call(Some(signed)), call(None)]),
            says(model, vec![call(Some(signed)), call(None)]),
            says(model, vec![call(None)]),
        ]
    };
    let signatures = |preset, model| -> Vec<Value> {
        let shown = shown(preset, model, &ModelFacts::default(), &messages(model));
        let calls = shown.iter().flat_map(|message| message["tool_calls"].as_array().unwrap());
        calls.map(|call| call["extra_content"]["google"]["thought_signature"].clone()).collect()
    };
    let mark = json!("skip_thought_signature_validator");
    let own = json!("c2ln");
    let marked = [mark.clone(), Value::Null, own.clone(), Value::Null, mark];
    for model in ["gemini-3-flash-preview", "models/gemini-3.1-pro-preview", "gemini-flash-latest"] {
        assert_eq!(signatures("gemini", model), marked, "{model}");
    }
    let only_own = [Value::Null, Value::Null, own, Value::Null, Value::Null];
    assert_eq!(signatures("gemini", "gemini-2.5-flash"), only_own);
    assert_eq!(signatures("openrouter", "google/gemini-3-flash-preview"), only_own);
}
