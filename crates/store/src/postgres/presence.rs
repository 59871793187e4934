//! This process among those that share the database: its lease, who else is alive, and what others write.
//!
//! A driver is alive while its row in `driver` has not run out, on the clock of the database, which is one for all. It renews
//! its row each second. What it may do by it is measured on its own clocks from before the renewal was asked for ([`super::lease`]), which
//! is never later than what the database counts from: so it stops before anybody takes over.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::DriverId;
use turnwright_engine::StoreError;

use super::LIMITS;
use super::failure::{self, Failed};
use super::lease::{LEASE, Lease, Moment};
use super::link::session;
use super::pool::Pool;
use super::said;

/// How often it is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How long after its end a lease is looked for again: more than it is rounded by.
const RUN_OUT: Duration = Duration::from_millis(10);
/// The longest that a renewal may take; then another connection is tried.
const RENEW_LIMIT: Duration = Duration::from_millis(1_500);
/// How often a rise is told of at most. Notice takes at most 100 ms.
const TELL_EVERY: Duration = Duration::from_millis(40);
/// How often it is looked for writes where nobody can listen.
const POLL_EVERY: Duration = Duration::from_millis(80);
/// How many notices wait; more say the same.
const NOTICES: usize = 64;

const RENEW: &str = "INSERT INTO driver AS d (id, term, until)
    VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
    ON CONFLICT (id) DO UPDATE SET until = excluded.until,
        term = CASE WHEN d.until > clock_timestamp() THEN d.term ELSE greatest(d.term + 1, excluded.term) END
    RETURNING d.term";
const OTHERS: &str = "SELECT id, (extract(epoch FROM until - clock_timestamp()) * 1000)::bigint
    FROM driver WHERE id <> $1 AND until > clock_timestamp()";
/// Those that ran out long ago: nobody asks for them any more who could not do without.
const SWEEP: &str = "DELETE FROM driver WHERE until < clock_timestamp() - interval '1 day'";
const IS_ALIVE: &str = "SELECT 1 FROM driver WHERE id = $1 AND until > clock_timestamp()";
const LEAVE: &str = "DELETE FROM driver WHERE id = $1";
/// A row that is long enough to need pages of its own, taken back by whoever sent it.
const TAKE_ROOM: &str = "BEGIN; INSERT INTO document (kind, key, body)
    SELECT 'room', gen_random_uuid()::text, string_agg(gen_random_uuid()::text, '') FROM generate_series(1, 2000)";
/// Rises with each transaction that writes, of whoever shares the server.
const WRITES: &str = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";

/// What the last renewal came to.
#[derive(Debug, Default)]
struct Standing {
    lease: Option<Lease>,
    /// Why it could not be renewed, over whatever connection; nothing where it was.
    trouble: Option<StoreError>,
}

/// This store as a driver, and its view of the others.
#[derive(Debug)]
pub(super) struct Presence {
    own: DriverId,
    pool: Arc<Pool>,
    standing: Arc<Mutex<Standing>>,
    foreign: watch::Sender<u64>,
    departures: watch::Sender<u64>,
    /// Rises with each lease that is another than the one before.
    successions: watch::Sender<u64>,
    tasks: TaskTracker,
    ending: CancellationToken,
}

