//! The store on a PostgreSQL database, which any number of nodes share.

mod accounts;
mod append;
mod artifacts;
mod copy;
mod documents;
mod failure;
mod knowledge;
mod lease;
mod ledger;
mod link;
mod locks;
mod migrate;
mod options;
mod pool;
mod presence;
mod rates;
mod read;
mod search;
mod tls;
mod upkeep;
mod values;
mod words;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use turnwright_core::budgets::Period;
use turnwright_core::{ConversationId, DriverId, Seq, StoredEntry, UserId};
use turnwright_engine::{
    Append, Balance, Chosen, ConversationRecord, Copied, Idempotent, Incarnation, Newest, OpenTurn, Page, Store, StoreError,
};

pub use lease::LEASE;
pub use options::PostgresOptions;
pub(crate) use words::{stems, vector};

use crate::columns::{integer, random};
use crate::skipped::Skipped;
use append::{Appender, Encoded};
use failure::Failed;
use link::Link;
use pool::Pool;
use presence::Presence;

/// How long is waited for what.
struct Limits {
    /// For a connection.
    connect: Duration,
    /// For a statement, by the server's own clock.
    statement: Duration,
    /// Until a server that says nothing at all counts as gone.
    unanswered: Duration,
    /// While the database cannot be reached: for so long a call is tried again.
    outage: Duration,
    /// While it starts.
    starting: Duration,
    /// The first and the longest pause between two tries.
    pause: Duration,
    longest_pause: Duration,
}

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    statement: Duration::from_mins(1),
    unanswered: Duration::from_secs(15),
    outage: Duration::from_secs(10),
    starting: Duration::from_secs(30),
    pause: Duration::from_millis(50),
    longest_pause: Duration::from_secs(1),
};

/// Conversations in one schema of a PostgreSQL database.
///
/// Made by [`PostgresStore::open`], used through [`Store`], ended by [`Store::close`].
#[derive(Debug)]
pub struct PostgresStore {
    pool: Arc<Pool>,
    appender: Appender,
    presence: Presence,
    room: upkeep::Room,
    skipped: Skipped,
}

impl PostgresStore {
    /// Connects, brings the schema to this build's version where it is older, and takes a lease as a driver.
    ///
    /// # Errors
    /// [`StoreError::Newer`], where a newer version has migrated it. [`StoreError::Unusable`], where it cannot be reached, or
    /// does not let this user in, is too old, only reads, or is another application's. Nothing is changed then.
    pub async fn open(options: &PostgresOptions) -> Result<Self, StoreError> {
        let tls = tls::Tls::new(&options.trust)?;
        let own = presence::new_name()?;
        let pool = Pool::new(options.clone(), tls, own.0.clone());
        let link = first_link(&pool).await?;
        migrate::migrate(&link, &pool).await.map_err(|failed| said(options, failed))?;
        pool.keep(link);
        let presence = Presence::enter(Arc::clone(&pool), own).await?;
        Ok(Self {
            appender: Appender::start(&pool),
            pool,
            presence,
            room: upkeep::Room::default(),
            skipped: Skipped::default(),
        })
    }

    /// Whether another store is open on the same schema.
    pub(crate) async fn has_company(&self) -> Result<bool, StoreError> {
        self.presence.has_company().await
    }

    /// A connection of its own for whoever moves rows.
    pub(crate) async fn row_link(&self) -> Result<RowLink, StoreError> {
        RowLink::open(&self.pool).await
    }

    async fn put(&self, append: Encoded) -> Result<(), StoreError> {
        if append.holds_as().is_some() {
            return append::apart(&self.pool, &append).await;
        }
        self.appender.append(append).await
    }
}

/// A connection for whoever moves rows: what breaks is told, and the move is asked for again.
pub(crate) struct RowLink {
    link: Link,
    options: PostgresOptions,
}

impl RowLink {
    async fn open(pool: &Pool) -> Result<Self, StoreError> {
        let link = pool.connect_apart().await.map_err(|failed| said(pool.options(), failed))?;
        Ok(Self { link, options: pool.options().clone() })
    }

    /// Runs a statement.
    pub(crate) async fn once(&self, sql: &str, values: values::Values<'_>) -> Result<Vec<Row>, StoreError> {
        self.link.once(sql, values).await.map_err(|failed| said(&self.options, failed))
    }

    /// Runs statements without values.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.link.batch(sql).await.map_err(|failed| said(&self.options, failed))
    }
}

