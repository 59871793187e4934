//! The request (OpenAI Chat Completions, `POST /chat/completions`).
//!
//! Tools and messages come first and in one order, so the bytes before a new message stay the same (law 7).

use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;
use turnwright_core::prompt::Prompt;
use turnwright_core::{ReasoningEffort, ToolChoice, ToolDefinition};

use super::message::Writer;
use crate::dialect::{HttpRequest, Target};
use crate::form::Form;
use crate::json;
use crate::kept::Kept;
use crate::profile::{MaxTokensField, StructuredOutput, ToolChoices};
use crate::schema::{SchemaTarget, compile_or_any};

const USAGE_OPTION: &[u8] = br#","stream_options":{"include_usage":true}"#;

/// The tools, in the form that Chat Completions and Ollama share.
pub(crate) struct Tools<'a> {
    pub(crate) tools: &'a [Arc<ToolDefinition>],
    pub(crate) schemas: SchemaTarget,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.tools.len()))?;
        for tool in self.tools {
            let lowered = compile_or_any(&tool.input_schema, self.schemas);
            let description = Some(tool.description.as_str()).filter(|text| !text.is_empty());
            let strict = lowered.is_strict();
            let function = Function { name: &tool.name, description, parameters: &lowered.schema, strict };
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
    parameters: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

/// The part of the body that may change from request to request.
#[derive(Serialize)]
struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
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

#[derive(Serialize)]
#[serde(untagged)]
enum Choice<'a> {
    Word(&'static str),
    Function {
        #[serde(rename = "type")]
        kind: &'static str,
        function: Named<'a>,
    },
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<Form<'a>>,
}

pub(super) fn request(target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
    let (settings, profile) = (prompt.settings, target.profile);
    kept.keep_for(target);
    let mut body = Vec::with_capacity(1024 + kept.bytes() + 512 * prompt.messages.len());
    body.extend_from_slice(b"{\"model\":");
    json::write(&target.origin.model, &mut body);
    let has_tools = profile.tools && !prompt.tools.is_empty();
    if has_tools {
        kept.write_tools(prompt, &mut body, |out| {
            json::write_member("tools", &Tools { tools: prompt.tools, schemas: profile.tool_schemas.target() }, out);
        });
    }
    body.extend_from_slice(b",\"messages\":[");
    Writer::system(profile, prompt, &mut body);
    kept.write_messages(target, prompt, &mut body, || Writer::new(profile));
    body.extend_from_slice(b"],");
    let tool_choice = prompt.tool_choice();
    let tool_choice = match &tool_choice {
        _ if !has_tools => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(Choice::Word("none")),
        ToolChoice::Required | ToolChoice::Tool(_) if profile.tool_choice == ToolChoices::NoneOnly => None,
        ToolChoice::Tool(name) if profile.tool_choice != ToolChoices::Unnamed => {
            Some(Choice::Function { kind: "function", function: Named { name } })
        }
        ToolChoice::Required | ToolChoice::Tool(_) => {
            Some(Choice::Word(if profile.tool_choice == ToolChoices::AnyWord { "any" } else { "required" }))
        }
    };
    let response_format = settings.output.as_ref().and_then(|output| match profile.structured_output {
        StructuredOutput::JsonSchema => {
            Some(ResponseFormat { kind: "json_schema", json_schema: Some(Form::of(output, profile)) })
        }
        StructuredOutput::JsonObject => Some(ResponseFormat { kind: "json_object", json_schema: None }),
        StructuredOutput::Prompt => None,
    });
    let limit = |field| settings.max_output_tokens.filter(|_| profile.max_tokens_field == field);
    let rest = Rest {
        tool_choice,
        response_format,
        max_tokens: limit(MaxTokensField::MaxTokens),
        max_completion_tokens: limit(MaxTokensField::MaxCompletionTokens),
        temperature: settings.temperature.filter(|_| target.model.temperature != Some(false)),
        reasoning_effort: settings.reasoning_effort.filter(|_| profile.reasoning_effort),
        stream: true,
    };
    let start = body.len();
    json::write(&rest, &mut body);
    // The object goes on: its own brace goes.
    body.remove(start);
    let mut optional = None;
    if profile.stream_usage {
        body.pop();
        let start = body.len();
        body.extend_from_slice(USAGE_OPTION);
        optional = Some(("stream_options", start..body.len()));
        body.push(b'}');
    }
    HttpRequest { path: "/chat/completions".to_owned(), headers: Vec::new(), body, optional }
}
