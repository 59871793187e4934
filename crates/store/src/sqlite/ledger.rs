//! What was spent on models and is reserved for it, in the same database, by the same writer.

use rusqlite::{Connection, OptionalExtension, Row};
use turnwright_core::UserId;
use turnwright_core::budgets::{Amount, Period};
use turnwright_engine::{Balance, Reservation, StoreError};

use super::readers::Unread;
use super::statements as sql;
use crate::columns::integer;

/// The most that is stored of an amount: so much that a thousand of them add up.
const MOST: i64 = 1 << 53;

/// The key of no conversation.
const NOBODY: i64 = -1;

/// The refusal of a reservation that is not within its ceilings. What it takes the place of does not count.
pub(super) fn refusal(
    connection: &Connection,
    conversation: Option<i64>,
    reservation: &Reservation,
) -> rusqlite::Result<Option<StoreError>> {
    let besides = (conversation.unwrap_or(NOBODY), reservation.purpose.as_str());
    for ceiling in &reservation.within {
        let Balance { spent, reserved } = of(connection, ceiling.owner.as_ref(), ceiling.period, besides)?;
        if !ceiling.most.allows(spent.plus(reserved).plus(reservation.amount)) {
            return Ok(Some(StoreError::OverBudget));
        }
    }
    Ok(None)
}

pub(super) fn reserve(connection: &Connection, conversation: i64, reservation: &Reservation) -> rusqlite::Result<usize> {
    let Reservation { purpose, owner, day, amount, within: _ } = reservation;
    let row = (conversation, purpose, integer(*day), owner.as_str(), stored(amount.tokens), stored(amount.nano_usd));
    connection.prepare_cached(sql::RESERVE)?.execute(row)
}

pub(super) fn settle(connection: &Connection, conversation: i64, purpose: &str, amount: Amount) -> rusqlite::Result<usize> {
    let mut released = connection.prepare_cached(sql::RELEASE)?;
    let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
    let Some((day, owner)) = released.query_row((conversation, purpose), row).optional()? else { return Ok(0) };
    connection.prepare_cached(sql::SPEND)?.execute((day, owner, stored(amount.tokens), stored(amount.nano_usd)))
}

/// A conversation goes: nobody will know any more what its calls came to, so what was reserved for them is spent.
pub(super) fn forget_conversation(connection: &Connection, conversation: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(sql::SPEND_RESERVED)?.execute((conversation,))?;
    connection.prepare_cached(sql::RELEASE_ALL)?.execute((conversation,))?;
    Ok(())
}

pub(super) fn balance(connection: &Connection, owner: Option<&UserId>, period: Period) -> Result<Balance, Unread> {
    let instant = connection.unchecked_transaction()?;
    Ok(of(&instant, owner, period, (NOBODY, ""))?)
}

fn of(
    connection: &Connection,
    owner: Option<&UserId>,
    period: Period,
    (conversation, purpose): (i64, &str),
) -> rusqlite::Result<Balance> {
    let (from, until) = (integer(period.from_day), integer(period.until_day));
    let amount = |row: &Row<'_>| Ok(Amount { tokens: read(row.get(0)?), nano_usd: read(row.get(1)?) });
    let (spent, reserved) = match owner {
        Some(owner) => (
            connection.prepare_cached(sql::SPENT_BY)?.query_row((from, until, owner.as_str()), amount)?,
            connection
                .prepare_cached(sql::RESERVED_BY)?
                .query_row((from, until, conversation, purpose, owner.as_str()), amount)?,
        ),
        None => (
            connection.prepare_cached(sql::SPENT)?.query_row((from, until), amount)?,
            connection.prepare_cached(sql::RESERVED)?.query_row((from, until, conversation, purpose), amount)?,
        ),
    };
    Ok(Balance { spent, reserved })
}

fn stored(number: u64) -> i64 {
    integer(number).min(MOST)
}

fn read(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
