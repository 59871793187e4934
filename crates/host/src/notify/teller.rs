//! Which of the processes over the same data tells: on one machine or on many, one of those that live.
//!
//! Its name is kept in the database. Who it is matters only while it lives, which the store knows as it knows of drivers: another
//! takes its place once its lock file is free, or its lease ran out. It looks at its own lease before each telling.

use std::sync::Arc;

use turnwright_core::DriverId;
use turnwright_engine::{Document, StoreError};
use turnwright_store::Storage;

/// The document with the name of the one that tells.
const KIND: &str = "notify";
const KEY: &str = "teller";
/// Held while it is written.
const LOCK: &str = "notify teller";

/// This process among those that may tell.
#[derive(Debug)]
pub(super) struct Teller {
    store: Arc<dyn Storage>,
}

/// The right to tell, which goes with the lease under which it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Right {
    lease: u64,
}

impl Teller {
    pub(super) fn new(store: Arc<dyn Storage>) -> Self {
        Self { store }
    }

    /// Takes the right, where nobody else who lives has it.
    pub(super) async fn take(&self) -> Result<Option<Right>, StoreError> {
        let Some(lease) = self.store.lease() else { return Ok(None) };
        // Asked without the lock first: mostly another has it, and a lock may cost a connection.
        if !self.is_free().await? {
            return Ok(None);
        }
        let _alone = self.store.lock(LOCK).await?;
        if !self.is_free().await? {
            return Ok(None);
        }
        let body = self.store.driver().0.clone();
        self.store.put_document(KIND, Document { key: KEY.to_owned(), body }).await?;
        Ok(Some(Right { lease }).filter(|right| self.holds(*right)))
    }

    /// Whether this process has the right still. Asks nobody.
    pub(super) fn holds(&self, right: Right) -> bool {
        self.store.lease() == Some(right.lease)
    }

    async fn is_free(&self) -> Result<bool, StoreError> {
        let Some(known) = self.store.document(KIND, KEY).await? else { return Ok(true) };
        let holder = DriverId(known.body);
        Ok(holder == *self.store.driver() || !self.store.is_alive(&holder).await?)
    }
}
