//! What was spent, and is reserved, in memory.

use std::collections::BTreeMap;

use turnwright_core::UserId;
use turnwright_core::budgets::{Amount, Period};
use turnwright_engine::{Balance, Reservation, StoreError};

/// What was spent, and is reserved.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By day and user.
    spent: BTreeMap<(u64, UserId), Amount>,
    /// By the number of the conversation, and by purpose.
    reserved: BTreeMap<(u64, String), Reservation>,
}

impl Ledger {
    /// The refusal of a reservation that is not within its ceilings; what it takes the place of does not count.
    pub(crate) fn must_allow(&self, reservation: &Reservation, besides: Option<(u64, &str)>) -> Result<(), StoreError> {
        let is_within = reservation.within.iter().all(|ceiling| {
            let Balance { spent, reserved } = self.balance(ceiling.owner.as_ref(), ceiling.period, besides);
            ceiling.most.allows(spent.plus(reserved).plus(reservation.amount))
        });
        if is_within { Ok(()) } else { Err(StoreError::OverBudget) }
    }

    pub(crate) fn reserve(&mut self, conversation: u64, reservation: Reservation) {
        self.reserved.insert((conversation, reservation.purpose.clone()), reservation);
    }

    pub(crate) fn settle(&mut self, conversation: u64, purpose: &str, amount: Amount) {
        if let Some(Reservation { day, owner, .. }) = self.reserved.remove(&(conversation, purpose.to_owned())) {
            self.spend(day, owner, amount);
        }
    }

    /// What was reserved for a conversation that goes is spent.
    pub(crate) fn forget(&mut self, conversation: u64) {
        let of = |purpose: &(u64, String)| purpose.0 == conversation;
        let gone: Vec<_> = self.reserved.keys().filter(|key| of(key)).cloned().collect();
        for Reservation { day, owner, amount, .. } in
            gone.iter().filter_map(|key| self.reserved.remove(key)).collect::<Vec<_>>()
        {
            self.spend(day, owner, amount);
        }
    }

    pub(crate) fn balance(&self, owner: Option<&UserId>, period: Period, besides: Option<(u64, &str)>) -> Balance {
        let is_meant =
            |day: u64, by: &UserId| (period.from_day..period.until_day).contains(&day) && owner.is_none_or(|owner| owner == by);
        let spent = self.spent.iter().filter(|((day, by), _)| is_meant(*day, by)).map(|(_, amount)| *amount);
        let others = self.reserved.iter().filter(|((number, purpose), _)| Some((*number, purpose.as_str())) != besides);
        let reserved = others.filter(|(_, one)| is_meant(one.day, &one.owner)).map(|(_, one)| one.amount);
        Balance { spent: spent.fold(Amount::default(), Amount::plus), reserved: reserved.fold(Amount::default(), Amount::plus) }
    }

    fn spend(&mut self, day: u64, owner: UserId, amount: Amount) {
        let spent = self.spent.entry((day, owner)).or_default();
        *spent = spent.plus(amount);
    }
}
