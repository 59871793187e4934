//! The request (OpenAI Responses, `POST /responses`).
//!
//! Nothing is kept on the provider's side (`store: false`): each request carries the whole conversation. Tools, system
//! prompt and items come first and in one order, so the bytes before a new item stay the same (law 7).

use std::borrow::Cow;

use serde::Serialize;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ReasoningEffort, ToolChoice};

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
    prompt_cache_key: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
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
    let may_think = target.model.reasoning != Some(ReasoningStyle::Never);
    let effort = settings.reasoning_effort.filter(|_| may_think && profile.reasoning_effort);
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
        prompt_cache_key: prompt.conversation.map(|id| cache_key(id.as_str())),
        // Refused for models that do not reason.
        include: may_think.then_some(["reasoning.encrypted_content"]),
        store: false,
        stream: true,
    };
    json::write_rest(&rest, &mut body);
    HttpRequest { path: "/responses".to_owned(), headers: Vec::new(), body: kept.keep(body), optional: Vec::new() }
}

/// The longest `prompt_cache_key` that is taken, in bytes.
const MAX_CACHE_KEY: usize = 64;

/// What the requests of one conversation have in common. One of a long id ends with what tells it from others that begin alike.
fn cache_key(id: &str) -> Cow<'_, str> {
    if id.len() <= MAX_CACHE_KEY {
        return Cow::Borrowed(id);
    }
    // FNV-1a.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // An id is in ASCII.
    Cow::Owned(format!("{}-{hash:016x}", id.get(..MAX_CACHE_KEY - 17).unwrap_or_default()))
}
