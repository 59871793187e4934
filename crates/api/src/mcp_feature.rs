//! What MCP servers have besides tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::call::{text_or_json, text_or_object};
use crate::object;

/// A resource that a server lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpResource {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A title for people; null where the server gives none.
    pub title: Option<String>,
    /// What it is; null where the server does not say.
    pub description: Option<String>,
    /// Its media type; null where it is not known.
    pub mime_type: Option<String>,
    /// Its size in bytes; null where it is not known.
    pub size: Option<u64>,
    /// The server's own hints, not checked; null where there are none.
    pub annotations: Option<Value>,
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpResourceTemplate {
    /// Their address with variables in it (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// A title for people; null where the server gives none.
    pub title: Option<String>,
    /// What they are; null where the server does not say.
    pub description: Option<String>,
    /// Their media type; null where it is not one.
    pub mime_type: Option<String>,
}

/// A prompt that a server has for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpPrompt {
    /// Its name at the server.
    pub name: String,
    /// A title for people; null where the server gives none.
    pub title: Option<String>,
    /// What it is for; null where the server does not say.
    pub description: Option<String>,
    /// What it is given.
    pub arguments: Vec<McpPromptArgument>,
}

/// An argument of a prompt; its value is a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpPromptArgument {
    /// Its name.
    pub name: String,
    /// What it is; null where the server does not say.
    pub description: Option<String>,
    /// Whether the prompt cannot be had without it.
    pub required: bool,
}

/// Asks for a resource's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpReadRequest {
    /// Its address, listed or not.
    pub uri: String,
}

/// A resource's content, in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpContents {
    /// The parts.
    pub contents: Vec<McpContent>,
}

/// A part of a resource: `text`, or `blob` in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpContent {
    /// Its address.
    pub uri: String,
    /// Its media type; null where it is not known.
    pub mime_type: Option<String>,
    /// Its text; null where it is none.
    pub text: Option<String>,
    /// Its bytes in base64; null where it is text.
    pub blob: Option<String>,
}

/// Asks for a page that a server has for the calls of a tool (MCP Apps).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpAppRequest {
    /// Its `ui://` address, as the tool names it in `app`.
    pub uri: String,
}

/// A page, ready to be shown in a frame of another origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpApp {
    /// The page: foreign HTML, for the frame alone.
    pub html: String,
    /// The address of the frame, which says by its headers what the page may reach. It posts
    /// `ui/notifications/sandbox-proxy-ready` and takes `ui/notifications/sandbox-resource-ready` with `html` and `allow`.
    pub frame: String,
    /// The origins that the page may reach.
    pub reaches: Vec<String>,
    /// What it wanted to reach besides and may not, as its server wrote it.
    pub refused: Vec<String>,
    /// What it wants of the device: `camera`, `microphone`, `geolocation`, `clipboard-write`. Whoever shows it asks people first.
    pub permissions: Vec<String>,
    /// Whether it wants a border; null where it does not say.
    pub prefers_border: Option<bool>,
}

/// A call that a page of a server asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpAppCallRequest {
    /// The tool's name at the server.
    pub tool: String,
    /// The arguments, JSON text or an object; none where not given.
    #[serde(default, deserialize_with = "text_or_json", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = text_or_object)]
    pub arguments: Option<String>,
    /// The conversation in which the page is shown, whose rules and approve mode hold; the defaults where not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Whether a person was shown this very call and allowed it, which needs the scope `approve`. Rules that deny hold all the
    /// same.
    #[serde(default)]
    pub allowed: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpAppCallAnswer {
    /// The tool's qualified name.
    pub name: String,
    /// `success | denied | asks`, or the kind of failure, such as `invalid_arguments` or `timeout`. Of `asks` nothing ran: a
    /// person must allow it first.
    pub outcome: String,
    /// Whether it failed, or the tool says so.
    pub is_error: bool,
    /// What it gave, as MCP writes content.
    #[schema(value_type = Vec<Object>)]
    pub content: Vec<Value>,
    /// What it gave as data; null where it gave none.
    pub structured_content: Option<Value>,
    /// The rule or mode that asks; null where none does.
    pub rule: Option<String>,
    /// How long it took, in milliseconds; null where it did not run.
    pub duration_ms: Option<u64>,
}

/// Asks for what a prompt comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpPromptRequest {
    /// The prompt's name.
    pub name: String,
    /// What it is given, texts by name.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

/// What a prompt came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpPromptMessages {
    /// What it is for; null where the server does not say.
    pub description: Option<String>,
    /// What is to be said, in order.
    pub messages: Vec<McpPromptMessage>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpPromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// What it says, a content block of MCP.
    pub content: Value,
}

/// Asks how a value may go on, in MCP's own form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpCompleteRequest {
    /// What the value belongs to.
    #[serde(rename = "ref", deserialize_with = "object::plain")]
    pub of: McpReference,
    /// The argument and what there is of its value.
    #[serde(deserialize_with = "object::plain")]
    pub argument: McpArgument,
    /// What the other arguments are.
    #[serde(default, deserialize_with = "object::plain")]
    pub context: McpCompletionContext,
}

/// A prompt or a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum McpReference {
    /// A prompt.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// Its name.
        name: String,
    },
    /// A template of resources.
    #[serde(rename = "ref/resource")]
    Resource {
        /// Its address.
        uri: String,
    },
}

/// An argument, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpArgument {
    /// Its name.
    pub name: String,
    /// The beginning of its value.
    pub value: String,
}

/// What the other arguments are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct McpCompletionContext {
    /// Texts by name.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

/// How a value may go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct McpCompletion {
    /// Whole values, at most 100.
    pub values: Vec<String>,
    /// Whether there are more.
    pub has_more: bool,
}
