//! What all parts of an engine share.

use std::collections::HashMap;
use std::sync::Arc;

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
use crate::{Clock, EngineError, Providers, SourceState, Store};

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

    /// Sees to it that an open turn that can go on is driven, by this process or by the living one that holds it.
    pub(crate) async fn ensure_driven(self: &Arc<Self>, live: &Arc<Live>) -> Result<bool, EngineError> {
        let holder = {
            let state = live.lock();
            if state.is_driven || state.broken.is_some() {
                return Ok(false);
            }
            match state.journal.open_turn() {
                Some(turn) if !turn.is_parked() || !turn.is_suspended() => turn.claim().map(|claim| claim.driver.clone()),
                Some(_) | None => return Ok(false),
            }
        };
        if let Some(holder) = &holder
            && holder != self.store.driver()
            && self.store.is_alive(holder).await?
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
        // A turn that moves on after a person's word was not left in the lurch.
        let was_left = turn.claim().is_some() && !is_moved_by_person(&state.journal);
        if was_left {
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

/// Whether the newest entry is a person's: the turn was parked and moves on by it.
fn is_moved_by_person(journal: &Journal) -> bool {
    let mut newest = journal.entries().iter().rev().map(|stored| &*stored.entry);
    let mut last = newest.next();
    while matches!(
        last,
        Some(Entry::Decision(_) | Entry::User(_) | Entry::Control(Control::CancelRequested { .. } | Control::Hidden { .. }))
    ) {
        last = newest.next();
    }
    matches!(last, Some(Entry::Control(Control::Suspended | Control::Ended { .. } | Control::Retried { .. })) | None)
}
