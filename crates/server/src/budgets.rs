//! Budgets as the API tells them.

use turnwright_api as api;
use turnwright_core::BudgetStop;
use turnwright_core::budgets::{Amount, BudgetUnit, Budgeted, NANO_USD};

use crate::timestamp::timestamp;

/// A budget as it stands.
pub(crate) fn budget(budget: &Budgeted) -> api::Budget {
    api::Budget {
        id: budget.kind.as_str().to_owned(),
        limit: api::BudgetLimit { usd: budget.most.nano_usd.map(usd), tokens: budget.most.tokens },
        spent: amount(budget.spent),
        reserved: amount(budget.reserved),
        resets_at: budget.resets_at_ms.map(timestamp),
    }
}

/// Why a model was not asked.
pub(crate) fn budget_stop(stop: &BudgetStop) -> api::BudgetStop {
    let (unit, number): (_, fn(u64) -> f64) = match stop.unit {
        BudgetUnit::Tokens => ("tokens", whole),
        BudgetUnit::NanoUsd => ("usd", usd),
    };
    api::BudgetStop {
        budget: stop.budget.as_str().to_owned(),
        unit: unit.to_owned(),
        limit: number(stop.limit),
        spent: number(stop.spent),
        reserved: number(stop.reserved),
        needed: stop.needed.map(number),
        resets_at: stop.resets_at_ms.map(timestamp),
    }
}

fn amount(amount: Amount) -> api::BudgetAmount {
    api::BudgetAmount { usd: usd(amount.nano_usd), tokens: amount.tokens }
}

fn usd(nano_usd: u64) -> f64 {
    whole(nano_usd) / whole(NANO_USD)
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below the 53 bits that are exact")]
fn whole(number: u64) -> f64 {
    number as f64
}
