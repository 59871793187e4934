//! A store in which a driver counts as gone only when nothing runs any more that it started.
//!
//! Whoever takes a turn over from a process that was killed tells the model that its calls were interrupted, or runs them
//! again; both would be wrong while the command of that process still runs (law 8).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;
use turnwright_core::budgets::Period;
use turnwright_core::{ConversationId, DriverId, Seq, StoredEntry, UserId};
use turnwright_engine::{
    Append, Balance, Chosen, ConversationRecord, Copied, Idempotent, Incarnation, Newest, OpenTurn, Page, Store, StoreError,
};
use turnwright_mcp::{Swept, sweep_driver};
use turnwright_store::Storage;

/// See the module.
#[derive(Debug)]
pub(crate) struct SweptStore {
    store: Arc<dyn Storage>,
    /// The folder of the ledgers.
    processes: PathBuf,
    /// Those that are gone; each is swept once, and everybody who asks about it waits for that, or for an attempt that fails.
    gone: Mutex<HashMap<DriverId, Arc<Sweeping>>>,
}

/// For so long a driver that is gone counts as alive where something that it started cannot be ended. Then its turns go on without.
const UNSWEPT_LIMIT: Duration = Duration::from_mins(2);

/// What is known of what a driver which is gone left running.
#[derive(Debug, Default)]
struct Sweeping {
    /// Set once nothing of it runs.
    done: OnceCell<()>,
    /// Since when that was tried.
    since: OnceLock<Instant>,
    /// When that failed last.
    failed: Mutex<Option<Instant>>,
}

/// For so long after a failure it is not tried again: an engine that does not answer is waited for each time.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(5);

impl Sweeping {
    fn failed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SweptStore {
    pub(crate) fn new(store: Arc<dyn Storage>, processes: PathBuf) -> Self {
        Self { store, processes, gone: Mutex::default() }
    }

    /// Whether nothing runs any more that the driver started, or that was waited for long enough.
    async fn sweep(&self, driver: &DriverId) -> bool {
        // Names come from journals, which may have been imported: only a plain one becomes part of a path.
        if driver.0.is_empty() || !driver.0.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return true;
        }
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner).entry(driver.clone()).or_default().clone();
        let since = *gone.since.get_or_init(Instant::now);
        let sweep = || async {
            // Also who waited for the attempt that failed.
            if gone.failed().is_some_and(|failed| failed.elapsed() < TRIED_AGAIN_AFTER) {
                return Err(());
            }
            match sweep_driver(&self.processes, &driver.0).await {
                Ok(Swept { ended, left: 0 }) => {
                    if ended > 0 {
                        tracing::info!(%driver, swept = ended, "ended what a process which is gone had left running");
                    }
                    return Ok(());
                }
                Ok(Swept { left, .. }) => {
                    tracing::warn!(%driver, left, "what a process which is gone left running may run on");
                }
                Err(error) => tracing::warn!(%driver, %error, "cannot end what a process which is gone left running"),
            }
            if since.elapsed() < UNSWEPT_LIMIT {
                *gone.failed() = Some(Instant::now());
                return Err(());
            }
            tracing::warn!(%driver, "its turns are taken over all the same");
            Ok(())
        };
        gone.done.get_or_try_init(sweep).await.is_ok()
    }
}

#[async_trait]
impl Store for SweptStore {
    async fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError> {
        Ok(self.store.is_alive(driver).await? || !self.sweep(driver).await)
    }

    async fn create(&self, conversation: ConversationRecord) -> Result<(), StoreError> {
        self.store.create(conversation).await
    }

    async fn conversation(&self, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
        self.store.conversation(id).await
    }

    async fn update(&self, id: &ConversationId, chosen: Chosen, of: (&Incarnation, &Chosen)) -> Result<(), StoreError> {
        self.store.update(id, chosen, of).await
    }

    async fn conversations(&self, page: Page<'_>) -> Result<Vec<ConversationRecord>, StoreError> {
        self.store.conversations(page).await
    }

    async fn delete_meant(&self, id: &ConversationId, meant: &Incarnation, of: Option<&Chosen>) -> Result<(), StoreError> {
        self.store.delete_meant(id, meant, of).await
    }

    async fn append(&self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        self.store.append(append).await
    }

    async fn copy(&self, copy: Copied) -> Result<(), StoreError> {
        self.store.copy(copy).await
    }

