//! What may happen only so often, in the same database and on its clock.

use async_trait::async_trait;
use turnwright_engine::StoreError;
use turnwright_engine::rates::{Admission, Rate, Rates};

use super::{PostgresStore, clean, get};
use crate::rates::{counted, text};

/// What was counted, and the time. Of one row, whether anything was.
const READ: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    (SELECT body FROM document WHERE kind = 'rate' AND key = $1)";
/// Where nobody else counted meanwhile.
const REPLACE: &str = "INSERT INTO document AS known (kind, key, body) VALUES ('rate', $1, $2)
    ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body WHERE known.body = $3";

#[async_trait]
impl Rates for PostgresStore {
    async fn admit(&self, name: &str, rate: Rate) -> Result<Admission, StoreError> {
        let name = clean(name);
        // Whoever is too late finds one more counted: that ends with the rate.
        loop {
            let answer = self.pool.ask(READ, &[&name]).await?;
            let unsaid = || StoreError::Unusable { reason: "the database does not say what was counted".to_owned() };
            let row = answer.rows.first().ok_or_else(unsaid)?;
            let (now_ms, before): (i64, Option<String>) = (get(row, 0)?, get(row, 1)?);
            let mut counted = counted(before.as_deref());
            let admission = counted.admit(u64::try_from(now_ms).unwrap_or(0), rate);
            if admission != Admission::Counted || self.pool.ask(REPLACE, &[&name, &text(&counted)?, &before]).await?.count > 0 {
                return Ok(admission);
            }
        }
    }
}
