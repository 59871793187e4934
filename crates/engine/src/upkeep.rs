//! The port to what keeps a store small and forgetful.

use std::fmt::Debug;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use turnwright_core::ConversationId;

use crate::{Engine, EngineError, StoreError};

pub use crate::resent::{RESENT, TIME_AT, written_time};

/// How many conversations are removed at once: nobody else writes meanwhile.
const REMOVED_AT_ONCE: usize = 20;

/// What removes for good.
#[async_trait]
pub trait Upkeep: Send + Sync + Debug {
    /// Deletes conversations whose newest entry was stored before this time, which are not pinned and have no open turn, at
    /// most `limit`; looks at each and deletes it in one instant.
    ///
    /// # Errors
    /// Where the store fails.
    async fn remove_old(&self, before_ms: u64, limit: usize) -> Result<Vec<ConversationId>, StoreError>;

    /// Forgets the requests that came before this time and are kept in case they are sent again, those of [`RESENT`].
    ///
    /// # Errors
    /// Where the store fails.
    async fn forget_requests(&self, before_ms: u64) -> Result<(), StoreError>;

    /// Overwrites what was deleted before, wherever the store still has it: in logs, in indexes, in free space.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] where somebody is using the logs just now; what was deleted stays deleted.
    async fn erase(&self) -> Result<(), StoreError>;
}

impl Engine {
    /// Deletes what is older than this, of every user, but never what is pinned, runs or waits; how many there were. What was
    /// deleted is overwritten.
    ///
    /// # Errors
    /// Where the store fails. Where the second alone did, the next time does it, whether or not anything is old then.
    pub async fn remove_old(&self, upkeep: &dyn Upkeep, before_ms: u64) -> Result<usize, EngineError> {
        let mut count = 0_usize;
        loop {
            let removed = upkeep.remove_old(before_ms, REMOVED_AT_ONCE).await?;
            for id in &removed {
                self.forget(id);
            }
            count = count.saturating_add(removed.len());
            if removed.len() < REMOVED_AT_ONCE {
                break;
            }
        }
        if count > 0 {
            self.inner().must_erase.store(true, Ordering::Relaxed);
        }
        self.erase_due(upkeep).await?;
        Ok(count)
    }

    /// Overwrites what was deleted before.
    ///
    /// # Errors
    /// Where the store fails; [`Engine::erase_due`] does it later then.
    pub async fn erase(&self, upkeep: &dyn Upkeep) -> Result<(), EngineError> {
        self.inner().must_erase.store(true, Ordering::Relaxed);
        self.erase_due(upkeep).await
    }

    /// Overwrites what was deleted and could not be overwritten before.
    ///
    /// # Errors
    /// Where the store fails; the next time does it.
    pub async fn erase_due(&self, upkeep: &dyn Upkeep) -> Result<(), EngineError> {
        let must_erase = &self.inner().must_erase;
        // What is deleted meanwhile may not be overwritten by this.
        if must_erase.swap(false, Ordering::Relaxed)
            && let Err(error) = upkeep.erase().await
        {
            must_erase.store(true, Ordering::Relaxed);
            return Err(error.into());
        }
        Ok(())
    }
}
