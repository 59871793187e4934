//! What came of a turn.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{BudgetStop, Call, Message};

/// A turn: what `chat --output json` prints and the chat route answers as `turn`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnReport {
    /// Its conversation.
    pub conversation_id: String,
    /// Its name, `turn_` and a number; unique within its conversation.
    pub turn_id: String,
    /// `completed | suspended | cancelled | failed | step_limit | stopped`; `running` while it is none of these.
    pub status: String,
    /// Why it was stopped, where the status is `stopped`: `budget | loop | refused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// What was done and what came of it, where it was stopped by a budget or since the model went in circles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_summary: Option<String>,
    /// The budget that stopped it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_budget: Option<BudgetStop>,
    /// Why the model stopped: `stop | tool_calls | length | content_filter | error`; null where it said nothing.
    pub finish_reason: Option<String>,
    /// The provider's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason_raw: Option<String>,
    /// The text of the last assistant message; empty where there is none.
    pub text: String,
    /// The words with which that message refused; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The messages of this turn, oldest first, each call's result after its call.
    pub messages: Vec<Message>,
    /// What it cost.
    pub usage: Usage,
    /// How often the model was asked.
    pub steps: u32,
    /// The calls that wait for a person.
    pub waiting: Vec<Call>,
    /// Why it failed, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// Tokens; null where unknown, never zero for unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// All prompts, cached parts included.
    pub input_tokens: Option<u64>,
    /// All answers, reasoning included.
    pub output_tokens: Option<u64>,
    /// What came from the provider's cache.
    pub cached_input_tokens: Option<u64>,
    /// What was written to the provider's cache.
    pub cache_write_tokens: Option<u64>,
    /// What was reasoning.
    pub reasoning_tokens: Option<u64>,
    /// US dollars, where the price is known.
    pub cost_usd: Option<f64>,
}

/// Why a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnError {
    /// A stable word, such as `rate_limit`.
    pub kind: String,
    /// The provider's HTTP status; null where there was none.
    pub status: Option<u16>,
    /// For people.
    pub message: String,
    /// The provider's name for the request; null where it gave none.
    pub request_id: Option<String>,
}
