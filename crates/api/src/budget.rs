//! What may be spent on models.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A budget as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    /// `turn | conversation | user_day | user_month | day`, as in the configuration.
    pub id: String,
    /// The limit; null where there is none of a kind.
    pub limit: BudgetLimit,
    /// What was spent.
    pub spent: BudgetAmount,
    /// What calls may come to that are under way.
    pub reserved: BudgetAmount,
    /// When it begins anew, RFC 3339; null where it does not.
    pub resets_at: Option<String>,
}

/// The most that may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetLimit {
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens of prompts and answers together.
    pub tokens: Option<u64>,
}

/// Something that models took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetAmount {
    /// US dollars, as far as prices are known.
    pub usd: f64,
    /// Tokens of prompts and answers together.
    pub tokens: u64,
}

/// Why a budget did not allow another question to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetStop {
    /// `turn | conversation | user_day | user_month | day`, as in the configuration.
    pub budget: String,
    /// In what the numbers are: `usd | tokens`.
    pub unit: String,
    /// The limit.
    pub limit: f64,
    /// What was spent.
    pub spent: f64,
    /// What calls that were under way might have come to.
    pub reserved: f64,
    /// The least that the question would have had to reserve; null where the price of the model is not known.
    pub needed: Option<f64>,
    /// When the budget begins anew, RFC 3339; null where it does not.
    pub resets_at: Option<String>,
}
