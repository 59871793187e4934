//! The request (Anthropic Messages, `POST /v1/messages`).
//!
//! Tools, the system prompt and messages come first and in one order, so the bytes before a new message stay the same
//! (law 7). Each of the three ends with a mark: up to there the provider keeps what it has read.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{AssistantBlock, AssistantMessage, FinishReason, ReasoningEffort, ToolChoice, ToolDefinition};

use super::message::Writer;
use super::models::{self, Efforts, Forced, Quiet, Rules, Sampling};
use super::{HEADERS, native, output};
use crate::demand;
use crate::dialect::{HttpRequest, Target};
use crate::form::{self, Held};
use crate::json;
use crate::kept::Kept;
use crate::profile::ToolSchemas;
use crate::schema::{SchemaTarget, StrictRoom, compile_or_any};

/// The smallest thinking budget that the format takes, in tokens.
const MIN_BUDGET_TOKENS: u32 = 1024;

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: Cow<'a, str>,
    input_schema: Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct System<'a> {
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct CacheControl {}

/// The part of the body that may change from request to request.
#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice<'a> {
    Auto {
        #[serde(flatten)]
        calls: Calls,
    },
    Any {
        #[serde(flatten)]
        calls: Calls,
    },
    Tool {
        name: &'a str,
        #[serde(flatten)]
        calls: Calls,
    },
    None,
}

/// How many calls one answer may hold.
#[derive(Clone, Copy, Serialize)]
struct Calls {
    #[serde(rename = "disable_parallel_tool_use", skip_serializing_if = "Option::is_none")]
    is_one: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Adaptive { display: &'static str },
    Enabled { budget_tokens: u32 },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "json_schema")]
struct Format {
    schema: Value,
}

pub(super) fn request(target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
    kept.keep_for(target);
    let mut body = Vec::new();
    body.extend_from_slice(b"{\"model\":");
    json::write(&target.origin.model, &mut body);
    let rules = models::rules(target);
    let is_strict = target.profile.tool_schemas == ToolSchemas::Strict && rules.strict_tools == models::Strict::Takes;
    let mut room = is_strict.then_some(StrictRoom::WHOLE);
    let has_tools = !prompt.tools.is_empty();
    let has_calls = prompt.messages.iter().any(|message| matches!(message, PromptMessage::Results(_)));
    if has_tools {
        kept.write_tools(prompt, &mut body, |out| {
            let last = prompt.tools.len() - 1;
            let tools = prompt.tools.iter().zip(0..).map(|(tool, position)| self::tool(tool, &mut room, position == last));
            json::write_member("tools", &tools.collect::<Vec<_>>(), out);
        });
    } else if has_calls {
        // A history with calls is refused without tools.
        json::write_member("tools", &[no_tool()], &mut body);
    }
    let own = prompt.settings.system_prompt.as_deref().filter(|text| !text.trim().is_empty());
    let output = prompt.settings.output.as_ref();
    let held = output.filter(|_| rules.forms == models::Forms::Takes);
    let held = held.and_then(|output| output::closed(&Held::lowered(output, SchemaTarget::Anthropic).into_schema()?));
    let told = output.filter(|_| held.is_none());
    if let Some(text) = form::system(own, told) {
        json::write_member("system", &[System { text: &text, cache_control: CacheControl {} }], &mut body);
    }
    body.extend_from_slice(b",\"messages\":[");
    kept.write_messages(target, prompt, &mut body, Writer::new);
    let demanded = prompt.tool_choice();
    let can_force = rules.forced_calls == Forced::Takes;
    if has_tools
        && (!can_force || matches!(demanded, ToolChoice::Tools(_)))
        && let Some(text) = demand::in_words(&demanded)
    {
        // The format has no word for one of several tools, and to offer those alone would change the prompt's beginning.
        add_to_last_message(&format!("({text})"), &mut body);
    }
    let calls = Calls { is_one: (prompt.settings.parallel_calls == Some(false)).then_some(true) };
    let auto = calls.is_one.map(|_| Choice::Auto { calls });
    let tool_choice = match &demanded {
        _ if !has_tools => has_calls.then_some(Choice::None),
        ToolChoice::None => Some(Choice::None),
        ToolChoice::Required | ToolChoice::Tools(_) if can_force => Some(Choice::Any { calls }),
        ToolChoice::Tool(name) if can_force => Some(Choice::Tool { name, calls }),
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Tools(_) => auto,
    };
    body.extend_from_slice(b"],");
    let is_forced = matches!(tool_choice, Some(Choice::Any { .. } | Choice::Tool { .. }));
    let settings = prompt.settings;
    let max_tokens =
        settings.max_output_tokens.map_or(rules.max_output_tokens, |most| most.min(rules.max_output_tokens)).max(1);
    let thinking = thinking(prompt, target, rules, max_tokens).filter(|thinking| !is_forced || *thinking == Thinking::Disabled);
    let effort = settings.reasoning_effort.filter(|_| rules.thinking == models::Thinking::Adaptive);
    let effort = effort.and_then(|effort| effort_word(effort, rules));
    let format = held.map(|schema| Format { schema });
    let thinks = thinking.is_some_and(|thinking| thinking != Thinking::Disabled);
    let rest = Rest {
        tool_choice,
        max_tokens,
        thinking,
        output_config: (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format }),
        temperature: settings
            .temperature
            .filter(|_| rules.temperature == Sampling::Takes && !thinks)
            .map(|temperature| temperature.min(1.0)),
        stream: true,
    };
    json::write_rest(&rest, &mut body);
    HttpRequest {
        path: "/v1/messages".to_owned(),
        headers: HEADERS.map(|(name, value)| (name, value.to_owned())).to_vec(),
        body: kept.keep(body),
        optional: effort.iter().map(|_| "output_config.effort").collect(),
    }
}

