//! What may be spent on models: the limits of an installation, and what they come to for a call (docs/budgets.md).
//!
//! Whether a call is within its budgets, [`turnwright_core::budgets::reserve`] decides. Here is what it is asked with: what the
//! conversation's journal tells and what the store's ledger tells of the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnwright_core::budgets::{Amount, Books, BudgetKind, Budgeted, Estimate, Most, Period, Purpose};
use turnwright_core::prompt::Prompt;
use turnwright_core::{Control, ConversationId, Entry, Journal, ModelRef, Reserved, UserId};

use crate::accounts::Accounts;
use crate::engine::Engine;
use crate::inner::Inner;
use crate::{Ceiling, EngineError, Provider, Reservation, SideRecord, StoreError, budget};

/// Bytes of a prompt that count as a token where nobody can say how many it is.
const BYTES_PER_TOKEN: u64 = 3;

/// What may be spent by whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Budgets {
    /// What holds for everybody. In this order they are looked at.
    pub limits: BTreeMap<BudgetKind, Most>,
    /// What holds in their place for users of these names; what is not named stays. [`BudgetKind::Day`] is nobody's own.
    pub users: BTreeMap<String, BTreeMap<BudgetKind, Most>>,
    /// The limit of an answer where nobody chose one, in tokens; at least 1. A model that gives no longer ones has its own.
    pub output_tokens: u32,
}

impl Budgets {
    /// The limit of an answer where neither a turn nor the configuration says otherwise.
    pub const DEFAULT_OUTPUT_TOKENS: u32 = 16_384;

    /// Whether nothing is limited for anybody.
    pub fn is_empty(&self) -> bool {
        let limits = self.users.values().chain([&self.limits]);
        limits.flat_map(BTreeMap::values).all(Most::is_none)
    }

    fn of(&self, name: Option<&str>) -> BTreeMap<BudgetKind, Most> {
        let mut limits = self.limits.clone();
        // A name is one user's in any case.
        let of_name = |name: &str| {
            self.users
                .get(name)
                .or_else(|| self.users.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, own)| own))
        };
        if let Some(own) = name.and_then(of_name) {
            limits.extend(own);
        }
        limits.retain(|_, most| !most.is_none());
        limits
    }
}

impl Engine {
    /// Keeps to budgets from now on. Counts once, before the first turn; without it nothing is limited and nothing is counted.
    pub fn keep_budgets(&self, budgets: Budgets) {
        if !budgets.is_empty() && self.inner().choices.budgets.set(budgets).is_err() {
            tracing::error!("the budgets of an engine are said once, before its first turn");
        }
    }

    /// Whose names those are for whom budgets of their own hold; without it, the ids of users are their names.
    pub fn name_users(&self, accounts: Arc<dyn Accounts>) {
        if self.inner().choices.accounts.set(accounts).is_err() {
            tracing::error!("who knows the users of an engine is said once, before its first turn");
        }
    }

    /// The budgets that hold for the user as they stand: those of days and months, and, for a conversation, its own and its newest
    /// turn's. Empty where nothing is limited.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], where there is no such conversation; [`EngineError::Store`].
    pub async fn budgets(&self, conversation: Option<&ConversationId>) -> Result<Vec<Budgeted>, EngineError> {
        let journal = match conversation {
            Some(id) => Some(self.journal(id).await?),
            None => None,
        };
        Ok(self.inner().standing(self.user(), journal.as_ref().map(Journal::books), None).await?)
    }
}

impl Inner {
    /// Whether anything is limited.
    pub(crate) fn has_budgets(&self) -> bool {
        self.choices.budgets.get().is_some()
    }

    /// What may be spent by a user.
    async fn limits_of(&self, user: &UserId) -> Result<BTreeMap<BudgetKind, Most>, StoreError> {
        let Some(budgets) = self.choices.budgets.get() else { return Ok(BTreeMap::new()) };
        if budgets.users.is_empty() {
            return Ok(budgets.of(None));
        }
        let known = match self.choices.accounts.get() {
            Some(accounts) => accounts.user(user).await?,
            None => None,
        };
        let name = known.map_or_else(|| user.to_string(), |user| user.name);
        Ok(budgets.of(Some(&name)))
    }