impl Presence {
    /// Takes the first lease and begins to listen.
    pub(super) async fn enter(pool: Arc<Pool>, own: DriverId) -> Result<Self, StoreError> {
        let standing = Arc::default();
        let (foreign, departures, successions) = (watch::Sender::new(0), watch::Sender::new(0), watch::Sender::new(0));
        let (tasks, ending) = (TaskTracker::new(), CancellationToken::new());
        let mut keeper = Keeper {
            own: own.clone(),
            pool: Arc::clone(&pool),
            standing: Arc::clone(&standing),
            foreign: foreign.clone(),
            departures: departures.clone(),
            successions: successions.clone(),
            known: HashSet::new(),
        };
        let ear = Ear::open(&pool, &own, &tasks).await.map_err(|failed| said(pool.options(), failed))?;
        keeper.renew(&ear.client).await.map_err(|failed| said(pool.options(), failed))?;
        pool.ask(SWEEP, &[]).await?;
        let until = ending.clone();
        let listening = tasks.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = keeper.keep(ear, &listening) => {}
                () = until.cancelled() => {}
            }
        });
        Ok(Self { own, pool, standing, foreign, departures, successions, tasks, ending })
    }

    /// This store's name.
    pub(super) fn own(&self) -> &DriverId {
        &self.own
    }

    /// The number of the lease, where it is held at this moment.
    pub(super) fn lease(&self) -> Option<u64> {
        let lease = held(&self.standing).lease?;
        lease.is_held(Moment::now()).then_some(lease.number)
    }

    /// Waits until the lease of this number is not held any more.
    pub(super) async fn lease_over(&self, number: u64) {
        let mut successions = self.successions.subscribe();
        loop {
            successions.mark_unchanged();
            let until = match held(&self.standing).lease {
                Some(lease) if lease.number == number && lease.is_held(Moment::now()) => lease.over_at(),
                Some(_) | None => return,
            };
            tokio::select! {
                // By then it has been renewed, or it is over.
                () = tokio::time::sleep_until(until) => {}
                // Where the machine was suspended the next lease may be there before.
                Ok(()) = successions.changed() => {}
            }
        }
    }

    /// Whether something can be stored at this moment, without asking anybody: the last renewal, a write, says so.
    pub(super) fn can_store(&self) -> Result<(), StoreError> {
        if self.ending.is_cancelled() {
            return Err(StoreError::Closed);
        }
        if let Some(trouble) = held(&self.standing).trouble.clone().or_else(|| self.pool.full()) {
            return Err(trouble);
        }
        self.lease().map(drop).ok_or_else(|| failure::lease_over(self.pool.options().shown()))
    }

    pub(super) fn foreign_writes(&self) -> watch::Receiver<u64> {
        self.foreign.subscribe()
    }

    pub(super) fn departures(&self) -> watch::Receiver<u64> {
        self.departures.subscribe()
    }

    /// Whether a driver's lease has not run out.
    pub(super) async fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError> {
        // Names come from journals, which may have been imported: what is none of ours is not looked up.
        if !is_name(&driver.0) || (*driver == self.own && self.ending.is_cancelled()) {
            return Ok(false);
        }
        if *driver == self.own {
            return Ok(true);
        }
        Ok(!self.pool.ask(IS_ALIVE, &[&driver.0]).await?.rows.is_empty())
    }

    /// Whether anybody else has the schema open. The lease of one that was killed is waited for until it has run out.
    pub(super) async fn has_company(&self) -> Result<bool, StoreError> {
        let others = self.pool.ask(OTHERS, &[&self.own.0]).await?.rows;
        let left_ms = others.iter().map(|row| super::get::<i64>(row, 1)).collect::<Result<Vec<_>, _>>()?;
        let Some(longest_ms) = left_ms.into_iter().max() else { return Ok(false) };
        tokio::time::sleep(Duration::from_millis(u64::try_from(longest_ms).unwrap_or_default()) + RUN_OUT).await;
        Ok(!self.pool.ask(OTHERS, &[&self.own.0]).await?.rows.is_empty())
    }

    /// Stops being alive.
    pub(super) async fn leave(&self) {
        if self.ending.is_cancelled() {
            return;
        }
        self.ending.cancel();
        held(&self.standing).lease = None;
        let left = tokio::time::timeout(RENEW_LIMIT, self.pool.ask(LEAVE, &[&self.own.0])).await;
        if !matches!(left, Ok(Ok(_))) {
            tracing::debug!("the lease could not be given back; it runs out");
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

fn held(standing: &Mutex<Standing>) -> MutexGuard<'_, Standing> {
    standing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection that listens.
struct Ear {
    client: Client,
    notices: mpsc::Receiver<()>,
}

impl Ear {
    async fn open(pool: &Pool, own: &DriverId, tasks: &TaskTracker) -> Result<Self, Failed> {
        let options = pool.options();
        let connecting = tokio::time::timeout(LIMITS.connect, options.config.connect(pool.tls().clone()));
        let connected = connecting.await.map_err(|_| Failed::Lost(format!("no answer within {:?}", LIMITS.connect)))?;
        let (client, mut connection) = connected.map_err(|error| failure::of_connecting(&options.shown, "?", "?", &error))?;
        let (heard, notices) = mpsc::channel(NOTICES);
        let own_name = own.0.clone();
        tasks.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notice) = message
                    && notice.payload() != own_name
                {
                    // Where it is full, one that says the same waits.
                    let _ = heard.try_send(());
                }
            }
        });
        let sql = format!("{}; LISTEN \"turnwright_{}\"", session(options, &own.0), options.schema);
        let listening = tokio::time::timeout(LIMITS.connect, client.batch_execute(&sql));
        match listening.await {
            Ok(Ok(())) => Ok(Self { client, notices }),
            Ok(Err(error)) => Err(failure::of(&options.shown, &error)),
            Err(_) => Err(Failed::Lost("no answer to LISTEN".to_owned())),
        }
    }
}

