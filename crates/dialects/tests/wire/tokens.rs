//! How far off the length of a prompt is, against what providers said of recorded ones.

use std::sync::Arc;

use serde_json::Value;
use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Finish, FinishReason, ModelRef, Origin, Outcome, Seq,
    TokenCounting, ToolCall, ToolDefinition, ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::{measure, token_counting};

use crate::recordings::cases;
use crate::support::tool;

/// A message of `conversation.json`; `None` where what it holds is no text.
enum Said {
    User(UserMessage),
    Model(AssistantMessage),
    Results(Vec<ToolResult>),
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn said(message: &Value, settings: &TurnSettings) -> Said {
    match message["role"].as_str().unwrap_or_default() {
        "assistant" => {
            let calls = list(&message["tool_calls"]).map(|call| {
                AssistantBlock::Call(ToolCall {
                    name: string(&call["name"]),
                    arguments: call["arguments"].to_string(),
                    provider_id: None,
                    native: None,
                    recovered: false,
                })
            });
            let text = AssistantBlock::Text { text: string(&message["text"]), native: None };
            Said::Model(AssistantMessage {
                origin: Origin { dialect: String::new(), provider: String::new(), model: String::new() },
                saw: Seq::FIRST,
                blocks: std::iter::once(text).chain(calls).collect(),
                finish: Finish { reason: FinishReason::Stop, raw: None },
                completion: Completion::Complete,
                usage: Usage::default(),
            })
        }
        "tool" => {
            let id = CallId { message: Seq::FIRST, index: 0 };
            Said::Results(
                list(&message["results"]).map(|result| ToolResult::of(id, Outcome::Success, string(&result["text"]))).collect(),
            )
        }
        _ => {
            let content = list(&message["parts"]).map(|part| ContentBlock::text(string(&part["text"]))).collect();
            Said::User(UserMessage { content, settings: settings.clone() })
        }
    }
}

/// What a recorded conversation measures as.
fn measured(dialect: &str, model: &str, conversation: &Value) -> u64 {
    let mut settings = TurnSettings::new(ModelRef::new("p", model));
    let system: Vec<String> =
        list(&conversation["system"]).map(|text| text.as_str().map_or_else(|| string(&text["text"]), str::to_owned)).collect();
    settings.system_prompt = (!system.is_empty()).then(|| system.join("\n"));
    let tools: Vec<Arc<ToolDefinition>> = list(&conversation["tools"])
        .map(|offered| {
            let definition = tool(offered["name"].as_str().unwrap_or_default(), offered["parameters"].clone());
            Arc::new(ToolDefinition { description: string(&offered["description"]), ..ToolDefinition::clone(&definition) })
        })
        .collect();
    let all: Vec<Said> = list(&conversation["messages"]).map(|message| said(message, &settings)).collect();
    let call = ToolCall { name: String::new(), arguments: String::new(), provider_id: None, native: None, recovered: false };
    let messages = all.iter().map(|said| match said {
        Said::User(message) => PromptMessage::User { seq: Seq::FIRST, message },
        Said::Model(message) => PromptMessage::Assistant { seq: Seq::FIRST, message },
        Said::Results(results) => PromptMessage::Results(
            results
                .iter()
                .map(|result| PromptResult {
                    id: result.call,
                    call: &call,
                    result: ShownResult::from(result),
                    edit: None,
                    nudge: None,
                })
                .collect(),
        ),
    });
    let prompt = Prompt {
        conversation: None,
        settings: &settings,
        messages: messages.collect(),
        tools: &tools,
        allow_calls: true,
        has_open_demand: false,
    };
    measure(dialect, model, &prompt)
}

/// How far off each recorded prompt of at least so many tokens is, in hundredths, the nearest first.
fn errors(is_meant: impl Fn(&str, TokenCounting) -> bool, least: u64) -> Vec<u64> {
    let mut errors = Vec::new();
    for case in cases() {
        let (Some(input), Some(conversation)) = (case.input_tokens(), case.conversation()) else { continue };
        // What is no text, and what the provider runs itself, is in no table.
        let has_media = conversation.to_string().contains("\"media\"");
        if has_media || case.uses_provider_tools() || input < least || !is_meant(case.dialect(), token_counting(&case.model)) {
            continue;
        }
        let measured = measured(case.dialect(), &case.model, &conversation);
        errors.push(measured.abs_diff(input) * 100 / input);
    }
    errors.sort_unstable();
    errors
}

fn told(what: &str, errors: &[u64]) -> Option<u64> {
    let Some(median) = errors.get(errors.len() / 2) else {
        println!("skipped: no recordings of {what}; the error of its estimate is not measured");
        return None;
    };
    let ninth = errors.get(errors.len() * 9 / 10).copied().unwrap_or_default();
    println!("{what}: {} prompts, median error {median} %, nine in ten within {ninth} %", errors.len());
    Some(*median)
}

#[test]
fn prompts_of_a_hundred_tokens_and_more_are_measured_within_the_errors_that_the_docs_name() {
    let estimated = |counting| counting == TokenCounting::Estimated;
    let rows = [
        ("anthropic", told("anthropic", &errors(|dialect, _| dialect == "anthropic", 100)), 20),
        ("gemini", told("gemini", &errors(|dialect, _| dialect == "gemini", 100)), 45),
        ("openai", told("OpenAI's models", &errors(|_, counting| !estimated(counting), 100)), 35),
        ("others", told("others", &errors(|dialect, counting| estimated(counting) && dialect.starts_with("openai"), 100)), 35),
        ("ollama", told("ollama", &errors(|dialect, _| dialect == "ollama", 100)), 35),
    ];
    for (what, median, most) in rows {
        assert!(median.is_none_or(|median| median <= most), "{what}: {median:?} %, the docs say at most {most} %");
    }
}