    /// The budgets of a user as they stand, with what is reserved for other calls than that of `purpose`. Those of a turn and of a
    /// conversation are not among them where no books are looked at.
    pub(crate) async fn standing(
        &self,
        user: &UserId,
        books: Option<&Books>,
        purpose: Option<Purpose>,
    ) -> Result<Vec<Budgeted>, StoreError> {
        let now = self.clock.now_ms();
        let own: Amount = books.map_or_else(Amount::default, |books| {
            let own = books.open().iter().filter(|open| Some(open.reserved.purpose) == purpose);
            own.fold(Amount::default(), |sum, open| sum.plus(open.reserved.amount()))
        });
        let mut standing = Vec::new();
        for (kind, most) in self.limits_of(user).await? {
            let (spent, reserved) = match (owner_of(kind, user), kind.period(now), books) {
                (owner, Some(period), _) => {
                    let balance = self.store.balance(owner, period).await?;
                    (balance.spent, less(balance.reserved, own))
                }
                (_, None, Some(books)) => {
                    let spent = if kind == BudgetKind::Turn { books.turn() } else { books.conversation() };
                    let others = books.open().iter().filter(|open| Some(open.reserved.purpose) != purpose);
                    (spent, others.fold(Amount::default(), |sum, open| sum.plus(open.reserved.amount())))
                }
                (_, None, None) => continue,
            };
            let resets_at_ms = kind.period(now).map(Period::ends_at_ms);
            standing.push(Budgeted { kind, most, spent, reserved, resets_at_ms });
        }
        Ok(standing)
    }

    /// What is about to be asked of a model, and may come to.
    pub(crate) fn estimate(
        &self,
        provider: Option<&dyn Provider>,
        (purpose, model): (Purpose, &ModelRef),
        journal: Option<&Journal>,
        prompt: &Prompt<'_>,
    ) -> Estimate {
        let counted = provider.and_then(|provider| match journal {
            Some(journal) => budget::tokens(provider, model, journal, prompt),
            None => provider.measure(model.model(), prompt),
        });
        let facts = provider.map(|provider| provider.facts(model.model())).unwrap_or_default();
        let default = self.choices.budgets.get().map_or(Budgets::DEFAULT_OUTPUT_TOKENS, |budgets| budgets.output_tokens);
        let output = prompt.settings.max_output_tokens.unwrap_or(default);
        Estimate {
            purpose,
            model: model.clone(),
            input_tokens: counted.unwrap_or_else(|| budget::most_tokens_of(prompt).div_ceil(BYTES_PER_TOKEN)),
            output_tokens: u64::from(facts.max_output_tokens.map_or(output, |most| output.min(most))),
            prices: facts.prices,
        }
    }

    /// What the ledger is told with `entries`, if they are stored next in `journal`: what is settled, and what is reserved within
    /// the limits of its owner.
    pub(crate) async fn ledger_records(
        &self,
        owner: &UserId,
        closed: Vec<turnwright_core::budgets::Closed>,
        entries: &[Entry],
    ) -> Result<Vec<SideRecord>, StoreError> {
        let settle =
            closed.into_iter().map(|closed| SideRecord::Settle { purpose: closed.purpose.key(), amount: closed.amount });
        let mut records: Vec<SideRecord> = settle.collect();
        for entry in entries {
            if let Entry::Control(Control::Reserved(reserved)) = entry {
                records.push(SideRecord::Reserve(self.reservation(owner, reserved).await?));
            }
        }
        Ok(records)
    }

    async fn reservation(&self, owner: &UserId, reserved: &Reserved) -> Result<Reservation, StoreError> {
        let now = self.clock.now_ms();
        let limits = self.limits_of(owner).await?;
        let ceiling = |(kind, most): (BudgetKind, Most)| {
            let period = kind.period(now)?;
            Some(Ceiling { owner: owner_of(kind, owner).cloned(), period, most })
        };
        Ok(Reservation {
            purpose: reserved.purpose.key(),
            owner: owner.clone(),
            day: Period::day_of(now).from_day,
            amount: reserved.amount(),
            within: limits.into_iter().filter_map(ceiling).collect(),
        })
    }
}

/// Whose spending counts.
fn owner_of(kind: BudgetKind, user: &UserId) -> Option<&UserId> {
    match kind {
        BudgetKind::Day => None,
        BudgetKind::Turn | BudgetKind::Conversation | BudgetKind::UserDay | BudgetKind::UserMonth => Some(user),
    }
}

fn less(amount: Amount, own: Amount) -> Amount {
    Amount { tokens: amount.tokens.saturating_sub(own.tokens), nano_usd: amount.nano_usd.saturating_sub(own.nano_usd) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_name_holds_in_any_case_and_first_of_all_for_who_writes_it_so() {
        let most = |tokens| Most { tokens: Some(tokens), nano_usd: None };
        let own = |tokens| BTreeMap::from([(BudgetKind::Turn, most(tokens))]);
        let budgets = Budgets {
            limits: BTreeMap::from([(BudgetKind::Turn, most(1)), (BudgetKind::Conversation, most(9))]),
            users: BTreeMap::from([("Bob".to_owned(), own(2)), ("ANNA".to_owned(), own(3)), ("anna".to_owned(), own(4))]),
            output_tokens: 1,
        };
        let of = |name| budgets.of(name).into_values().map(|most| most.tokens.unwrap()).collect::<Vec<_>>();
        for (name, turn) in
            [(Some("bob"), 2), (Some("Bob"), 2), (Some("anna"), 4), (Some("ANNA"), 3), (Some("eve"), 1), (None, 1)]
        {
            assert_eq!(of(name), [turn, 9], "{name:?}");
        }
    }
}
