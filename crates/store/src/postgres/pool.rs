//! Connections that are kept for the next who asks, and what happens where one breaks: the same is asked again on another.
//!
//! Who asks may stop looking for a while, as a stream does whose client reads nothing, or a turn that waits for something else
//! meanwhile, which may need a connection itself. So questions are asked by tasks of their own: none keeps a connection, or its
//! place in the line, from those who wait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_postgres::types::{ToSql, Type};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::Instrument;
use turnwright_engine::StoreError;

use super::LIMITS;
use super::failure::{self, Failed};
use super::link::{Answer, Link};
use super::options::PostgresOptions;
use super::tls::Tls;
use super::values::{Values, Written};

/// How many connections a store has at most, besides the one by which it listens.
const CONNECTIONS: u32 = 8;

/// The connections that nobody uses, and the right to use one.
#[derive(Debug)]
pub(super) struct Pool {
    options: PostgresOptions,
    tls: Tls,
    driver: String,
    room: Semaphore,
    idle: Mutex<Vec<Link>>,
    /// What the parameters of the statements are that were asked before.
    types: Mutex<HashMap<&'static str, Arc<[Type]>>>,
    tasks: TaskTracker,
    is_unreachable: AtomicBool,
    /// What the database said when it had no space left, until somebody found that it has.
    full: Mutex<Option<StoreError>>,
}

/// A connection in use; it goes back where it is fit.
struct Taken<'a> {
    pool: &'a Pool,
    link: Option<Link>,
    _permit: SemaphorePermit<'a>,
}

impl Taken<'_> {
    fn link(&self) -> Result<&Link, Failed> {
        self.link.as_ref().ok_or_else(|| StoreError::Closed.into())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take().filter(Link::is_fit) {
            self.pool.idle().push(link);
        }
    }
}

impl Pool {
    pub(super) fn new(options: PostgresOptions, tls: Tls, driver: String) -> Arc<Self> {
        Arc::new(Self {
            options,
            tls,
            driver,
            room: Semaphore::new(CONNECTIONS as usize),
            idle: Mutex::default(),
            types: Mutex::default(),
            tasks: TaskTracker::new(),
            is_unreachable: AtomicBool::new(false),
            full: Mutex::default(),
        })
    }

    pub(super) fn options(&self) -> &PostgresOptions {
        &self.options
    }

    pub(super) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Takes a first connection, which the pool keeps.
    pub(super) fn keep(&self, link: Link) {
        self.idle().push(link);
    }

    /// A connection of its own, beside the pool's.
    pub(super) async fn connect(&self) -> Result<Link, Failed> {
        Link::open(&self.options, &self.tls, &self.driver, &self.tasks).await
    }

    /// One whose holder may have it for longer than the pool is open; it ends with its holder.
    pub(super) async fn connect_apart(&self) -> Result<Link, Failed> {
        Link::open(&self.options, &self.tls, &self.driver, &TaskTracker::new()).await
    }

    /// Runs a statement; where the connection breaks, again on another, for as long as an outage is waited for. So it must
    /// be one that may be done twice, or that is told apart by [`Answer::is_resent`].
    pub(super) async fn ask(self: &Arc<Self>, sql: &'static str, values: Values<'_>) -> Result<Answer, StoreError> {
        let types = self.types(sql).await?;
        let written = Written::all(&self.options.shown, values, &types)?;
        let pool = Arc::clone(self);
        let asking = async move {
            let values: Vec<&(dyn ToSql + Sync)> = written.iter().map(|value| value as _).collect();
            pool.patiently(|| pool.try_once(sql, &values)).await
        };
        let ((rows, count), is_resent) = self.apart(asking).await?;
        Ok(Answer { rows, count, is_resent })
    }

    async fn types(self: &Arc<Self>, sql: &'static str) -> Result<Arc<[Type]>, StoreError> {
        let known = self.known_types().get(sql).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let pool = Arc::clone(self);
        let ask = async move { pool.patiently(|| async { pool.take().await?.link()?.types(sql).await }).await };
        let types: Arc<[Type]> = self.apart(ask).await?.0.into();
        self.known_types().insert(sql, Arc::clone(&types));
        Ok(types)
    }

    /// Does something that goes on also while nobody looks, and ends where nobody waits for it any more.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = AbortOnDropHandle::new(self.tasks.spawn(work.in_current_span()));
        work.await.unwrap_or_else(|_| Err(crate::broken_off()))
    }

    /// Runs a statement on a connection of its own, whose holder has what it took for as long as the connection lasts.
    pub(super) async fn take_apart(&self, sql: &'static str, values: Values<'_>) -> Result<Link, StoreError> {
        let taking = || async {
            let link = self.connect_apart().await?;
            link.once(sql, values).await?;
            Ok(link)
        };
        Ok(self.patiently(taking).await?.0)
    }

    /// Tries until it is done, refused, or tried for as long as an outage is waited for. Also says whether a connection broke
    /// meanwhile, so that it may have been done before.
    async fn patiently<T, F: Future<Output = Result<T, Failed>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<(T, bool), StoreError> {
        let mut until = None;
        let mut pause = LIMITS.pause;
        let mut is_resent = false;
        loop {
            let why = match attempt().await {
                Ok(done) => {
                    if self.is_unreachable.swap(false, Ordering::Relaxed) {
                        tracing::info!(database = self.options.shown, "the database is reached again");
                    }
                    return Ok((done, is_resent));
                }
                Err(Failed::Refused(error)) => {
                    if failure::is_full(&error) {
                        *self.fullness() = Some(error.clone());
                    }
                    return Err(error);
                }
                Err(Failed::Again(why)) => why,
                Err(Failed::Lost(why)) => {
                    is_resent = true;
                    // All that waited are of the same server.
                    self.idle().clear();
                    why
                }
            };
            let until = *until.get_or_insert_with(|| Instant::now() + LIMITS.outage);
            if Instant::now() + pause >= until {
                if is_resent && !self.is_unreachable.swap(true, Ordering::Relaxed) {
                    tracing::warn!(database = self.options.shown, why, "the database cannot be reached");
                }
                return Err(failure::unreachable(&self.options.shown, &why));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LIMITS.longest_pause);
        }
    }

    /// The same without a second try, and by whoever asks: for those who look until it is answered.
    pub(super) async fn try_once(
        &self,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<(Vec<tokio_postgres::Row>, u64), Failed> {
        self.take().await?.link()?.ask(sql, values).await
    }

    async fn take(&self) -> Result<Taken<'_>, Failed> {
        let permit = self.room.acquire().await.map_err(|_| StoreError::Closed)?;
        let kept = self.idle().pop();
        let link = match kept.filter(Link::is_fit) {
            Some(link) => link,
            None => self.connect().await?,
        };
        Ok(Taken { pool: self, link: Some(link), _permit: permit })
    }

    /// What the database said when it had no space left, where it is not known to have some again.
    pub(super) fn full(&self) -> Option<StoreError> {
        self.fullness().clone()
    }

    /// Somebody found that it has space.
    pub(super) fn has_room(&self) {
        *self.fullness() = None;
    }

    fn fullness(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for those who ask and ends all connections.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.room.acquire_many(CONNECTIONS).await {
            all.forget();
            self.room.close();
        }
        self.idle().clear();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn known_types(&self) -> MutexGuard<'_, HashMap<&'static str, Arc<[Type]>>> {
        self.types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
