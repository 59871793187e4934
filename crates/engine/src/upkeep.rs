//! The port to what keeps a store small and forgetful.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use turnwright_core::{ConversationId, DriverId};

use crate::nodes::News;
use crate::{Document, Documents, Engine, EngineError, Store, StoreError};

pub use crate::resent::{RESENT, TIME_AT, written_time};

/// How many conversations are removed at once: nobody else writes meanwhile.
const REMOVED_AT_ONCE: usize = 20;

/// How many times as long as overwriting took rounds then leave a store alone: it may write all of itself anew for that, while
/// whoever writes waits.
const RESTS_TIMES: u32 = 20;

/// Only after a failure that took so long they leave it alone too: one that comes at once costs nothing.
const LONG_FAILURE: Duration = Duration::from_secs(1);

/// The kind of the documents that each say that something deleted is to be overwritten. The body is the process that does it, for as
/// long as it lives; then others do.
const OWED: &str = "erasure";

/// Whether something was deleted that is not overwritten yet, and until when rounds leave that.
#[derive(Debug, Default)]
pub(crate) struct Erasing {
    is_due: AtomicBool,
    documents: OnceLock<Arc<dyn Documents>>,
    deleting: Deleting,
    rests_until: Mutex<Option<Instant>>,
}

/// The keys of the documents about what is being deleted here at this moment.
type Deleting = Arc<Mutex<HashSet<String>>>;

