//! Settings of a conversation or a turn. What is absent was not chosen.

use serde::{Deserialize, Serialize};

use crate::Patch;

/// Settings that lie over the configuration's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What happens to calls for which no rule decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
    /// The most model calls of a turn, at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Sampling temperature, 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of one model answer.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Globs over tool names that narrow what is offered; the same as the field beside `settings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// A change of [`Settings`], field by field.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the fields of `Settings`")]
pub struct SettingsPatch {
    pub approve: Patch<Approve>,
    pub max_steps: Patch<u32>,
    pub temperature: Patch<f64>,
    pub max_output_tokens: Patch<u32>,
    pub reasoning_effort: Patch<ReasoningEffort>,
}

/// What happens to calls for which no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
