//! What all parts of an engine share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use turnwright_core::policy::Policy;
use turnwright_core::secrets::Secrets;
use turnwright_core::{Claim, Control, ConversationId, Entry, Journal, TurnSettings, UserId};

use crate::accounts::Accounts;
use crate::acting::Acting;
use crate::arguments::Validators;
use crate::artifacts::Artifacts;
use crate::catalog::Catalogs;
use crate::driver::{Before, Driver};
use crate::follow::Follower;
use crate::forgetting::Forgetting;
use crate::live::{Live, State, Vacancy};
use crate::nodes::cluster::Cluster;
use crate::pins::Pins;
use crate::registry::Registry;
use crate::result_cache::ResultCache;
use crate::rules::Rules;
use crate::telemetry::spans;
use crate::upkeep::Erasing;
use crate::{
    Budgets, Clock, ContextSource, Door, EngineError, HoldBack, KeptBy, KnownSecrets, LargeResults, Limits, Providers,
    SettingsOverlay, Slots, SourceSet, Spool, Store, StoreError, Telemetry, ToolSource,
};

/// The shared parts.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) providers: Arc<dyn Providers>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: Policy,
    /// The settings of turns for which nobody chose others.
    pub(crate) defaults: RwLock<Arc<TurnSettings>>,
    pub(crate) catalogs: Catalogs,
    pub(crate) validators: Validators,
    /// What people agreed to of foreign tools.
    pub(crate) pins: Pins,
    /// What people had remembered of their decisions.
    pub(crate) rules: Rules,
    /// Where the sources come from, where they may change.
    pub(crate) source_set: OnceLock<Arc<dyn SourceSet>>,
    /// What is told of it to whoever watches over it.
    pub(crate) telemetry: OnceLock<Telemetry>,
    /// What is hidden wherever it would be stored or told.
    pub(crate) secrets: OnceLock<KnownSecrets>,
    /// What gathers what models are shown besides what was said.
    pub(crate) context: OnceLock<Arc<dyn ContextSource>>,
    pub(crate) registry: Registry,
    /// What is being stored.
    pub(crate) acting: Acting,
    /// The turns that this process drives.
    pub(crate) running: Slots,
    pub(crate) choices: Choices,
    pub(crate) result_cache: Arc<ResultCache>,
    pub(crate) follower: Follower,
    /// The other nodes.
    pub(crate) cluster: Cluster,
    /// Held from the first look on, so that the store goes on looking for what other processes write.
    pub(crate) foreign: OnceLock<watch::Receiver<u64>>,
    pub(crate) shutdown: CancellationToken,
    /// Fires before `shutdown`: turns go no further than to the end of their step.
    pub(crate) draining: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// The drivers among the tasks.
    pub(crate) drivers: TaskTracker,
    /// Whether this process takes up what servers keep.
    pub(crate) is_server: AtomicBool,
    /// Through which door all decide, where there is one.
    pub(crate) door: OnceLock<Arc<dyn Door>>,
    /// How long people are waited for while a call holds its connection.
    pub(crate) question_limit_ms: AtomicU64,
    /// What was deleted and is not known to be overwritten.
    pub(crate) erasing: Erasing,
    /// Who is told of conversations that are gone.
    pub(crate) forgetting: Forgetting,
    /// How long people are waited for before what waits is denied; 0 is for ever.
    pub(crate) approval_limit_ms: AtomicU64,
    /// Whether nobody is there to answer while a call holds its connection.
    pub(crate) is_unattended: AtomicBool,
    /// Rises where a turn of this process begins to wait for people.
    pub(crate) begins_to_wait: watch::Sender<u64>,
}

/// What is chosen once, before the first turn.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    pub(crate) limits: OnceLock<Limits>,
    /// The calls that may run at once, over all sources.
    pub(crate) calls: OnceLock<Arc<Semaphore>>,
    /// Where results are kept that are too large for a model.
    pub(crate) shelf: OnceLock<(Arc<dyn Artifacts>, LargeResults)>,
    /// When tools are held back; never where it is not said.
    pub(crate) hold_back: OnceLock<HoldBack>,
    /// What may be spent; all that is asked for where it is not said.
    pub(crate) budgets: OnceLock<Budgets>,
    /// Who knows the names of users.
    pub(crate) accounts: OnceLock<Arc<dyn Accounts>>,
    /// Where tools work that nobody gave a folder.
    pub(crate) folder: OnceLock<String>,
}