/// A tool, strict where its schema can be and there is room for one more that is.
fn tool<'a>(tool: &'a ToolDefinition, room: &mut Option<StrictRoom>, is_last: bool) -> Tool<'a> {
    let loosely = || compile_or_any(&tool.input_schema, SchemaTarget::Anthropic);
    let (lowered, is_strict) = match room {
        None => (loosely(), false),
        Some(room) => {
            let lowered = compile_or_any(&tool.input_schema, SchemaTarget::AnthropicStrict);
            match lowered.is_strict() {
                true if room.take(&lowered.schema) => (lowered, true),
                true => (loosely(), false),
                false => (lowered, false),
            }
        }
    };
    Tool {
        name: &tool.name,
        description: tool.described(),
        input_schema: lowered.schema,
        strict: is_strict,
        cache_control: is_last.then_some(CacheControl {}),
    }
}

/// What stands where no tool is offered any more.
fn no_tool() -> Tool<'static> {
    let input_schema = json!({"type": "object", "properties": {}});
    Tool { name: "none", description: "No tool can be called now.".into(), input_schema, strict: false, cache_control: None }
}

/// Adds a text to the last message, which is a person's where a call is demanded.
fn add_to_last_message(text: &str, body: &mut Vec<u8>) {
    if body.ends_with(b"]}") {
        body.truncate(body.len() - 2);
        body.push(b',');
        json::write(&json!({"type": "text", "text": text}), body);
        body.extend_from_slice(b"]}");
    }
}

/// How the model is told to think; nothing where nobody asked.
fn thinking(prompt: &Prompt<'_>, target: &Target<'_>, rules: Rules, max_tokens: u32) -> Option<Thinking> {
    let effort = prompt.settings.reasoning_effort?;
    match rules.thinking {
        models::Thinking::Never => None,
        models::Thinking::Budget | models::Thinking::Adaptive if effort == ReasoningEffort::None => {
            (rules.quiet == Quiet::Can).then_some(Thinking::Disabled)
        }
        models::Thinking::Adaptive => Some(Thinking::Adaptive { display: "summarized" }),
        models::Thinking::Budget => {
            // The answer counts thinking in, and needs room for itself.
            let budget_tokens = budget_tokens(effort).min(max_tokens - max_tokens / 4);
            let is_possible = budget_tokens >= MIN_BUDGET_TOKENS && may_begin_to_think(prompt, target);
            is_possible.then_some(Thinking::Enabled { budget_tokens })
        }
    }
}

fn budget_tokens(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal => MIN_BUDGET_TOKENS,
        ReasoningEffort::Low => 4_096,
        ReasoningEffort::Medium => 10_240,
        ReasoningEffort::High => 20_480,
        ReasoningEffort::Xhigh => 32_768,
        ReasoningEffort::Max => 49_152,
    }
}

fn effort_word(effort: ReasoningEffort, rules: Rules) -> Option<&'static str> {
    match effort {
        ReasoningEffort::None if rules.quiet == Quiet::Can => None,
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
        ReasoningEffort::Medium => Some("medium"),
        ReasoningEffort::High => Some("high"),
        // The word above it is one for more than was asked for.
        ReasoningEffort::Xhigh if rules.efforts == Efforts::WithoutXhigh => Some("high"),
        ReasoningEffort::Xhigh => Some("xhigh"),
        ReasoningEffort::Max => Some("max"),
    }
}

/// Whether thinking may be on: where results are to be answered, the answer that they belong to must have begun with a
/// thought of the same model.
fn may_begin_to_think(prompt: &Prompt<'_>, target: &Target<'_>) -> bool {
    let mut begin = None;
    let mut has_results = false;
    for message in prompt.messages.iter().rev() {
        match message {
            PromptMessage::User { .. } | PromptMessage::Context { .. } if begin.is_some() => break,
            PromptMessage::Results(_) => has_results = true,
            PromptMessage::Assistant { message, .. } if has_results => begin = Some(message),
            PromptMessage::Assistant { message, .. } if says_something(message) => break,
            // An answer that is not shown: the results before it are to be answered.
            PromptMessage::User { .. } | PromptMessage::Context { .. } | PromptMessage::Assistant { .. } => {}
        }
    }
    let Some(begin) = begin else { return true };
    let first = match begin.blocks.first() {
        Some(AssistantBlock::Reasoning { native: Some(native), .. } | AssistantBlock::Opaque { native }) => native,
        Some(
            AssistantBlock::Reasoning { native: None, .. }
            | AssistantBlock::Text { .. }
            | AssistantBlock::Refusal { .. }
            | AssistantBlock::Call(_),
        )
        | None => return false,
    };
    begin.origin == *target.origin && native::read(&first.0) == Some(native::Native::Thought)
}

/// Whether an answer without calls surely becomes a message.
fn says_something(message: &AssistantMessage) -> bool {
    message.blocks.iter().any(|block| match block {
        AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } => {
            !text.trim().is_empty() && message.finish.reason != FinishReason::Refusal
        }
        AssistantBlock::Call(_) => true,
        AssistantBlock::Reasoning { .. } | AssistantBlock::Opaque { .. } => false,
    })
}
