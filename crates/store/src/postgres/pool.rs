//! Connections that are kept for the next who asks, and what happens where one breaks: the same is asked again on another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use turnwright_engine::StoreError;

use super::LIMITS;
use super::failure::{self, Failed};
use super::link::{Answer, Link, Values};
use super::options::PostgresOptions;
use super::tls::Tls;

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
    tasks: TaskTracker,
    is_unreachable: AtomicBool,
    /// What the database said when it had no space left, until somebody found that it has.
    full: Mutex<Option<StoreError>>,
}

/// A connection in use; it goes back where it is fit.
struct Taken<'a> {
    pool: &'a Pool,
    link: Option<Link>,
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
    pub(super) async fn ask(&self, sql: &'static str, values: Values<'_>) -> Result<Answer, StoreError> {
        let ((rows, count), is_resent) = self.patiently(|| self.try_once(sql, values)).await?;
        Ok(Answer { rows, count, is_resent })
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

    /// The same without a second try.
    pub(super) async fn try_once(
        &self,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<(Vec<tokio_postgres::Row>, u64), Failed> {
        let _permit = self.room.acquire().await.map_err(|_| StoreError::Closed)?;
        let kept = self.idle().pop();
        let link = match kept.filter(Link::is_fit) {
            Some(link) => link,
            None => self.connect().await?,
        };
        let taken = Taken { pool: self, link: Some(link) };
        match &taken.link {
            Some(link) => link.ask(sql, values).await,
            None => Err(StoreError::Closed.into()),
        }
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

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
