//! What models were asked, and providers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Usage;

/// What models were asked in a time, by day and model.
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
    /// How often models answered.
    pub model_calls: u64,
    /// All lines together.
    pub total: Usage,
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
}
