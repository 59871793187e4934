//! Locks by name, which the database keeps for as long as a connection lasts.

use async_trait::async_trait;
use turnwright_engine::{Lock, Locks, StoreError};

use super::PostgresStore;

/// Waits, at most as long as a statement may take. The connection is the lock: the server lets it go with that.
const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended('turnwright lock ' || current_schema() || ' ' || $1, 0))";

#[async_trait]
impl Locks for PostgresStore {
    async fn lock(&self, name: &str) -> Result<Lock, StoreError> {
        Ok(Box::new(self.pool.take_apart(LOCK, &[&name]).await?))
    }
}