impl Inner {
    /// What is hidden.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        self.secrets.get().map(KnownSecrets::now).unwrap_or_default()
    }

    /// Takes the sources over as they are now.
    pub(crate) async fn refresh_sources(&self) {
        if let Some(set) = self.source_set.get() {
            self.catalogs.replace(set.sources().await);
        }
        // Before anything is read: what is written meanwhile is seen the next time.
        let writes = self.foreign_writes();
        if let Err(error) = self.pins.refresh_if_written(writes).await {
            tracing::warn!(%error, "what people agreed to of tools cannot be read; what is known stays");
        }
        self.catalogs.pin(self.pins.known());
        self.rules.refresh_if_written(writes).await;
    }

    /// Takes the remembered rules over as they are now.
    pub(crate) async fn refresh_rules(&self) {
        self.rules.refresh_if_written(self.foreign_writes()).await;
    }

    /// How often another process may have written since somebody first looked.
    pub(crate) fn foreign_writes(&self) -> u64 {
        *self.foreign.get_or_init(|| self.store.foreign_writes()).borrow()
    }

    /// Takes the sources over as they are now, and waits for those of this user that are meant and of which it is not known yet
    /// what they offer, each at most its own start limit; the names of those that are late, without those that only wait for others.
    pub(crate) async fn settle_sources(&self, user: &UserId, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        self.refresh_sources().await;
        self.settle(user, is_meant).await
    }

    /// As [`Inner::settle_sources`], for what one tool needs: nothing where it is known, else the source that its name begins
    /// with, or all where that is none.
    pub(crate) async fn settle_source_of(&self, user: &UserId, tool: &str) {
        self.refresh_sources().await;
        if self.catalogs.of(user).get(tool).is_some() {
            return;
        }
        let is_its_own = |source: &str| tool.strip_prefix(source).is_some_and(|rest| rest.starts_with("__"));
        let is_known = self.catalogs.sources_of(user).iter().any(|source| is_its_own(source.name()));
        self.settle(user, |source| !is_known || is_its_own(source)).await;
    }

    async fn settle(&self, user: &UserId, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        let mut awaited = self.awaited(user, is_meant);
        if awaited.is_empty() {
            return Vec::new();
        }
        futures_util::future::join_all(awaited.iter().map(|source| source.settled_for(user))).await;
        awaited.retain(|source| source.is_awaited_by(user) && source.wait_in_words().is_some());
        awaited.iter().map(|source| source.name().to_owned()).collect()
    }

    /// Whether it is known of each of this user's sources what it offers, or that it offers nothing now.
    pub(crate) fn is_settled(&self, user: &UserId) -> bool {
        self.awaited(user, |_| true).is_empty()
    }

    /// Those of this user's sources that are meant and waited for. What is another user's is neither waited for nor named.
    pub(crate) fn awaited(&self, user: &UserId, is_meant: impl Fn(&str) -> bool) -> Vec<Arc<dyn ToolSource>> {
        let sources = self.catalogs.sources_of(user);
        sources.iter().filter(|source| is_meant(source.name()) && source.is_awaited_by(user)).cloned().collect()
    }

    /// The same for people; empty where they only wait for others.
    pub(crate) fn awaited_in_words(&self, user: &UserId, is_meant: impl Fn(&str) -> bool) -> String {
        let awaited = self.awaited(user, is_meant).into_iter();
        awaited.filter_map(|source| source.wait_in_words()).collect::<Vec<_>>().join(", ")
    }

    /// The settings of turns for which nobody chose others, as they are at this moment.
    pub(crate) fn defaults(&self) -> Arc<TurnSettings> {
        self.defaults.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// `overlay` over `base`, with the fallback chain of the model that it comes to.
    pub(crate) fn settings(&self, overlay: &SettingsOverlay, base: &TurnSettings) -> TurnSettings {
        let settings = overlay.over(base);
        TurnSettings { fallback: self.providers.fallback(&settings.model), ..settings }
    }

    /// The claim that this process would take next.
    pub(crate) fn next_claim(&self, journal: &Journal) -> Claim {
        Claim { driver: self.store.driver().clone(), epoch: journal.next_epoch(), folder: self.choices.folder.get().cloned() }
    }

    /// Sees to it that an open turn that can go on is driven: by this process, or by the living one that holds it.
    pub(crate) async fn ensure_driven(self: &Arc<Self>, live: &Arc<Live>) -> Result<bool, EngineError> {
        self.ensure_driven_after(live, None).await
    }

    /// The same where the driver of this claim has let go of the turn, although its process lives.
    pub(crate) async fn ensure_driven_after(
        self: &Arc<Self>,
        live: &Arc<Live>,
        let_go: Option<&Claim>,
    ) -> Result<bool, EngineError> {
        let is_server = self.is_server.load(Ordering::Relaxed);
        let mut before = Before::HasStopped;
        loop {
            let vacancy = live.lock().vacancy(is_server);
            match &vacancy {
                Vacancy::Nothing => return Ok(false),
                Vacancy::After(_) if live.lock().is_claimed_by(let_go) => {}
                Vacancy::After(claimer) if claimer != self.store.driver() && self.store.is_alive(claimer).await? => {
                    return Ok(false);
                }
                Vacancy::After(claimer) if claimer != self.store.driver() && self.store.outlives_its_lease() => {
                    before = Before::MayStillStop;
                }
                Vacancy::After(_) | Vacancy::Free => {}
            }
            if self.draining.is_cancelled() || self.shutdown.is_cancelled() {
                return Err(EngineError::ShuttingDown);
            }
            let mut state = live.lock();
            // While it was asked who lives, somebody else may have moved the turn on.
            if state.vacancy(is_server) != vacancy {
                continue;
            }
            let Some(turn) = state.journal.open_turn() else { return Ok(false) };
            let claim = self.next_claim(&state.journal);
            let mut first = vec![Entry::Control(Control::Claimed(claim.clone()))];
            if turn.holder().is_some() {
                first.push(Entry::Control(Control::Resumed { count: turn.next_resumption() }));
            }
            (state.is_driven, state.let_down) = (true, None);
            state.slot = Some(self.running.enter(&live.owner));
            drop(state);
            self.drive(live, (claim, before), first);
            return Ok(true);
        }
    }

    /// A conversation was stopped or deleted: what sources keep running for it ends.
    pub(crate) fn end_of(&self, conversation: &ConversationId) {
        for source in self.catalogs.sources().iter() {
            source.conversation_over(conversation);
        }
    }

    /// A conversation was deleted in the store: who drives or watches it is told.
    pub(crate) fn forget(&self, conversation: &ConversationId) {
        self.registry.bury(conversation);
        self.rules.forget(conversation);
        self.tell_gone(conversation);
        self.end_of(conversation);
    }

    /// The same of this one, whether or not another of its name took its place.
    pub(crate) fn bury(&self, live: &Arc<Live>) {
        self.registry.bury_this(live);
        self.tell_gone(&live.id);
        self.end_of(&live.id);
    }

    /// Where results of this user's calls are kept that are too large.
    pub(crate) fn spool(&self, user: &UserId) -> Option<Spool> {
        let (artifacts, how) = self.choices.shelf.get()?;
        Some(Spool::new(artifacts.clone(), self.clock.clone(), user.clone(), *how).hiding(self.secrets()))
    }

    /// What is told of this engine.
    pub(crate) fn telemetry(&self) -> &Telemetry {
        self.telemetry.get_or_init(Telemetry::default)
    }

    /// Reads what other processes stored in a conversation, and what they chose for it.
    ///
    /// # Errors
    /// [`StoreError::Gone`] where it was deleted, also where another of its name has taken its place, whoever made that; it is buried
    /// then.
    pub(crate) async fn catch_up(&self, live: &Arc<Live>) -> Result<(), StoreError> {
        // In this order: what is known here never is ahead of the store.
        let (known, chosen) = {
            let state = live.lock();
            (state.journal.last_seq(), state.chosen.clone())
        };
        let newest = self.store.newest(&live.id, &chosen).await?;
        let stored = newest.last;
        if newest.incarnation != Some(live.incarnation()) || stored < known {
            self.bury(live);
            return Err(StoreError::Gone { conversation: live.id.clone() });
        }
        if let Some(newer) = newest.chosen {
            let overlay = SettingsOverlay::stored(&live.id, &newer.settings)?;
            let mut state = live.lock();
            // What was chosen here meanwhile may be the newer; the next look tells.
            if Arc::ptr_eq(&state.chosen, &chosen) {
                state.choose(overlay, newer);
            }
            drop(state);
            self.registry.weigh(live);
        }
        if stored <= known {
            return Ok(());
        }
        // Seldom done, and large.
        let read = Box::pin(live.refresh(&*self.store)).await;
        if let Err(StoreError::Gone { .. }) = &read {
            self.bury(live);
        }
        read
    }

    /// What is stored for the open turn as what takes it up again.
    pub(crate) fn keeper(&self, state: &State) -> KeptBy {
        let default = if self.is_server.load(Ordering::Relaxed) { KeptBy::Servers } else { KeptBy::Chat };
        state.kept_by().unwrap_or(default)
    }

    /// Carries `work` out to its end, also where whoever asked for it does not wait any more: what is stored must be acted
    /// on (law 5).
    pub(crate) async fn whole<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Result<T, EngineError> {
        // What is logged on the way names the request that it came from.
        match self.tasks.spawn(work.in_current_span()).await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_cancelled)) => Err(EngineError::ShuttingDown),
        }
    }

    /// Starts the driver. The caller has set `is_driven`.
    pub(crate) fn drive(self: &Arc<Self>, live: &Arc<Live>, (claim, before): (Claim, Before), first: Vec<Entry>) {
        let turn = {
            let mut state = live.lock();
            state.mirror = None;
            state.journal.open_turn().map(turnwright_core::Turn::id)
        };
        let driver = Box::new(Driver::new(self.clone(), live.clone(), claim, before));
        let span = spans::turn(&live.id, turn);
        let run = driver.run(first).instrument(span).instrument(spans::turn_context(&live.id, turn));
        let run = self.drivers.track_future(run);
        if !self.cluster.is_joined() {
            self.tasks.spawn(run);
            return;
        }
        self.relay(live);
        let (inner, live) = (self.clone(), live.clone());
        self.tasks.spawn(async move {
            run.await;
            inner.after_driving(&live).await;
        });
    }
}
