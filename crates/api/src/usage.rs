//! What models were asked, and providers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Budget, Usage};

/// What models were asked and what tools did in a time, by day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageReport {
    /// A line for each model on each day (UTC), the oldest first.
    pub data: Vec<UsageLine>,
    /// Always null: the list is whole.
    pub next_cursor: Option<String>,
    /// Always false: the list is whole.
    pub has_more: bool,
    /// The first day of it, such as `2026-11-01`.
    pub from: String,
    /// Its last day.
    pub until: String,
    /// How often models answered. A call of an MCP client asks none; it counts among `tools` and `turns`.
    pub model_calls: u64,
    /// All lines together.
    pub total: Usage,
    /// A line for each tool on each day, the oldest first.
    pub tools: Vec<ToolUsageLine>,
    /// A line for each day on which a turn ended, the oldest first.
    pub turns: Vec<TurnsLine>,
    /// The budgets of whoever asks, as they stand; empty where nothing is limited.
    #[serde(default)]
    pub budgets: Vec<Budget>,
}

/// What one tool was asked on one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolUsageLine {
    /// Day and tool: `2026-11-22/time__get_current_time`.
    pub id: String,
    /// The day (UTC), such as `2026-11-22`.
    pub day: String,
    /// Its qualified name, as the model wrote it.
    pub tool: String,
    /// Where it comes from: an MCP server or a built-in source; null where no such tool was offered.
    pub server: Option<String>,
    /// How often it was called.
    pub calls: u64,
    /// How many of these failed.
    pub failures: u64,
    /// How many were denied and did not run.
    pub denials: u64,
    /// How many have a time: those that ran.
    pub timed: u64,
    /// How long these ran together, in milliseconds.
    pub total_ms: u64,
    /// How long the longest ran, in milliseconds.
    pub longest_ms: u64,
}

/// How the turns of one day ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnsLine {
    /// The day (UTC), such as `2026-11-22`.
    pub day: String,
    /// How many turns ended.
    pub turns: u64,
    /// How many of these failed.
    pub failures: u64,
}

/// What one user's conversations used in a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UserUsageLine {
    /// The user's id.
    pub id: String,
    /// The user's name.
    pub name: String,
    /// How many turns ended.
    pub turns: u64,
    /// How many of these failed.
    pub failed_turns: u64,
    /// How often models answered; none does where an MCP client calls a tool.
    pub model_calls: u64,
    /// How often tools were called.
    pub tool_calls: u64,
    /// How many of these calls failed.
    pub failed_tool_calls: u64,
    /// What the models cost.
    pub usage: Usage,
}

/// What one model was asked on one day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageLine {
    /// Day and model: `2026-11-22/openai/gpt-5`.
    pub id: String,
    /// The day (UTC), such as `2026-11-22`.
    pub day: String,
    /// The model, as PROVIDER/MODEL.
    pub model: String,
    /// How often it answered.
    pub model_calls: u64,
    /// What that cost.
    pub usage: Usage,
}

/// An endpoint that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Provider {
    /// Its name, the first half of its models' names.
    pub id: String,
    /// The wire format that it speaks, such as `openai-chat`; null where it cannot be used.
    pub dialect: Option<String>,
    /// Whether the default model is one of its.
    pub is_default: bool,
    /// Why it cannot be used, where it cannot.
    pub problem: Option<String>,
    /// What names it: `configuration`, `added` (by a person, while the server ran), a variable, `local server` or `built in`;
    /// null where that is not known.
    pub origin: Option<String>,
}

/// A provider that is to be added: known by its name, or by its address.
#[derive(Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderRequest {
    /// Its key. It is kept on the server, sealed, and told to nobody but the provider.
    #[serde(default)]
    pub api_key: Option<String>,
    /// Where it is, where its name does not say that.
    #[serde(default)]
    pub base_url: Option<String>,
    /// What it speaks, where its name does not say that: `openai-chat`, `openai-responses`, `anthropic`, `gemini` or `ollama`.
    #[serde(default)]
    pub dialect: Option<String>,
}

impl std::fmt::Debug for ProviderRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { api_key, base_url, dialect } = self;
        let api_key = api_key.as_ref().map(|_| "***");
        let mut shown = f.debug_struct("ProviderRequest");
        shown.field("api_key", &api_key).field("base_url", base_url).field("dialect", dialect).finish()
    }
}

/// A provider that was added, and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddedProvider {
    /// Its name, the first half of its models' names.
    pub id: String,
    /// The wire format that it speaks.
    pub dialect: String,
    /// One of its models, `PROVIDER/MODEL`, for whoever chose none.
    pub model: String,
    /// How many models it offers.
    pub models: u64,
    /// Whether it answered what it answers to a right key alone; false where its list of models is everybody's, so that a wrong
    /// key shows with the first message. Null where it has no key.
    pub key_checked: Option<bool>,
}
