//! The request (OpenAI Responses, `POST /responses`).
//!
//! Nothing is kept on the provider's side (`store: false`): each request carries the whole conversation. Tools, system
//! prompt and items come first and in one order, so the bytes before a new item stay the same (law 7).

use serde::Serialize;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ConversationId, ReasoningEffort, ToolChoice};

use super::message::Writer;
use super::tools;
use crate::dialect::{HttpRequest, Target};
use crate::facts::ReasoningStyle;
use crate::form::Form;
use crate::json;
use crate::kept::Kept;

/// The least that the format takes as a limit.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// The part of the body that may change from request to request.
#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    include: [&'static str; 1],
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Function {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'a str,
    },
    Allowed {
        #[serde(rename = "type")]
        kind: &'static str,
        mode: &'static str,
        tools: Vec<Choice<'a>>,
    },
}

fn function(name: &str) -> Choice<'_> {
    Choice::Function { kind: "function", name }
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    form: Form<'a>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: ReasoningEffort,
    summary: &'static str,
}

pub(super) fn request(target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
    let (settings, profile) = (prompt.settings, target.profile);
    kept.keep_for(target);
    let mut body = Vec::new();
    body.extend_from_slice(b"{\"model\":");
    json::write(&target.origin.model, &mut body);
    if !prompt.tools.is_empty() {
        kept.write_tools(prompt, &mut body, |out| {
            json::write_member("tools", &tools::of(prompt.tools, profile.tool_schemas.target()), out);
        });
    }
    if let Some(text) = settings.system_prompt.as_deref().filter(|text| !text.is_empty()) {
        json::write_member("instructions", text, &mut body);
    }
    body.extend_from_slice(b",\"input\":[");
    kept.write_messages(target, prompt, &mut body, || Writer::new(profile.tool_call_ids));
    body.extend_from_slice(b"],");
    let tool_choice = prompt.tool_choice();
    let tool_choice = match &tool_choice {
        _ if prompt.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some(Choice::Word("required")),
        ToolChoice::None => Some(Choice::Word("none")),
        ToolChoice::Tool(name) => Some(function(name)),
        ToolChoice::Tools(names) => {
            let tools = names.iter().map(|name| function(name)).collect();
            Some(Choice::Allowed { kind: "allowed_tools", mode: "required", tools })
        }
    };
    let thinks = target.model.reasoning != Some(ReasoningStyle::Never) && profile.reasoning_effort;
    let effort = settings.reasoning_effort.filter(|_| thinks);
    // A model that thinks takes no temperature.
    let is_thinking = effort.is_some_and(|effort| effort != ReasoningEffort::None);
    let rest = Rest {
        tool_choice,
        parallel_tool_calls: settings.parallel_calls.filter(|_| !prompt.tools.is_empty() && profile.parallel_tool_calls),
        text: settings
            .output
            .as_ref()
            .map(|output| Text { format: Format { kind: "json_schema", form: Form::of(output, profile) } }),
        reasoning: effort.map(|effort| Reasoning { effort, summary: "auto" }),
        max_output_tokens: settings.max_output_tokens.map(|limit| limit.max(MIN_OUTPUT_TOKENS)),
        temperature: settings.temperature.filter(|_| target.model.temperature != Some(false) && !is_thinking),
        prompt_cache_key: prompt.conversation.map(ConversationId::as_str),
        include: ["reasoning.encrypted_content"],
        store: false,
        stream: true,
    };
    json::write_rest(&rest, &mut body);
    HttpRequest { path: "/responses".to_owned(), headers: Vec::new(), body: kept.keep(body), optional: Vec::new() }
}
