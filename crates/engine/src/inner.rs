//! What all parts of an engine share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::policy::Policy;
use turnwright_core::{Claim, Control, Entry, Journal, TurnSettings};

use crate::arguments::Validators;
use crate::catalog::Catalogs;
use crate::driver::Driver;
use crate::live::Live;
use crate::registry::Registry;
use crate::{Clock, EngineError, KeptBy, Providers, SourceState, Store};

/// The shared parts.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) providers: Arc<dyn Providers>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: Policy,
    pub(crate) defaults: TurnSettings,
    pub(crate) catalogs: Catalogs,
    pub(crate) validators: Validators,
    /// Free slots per source.
    pub(crate) semaphores: HashMap<String, Arc<Semaphore>>,
    pub(crate) registry: Registry,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Whether this process takes up what servers keep.
    pub(crate) is_server: AtomicBool,
}

impl Inner {
    /// Waits for sources that are starting, each at most its own start limit; the names of those that are late.
    pub(crate) async fn settle_sources(&self) -> Vec<String> {
        let starting: Vec<_> =
            self.catalogs.sources().iter().filter(|source| source.state() == SourceState::Starting).collect();
        if starting.is_empty() {
            return Vec::new();
        }
        futures_util::future::join_all(starting.iter().map(|source| source.settled())).await;
        starting
            .into_iter()
            .filter(|source| source.state() == SourceState::Starting)
            .map(|source| source.name().to_owned())
            .collect()
    }

    /// The entry that offers what is there now, where that is not what the journal offers.
    pub(crate) fn newly_offered(&self, journal: &Journal, settings: &TurnSettings) -> Option<Entry> {
        let catalog = self.catalogs.current();
        let offered = catalog.offered(settings.tools.as_deref());
        let now = journal.offered();
        let is_same = now.len() == offered.len() && now.iter().zip(&offered).all(|(a, b)| Arc::ptr_eq(a, b) || a == b);
        (!is_same).then_some(Entry::Control(Control::Offered { definitions: offered }))
    }

    /// The claim that this process would take next.
    pub(crate) fn next_claim(&self, journal: &Journal) -> Claim {
        Claim { driver: self.store.driver().clone(), epoch: journal.next_epoch() }
    }

    /// Sees to it that an open turn that can go on is driven: by this process, or by the living one that holds it. A turn
    /// that a server parked is left to that server while it lives, since this process may be about to end.
    pub(crate) async fn ensure_driven(self: &Arc<Self>, live: &Arc<Live>) -> Result<bool, EngineError> {
        let claimer = {
            let state = live.lock();
            let open = state.journal.open_turn().filter(|turn| !turn.is_parked() || !turn.is_suspended());
            let Some(turn) = open.filter(|_| !state.is_driven && state.broken.is_none()) else { return Ok(false) };
            let may_take = turn.holder().is_none() && (state.kept_by == KeptBy::Chat || self.is_server.load(Ordering::Relaxed));
            turn.claim().filter(|_| !may_take).map(|claim| claim.driver.clone())
        };
        if let Some(claimer) = &claimer
            && claimer != self.store.driver()
            && self.store.is_alive(claimer).await?
        {
            return Ok(false);
        }
        if self.shutdown.is_cancelled() {
            return Err(EngineError::ShuttingDown);
        }
        let mut state = live.lock();
        let Some(turn) = state.journal.open_turn().filter(|_| !state.is_driven) else { return Ok(false) };
        let claim = self.next_claim(&state.journal);
        let mut first = vec![Entry::Control(Control::Claimed(claim.clone()))];
        if turn.holder().is_some() {
            first.push(Entry::Control(Control::Resumed { count: turn.next_resumption() }));
        }
        state.is_driven = true;
        drop(state);
        self.drive(live, claim, first);
        Ok(true)
    }

    /// Starts the driver. The caller has set `is_driven`.
    pub(crate) fn drive(self: &Arc<Self>, live: &Arc<Live>, claim: Claim, first: Vec<Entry>) {
        let driver = Driver::new(self.clone(), live.clone(), claim);
        self.tasks.spawn(driver.run(first));
    }
}
