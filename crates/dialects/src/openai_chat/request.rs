//! The request (OpenAI Chat Completions, `POST /chat/completions`).
//!
//! Tools and messages come first and in one order, so the bytes before a new message stay the same (law 7).

use std::sync::Arc;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;
use turnwright_core::prompt::Prompt;
use turnwright_core::{Origin, ProviderFailure, ProviderFailureKind, ReasoningEffort, ToolDefinition};

use super::message::{Message, Writer};
use crate::dialect::HttpRequest;
use crate::profile::{MaxTokensField, Profile};

const USAGE_OPTION: &[u8] = br#","stream_options":{"include_usage":true}"#;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
    stream: bool,
}

struct Tools<'a> {
    tools: &'a [Arc<ToolDefinition>],
    strip_meta: bool,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.tools.len()))?;
        for tool in self.tools {
            let parameters = Schema { schema: &tool.input_schema, strip_meta: self.strip_meta };
            let description = Some(tool.description.as_str()).filter(|text| !text.is_empty());
            let function = Function { name: &tool.name, description, parameters };
            list.serialize_element(&Tool { kind: "function", function })?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Schema<'a>,
}

/// An object schema with what servers demand of one: a `type` and `properties`.
struct Schema<'a> {
    schema: &'a Value,
    strip_meta: bool,
}

impl Serialize for Schema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let members = self.schema.as_object();
        let has = |key: &str| members.is_some_and(|members| members.contains_key(key));
        if !has("type") {
            map.serialize_entry("type", "object")?;
        }
        for (key, value) in members.into_iter().flatten() {
            if !(self.strip_meta && matches!(key.as_str(), "$schema" | "$id")) {
                map.serialize_entry(key, value)?;
            }
        }
        if !has("properties") {
            map.serialize_entry("properties", &serde_json::Map::new())?;
        }
        map.end()
    }
}

pub(super) fn request(target: &Origin, prompt: &Prompt<'_>, profile: &Profile) -> Result<HttpRequest, ProviderFailure> {
    let settings = prompt.settings;
    let has_tools = !prompt.tools.is_empty();
    let limit = |field| settings.max_output_tokens.filter(|_| profile.max_tokens_field == field);
    let body = Body {
        model: &target.model,
        tools: has_tools.then_some(Tools { tools: prompt.tools, strip_meta: profile.strip_schema_meta }),
        messages: Writer::new(target, profile).write(prompt),
        tool_choice: (has_tools && !prompt.allow_calls).then_some("none"),
        max_tokens: limit(MaxTokensField::MaxTokens),
        max_completion_tokens: limit(MaxTokensField::MaxCompletionTokens),
        temperature: settings.temperature,
        reasoning_effort: settings.reasoning_effort.filter(|_| profile.reasoning_effort),
        stream: true,
    };
    let mut bytes = Vec::with_capacity(1024 + 512 * (body.messages.len() + prompt.tools.len()));
    serde_json::to_writer(&mut bytes, &body).map_err(|error| {
        ProviderFailure::new(ProviderFailureKind::InvalidRequest, format!("the prompt cannot be written as JSON: {error}"))
    })?;
    let mut optional = None;
    if profile.stream_usage {
        bytes.pop();
        let start = bytes.len();
        bytes.extend_from_slice(USAGE_OPTION);
        optional = Some(("stream_options", start..bytes.len()));
        bytes.push(b'}');
    }
    Ok(HttpRequest { path: "/chat/completions".to_owned(), headers: Vec::new(), body: bytes, optional })
}