/// What keeps the lease.
struct Keeper {
    own: DriverId,
    pool: Arc<Pool>,
    standing: Arc<Mutex<Standing>>,
    foreign: watch::Sender<u64>,
    departures: watch::Sender<u64>,
    successions: watch::Sender<u64>,
    /// Who was alive at the last look.
    known: HashSet<String>,
}

impl Keeper {
    async fn keep(&mut self, mut ear: Ear, tasks: &TaskTracker) {
        loop {
            self.listen(&mut ear).await;
            ear = self.hear_again(tasks).await;
            // What was written meanwhile nobody told of.
            self.tell();
        }
    }

    /// Renews and listens until the connection breaks.
    async fn listen(&mut self, ear: &mut Ear) {
        let mut renew_at = Instant::now() + RENEW_EVERY;
        let mut tell_at: Option<Instant> = None;
        let mut told_at = Instant::now();
        loop {
            let far = renew_at + RENEW_EVERY;
            tokio::select! {
                () = tokio::time::sleep_until(renew_at) => match self.renew(&ear.client).await {
                    Ok(next) => renew_at = Instant::now() + next,
                    Err(failed) => {
                        tracing::debug!(?failed, "the lease could not be renewed over this connection");
                        return;
                    }
                },
                notice = ear.notices.recv() => {
                    if notice.is_none() {
                        return;
                    }
                    tell_at.get_or_insert(told_at + TELL_EVERY);
                }
                () = tokio::time::sleep_until(tell_at.unwrap_or(far)), if tell_at.is_some() => {
                    (tell_at, told_at) = (None, Instant::now());
                    self.tell();
                }
            }
        }
    }

    /// Connects anew, however long that takes. Meanwhile others' writes are looked for, and the lease renewed, by whatever
    /// connection there is.
    async fn hear_again(&mut self, tasks: &TaskTracker) -> Ear {
        let mut seen = String::new();
        let mut pause = LIMITS.pause;
        loop {
            if let Ok(Ok(ear)) = tokio::time::timeout(RENEW_LIMIT, Ear::open(&self.pool, &self.own, tasks)).await
                && self.renew(&ear.client).await.is_ok()
            {
                return ear;
            }
            let next_try = Instant::now() + pause;
            pause = (pause * 2).min(RENEW_EVERY);
            while Instant::now() < next_try {
                match self.look(&mut seen).await {
                    Ok(()) => {}
                    Err(failed) => held(&self.standing).trouble = Some(said(self.pool.options(), failed)),
                }
                tokio::time::sleep(POLL_EVERY).await;
            }
        }
    }

    /// Looks for others' writes and renews the lease by a connection of the pool.
    async fn look(&mut self, seen: &mut String) -> Result<(), Failed> {
        let silent = |_| Failed::Lost(format!("no answer within {RENEW_LIMIT:?}"));
        let asking = tokio::time::timeout(RENEW_LIMIT, self.pool.try_once(WRITES, &[]));
        let (rows, _) = asking.await.map_err(silent)??;
        let now: String = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
        if now != *seen {
            *seen = now;
            self.tell();
        }
        tokio::time::timeout(RENEW_LIMIT, self.renew_by_pool()).await.map_err(silent)?
    }

