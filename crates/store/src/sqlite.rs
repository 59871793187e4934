//! The store on one SQLite file.

mod accounts;
mod artifacts;
mod beginning;
mod company;
mod documents;
mod drivers;
mod erasing;
mod failure;
mod knowledge;
mod ledger;
mod locks;
mod log;
mod migrate;
mod named;
mod open;
mod options;
mod origin;
mod part;
mod queue;
mod rates;
mod read;
mod readers;
mod search;
mod statements;
mod untouched;
mod upgrade;
mod upkeep;
mod write;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use turnwright_core::budgets::Period;
use turnwright_core::{ConversationId, DriverId, Seq, StoredEntry, UserId};
use turnwright_engine::{
    Append, Balance, Chosen, ConversationRecord, Copied, Idempotent, Incarnation, Newest, OpenTurn, Page, Store, StoreError,
};

pub use failure::mend;
pub use options::{Durability, SqliteOptions};

use crate::skipped::Skipped;
use drivers::{Drivers, Opened};
use named::{Damage, Named};
use readers::Readers;
use write::{EncodedAppend, Write};
use writer::Writer;

/// For so long it counts that something could be stored: whoever asks more often makes no more writes.
const STORED_COUNTS: Duration = Duration::from_secs(1);

/// Conversations in one SQLite database, with a thread that writes and connections that read beside it.
///
/// Made by [`SqliteStore::open`], used through [`Store`], ended by [`Store::close`]. Dropping it closes it too, and waits
/// for the writer then.
#[derive(Debug)]
pub struct SqliteStore {
    readers: Readers,
    writer: Writer,
    drivers: Drivers,
    /// When somebody asked and something could be stored.
    stored_at: Mutex<Option<Instant>>,
    skipped: Arc<Skipped>,
    /// Held while this process puts a document beside a conversation: its parts are written one after the other, and another of its
    /// name must not come between.
    putting: Mutex<()>,
}

impl SqliteStore {
    /// Opens a database, or makes it, and brings it to this build's schema. Blocks for some milliseconds; where an older
    /// version wrote it, for as long as it takes to copy it, or for another process to do so.
    ///
    /// # Errors
    /// [`StoreError::Newer`], where a newer version has migrated it. [`StoreError::Damaged`], where SQLite finds it
    /// corrupt. [`StoreError::Unusable`], where it is not ours, not a database, not writable, or its folder is missing, and where the
    /// log beside it is of another database. No
    /// file is changed then.
    pub fn open(options: &SqliteOptions) -> Result<Self, StoreError> {
        Self::open_while(options, Arc::new(AtomicBool::new(true)))
    }

    /// As [`SqliteStore::open`], on a thread that may block. Where this is dropped it breaks off, and the database is as it was.
    ///
    /// # Errors
    /// Those of [`SqliteStore::open`].
    pub async fn start(options: &SqliteOptions) -> Result<Self, StoreError> {
        let may_wait = Arc::new(AtomicBool::new(true));
        let mut wanted = Wanted(Some(Arc::clone(&may_wait)));
        let options = options.clone();
        let opened = tokio::task::spawn_blocking(move || Self::open_while(&options, may_wait)).await;
        // The store has it for its own waiting.
        wanted.0 = None;
        opened.unwrap_or_else(|_broken_off| Err(crate::broken_off()))
    }

    fn open_while(options: &SqliteOptions, may_wait: Arc<AtomicBool>) -> Result<Self, StoreError> {
        let places = open::Places::prepare(options)?;
        let found = origin::check(&places)?;
        let mut connection =
            open::for_writing(&places.database, options, &may_wait).map_err(|error| failure::of(&places.database, &error))?;
        migrate::migrate(&mut connection, &places, options, &may_wait)?;
        let file = places.database;
        // Reads the schema, so that a database that lost its tables is found now and not by the first message.
        drop(connection.prepare_cached(statements::INSERT_ENTRY).map_err(|error| failure::of(&file, &error))?);
        if found.is_of_a_backup() {
            origin::leave_backup(&connection).map_err(|error| failure::of(&file, &error))?;
        }
        let mark = origin::Mark::of(&connection, &file).map_err(|error| failure::of(&file, &error))?;
        let drivers = Drivers::enter(places.locks, Some(Opened { file: file.clone(), mark: mark.clone() }))?;
        let damage = Arc::new(Damage::default());
        let readers = Readers::new(file.clone(), options.lock_wait, Arc::clone(&damage));
        let named = Named::of(&file, mark, damage);
        // Where a commit waits for the disk, nobody's task should.
        let writes_here = options.durability == Durability::Process;
        let writer = Writer::start(connection, file, named, (may_wait, options.lock_wait), writes_here)?;
        Ok(Self { readers, writer, drivers, stored_at: Mutex::default(), skipped: Arc::default(), putting: Mutex::default() })
    }
}

/// Holds for as long as somebody waits for a store to be opened.
struct Wanted(Option<Arc<AtomicBool>>);

impl Drop for Wanted {
    fn drop(&mut self) {
        if let Some(may_wait) = &self.0 {
            may_wait.store(false, Ordering::Relaxed);
        }
    }
}

impl SqliteStore {
    /// Whether another store is open on the same database.
    pub(crate) fn has_company(&self) -> Result<bool, StoreError> {
        self.drivers.has_company()
    }
}

