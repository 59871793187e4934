//! The request (OpenAI Chat Completions, `POST /chat/completions`).
//!
//! Tools and messages come first and in one order, so the bytes before a new message stay the same (law 7).

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;
use turnwright_core::ToolDefinition;
use turnwright_core::prompt::Prompt;

use super::message::Writer;
use super::settings::{self, Settings};
use crate::dialect::{HttpRequest, Target};
use crate::json;
use crate::kept::Kept;
use crate::schema::{SchemaTarget, compile_or_any};

const USAGE_OPTION: &[u8] = br#","stream_options":{"include_usage":true}"#;
const FORMAT_OPTION: &[u8] = br#","reasoning_format":"parsed""#;

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
            let description = Some(tool.described()).filter(|text| !text.is_empty());
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
    description: Option<Cow<'a, str>>,
    parameters: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

pub(super) fn request(target: &Target<'_>, prompt: &Prompt<'_>, kept: &mut Kept) -> HttpRequest {
    let profile = target.profile;
    kept.keep_for(target);
    let mut body = Vec::new();
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
    let demanded = prompt.tool_choice();
    let Settings { words, asks_for_format, rest } = settings::of(target, prompt, has_tools.then_some(&demanded));
    kept.write_messages_and(
        target,
        prompt,
        &mut body,
        || Writer::new(profile),
        |writer, out| {
            if let Some(words) = &words {
                writer.told(profile, words, out);
            }
        },
    );
    body.extend_from_slice(b"],");
    json::write_rest(&rest, &mut body);
    let mut optional = rest.optional();
    let options =
        [(profile.stream_usage, "stream_options", USAGE_OPTION), (asks_for_format, "reasoning_format", FORMAT_OPTION)];
    for (is_wanted, name, option) in options {
        if is_wanted {
            body.pop();
            optional.push(name);
            body.extend_from_slice(option);
            body.push(b'}');
        }
    }
    HttpRequest { path: "/chat/completions".to_owned(), headers: Vec::new(), body: kept.keep(body), optional }
}
