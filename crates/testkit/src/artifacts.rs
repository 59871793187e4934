//! Files in memory, with room for as many as a test says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use turnwright_core::{ConversationId, UserId};
use turnwright_engine::StoreError;
use turnwright_engine::artifacts::{Artifact, Artifacts, Draft, Removal};

use crate::Disk;

/// Files in memory.
#[derive(Debug, Default)]
pub struct MemoryArtifacts {
    tables: Mutex<Tables>,
    is_full: AtomicBool,
    slow: Mutex<Duration>,
}

#[derive(Debug, Default)]
struct Tables {
    next: i64,
    /// By draft.
    files: BTreeMap<i64, File>,
}

/// What is known of a file once it is finished, and its pieces.
type File = (Option<Artifact>, BTreeMap<u32, Vec<u8>>);

impl MemoryArtifacts {
    /// From here on nothing can be stored, as on a full disk; or it can again.
    pub fn set_full(&self, disk: Disk) {
        self.is_full.store(disk == Disk::Full, Ordering::Relaxed);
    }

    /// From here on each file takes this long to begin, and each piece to store, as on a disk that others use.
    pub fn set_slow(&self, each: Duration) {
        *self.slow.lock().unwrap_or_else(PoisonError::into_inner) = each;
    }

    /// The finished files, in the order in which they were begun, with their bytes.
    pub fn files(&self) -> Vec<(Artifact, Vec<u8>)> {
        let tables = self.lock();
        let whole = |(artifact, pieces): &File| Some((artifact.clone()?, pieces.values().flatten().copied().collect()));
        tables.files.values().filter_map(whole).collect()
    }

    /// How many files were begun and are neither finished nor thrown away.
    pub fn drafts(&self) -> usize {
        self.lock().files.values().filter(|(artifact, _)| artifact.is_none()).count()
    }

    /// The size of each piece of the finished files, in their order.
    pub fn pieces(&self) -> Vec<usize> {
        self.lock()
            .files
            .values()
            .filter(|(artifact, _)| artifact.is_some())
            .flat_map(|(_, all)| all.values().map(Vec::len))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn wait(&self) {
        let each = *self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        if !each.is_zero() {
            tokio::time::sleep(each).await;
        }
    }

    fn room(&self) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(StoreError::Unusable { reason: "the disk is full".to_owned() });
        }
        Ok(())
    }
}

#[async_trait]
impl Artifacts for MemoryArtifacts {
    async fn begin_artifact(&self, _at_ms: u64) -> Result<Draft, StoreError> {
        self.room()?;
        self.wait().await;
        let mut tables = self.lock();
        tables.next += 1;
        let key = tables.next;
        tables.files.insert(key, (None, BTreeMap::new()));
        Ok(Draft(key))
    }

    async fn put_piece(&self, draft: Draft, index: u32, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.room()?;
        self.wait().await;
        if let Some((None, pieces)) = self.lock().files.get_mut(&draft.0) {
            pieces.insert(index, bytes);
        }
        Ok(())
    }

    async fn finish_artifact(&self, draft: Draft, artifact: Artifact) -> Result<(), StoreError> {
        self.room()?;
        let mut tables = self.lock();
        let mut files = tables.files.values_mut().filter_map(|(known, _)| known.as_mut());
        if let Some(known) = files.find(|known| known.id == artifact.id) {
            known.created_at_ms = known.created_at_ms.max(artifact.created_at_ms);
            tables.files.remove(&draft.0);
            return Ok(());
        }
        match tables.files.get_mut(&draft.0) {
            Some(file) => file.0 = Some(artifact),
            None => return Err(StoreError::Missing { what: "upload any more".to_owned() }),
        }
        Ok(())
    }

    async fn drop_draft(&self, draft: Draft) -> Result<(), StoreError> {
        self.lock().files.remove(&draft.0);
        Ok(())
    }

    async fn artifact(&self, owner: &UserId, id: &str) -> Result<Option<Artifact>, StoreError> {
        Ok(self.files().into_iter().map(|(artifact, _)| artifact).find(|known| known.id == id && known.owner == *owner))
    }

    async fn piece(&self, owner: &UserId, id: &str, index: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let is_it = |known: &Artifact| known.id == id && known.owner == *owner;
        let tables = self.lock();
        let file = tables.files.values().find(|(known, _)| known.as_ref().is_some_and(is_it));
        Ok(file.and_then(|(_, pieces)| pieces.get(&index).cloned()))
    }

    async fn use_artifact(&self, _owner: &UserId, _id: &str, _conversation: &ConversationId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn remove_artifact(&self, owner: &UserId, id: &str) -> Result<Removal, StoreError> {
        let mut tables = self.lock();
        let count = tables.files.len();
        tables.files.retain(|_, (known, _)| !known.as_ref().is_some_and(|known| known.id == id && known.owner == *owner));
        Ok(if tables.files.len() < count { Removal::Removed } else { Removal::Missing })
    }

    async fn sweep_artifacts(&self, _before_ms: u64) -> Result<(), StoreError> {
        self.lock().files.retain(|_, (artifact, _)| artifact.is_some());
        Ok(())
    }
}
