//! `[budgets]`: what may be spent on models (docs/budgets.md).

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnwright_core::budgets::{BudgetKind, Most, nano_usd};
use turnwright_engine::Budgets;

/// The most that may be spent on models; no limit where nothing is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetsConfig {
    /// One turn; a retry begins anew.
    pub turn: Option<BudgetConfig>,
    /// One conversation, from its beginning on.
    pub conversation: Option<BudgetConfig>,
    /// One user in one day, UTC.
    pub user_day: Option<BudgetConfig>,
    /// One user in one calendar month, UTC.
    pub user_month: Option<BudgetConfig>,
    /// The whole installation in one day, UTC.
    pub day: Option<BudgetConfig>,
    /// The longest answer that a model is asked for where nobody chose a limit, in tokens: 16,384 where not given, and no more than
    /// the model gives. It is what each question reserves.
    #[schemars(range(min = 1))]
    pub output_tokens: Option<u32>,
    /// What holds for the user of this name in the place of what holds for everybody.
    pub users: IndexMap<String, UserBudgetsConfig>,
}

/// What one user may spend; what is not given is as for everybody.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserBudgetsConfig {
    /// One turn; a retry begins anew.
    pub turn: Option<BudgetConfig>,
    /// One conversation, from its beginning on.
    pub conversation: Option<BudgetConfig>,
    /// One day, UTC.
    pub user_day: Option<BudgetConfig>,
    /// One calendar month, UTC.
    pub user_month: Option<BudgetConfig>,
}

/// The most that may be spent; whichever of the two comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// US dollars, by the prices of the models. A model whose price is not known is not asked then.
    pub usd: Option<f64>,
    /// Tokens of prompts and answers together.
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
}

impl BudgetConfig {
    fn most(self) -> Most {
        Most { tokens: self.tokens, nano_usd: self.usd.map(nano_usd) }
    }

    /// What is wrong with it, and at which of its keys; the key is empty where it is all of it.
    fn wrong(self) -> Option<(&'static str, String)> {
        let right = "it must be above 0; leave it out for no limit";
        match self {
            Self { usd: Some(usd), .. } if !(usd.is_finite() && nano_usd(usd) > 0) => {
                Some(("usd", format!("is {usd}; {right}")))
            }
            Self { tokens: Some(0), .. } => Some(("tokens", format!("is 0; {right}"))),
            Self { usd: None, tokens: None } => Some((
                "",
                "has no limit; it must have `usd`, `tokens` or both, as in `{ usd = 0.50, tokens = 200000 }`".to_owned(),
            )),
            Self { .. } => None,
        }
    }
}

impl UserBudgetsConfig {
    fn given(&self) -> impl Iterator<Item = (BudgetKind, BudgetConfig)> {
        let Self { turn, conversation, user_day, user_month } = *self;
        let all = [
            (BudgetKind::Turn, turn),
            (BudgetKind::Conversation, conversation),
            (BudgetKind::UserDay, user_day),
            (BudgetKind::UserMonth, user_month),
        ];
        all.into_iter().filter_map(|(kind, budget)| Some((kind, budget?)))
    }
}

impl BudgetsConfig {
    fn given(&self) -> impl Iterator<Item = (BudgetKind, BudgetConfig)> {
        let Self { turn, conversation, user_day, user_month, day, output_tokens: _, users: _ } = self;
        let (turn, conversation, user_day, user_month) = (*turn, *conversation, *user_day, *user_month);
        let everybody = UserBudgetsConfig { turn, conversation, user_day, user_month };
        let given: Vec<_> = everybody.given().chain(day.map(|day| (BudgetKind::Day, day))).collect();
        given.into_iter()
    }

    /// What the engine keeps to.
    pub fn budgets(&self) -> Budgets {
        let most = |(kind, budget): (BudgetKind, BudgetConfig)| (kind, budget.most());
        let user =
            |(name, own): (&String, &UserBudgetsConfig)| (name.clone(), own.given().map(most).collect::<BTreeMap<_, _>>());
        Budgets {
            limits: self.given().map(most).collect(),
            users: self.users.iter().map(user).collect(),
            output_tokens: self.output_tokens.unwrap_or(Budgets::DEFAULT_OUTPUT_TOKENS),
        }
    }

    /// All of them, each with its keys below `[budgets]`.
    fn all(&self) -> impl Iterator<Item = (Vec<String>, BudgetConfig)> {
        let of_users = self.users.iter().flat_map(|(name, own)| {
            own.given().map(move |(kind, budget)| (vec!["users".to_owned(), name.clone(), kind.as_str().to_owned()], budget))
        });
        self.given().map(|(kind, budget)| (vec![kind.as_str().to_owned()], budget)).chain(of_users)
    }

    /// The keys of the first limit in dollars.
    pub(crate) fn in_dollars(&self) -> Option<Vec<String>> {
        let (mut keys, _) = self.all().find(|(_, budget)| budget.usd.is_some())?;
        keys.push("usd".to_owned());
        Some(keys)
    }

    /// What is wrong, each with the keys below `[budgets]` at which it is.
    pub(crate) fn wrong(&self) -> Vec<(Vec<String>, String)> {
        let problem = |(mut keys, budget): (Vec<String>, BudgetConfig)| {
            let (key, text) = budget.wrong()?;
            keys.extend((!key.is_empty()).then(|| key.to_owned()));
            Some((keys, text))
        };
        self.all().filter_map(problem).collect()
    }
}
