//! What was spent on models and is reserved for it, in the same database. Appends write it, see the function `append`.

use std::sync::Arc;

use serde_json::json;
use turnwright_core::UserId;
use turnwright_core::budgets::{Amount, Period};
use turnwright_engine::{Balance, Reservation, StoreError};

use super::get;
use super::pool::Pool;
use crate::columns::integer;

/// The most that is stored of an amount: so much that a thousand of them add up.
const MOST: i64 = 1 << 53;

/// Of everybody where the owner is null. Both sums are of one instant.
const BALANCE: &str = "SELECT gone.tokens, gone.nano_usd, held.tokens, held.nano_usd FROM
    (SELECT coalesce(sum(tokens), 0)::bigint AS tokens, coalesce(sum(nano_usd), 0)::bigint AS nano_usd FROM spent
        WHERE day >= $1 AND day < $2 AND ($3::text IS NULL OR owner = $3)) AS gone,
    (SELECT coalesce(sum(tokens), 0)::bigint AS tokens, coalesce(sum(nano_usd), 0)::bigint AS nano_usd FROM reservation
        WHERE day >= $1 AND day < $2 AND ($3::text IS NULL OR owner = $3)) AS held";

/// An amount in the place of a side record's numbers: tokens, and billionths of a US dollar.
pub(super) fn numbers(amount: Amount) -> [Option<i64>; 2] {
    [Some(stored(amount.tokens)), Some(stored(amount.nano_usd))]
}

/// The day of a reservation and its ceilings, as the function `append` reads them.
pub(super) fn terms(reservation: &Reservation) -> String {
    let ceiling = |ceiling: &turnwright_engine::Ceiling| {
        json!({
            "owner": ceiling.owner.as_ref().map(UserId::as_str),
            "from_day": integer(ceiling.period.from_day),
            "until_day": integer(ceiling.period.until_day),
            "tokens": ceiling.most.tokens.map(integer),
            "nano_usd": ceiling.most.nano_usd.map(integer),
        })
    };
    let within: Vec<_> = reservation.within.iter().map(ceiling).collect();
    json!({ "day": integer(reservation.day), "within": within }).to_string()
}

pub(super) async fn balance(pool: &Arc<Pool>, owner: Option<&UserId>, period: Period) -> Result<Balance, StoreError> {
    let (from, until) = (integer(period.from_day), integer(period.until_day));
    let answer = pool.ask(BALANCE, &[&from, &until, &owner.map(UserId::as_str)]).await?;
    let Some(row) = answer.rows.first() else { return Ok(Balance::default()) };
    let amount = |tokens, nano_usd| -> Result<Amount, StoreError> {
        Ok(Amount { tokens: read(get(row, tokens)?), nano_usd: read(get(row, nano_usd)?) })
    };
    Ok(Balance { spent: amount(0, 1)?, reserved: amount(2, 3)? })
}

fn stored(number: u64) -> i64 {
    integer(number).min(MOST)
}

fn read(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
