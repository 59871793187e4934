//! A store in memory, shared by any number of "processes", with a fuse that kills one of them at a chosen append.
//!
//! It does what every store must: the store's conformance suite runs over it too.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Semaphore, watch};
use turnwright_core::budgets::Period;
use turnwright_core::{ConversationId, DriverId, Seq, StoredEntry, UserId};
use turnwright_engine::{
    Append, Balance, CONVERSATION_DOCUMENTS, Chosen, ConversationRecord, Document, Documents, Idempotent, Incarnation, Newest,
    OpenTurn, Page, SideRecord, Store, StoreError,
};

use crate::ledger::Ledger;

/// What all processes share.
#[derive(Debug)]
struct Shared {
    tables: Mutex<Tables>,
    writes: watch::Sender<u64>,
    departures: watch::Sender<u64>,
    drivers: AtomicU64,
}

#[derive(Debug, Default)]
struct Tables {
    conversations: HashMap<ConversationId, Kept>,
    /// How many conversations were ever created.
    created: u64,
    /// By the number of the conversation.
    open: BTreeMap<u64, OpenTurn>,
    /// With the conversation through which each came, and with which it goes.
    idempotent: HashMap<String, (ConversationId, Idempotent)>,
    alive: HashSet<DriverId>,
    documents: BTreeMap<(String, String), String>,
    ledger: Ledger,
    /// Which conversation holds which artifact.
    held: Vec<(ConversationId, String)>,
}

#[derive(Debug)]
struct Kept {
    /// Counts the conversations; lists break ties by it.
    number: u64,
    record: ConversationRecord,
    entries: Vec<StoredEntry>,
}

/// When a process dies: before or after its n-th append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fuse {
    /// The n-th append, from 1, is not stored, nor is anything later.
    Before(u64),
    /// The n-th append is stored and nothing later.
    After(u64),
    /// The n-th append is stored, and whoever made it is told that the database cannot be reached; the process lives.
    Unheard(u64),
    /// At the append of this number its lease runs out and is taken anew: it lives, and may not go on with what it had begun.
    Lease(u64),
}

/// Whether there is room for appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// There is.
    HasRoom,
    /// There is none: every append fails.
    Full,
}

