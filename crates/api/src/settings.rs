//! Settings of a conversation or a turn. What is absent was not chosen.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::Patch;

/// Settings that lie over the configuration's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What happens to calls for which no rule decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
    /// The most model calls of a turn, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_steps: Option<u32>,
    /// Sampling temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// The most tokens of one model answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    /// How much a reasoning model should think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// What the model is told before the conversation; the same as the field beside `settings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The model, `PROVIDER/MODEL`; the same as the field beside `settings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Globs over tool names that narrow what is offered, with `!` before those that keep out (all others are offered where there
    /// are only such); the same as the field beside `settings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether and what the model must call before it may answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether one answer may hold several calls; where not, calls also run one after another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_calls: Option<bool>,
    /// The form that the answer must have; text where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputFormat>,
}

/// A change of [`Settings`], field by field.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields of `Settings`")]
pub struct SettingsPatch {
    #[serde(default)]
    #[schema(value_type = Option<Approve>)]
    pub approve: Patch<Approve>,
    #[serde(default)]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub max_steps: Patch<u32>,
    #[serde(default)]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 2)]
    pub temperature: Patch<f64>,
    #[serde(default)]
    #[schema(value_type = Option<u32>, minimum = 1)]
    pub max_output_tokens: Patch<u32>,
    #[serde(default)]
    #[schema(value_type = Option<ReasoningEffort>)]
    pub reasoning_effort: Patch<ReasoningEffort>,
    #[serde(default)]
    #[schema(value_type = Option<ToolChoice>)]
    pub tool_choice: Patch<ToolChoice>,
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    pub parallel_calls: Patch<bool>,
    #[serde(default)]
    #[schema(value_type = Option<OutputFormat>)]
    pub output: Patch<OutputFormat>,
}

/// Whether and what a model must call: `"auto"`, `"required"`, `"none"`, `{"tool": NAME}` or
/// `{"tools": [NAME, …]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// What the model thinks right.
    Auto,
    /// At least one tool before the answer.
    Required,
    /// No tool.
    None,
    /// The tool with this name before the answer.
    Tool(String),
    /// At least one of the tools with these names before the answer.
    Tools(Vec<String>),
}

/// The form that an answer must have: `"json_object"`, or JSON that fits a schema (structured output).
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum OutputFormat {
    /// A form by its name.
    Word(OutputWord),
    /// A form by its schema.
    Schema(OutputSchema),
}

/// A form that needs no schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputWord {
    /// Any JSON object (JSON mode).
    JsonObject,
}

/// JSON that fits a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSchema {
    /// A name for the form, 1 to 64 characters of `A-Z a-z 0-9 _ -`.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub name: String,
    /// The JSON Schema that the answer's text fits.
    pub schema: serde_json::Value,
    /// Whether the provider is asked to hold the model to the schema exactly, where it can; so unless it says no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// By hand, since an untagged enum would not say what is wrong with a schema.
impl<'de> Deserialize<'de> for OutputFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = OutputFormat;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a schema, or `json_object`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<OutputFormat, E> {
                OutputWord::deserialize(word.into_deserializer()).map(OutputFormat::Word)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OutputFormat, A::Error> {
                OutputSchema::deserialize(MapAccessDeserializer::new(map)).map(OutputFormat::Schema)
            }
        }

        deserializer.deserialize_any(Form)
    }
}

/// What happens to calls for which no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// Tools declared read-only run, others wait for a person.
    Ask,
    /// Every call runs that no rule denies.
    All,
    /// No call runs that no rule allows.
    None,
    /// Tools declared read-only run, others are denied.
    ReadOnly,
}

/// How much a reasoning model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the providers' own words")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}