    /// Renews the lease, looks who else is alive, and says when to do so next.
    async fn renew(&mut self, client: &Client) -> Result<Duration, Failed> {
        let asked_at = Moment::now();
        let (term, lease_ms) = (self.next_term(), millis(LEASE));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&self.own.0, &term, &lease_ms];
        let own: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&self.own.0];
        let asking = async { tokio::try_join!(client.query(RENEW, &values), client.query(OTHERS, &own)) };
        let (renewed, others) = match tokio::time::timeout(RENEW_LIMIT, asking).await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => return Err(failure::of(self.pool.options().shown(), &error)),
            Err(_) => return Err(Failed::Lost("no answer to a renewal".to_owned())),
        };
        self.took(asked_at, renewed.first().and_then(|row| row.try_get(0).ok()));
        self.look_for_room(client).await;
        let mut next = RENEW_EVERY;
        let mut alive = HashSet::new();
        for row in &others {
            let (Ok(id), Ok(left)) = (row.try_get::<_, String>(0), row.try_get::<_, i64>(1)) else { continue };
            // Where one is about to run out, it is looked again right then.
            let left = Duration::from_millis(u64::try_from(left).unwrap_or_default()) + Duration::from_millis(20);
            next = next.min(left);
            alive.insert(id);
        }
        let is_gone = self.known.iter().any(|known| !alive.contains(known));
        self.known = alive;
        if is_gone {
            self.tell();
            rise(&self.departures);
        }
        Ok(next)
    }

    async fn renew_by_pool(&self) -> Result<(), Failed> {
        let asked_at = Moment::now();
        let (term, lease_ms) = (self.next_term(), millis(LEASE));
        let (rows, _) = self.pool.try_once(RENEW, &[&self.own.0, &term, &lease_ms]).await?;
        self.took(asked_at, rows.first().and_then(|row| row.try_get(0).ok()));
        Ok(())
    }

    /// Once a disk was found full, a renewal says little, which takes no room: a row that does is written, and not kept.
    async fn look_for_room(&self, client: &Client) {
        if self.pool.full().is_none() {
            return;
        }
        let written = tokio::time::timeout(RENEW_LIMIT, client.batch_execute(TAKE_ROOM)).await;
        // Where that fails the connection is found broken by the next renewal.
        let _ = tokio::time::timeout(RENEW_LIMIT, client.batch_execute("ROLLBACK")).await;
        if matches!(written, Ok(Ok(()))) {
            self.pool.has_room();
        }
    }

    /// The number of the lease where the row is not there any more.
    fn next_term(&self) -> i64 {
        held(&self.standing).lease.map_or(1, |lease| lease.term.saturating_add(1))
    }

    fn took(&self, asked_at: Moment, term: Option<i64>) {
        let Some(term) = term else { return };
        let is_another = {
            let mut standing = held(&self.standing);
            let before = standing.lease;
            let lease = Lease::renewed(before, term, asked_at, Moment::now());
            *standing = Standing { lease: Some(lease), trouble: None };
            before.is_some_and(|before| before.number != lease.number)
        };
        if is_another {
            rise(&self.successions);
            tracing::warn!(driver = %self.own, "the lease ran out before it was renewed; what this process drove may be driven by another now");
        }
    }

    fn tell(&self) {
        rise(&self.foreign);
    }
}

fn rise(count: &watch::Sender<u64>) {
    count.send_modify(|count| *count = count.wrapping_add(1));
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

const NAME_BYTES: usize = 16;

/// A name that nobody had before.
pub(super) fn new_name() -> Result<DriverId, StoreError> {
    let mut bytes = [0_u8; NAME_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Unusable { reason: format!("the system gives no random numbers: {error}") })?;
    Ok(DriverId(format!("{:032x}", u128::from_ne_bytes(bytes))))
}

fn is_name(text: &str) -> bool {
    text.len() == 2 * NAME_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