/// A store in memory as one process sees it.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    driver: DriverId,
    fuse: Option<Fuse>,
    appends: AtomicU64,
    records_read: AtomicU64,
    is_closed: AtomicBool,
    is_full: AtomicBool,
    hides_journals: bool,
    /// How often its lease ran out by itself.
    leases_lost: watch::Sender<u64>,
    outlives_its_lease: bool,
    /// What an append waits for after it is stored.
    acknowledged: Mutex<Option<Arc<Semaphore>>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let shared = Shared {
            tables: Mutex::default(),
            writes: watch::Sender::new(0),
            departures: watch::Sender::new(0),
            drivers: AtomicU64::new(0),
        };
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
        Self {
            shared,
            driver,
            fuse,
            appends: AtomicU64::new(0),
            records_read: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            hides_journals: false,
            leases_lost: watch::Sender::new(0),
            outlives_its_lease: false,
            acknowledged: Mutex::default(),
        }
    }

    /// Appends are stored at once from now on, and whoever made one hears of it once the gate has room.
    pub fn acknowledge_through(&self, gate: &Arc<Semaphore>) {
        *self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate.clone());
    }

    /// The same, whose drivers are alive by leases, which their processes may outlive.
    #[must_use]
    pub fn by_leases(mut self) -> Self {
        self.outlives_its_lease = true;
        self
    }

    /// The same, which fails where a conversation is to be read.
    #[must_use]
    pub fn hiding_journals(mut self) -> Self {
        self.hides_journals = true;
        self
    }

    /// The lease of this process runs out: others take it for dead, and it goes on.
    pub fn lose_lease(&self) {
        self.die();
        self.leases_lost.send_modify(|lost| *lost += 1);
    }

    /// The same while this process stands still: nobody who waits for it hears of it before the lease is looked at.
    pub fn lose_lease_unheard(&self) {
        self.with(|tables| tables.alive.remove(&self.driver));
        self.leases_lost.send_if_modified(|lost| {
            *lost += 1;
            false
        });
    }

    /// Which conversation holds which artifact, in the order in which it was said.
    pub fn held(&self) -> Vec<(ConversationId, String)> {
        self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner).held.clone()
    }

    /// How often this process asked for the record of a single conversation.
    pub fn records_read(&self) -> u64 {
        self.records_read.load(Ordering::Relaxed)
    }

    /// From here on nothing can be appended, as on a full disk; or it can again.
    pub fn set_full(&self, disk: Disk) {
        self.is_full.store(disk == Disk::Full, Ordering::Relaxed);
    }

    /// Ends this process as far as others can tell.
    pub fn die(&self) {
        self.with(|tables| tables.alive.remove(&self.driver));
        self.shared.departures.send_modify(|count| *count += 1);
    }

    /// Whether this process is alive.
    pub fn lives(&self) -> bool {
        self.with(|tables| tables.alive.contains(&self.driver))
    }

    /// As [`MemoryStore::with`], unless the store was closed.
    fn ask<T>(&self, work: impl FnOnce(&mut Tables) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        self.with(work)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Tables) -> T) -> T {
        work(&mut self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`MemoryStore::ask`], about a conversation.
    fn read<T>(&self, work: impl FnOnce(&mut Tables) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.hides_journals {
            return Err(StoreError::Unusable { reason: "the disk cannot be read".to_owned() });
        }
        self.ask(work)
    }

    fn has_room(&self) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(StoreError::Unusable { reason: "the disk is full".to_owned() });
        }
        Ok(())
    }

    fn dead() -> StoreError {
        StoreError::Unusable { reason: "this process is dead".to_owned() }
    }
}

impl Tables {
    fn create(&mut self, record: ConversationRecord) -> Result<&mut Kept, StoreError> {
        if self.conversations.contains_key(&record.id) {
            return Err(StoreError::Exists { conversation: record.id });
        }
        self.created += 1;
        let kept = Kept { number: self.created, record, entries: Vec::new() };
        Ok(self.conversations.entry(kept.record.id.clone()).or_insert(kept))
    }

    fn kept(&mut self, id: &ConversationId) -> Result<&mut Kept, StoreError> {
        self.conversations.get_mut(id).ok_or_else(|| StoreError::Gone { conversation: id.clone() })
    }

    fn meant(&mut self, id: &ConversationId, meant: &Incarnation) -> Result<&mut Kept, StoreError> {
        let gone = || StoreError::Gone { conversation: id.clone() };
        self.conversations.get_mut(id).filter(|kept| kept.record.incarnation() == *meant).ok_or_else(gone)
    }

