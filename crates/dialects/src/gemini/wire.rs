//! What comes over the wire (Gemini `GenerateContentResponse`). Names are camel case; proxies also write snake case.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient::{Count, OneOrMany, Text};

/// A chunk of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: OneOrMany<Candidate<'a>>,
    #[serde(borrow, default, rename = "promptFeedback", alias = "prompt_feedback")]
    pub(super) prompt_feedback: OneOrMany<PromptFeedback<'a>>,
    #[serde(default, rename = "usageMetadata", alias = "usage_metadata")]
    pub(super) usage: OneOrMany<UsageReport>,
    #[serde(borrow, default, rename = "modelVersion", alias = "model_version")]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow, default)]
    pub(super) content: OneOrMany<Content<'a>>,
    #[serde(borrow, default, rename = "finishReason", alias = "finish_reason")]
    pub(super) finish_reason: Text<'a>,
    #[serde(borrow, default, rename = "finishMessage", alias = "finish_message")]
    pub(super) finish_message: Text<'a>,
    #[serde(borrow, default, rename = "continuationToken", alias = "continuation_token")]
    pub(super) continuation_token: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Content<'a> {
    /// Each as received: one that holds more than we understand goes back verbatim.
    #[serde(borrow, default)]
    pub(super) parts: OneOrMany<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    thought: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "thoughtSignature", alias = "thought_signature")]
    pub(super) signature: Text<'a>,
    #[serde(borrow, default, rename = "functionCall", alias = "function_call")]
    pub(super) call: OneOrMany<FunctionCall<'a>>,
}

impl Part<'_> {
    pub(super) fn is_thought(&self) -> bool {
        is_true(self.thought)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "partialArgs", alias = "partial_args")]
    pub(super) pieces: OneOrMany<Piece<'a>>,
    #[serde(borrow, default, rename = "willContinue", alias = "will_continue")]
    will_continue: Option<&'a RawValue>,
}

impl FunctionCall<'_> {
    pub(super) fn will_continue(&self) -> bool {
        is_true(self.will_continue)
    }
}

/// A piece of a call's arguments: the value at a path, or more of the text there.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default, rename = "jsonPath", alias = "json_path")]
    pub(super) path: Text<'a>,
    #[serde(borrow, default, rename = "stringValue", alias = "string_value")]
    pub(super) text: Text<'a>,
    #[serde(borrow, default, rename = "numberValue", alias = "number_value")]
    pub(super) number: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "boolValue", alias = "bool_value")]
    pub(super) boolean: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "willContinue", alias = "will_continue")]
    will_continue: Option<&'a RawValue>,
}

impl Piece<'_> {
    pub(super) fn will_continue(&self) -> bool {
        is_true(self.will_continue)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow, default, rename = "blockReason", alias = "block_reason")]
    pub(super) block_reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageReport {
    #[serde(rename = "promptTokenCount", alias = "prompt_token_count")]
    pub(super) prompt: Count,
    #[serde(rename = "toolUsePromptTokenCount", alias = "tool_use_prompt_token_count")]
    pub(super) tool_use_prompt: Count,
    #[serde(rename = "cachedContentTokenCount", alias = "cached_content_token_count")]
    pub(super) cached: Count,
    #[serde(rename = "candidatesTokenCount", alias = "candidates_token_count")]
    pub(super) candidates: Count,
    #[serde(rename = "thoughtsTokenCount", alias = "thoughts_token_count")]
    pub(super) thoughts: Count,
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}