/// The first connection: waits for a server that says that it starts, and for no other.
async fn first_link(pool: &Pool) -> Result<Link, StoreError> {
    let until = Instant::now() + LIMITS.starting;
    loop {
        match pool.connect().await {
            Ok(link) => return Ok(link),
            Err(Failed::Lost(why) | Failed::Again(why)) if why.contains("[57P03]") && Instant::now() < until => {
                tokio::time::sleep(LIMITS.longest_pause).await;
            }
            Err(failed) => return Err(said(pool.options(), failed)),
        }
    }
}

fn said(options: &PostgresOptions, failed: Failed) -> StoreError {
    match failed {
        Failed::Refused(error) => error,
        Failed::Lost(why) | Failed::Again(why) => failure::unreachable(options.shown(), &why),
    }
}

/// Tells an append that is sent again from another of the same text.
fn new_mark() -> Result<i64, StoreError> {
    Ok(i64::from_be_bytes(random()?))
}

fn milliseconds(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or_default()
}

/// PostgreSQL's text holds every sign but U+0000; its picture stands for it.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{2400}")) } else { Cow::Borrowed(text) }
}

/// A column of a row.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column)
        .map_err(|error| StoreError::Damaged { what: "a row of the database".to_owned(), reason: failure::whole(&error) })
}

/// A value that is stored as a word of ours.
fn word<T: std::str::FromStr<Err: std::fmt::Display>>(row: &Row, column: usize, what: &str) -> Result<T, StoreError> {
    let text: &str = get(row, column)?;
    text.parse().map_err(|error: T::Err| StoreError::Damaged { what: what.to_owned(), reason: error.to_string() })
}

impl PostgresStore {
    /// A conversation, where it is the one that is meant.
    async fn meant(&self, id: &ConversationId, meant: &Incarnation) -> Result<Option<ConversationRecord>, StoreError> {
        Ok(self.conversation(id).await?.filter(|found| found.incarnation() == *meant))
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, conversation: ConversationRecord) -> Result<(), StoreError> {
        self.put(append::creation(conversation, new_mark()?)).await
    }