    fn append(&mut self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        let id = &append.conversation;
        let creates = append.side.iter().find_map(|record| match record {
            SideRecord::Create(record) => Some(record.clone()),
            SideRecord::Times(_)
            | SideRecord::Of(_)
            | SideRecord::Title(_)
            | SideRecord::TurnOpen { .. }
            | SideRecord::TurnOver
            | SideRecord::Document { .. }
            | SideRecord::Holds { .. }
            | SideRecord::HoldsAs { .. }
            | SideRecord::RunningTurns { .. }
            | SideRecord::Reserve(_)
            | SideRecord::Settle { .. }
            | SideRecord::Idempotent { .. } => None,
        });
        let next = match (self.conversations.get(id), &creates) {
            (Some(_), Some(_)) => return Err(StoreError::Exists { conversation: id.clone() }),
            (None, None) => return Err(StoreError::Gone { conversation: id.clone() }),
            (Some(kept), None) if is_another(&kept.record, &append.side) => {
                return Err(StoreError::Gone { conversation: id.clone() });
            }
            (Some(kept), None) => kept.entries.last().map_or(Seq::FIRST, |last| last.seq.next()),
            (None, Some(_)) => Seq::FIRST,
        };
        if append.at != next {
            return Err(StoreError::Conflict { next });
        }
        for record in &append.side {
            if let SideRecord::Idempotent { key, .. } = record
                && self.idempotent.contains_key(key)
            {
                return Err(StoreError::Repeated { key: key.clone() });
            }
        }
        for record in &append.side {
            if let SideRecord::Reserve(reservation) = record {
                let besides = self.conversations.get(id).map(|kept| (kept.number, reservation.purpose.as_str()));
                self.ledger.must_allow(reservation, besides)?;
            }
            if let SideRecord::RunningTurns { owner, most } = record {
                let besides = |turn: &&OpenTurn| turn.owner == *owner && !turn.parked && turn.conversation != *id;
                if self.open.values().filter(besides).count() >= *most {
                    return Err(StoreError::TooManyTurns);
                }
            }
            if let SideRecord::HoldsAs { other } = record {
                self.kept(other)?;
            }
        }
        let kept = match creates {
            Some(record) => self.create(record)?,
            None => self.kept(id)?,
        };
        let (number, owner) = (kept.number, kept.record.owner.clone());
        let places = std::iter::successors(Some(next), |seq| Some(seq.next()));
        let times_ms = append.times_ms();
        let stored = |((entry, at_ms), seq)| StoredEntry { seq, at_ms, entry: Arc::new(entry) };
        let stored: Vec<StoredEntry> = append.entries.into_iter().zip(times_ms).zip(places).map(stored).collect();
        if !stored.is_empty() {
            kept.entries.extend(stored.iter().cloned());
            kept.record.updated_at_ms = kept.record.updated_at_ms.max(append.at_ms);
        }
        for side in append.side {
            match side {
                SideRecord::Create(_) | SideRecord::Of(_) | SideRecord::Times(_) | SideRecord::RunningTurns { .. } => {}
                SideRecord::Title(title) => self.kept(id)?.record.title = title,
                SideRecord::TurnOpen { turn, parked, kept_by } => {
                    let owner = owner.clone();
                    let open = OpenTurn { conversation: id.clone(), owner, turn, parked, kept_by, last: None };
                    self.open.insert(number, open);
                }
                SideRecord::TurnOver => drop(self.open.remove(&number)),
                SideRecord::Document { kind, key, body: Some(body) } => drop(self.documents.insert((kind, key), body)),
                SideRecord::Document { kind, key, body: None } => drop(self.documents.remove(&(kind, key))),
                SideRecord::Holds { artifact } => self.held.push((id.clone(), artifact)),
                SideRecord::HoldsAs { other } => {
                    let of_other = self.held.iter().filter(|(holder, _)| *holder == other);
                    let held: Vec<_> = of_other.map(|(_, artifact)| (id.clone(), artifact.clone())).collect();
                    let new: Vec<_> = held.into_iter().filter(|held| !self.held.contains(held)).collect();
                    self.held.extend(new);
                }
                SideRecord::Reserve(reservation) => self.ledger.reserve(number, reservation),
                SideRecord::Settle { purpose, amount } => self.ledger.settle(number, &purpose, amount),
                SideRecord::Idempotent { key, record } => drop(self.idempotent.insert(key, (id.clone(), record))),
            }
        }
        Ok(stored)
    }
}

impl MemoryStore {
    fn remove(&self, (id, meant): (&ConversationId, &Incarnation), of: Option<&Chosen>) -> Result<(), StoreError> {
        self.ask(|tables| {
            let kept = tables.meant(id, meant)?;
            if of.is_some_and(|of| kept.record.chosen() != *of) {
                return Err(StoreError::Changed { conversation: id.clone() });
            }
            let number = kept.number;
            tables.open.remove(&number);
            tables.ledger.forget(number);
            tables.idempotent.retain(|_, (conversation, _)| conversation != id);
            tables.conversations.remove(id);
            let own = format!("{id}/");
            tables.documents.retain(|(kind, key), _| kind != CONVERSATION_DOCUMENTS || !key.starts_with(&own));
            Ok(())
        })?;
        self.shared.writes.send_modify(|writes| *writes += 1);
        Ok(())
    }
}

