//! A store in memory, shared by any number of "processes", with a fuse that kills one of them at a chosen append.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;
use turnwright_core::{ConversationId, DriverId, Seq, StoredEntry};
use turnwright_engine::{Append, ConversationRecord, Idempotent, OpenTurn, Page, SideRecord, Store, StoreError};

/// What all processes share.
#[derive(Debug)]
struct Shared {
    tables: Mutex<Tables>,
    writes: watch::Sender<u64>,
    drivers: AtomicU64,
}

#[derive(Debug, Default)]
struct Tables {
    conversations: BTreeMap<String, ConversationRecord>,
    entries: HashMap<ConversationId, Vec<StoredEntry>>,
    open: BTreeMap<String, OpenTurn>,
    idempotent: HashMap<String, Idempotent>,
    alive: HashSet<DriverId>,
}

/// When a process dies: before or after its n-th append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fuse {
    /// The n-th append, from 1, is not stored, nor is anything later.
    Before(u64),
    /// The n-th append is stored and nothing later.
    After(u64),
}

/// A store in memory as one process sees it.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    driver: DriverId,
    fuse: Option<Fuse>,
    appends: AtomicU64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let shared = Shared { tables: Mutex::default(), writes: watch::Sender::new(0), drivers: AtomicU64::new(0) };
        Self::join(Arc::new(shared), None)
    }
}

impl MemoryStore {
    /// The same data as another process sees it.
    #[must_use]
    pub fn another_process(&self) -> Self {
        Self::join(self.shared.clone(), None)
    }

    /// The same data as another process sees it that dies at `fuse`.
    #[must_use]
    pub fn doomed_process(&self, fuse: Fuse) -> Self {
        Self::join(self.shared.clone(), Some(fuse))
    }

    fn join(shared: Arc<Shared>, fuse: Option<Fuse>) -> Self {
        let driver = DriverId(format!("driver-{}", shared.drivers.fetch_add(1, Ordering::Relaxed) + 1));
        shared.tables.lock().unwrap_or_else(PoisonError::into_inner).alive.insert(driver.clone());
        Self { shared, driver, fuse, appends: AtomicU64::new(0) }
    }

    /// Ends this process as far as others can tell.
    pub fn die(&self) {
        self.with(|tables| tables.alive.remove(&self.driver));
    }

    /// Whether this process is alive.
    pub fn lives(&self) -> bool {
        self.with(|tables| tables.alive.contains(&self.driver))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        work(&mut self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn dead() -> StoreError {
        StoreError::Unusable { reason: "this process is dead".to_owned() }
    }
}

impl Tables {
    fn append(&mut self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        let id = &append.conversation;
        if let Some(SideRecord::Create(record)) = append.side.first() {
            if self.conversations.contains_key(id.as_str()) {
                return Err(StoreError::Exists { conversation: id.clone() });
            }
            self.conversations.insert(id.as_str().to_owned(), record.clone());
        }
        let Some(conversation) = self.conversations.get_mut(id.as_str()) else {
            return Err(StoreError::Gone { conversation: id.clone() });
        };
        let entries = self.entries.entry(id.clone()).or_default();
        let next = entries.last().map_or(Seq::FIRST, |last| last.seq.next());
        if append.at != next {
            return Err(StoreError::Conflict { next });
        }
        let mut seq = next;
        let mut stored = Vec::new();
        for entry in append.entries {
            stored.push(StoredEntry { seq, at_ms: append.at_ms, entry: Arc::new(entry) });
            seq = seq.next();
        }
        entries.extend(stored.iter().cloned());
        conversation.updated_at_ms = append.at_ms;
        for side in append.side {
            match side {
                SideRecord::Create(_) => {}
                SideRecord::Title(title) => conversation.title = Some(title),
                SideRecord::TurnOpen { turn, parked, kept_by } => {
                    let open = OpenTurn { conversation: id.clone(), turn, parked, kept_by };
                    self.open.insert(id.as_str().to_owned(), open);
                }
                SideRecord::TurnOver => drop(self.open.remove(id.as_str())),
                SideRecord::Idempotent { key, record } => drop(self.idempotent.insert(key, record)),
            }
        }
        Ok(stored)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, conversation: ConversationRecord) -> Result<(), StoreError> {
        self.with(|tables| {
            if tables.conversations.contains_key(conversation.id.as_str()) {
                return Err(StoreError::Exists { conversation: conversation.id });
            }
            tables.conversations.insert(conversation.id.as_str().to_owned(), conversation);
            Ok(())
        })
    }

    async fn conversation(&self, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
        Ok(self.with(|tables| tables.conversations.get(id.as_str()).cloned()))
    }

    async fn update(&self, conversation: ConversationRecord) -> Result<(), StoreError> {
        self.with(|tables| match tables.conversations.get_mut(conversation.id.as_str()) {
            None => Err(StoreError::Gone { conversation: conversation.id }),
            Some(known) => {
                *known = conversation;
                Ok(())
            }
        })
    }

    async fn conversations(&self, page: Page<'_>) -> Result<Vec<ConversationRecord>, StoreError> {
        let mut all: Vec<_> = self.with(|tables| tables.conversations.values().cloned().collect());
        all.sort_by(|a, b| b.updated_at_ms.cmp(&a.updated_at_ms).then_with(|| b.id.cmp(&a.id)));
        let start = page.after.and_then(|after| all.iter().position(|known| known.id == *after)).map_or(0, |at| at + 1);
        Ok(all.into_iter().skip(start).take(page.limit).collect())
    }

    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        self.with(|tables| {
            tables.entries.remove(id);
            tables.open.remove(id.as_str());
            tables.conversations.remove(id.as_str()).map(drop).ok_or_else(|| StoreError::Gone { conversation: id.clone() })
        })
    }

    async fn append(&self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        if !self.lives() {
            return Err(Self::dead());
        }
        let number = self.appends.fetch_add(1, Ordering::Relaxed) + 1;
        if self.fuse == Some(Fuse::Before(number)) {
            self.die();
            return Err(Self::dead());
        }
        let stored = self.with(|tables| tables.append(append));
        if stored.is_ok() {
            self.shared.writes.send_modify(|writes| *writes += 1);
        }
        if self.fuse == Some(Fuse::After(number)) {
            self.die();
            return Err(Self::dead());
        }
        stored
    }

    async fn entries(&self, id: &ConversationId, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError> {
        self.with(|tables| {
            if !tables.conversations.contains_key(id.as_str()) {
                return Err(StoreError::Gone { conversation: id.clone() });
            }
            let entries = tables.entries.get(id).map(Vec::as_slice).unwrap_or_default();
            Ok(entries.iter().filter(|entry| entry.seq >= from).take(limit).cloned().collect())
        })
    }

    async fn last_seq(&self, id: &ConversationId) -> Result<Option<Seq>, StoreError> {
        Ok(self.with(|tables| tables.entries.get(id).and_then(|entries| entries.last()).map(|entry| entry.seq)))
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        Ok(self.with(|tables| tables.open.values().cloned().collect()))
    }

    async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, StoreError> {
        Ok(self.with(|tables| tables.idempotent.get(key).cloned()))
    }

    fn foreign_writes(&self) -> watch::Receiver<u64> {
        self.shared.writes.subscribe()
    }

    fn driver(&self) -> &DriverId {
        &self.driver
    }

    async fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError> {
        Ok(self.with(|tables| tables.alive.contains(driver)))
    }

    async fn close(&self) {
        self.die();
    }
}