/// That something is being deleted, until this is dropped: what is overwritten meanwhile does not settle it.
#[derive(Debug)]
#[must_use]
pub struct Owed {
    key: String,
    deleting: Deleting,
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.deleting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl Erasing {
    /// Something was deleted.
    fn owe(&self) {
        self.is_due.store(true, Ordering::Relaxed);
    }

    /// Something is about to be deleted by this process. It stays known if that ends before it is overwritten.
    async fn note(&self, own: &DriverId) -> Result<Owed, EngineError> {
        let owed = Owed { key: Engine::new_id()?.to_string(), deleting: Arc::clone(&self.deleting) };
        self.deleting.lock().unwrap_or_else(PoisonError::into_inner).insert(owed.key.clone());
        if let Some(documents) = self.documents.get() {
            documents.put_document(OWED, Document { key: owed.key.clone(), body: own.0.clone() }).await?;
        }
        Ok(owed)
    }

    /// The keys of what was deleted by now and is this process's to overwrite.
    async fn noted(&self, store: &dyn Store) -> Result<Vec<String>, StoreError> {
        let Some(documents) = self.documents.get() else { return Ok(Vec::new()) };
        let mut noted = Vec::new();
        for Document { key, body } in documents.documents(OWED).await? {
            let driver = DriverId(body);
            let is_deleted = if driver == *store.driver() {
                !self.deleting.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
            } else {
                !store.is_alive(&driver).await?
            };
            if is_deleted {
                noted.push(key);
            }
        }
        Ok(noted)
    }

    /// What was noted then is overwritten.
    async fn settle(&self, noted: &[String]) -> Result<(), StoreError> {
        let Some(documents) = self.documents.get() else { return Ok(()) };
        for key in noted {
            documents.remove_document(OWED, key).await?;
        }
        Ok(())
    }

    fn is_resting(&self) -> bool {
        self.rests_until().is_some_and(|until| Instant::now() < until)
    }

    fn rest_after(&self, took: Duration) {
        *self.rests_until() = Instant::now().checked_add(took.saturating_mul(RESTS_TIMES));
    }

    fn rests_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.rests_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What removes for good.
#[async_trait]
pub trait Upkeep: Send + Sync + Debug {
    /// Whether [`Upkeep::remove_old`] would delete any. Nothing is written.
    ///
    /// # Errors
    /// Where the store fails.
    async fn has_old(&self, before_ms: u64, now_ms: u64) -> Result<bool, StoreError>;

    /// Deletes conversations that were made, and whose newest entry was stored, before `before_ms`, which are not pinned and have
    /// no open turn, at most `limit`; looks at each and deletes it in one instant. But none that was made after another that is
    /// said to have been made between `before_ms` and `now_ms`: the clock was wrong by which it was. Times are in milliseconds since
    /// 1970 UTC.
    ///
    /// # Errors
    /// Where the store fails.
    async fn remove_old(&self, before_ms: u64, now_ms: u64, limit: usize) -> Result<Vec<ConversationId>, StoreError>;

    /// Forgets the requests that came before this time and are kept in case they are sent again, those of [`RESENT`].
    ///
    /// # Errors
    /// Where the store fails.
    async fn forget_requests(&self, before_ms: u64) -> Result<(), StoreError>;

    /// Overwrites what was deleted before, wherever the store still has it: in logs, in indexes, in free space. It may write all of
    /// itself anew for that.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] where somebody is using the logs just now; what was deleted stays deleted.
    async fn erase(&self) -> Result<(), StoreError>;
}

impl Engine {
    /// Keeps there that something deleted is to be overwritten. Counts once.
    pub fn keep_erasures(&self, documents: Arc<dyn Documents>) {
        if self.inner().erasing.documents.set(documents).is_err() {
            tracing::error!("what is to be overwritten can be kept in one place");
        }
    }

    /// Says that something is about to be deleted that [`Engine::erase`] is to overwrite: if this process ends before that, another
    /// one does it. What comes of it is held until it is deleted.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn owe_erasure(&self) -> Result<Owed, EngineError> {
        self.inner().erasing.note(self.driver()).await
    }

    /// Deletes what is older than this, of every user, but never what is pinned, runs or waits; how many there were. What was
    /// deleted is overwritten.
    ///
    /// # Errors
    /// Where the store fails. Where the second alone did, the next time does it, whether or not anything is old then.
    pub async fn remove_old(&self, upkeep: &dyn Upkeep, before_ms: u64) -> Result<usize, EngineError> {
        let mut count = 0_usize;
        let now_ms = self.clock().now_ms();
        let mut goes_on = upkeep.has_old(before_ms, now_ms).await?;
        let owed = if goes_on { Some(self.owe_erasure().await?) } else { None };
        while goes_on {
            let removed = upkeep.remove_old(before_ms, now_ms, REMOVED_AT_ONCE).await?;
            if !removed.is_empty() {
                self.inner().erasing.owe();
            }
            for id in &removed {
                self.forget(id);
            }
            count = count.saturating_add(removed.len());
            if self.inner().nodes().is_shared() {
                for conversation in removed.iter().cloned() {
                    self.inner().nodes().tell(News::Appended { conversation, seq: None }).await;
                }
            }
            goes_on = removed.len() >= REMOVED_AT_ONCE;
        }
        drop(owed);
        self.erase_due(upkeep).await?;
        Ok(count)
    }

    /// Overwrites what was deleted before.
    ///
    /// # Errors
    /// Where the store fails; [`Engine::erase_due`] does it later then.
    pub async fn erase(&self, upkeep: &dyn Upkeep) -> Result<(), EngineError> {
        self.inner().erasing.owe();
        self.erase_now(upkeep).await
    }

    /// Overwrites what was deleted and could not be overwritten before; not soon after that was tried, where it took long.
    ///
    /// # Errors
    /// Where the store fails; a later time does it.
    pub async fn erase_due(&self, upkeep: &dyn Upkeep) -> Result<(), EngineError> {
        if self.inner().erasing.is_resting() { Ok(()) } else { self.erase_now(upkeep).await }
    }

    async fn erase_now(&self, upkeep: &dyn Upkeep) -> Result<(), EngineError> {
        let erasing = &self.inner().erasing;
        // What is deleted meanwhile may not be overwritten by this.
        let noted = erasing.noted(&*self.inner().store).await?;
        if !erasing.is_due.swap(false, Ordering::Relaxed) && noted.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let erased = upkeep.erase().await;
        let took = begun.elapsed();
        if erased.is_ok() || took >= LONG_FAILURE {
            erasing.rest_after(took);
        }
        if erased.is_err() {
            erasing.owe();
        }
        erased?;
        Ok(erasing.settle(&noted).await?)
    }
}