    async fn conversation(&self, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError> {
        read::conversation(&self.pool, id).await
    }

    async fn update(
        &self,
        id: &ConversationId,
        chosen: Chosen,
        (meant, of): (&Incarnation, &Chosen),
    ) -> Result<(), StoreError> {
        const UPDATE: &str = "UPDATE conversation SET title = $2, settings = $3
            WHERE id = $1 AND title IS NOT DISTINCT FROM $4 AND settings = $5 AND created_at_ms = $6 AND owner = $7";
        let (title, settings) = (chosen.title.as_deref().map(clean), clean(&chosen.settings));
        let (created_at_ms, owner) = (integer(meant.created_at_ms()), meant.owner().as_str());
        let values: values::Values<'_> = &[&id.as_str(), &title, &settings, &of.title, &of.settings, &created_at_ms, &owner];
        let answer = self.pool.ask(UPDATE, values).await?;
        if answer.count > 0 {
            return Ok(());
        }
        let now = self.meant(id, meant).await?.ok_or_else(|| StoreError::Gone { conversation: id.clone() })?;
        // Where it was asked twice, the first may have done it.
        let is_done = answer.is_resent && now.title.as_deref() == title.as_deref() && *now.settings == *settings;
        if is_done { Ok(()) } else { Err(StoreError::Changed { conversation: id.clone() }) }
    }

    async fn conversations(&self, page: Page<'_>) -> Result<Vec<ConversationRecord>, StoreError> {
        read::conversations(&self.pool, &self.skipped, page).await
    }

    async fn delete_meant(&self, id: &ConversationId, meant: &Incarnation, of: Option<&Chosen>) -> Result<(), StoreError> {
        let gone = || StoreError::Gone { conversation: id.clone() };
        // Looked up first, so that one that was never there is told from one that a request removed whose answer was lost.
        if self.meant(id, meant).await?.is_none() {
            return Err(gone());
        }
        let documents = turnwright_engine::CONVERSATION_DOCUMENTS;
        let (created_at_ms, owner) = (integer(meant.created_at_ms()), meant.owner().as_str());
        let answer = match of {
            None => self.pool.ask(upkeep::FORGET, &[&id.as_str(), &documents, &created_at_ms, &owner]).await?,
            Some(Chosen { title, settings }) => {
                let values: values::Values<'_> = &[&id.as_str(), &documents, &created_at_ms, &owner, title, settings];
                self.pool.ask(upkeep::FORGET_UNCHANGED, values).await?
            }
        };
        if answer.rows.first().map(|row| get(row, 0)).transpose()?.unwrap_or(false) {
            return Ok(());
        }
        match self.meant(id, meant).await? {
            Some(_) => Err(StoreError::Changed { conversation: id.clone() }),
            // Where it was asked twice, the first may have done it.
            None if answer.is_resent => Ok(()),
            None => Err(gone()),
        }
    }

    async fn append(&self, append: Append) -> Result<Vec<StoredEntry>, StoreError> {
        let times_ms = append.times_ms();
        let Append { conversation, at, entries, at_ms, side } = append;
        let bodies =
            entries.iter().zip(&times_ms).map(|(entry, at_ms)| append::encode(entry, *at_ms)).collect::<Result<_, _>>()?;
        self.put(Encoded { conversation, at, bodies, at_ms, side, mark: new_mark()? }).await?;
        let places = std::iter::successors(Some(at), |seq| Some(seq.next()));
        let stored = |((entry, at_ms), seq)| StoredEntry { seq, at_ms, entry: Arc::new(entry) };
        Ok(entries.into_iter().zip(times_ms).zip(places).map(stored).collect())
    }

    async fn copy(&self, copy: Copied) -> Result<(), StoreError> {
        const COPY: &str = "SELECT begin_as($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let Copied { conversation: record, of, meant, through, holds } = copy;
        let (title, settings, mark) = (record.title.as_deref().map(clean), clean(&record.settings), new_mark()?);
        let (created, updated) = (integer(record.created_at_ms), integer(record.updated_at_ms));
        let (made, through) = (integer(meant.created_at_ms()), integer(through.get()));
        let answer = self
            .pool
            .ask(
                COPY,
                &[
                    &record.id.as_str(),
                    &record.owner.as_str(),
                    &title,
                    &settings,
                    &created,
                    &updated,
                    &mark,
                    &of.as_str(),
                    &meant.owner().as_str(),
                    &made,
                    &through,
                    &holds,
                ],
            )
            .await?;
        match answer.rows.first().map(|row| get::<i64>(row, 0)).transpose()? {
            Some(0) => Ok(()),
            Some(3) => Err(StoreError::Exists { conversation: record.id }),
            Some(_) | None => Err(StoreError::Gone { conversation: of }),
        }
    }

    async fn entries(&self, id: &ConversationId, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError> {
        read::entries(&self.pool, id, from, limit).await
    }

    async fn last_seq(&self, id: &ConversationId) -> Result<Option<Seq>, StoreError> {
        read::last_seq(&self.pool, id).await
    }

    async fn newest(&self, id: &ConversationId, known: &Arc<Chosen>) -> Result<Newest, StoreError> {
        read::newest(&self.pool, id, known).await
    }

    async fn takes_back(&self, id: &ConversationId) -> Result<bool, StoreError> {
        read::takes_back(&self.pool, id).await
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        read::open_turns(&self.pool, &self.skipped).await
    }

    async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, StoreError> {
        read::idempotent(&self.pool, key).await
    }

    async fn last_key(&self, from: &str, before: &str) -> Result<Option<String>, StoreError> {
        read::last_key(&self.pool, from, before).await
    }

    async fn balance(&self, owner: Option<&UserId>, period: Period) -> Result<Balance, StoreError> {
        ledger::balance(&self.pool, owner, period).await
    }

    fn foreign_writes(&self) -> watch::Receiver<u64> {
        self.presence.foreign_writes()
    }

    fn driver(&self) -> &DriverId {
        self.presence.own()
    }

    async fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError> {
        self.presence.is_alive(driver).await
    }

    fn lease(&self) -> Option<u64> {
        self.presence.lease()
    }

    async fn lease_over(&self, lease: u64) {
        self.presence.lease_over(lease).await;
    }

    fn departures(&self) -> watch::Receiver<u64> {
        self.presence.departures()
    }

    fn outlives_its_lease(&self) -> bool {
        true
    }

    async fn can_store(&self) -> Result<(), StoreError> {
        self.presence.can_store()
    }

    async fn close(&self) {
        self.appender.close().await;
        self.presence.leave().await;
        self.pool.close().await;
    }
}