    async fn entries(&self, id: &ConversationId, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError> {
        self.store.entries(id, from, limit).await
    }

    async fn last_seq(&self, id: &ConversationId) -> Result<Option<Seq>, StoreError> {
        self.store.last_seq(id).await
    }

    async fn newest(&self, id: &ConversationId, known: &Arc<Chosen>) -> Result<Newest, StoreError> {
        self.store.newest(id, known).await
    }

    async fn takes_back(&self, id: &ConversationId) -> Result<bool, StoreError> {
        self.store.takes_back(id).await
    }

    async fn balance(&self, owner: Option<&UserId>, period: Period) -> Result<Balance, StoreError> {
        self.store.balance(owner, period).await
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        self.store.open_turns().await
    }

    async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, StoreError> {
        self.store.idempotent(key).await
    }

    async fn last_key(&self, from: &str, before: &str) -> Result<Option<String>, StoreError> {
        self.store.last_key(from, before).await
    }

    fn foreign_writes(&self) -> watch::Receiver<u64> {
        self.store.foreign_writes()
    }

    fn driver(&self) -> &DriverId {
        self.store.driver()
    }

    fn lease(&self) -> Option<u64> {
        self.store.lease()
    }

    async fn lease_over(&self, lease: u64) {
        self.store.lease_over(lease).await;
    }

    fn departures(&self) -> watch::Receiver<u64> {
        self.store.departures()
    }

    fn outlives_its_lease(&self) -> bool {
        self.store.outlives_its_lease()
    }

    async fn can_store(&self) -> Result<(), StoreError> {
        self.store.can_store().await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use turnwright_mcp::{FileLedger, MARK, ProcessLedger, ProcessRecord};
    use turnwright_store::{SqliteOptions, SqliteStore};

    use super::*;

    #[tokio::test]
    async fn who_asks_about_a_driver_that_is_gone_hears_so_when_its_processes_are() {
        let folder = tempfile::tempdir().unwrap();
        let processes = folder.path().join("processes");
        let store = Arc::new(SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap());
        let store = SweptStore::new(store, processes.clone());
        let driver = DriverId("0123456789abcdef0123456789abcdef".to_owned());
        let mark = format!("{:x}5e4f", std::process::id());
        let record = ProcessRecord::new(mark.clone(), "command");
        FileLedger::open(&processes, &driver.0).unwrap().started(&record).unwrap();
        let mut left = Command::new("sleep").arg("1000").env(MARK, &mark).stdin(Stdio::null()).spawn().unwrap();
        assert!(!store.is_alive(&driver).await.unwrap());
        // What it was is gone; that it may be waited for comes a moment later.
        let is_over = async {
            while left.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(5), is_over).await;
        let _ = left.kill();
        left.wait().unwrap();
        assert!(ended.is_ok(), "it runs on");
        assert!(!processes.join(&driver.0).exists());
        assert!(store.is_alive(store.driver()).await.unwrap());
    }

    #[tokio::test]
    async fn a_driver_whose_container_cannot_be_ended_counts_as_alive_until_it_can_or_for_two_minutes() {
        let folder = tempfile::tempdir().unwrap();
        let processes = folder.path().join("processes");
        let inner = Arc::new(SqliteStore::open(&SqliteOptions::in_directory(folder.path())).unwrap());
        let store = SweptStore::new(inner, processes.clone());
        let (ends, stays) = (DriverId("0123456789abcdef".to_owned()), DriverId("fedcba9876543210".to_owned()));
        // An engine that does not answer.
        let engine = Some(format!("unix://{}", folder.path().join("no.sock").display()));
        for (driver, mark) in [(&ends, "c0"), (&stays, "c1")] {
            let record = ProcessRecord { engine: engine.clone(), ..ProcessRecord::new(mark, "contained") };
            FileLedger::open(&processes, &driver.0).unwrap().started(&record).unwrap();
            assert!(store.is_alive(driver).await.unwrap(), "its container may run");
        }
        std::fs::remove_file(processes.join(&ends.0).join("c0.json")).unwrap();
        assert!(store.is_alive(&ends).await.unwrap(), "nobody looks again at once");
        let later = async |by| {
            tokio::time::pause();
            tokio::time::advance(by).await;
            tokio::time::resume();
        };
        later(TRIED_AGAIN_AFTER).await;
        assert!(!store.is_alive(&ends).await.unwrap(), "it is looked at again");
        later(UNSWEPT_LIMIT).await;
        assert!(!store.is_alive(&stays).await.unwrap(), "nobody waits for ever");
    }
}
