//! The request (OpenAI Responses, `POST /responses`).
//!
//! Nothing is kept on the provider's side (`store: false`): each request carries the whole conversation. Tools, system
//! prompt and items come first and in one order, so the bytes before a new item stay the same (law 7).

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ConversationId, ReasoningEffort, ToolChoice};

use super::message::Writer;
use super::tools;
use crate::dialect::{HttpRequest, Target};
use crate::facts::ReasoningStyle;
use crate::form::{self, Form, Held};
use crate::json;
use crate::kept::Kept;
use crate::limits;

/// The least that the format takes as a limit.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// The longest key of a cache that the format takes.
const MAX_CACHE_KEY_BYTES: usize = 64;

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

impl Rest<'_> {
    /// The members that a server may refuse and that can be done without.
    fn optional(&self) -> Vec<&'static str> {
        let members = [
            (self.include.is_some(), "include"),
            (self.reasoning.is_some(), "reasoning.summary"),
            (self.reasoning.is_some(), "reasoning"),
            (self.prompt_cache_key.is_some(), "prompt_cache_key"),
            (self.max_output_tokens.is_some(), "max_output_tokens"),
        ];
        members.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
    }
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
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema(Form<'a>),
    JsonObject,
}

impl<'a> From<Held<'a>> for Format<'a> {
    fn from(held: Held<'a>) -> Self {
        match held {
            Held::Schema(form) => Self::JsonSchema(form),
            Held::JsonObject => Self::JsonObject,
        }
    }
}

#[derive(Serialize)]
struct Reasoning {
    effort: ReasoningEffort,
    summary: &'static str,
}

/// What a conversation's requests have in common: its id, or a name made of one that is longer than the API takes.
fn cache_key(id: &ConversationId) -> Cow<'_, str> {
    let text = id.as_str();
    if text.len() <= MAX_CACHE_KEY_BYTES {
        return Cow::Borrowed(text);
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let beginning: String = text.chars().take(MAX_CACHE_KEY_BYTES - 17).filter(char::is_ascii).collect();
    Cow::Owned(format!("{beginning}-{:016x}", hasher.finish()))
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
    let held = settings.output.as_ref().map(|output| (output, Held::of(output, profile)));
    if let Some((output, Held::JsonObject)) = &held {
        // The API wants to read of JSON in the items, and takes no notice of the instructions there.
        json::write(&serde_json::json!({"role": "developer", "content": form::in_words(output)}), &mut body);
    }
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
        text: held.map(|(_, held)| Text { format: held.into() }),
        reasoning: effort.map(|effort| Reasoning { effort, summary: "auto" }),
        max_output_tokens: limits::output_tokens(settings, target.model).map(|limit| limit.max(MIN_OUTPUT_TOKENS)),
        temperature: settings.temperature.filter(|_| target.model.temperature != Some(false) && !is_thinking),
        prompt_cache_key: prompt.conversation.map(|of| cache_key(of.id)),
        // What cannot reason has nothing to encrypt, and the API refuses to be asked for it.
        include: may_think.then_some(["reasoning.encrypted_content"]),
        store: false,
        stream: true,
    };
    json::write_rest(&rest, &mut body);
    let optional = rest.optional();
    HttpRequest { path: "/responses".to_owned(), headers: Vec::new(), body: kept.keep(body), optional }
}