/// A connection of its own to a database that a store has open, and its file.
pub(crate) fn rows_connection(options: &SqliteOptions) -> Result<(rusqlite::Connection, std::path::PathBuf), StoreError> {
    let file = open::Places::prepare(options)?.database;
    let connection = open::for_writing(&file, options, &Arc::new(AtomicBool::new(true)));
    Ok((connection.map_err(|error| failure::of(&file, &error))?, file))
}

pub(crate) use failure::of as failure_of;
pub(crate) use named::is_one_file;
pub(crate) use options::Making;
pub(crate) use part::Part;
pub(crate) use readers::Unread;
pub(crate) use untouched::{Untouched, UntouchedLocks};

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, conversation: ConversationRecord) -> Result<(), StoreError> {
        self.writer.write(Write::Create(conversation)).await
    }

    async fn conversation(&self, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
        let id = id.clone();
        self.readers.read_here(move |connection| read::conversation(connection, &id)).await
    }

    async fn update(&self, id: &ConversationId, chosen: Chosen, of: (&Incarnation, &Chosen)) -> Result<(), StoreError> {
        let (meant, of) = (of.0.clone(), of.1.clone());
        self.writer.write(Write::Update { id: id.clone(), meant, chosen, of }).await
    }

    async fn conversations(&self, page: Page<'_>) -> Result<Vec<ConversationRecord>, StoreError> {
        let Page { owner, after, limit, only_pinned } = page;
        let (owner, after) = (owner.clone(), after.cloned());
        let skipped = Arc::clone(&self.skipped);
        let read =
            move |connection: &_| read::conversations(connection, &skipped, (&owner, only_pinned, after.as_ref(), limit));
        self.readers.read(read).await
    }

    async fn delete_meant(&self, id: &ConversationId, meant: &Incarnation, of: Option<&Chosen>) -> Result<(), StoreError> {
        self.writer.write(Write::Delete { id: id.clone(), meant: meant.clone(), of: of.cloned() }).await
    }

    async fn append(&self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        let times_ms = append.times_ms();
        let Append { conversation, at, entries, at_ms, side } = append;
        let bodies =
            entries.iter().zip(&times_ms).map(|(entry, at_ms)| write::encode(entry, *at_ms)).collect::<Result<_, _>>()?;
        self.writer.write(Write::Append(EncodedAppend { conversation, at, bodies, at_ms, side })).await?;
        let places = std::iter::successors(Some(at), |seq| Some(seq.next()));
        let stored = |((entry, at_ms), seq)| StoredEntry { seq, at_ms, entry: Arc::new(entry) };
        Ok(entries.into_iter().zip(times_ms).zip(places).map(stored).collect())
    }

    async fn copy(&self, copy: Copied) -> Result<(), StoreError> {
        self.writer.write(Write::Copy(copy)).await
    }

    async fn entries(&self, id: &ConversationId, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError> {
        let id = id.clone();
        self.readers.read(move |connection| read::entries(connection, &id, from, limit)).await
    }

    async fn last_seq(&self, id: &ConversationId) -> Result<Option<Seq>, StoreError> {
        let id = id.clone();
        self.readers.read_here(move |connection| read::last_seq(connection, &id)).await
    }

    async fn newest(&self, id: &ConversationId, known: &Arc<Chosen>) -> Result<Newest, StoreError> {
        let (id, known) = (id.clone(), known.clone());
        self.readers.read_here(move |connection| read::newest(connection, &id, &known)).await
    }

    async fn takes_back(&self, id: &ConversationId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.readers.read(move |connection| read::takes_back(connection, &id)).await
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        let skipped = Arc::clone(&self.skipped);
        self.readers.read(move |connection| read::open_turns(connection, &skipped)).await
    }

    async fn balance(&self, owner: Option<&UserId>, period: Period) -> Result<Balance, StoreError> {
        let owner = owner.cloned();
        self.readers.read_here(move |connection| ledger::balance(connection, owner.as_ref(), period)).await
    }

    async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, StoreError> {
        let key = key.to_owned();
        self.readers.read_here(move |connection| read::idempotent(connection, &key)).await
    }

    async fn last_key(&self, from: &str, before: &str) -> Result<Option<String>, StoreError> {
        let (from, before) = (from.to_owned(), before.to_owned());
        self.readers.read_here(move |connection| read::last_key(connection, &from, &before)).await
    }

    fn foreign_writes(&self) -> watch::Receiver<u64> {
        self.writer.foreign_writes()
    }

    fn driver(&self) -> &DriverId {
        self.drivers.own()
    }

    async fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError> {
        self.drivers.is_alive(driver)
    }

    fn lease(&self) -> Option<u64> {
        // Held for as long as the process lives and its store is open.
        self.drivers.is_held().then_some(0)
    }

    async fn can_store(&self) -> Result<(), StoreError> {
        // Held while it is written, so that those who ask at once make one write.
        let mut stored_at = self.stored_at.lock().await;
        if stored_at.is_some_and(|at| at.elapsed() < STORED_COUNTS) && self.drivers.is_held() {
            return Ok(());
        }
        *stored_at = None;
        self.writer.write(Write::Nothing).await?;
        *stored_at = Some(Instant::now());
        Ok(())
    }

    async fn close(&self) {
        // The writer's connection is the last, so that it can put the log back into the database.
        self.readers.close().await;
        self.writer.close().await;
        self.drivers.leave();
    }
}