/// Whether an append means another conversation than the one that has its name.
fn is_another(record: &ConversationRecord, side: &[SideRecord]) -> bool {
    side.iter().any(|meant| matches!(meant, SideRecord::Of(meant) if *meant != record.incarnation()))
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, conversation: ConversationRecord) -> Result<(), StoreError> {
        self.ask(|tables| tables.create(conversation).map(|_| ()))
    }

    async fn conversation(&self, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
        self.records_read.fetch_add(1, Ordering::Relaxed);
        self.read(|tables| Ok(tables.conversations.get(id).map(|kept| kept.record.clone())))
    }

    async fn update(
        &self,
        id: &ConversationId,
        chosen: Chosen,
        (meant, of): (&Incarnation, &Chosen),
    ) -> Result<(), StoreError> {
        self.ask(|tables| {
            let known = &mut tables.meant(id, meant)?.record;
            if known.chosen() != *of {
                return Err(StoreError::Changed { conversation: id.clone() });
            }
            (known.title, known.settings) = (chosen.title, chosen.settings);
            Ok(())
        })
    }

    async fn conversations(&self, page: Page<'_>) -> Result<Vec<ConversationRecord>, StoreError> {
        self.ask(|tables| {
            let is_pinned = |kept: &Kept| kept.record.settings.contains("\"pinned\":true");
            let is_meant = |kept: &&Kept| kept.record.owner == *page.owner && (!page.only_pinned || is_pinned(kept));
            let mut all: Vec<&Kept> = tables.conversations.values().filter(is_meant).collect();
            all.sort_by_cached_key(|kept| std::cmp::Reverse(kept.record.place()));
            let behind = all.into_iter().filter(|kept| page.after.is_none_or(|after| kept.record.place() < *after));
            Ok(behind.take(page.limit).map(|kept| kept.record.clone()).collect())
        })
    }

    async fn delete_meant(&self, id: &ConversationId, meant: &Incarnation, of: Option<&Chosen>) -> Result<(), StoreError> {
        self.remove((id, meant), of)
    }

    async fn append(&self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        self.ask(|_| Ok(()))?;
        if !self.lives() && *self.leases_lost.borrow() == 0 {
            return Err(Self::dead());
        }
        self.has_room()?;
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
        if self.fuse == Some(Fuse::Unheard(number)) {
            return Err(StoreError::Unusable { reason: "the database cannot be reached".to_owned() });
        }
        let gate = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(gate) = gate {
            drop(gate.acquire().await);
        }
        stored
    }

    async fn entries(&self, id: &ConversationId, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError> {
        self.read(|tables| {
            let entries = &tables.kept(id)?.entries;
            Ok(entries.iter().filter(|entry| entry.seq >= from).take(limit).cloned().collect())
        })
    }

    async fn last_seq(&self, id: &ConversationId) -> Result<Option<Seq>, StoreError> {
        self.ask(|tables| Ok(tables.conversations.get(id).and_then(|kept| kept.entries.last()).map(|entry| entry.seq)))
    }

    async fn newest(&self, id: &ConversationId, known: &Arc<Chosen>) -> Result<Newest, StoreError> {
        self.ask(|tables| {
            let Some(kept) = tables.conversations.get(id) else { return Ok(Newest::default()) };
            let last = kept.entries.last().map(|entry| entry.seq);
            let chosen = Chosen::unless_known(kept.record.title.as_deref(), &kept.record.settings, known);
            Ok(Newest { last, chosen, incarnation: Some(kept.record.incarnation()) })
        })
    }

    async fn takes_back(&self, id: &ConversationId) -> Result<bool, StoreError> {
        let takes_back = |stored: &StoredEntry| matches!(stored.entry.kind(), "hidden" | "retried");
        Ok(self.with(|tables| tables.conversations.get(id).is_some_and(|kept| kept.entries.iter().any(takes_back))))
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        self.ask(|tables| {
            let last = |turn: &OpenTurn| tables.conversations.get(&turn.conversation)?.entries.last().map(|last| last.seq);
            Ok(tables.open.values().map(|turn| OpenTurn { last: last(turn), ..turn.clone() }).collect())
        })
    }

    async fn balance(&self, owner: Option<&UserId>, period: Period) -> Result<Balance, StoreError> {
        self.ask(|tables| Ok(tables.ledger.balance(owner, period, None)))
    }

    async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, StoreError> {
        self.ask(|tables| Ok(tables.idempotent.get(key).map(|(_, record)| record.clone())))
    }

    async fn last_key(&self, from: &str, before: &str) -> Result<Option<String>, StoreError> {
        let is_within = |key: &&String| (from..before).contains(&key.as_str());
        self.ask(|tables| Ok(tables.idempotent.keys().filter(is_within).max().cloned()))
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

    fn lease(&self) -> Option<u64> {
        let appends = self.appends.load(Ordering::Relaxed);
        let lost = *self.leases_lost.borrow();
        Some(lost + u64::from(matches!(self.fuse, Some(Fuse::Lease(at)) if appends >= at)))
    }

    async fn lease_over(&self, lease: u64) {
        let over = self.leases_lost.subscribe().wait_for(|lost| *lost > lease).await.map(drop);
        if over.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn departures(&self) -> watch::Receiver<u64> {
        self.shared.departures.subscribe()
    }

    fn outlives_its_lease(&self) -> bool {
        self.outlives_its_lease
    }

    async fn can_store(&self) -> Result<(), StoreError> {
        self.ask(|_| Ok(()))?;
        self.has_room()
    }

    async fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.die();
    }
}

#[async_trait]
impl Documents for MemoryStore {
    async fn document(&self, kind: &str, key: &str) -> Result<Option<Document>, StoreError> {
        let name = (kind.to_owned(), key.to_owned());
        self.ask(|tables| Ok(tables.documents.get(&name).map(|body| Document { key: name.1.clone(), body: body.clone() })))
    }

    async fn documents(&self, kind: &str) -> Result<Vec<Document>, StoreError> {
        self.ask(|tables| {
            let found = tables.documents.iter().filter(|((of, _), _)| of == kind);
            Ok(found.map(|((_, key), body)| Document { key: key.clone(), body: body.clone() }).collect())
        })
    }

    async fn put_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.ask(|tables| {
            tables.documents.insert((kind.to_owned(), document.key), document.body);
            Ok(())
        })?;
        self.shared.writes.send_modify(|writes| *writes += 1);
        Ok(())
    }

    async fn add_document(&self, kind: &str, document: Document) -> Result<(), StoreError> {
        self.ask(|tables| {
            tables.documents.entry((kind.to_owned(), document.key)).or_insert(document.body);
            Ok(())
        })?;
        self.shared.writes.send_modify(|writes| *writes += 1);
        Ok(())
    }

    async fn change_document(&self, kind: &str, of: &Document, body: Option<String>) -> Result<(), StoreError> {
        let name = (kind.to_owned(), of.key.clone());
        self.ask(|tables| {
            if tables.documents.get(&name) != Some(&of.body) {
                return Err(of.altered());
            }
            match body {
                Some(body) => tables.documents.insert(name, body),
                None => tables.documents.remove(&name),
            };
            Ok(())
        })?;
        self.shared.writes.send_modify(|writes| *writes += 1);
        Ok(())
    }

    async fn remove_document(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.ask(|tables| {
            tables.documents.remove(&(kind.to_owned(), key.to_owned()));
            Ok(())
        })?;
        self.shared.writes.send_modify(|writes| *writes += 1);
        Ok(())
    }
}
