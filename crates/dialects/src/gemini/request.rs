//! The request (Gemini API, `POST /models/MODEL:streamGenerateContent`).
//!
//! Tools, system instruction and contents come first and in one order, so the bytes before a new message stay the same
//! (law 7).

use std::fmt::Write;
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{AssistantBlock, ToolChoice, ToolDefinition};

use super::continuation_token;
use super::message::Writer;
use super::model::{Model, Thinking};
use crate::dialect::{HttpRequest, Target};
use crate::form::{self, Held};
use crate::json;
use crate::kept::Kept;
use crate::limits;
use crate::profile::SchemaFields;
use crate::schema::compile_or_any;

struct Declarations<'a> {
    tools: &'a [Arc<ToolDefinition>],
    fields: SchemaFields,
}

impl Serialize for Declarations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.tools.len()))?;
        for tool in self.tools {
            let lowered = compile_or_any(&tool.input_schema, self.fields.target());
            let (parameters, parameters_json_schema) = match self.fields {
                SchemaFields::JsonSchema => (None, Some(&lowered.schema)),
                SchemaFields::OpenApi => (Some(&lowered.schema).filter(|_| lowered.has_properties()), None),
            };
            let (name, description) = (&tool.name, &tool.described());
            list.serialize_element(&Declaration { name, description, parameters, parameters_json_schema })?;
        }
        list.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: CallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<&'a [String]>,
}

pub(super) fn request(target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
    let (settings, fields) = (prompt.settings, target.profile.schema_fields);
    let model = Model::new(&target.origin.model, target.model);
    kept.keep_for(target);
    let mut body = Vec::new();
    body.push(b'{');
    if !prompt.tools.is_empty() {
        kept.write_tools(prompt, &mut body, |out| {
            out.extend_from_slice(b"\"tools\":[{\"functionDeclarations\":");
            json::write(&Declarations { tools: prompt.tools, fields }, out);
            out.extend_from_slice(b"}],");
        });
    }
    let own = settings.system_prompt.as_deref().filter(|text| !text.is_empty());
    let is_taken = prompt.tools.is_empty() || model.takes_a_form_with_tools();
    let held = settings.output.as_ref().filter(|_| is_taken).map(|output| Held::lowered(output, fields.target()));
    let told = settings.output.as_ref().filter(|_| !matches!(held, Some(Held::Schema(_))));
    if let Some(text) = form::system(own, told) {
        body.extend_from_slice(b"\"systemInstruction\":{\"parts\":[{\"text\":");
        json::write(&text, &mut body);
        body.extend_from_slice(b"}]},");
    }
    body.extend_from_slice(b"\"contents\":[");
    kept.write_messages(target, prompt, &mut body, Writer::default);
    body.push(b']');
    let choice = prompt.tool_choice();
    if !prompt.tools.is_empty() {
        let (mode, allowed_function_names) = match &choice {
            ToolChoice::Auto => ("AUTO", None),
            ToolChoice::Required => ("ANY", None),
            ToolChoice::None => ("NONE", None),
            ToolChoice::Tool(name) => ("ANY", Some(std::slice::from_ref(name))),
            ToolChoice::Tools(names) => ("ANY", Some(names.as_slice())),
        };
        let config = ToolConfig { function_calling_config: CallingConfig { mode, allowed_function_names } };
        json::write_member("toolConfig", &config, &mut body);
    }
    let response_mime_type = held.as_ref().map(|_| "application/json");
    let form = held.and_then(Held::into_schema);
    let (response_schema, response_json_schema) = match fields {
        SchemaFields::JsonSchema => (None, form),
        SchemaFields::OpenApi => (form, None),
    };
    let config = GenerationConfig {
        temperature: settings.temperature.filter(|_| model.takes_temperature()),
        max_output_tokens: limits::output_tokens(settings, target.model),
        thinking_config: model.thinking(settings.reasoning_effort).map(ThinkingConfig::new),
        response_mime_type,
        response_schema,
        response_json_schema,
    };
    let optional = config.optional();
    json::write_member("generationConfig", &config, &mut body);
    if let Some(token) = continued(target, prompt) {
        json::write_member("continuationToken", &token, &mut body);
    }
    body.push(b'}');
    HttpRequest { path: path(&target.origin.model), headers: Vec::new(), body: kept.keep(body), optional }
}

impl GenerationConfig {
    /// The members that a model may refuse and that can be done without.
    fn optional(&self) -> Vec<&'static str> {
        let level = self.thinking_config.as_ref().and_then(|config| config.thinking_level);
        let members = [
            (self.max_output_tokens.is_some(), "generationConfig.maxOutputTokens"),
            (level.is_some(), "generationConfig.thinkingConfig.thinkingLevel"),
        ];
        members.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect()
    }
}

impl ThinkingConfig {
    fn new(thinking: Thinking) -> Self {
        let (thinking_budget, thinking_level) = match thinking {
            Thinking::Budget(tokens) => (Some(tokens), None),
            Thinking::Level(level) => (None, Some(level)),
            Thinking::Free => (None, None),
        };
        Self { include_thoughts: thinking_budget != Some(0), thinking_budget, thinking_level }
    }
}

/// The token with which the provider wants to be asked again.
fn continued(target: &Target<'_>, prompt: &Prompt<'_>) -> Option<String> {
    let Some(PromptMessage::Assistant { message, .. }) = prompt.messages.last() else { return None };
    match message.blocks.last() {
        Some(AssistantBlock::Opaque { native }) if message.origin == *target.origin => continuation_token(native),
        _ => None,
    }
}

/// A model stands in the path: bare, or with the collection that it is in.
fn path(model: &str) -> String {
    let mut path =
        String::from(if model.starts_with("models/") || model.starts_with("tunedModels/") { "/" } else { "/models/" });
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'@' | b'/') {
            path.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            write!(path, "%{byte:02X}").unwrap_or_default();
        }
    }
    path.push_str(":streamGenerateContent?alt=sse");
    path
}
