//! What an engine knows of the other nodes, and how a turn comes to a driver among them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::Instrument;
use turnwright_core::{Claim, ConversationId};

use super::{Alone, News, Nodes, NotOffered, Offer, WATCHED_FOR, relay};
use crate::inner::Inner;
use crate::live::{Live, State, Vacancy};
use crate::{EngineError, KeptBy};

/// What is known of the other nodes.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    nodes: OnceLock<Arc<dyn Nodes>>,
    /// The conversations that are watched at other nodes.
    watched: Mutex<HashMap<ConversationId, Watched>>,
    /// The conversations whose turns this node took from the queue.
    held: Mutex<HashSet<ConversationId>>,
    /// Wakes the sweep: the other nodes can be reached again.
    pub(crate) sweep_now: Notify,
}

#[derive(Debug)]
struct Watched {
    until: Instant,
    /// What tells them, where it is driven here; woken where somebody must be told anew.
    relay: Option<Arc<Notify>>,
}

/// How many conversations may be remembered before those that nobody watches any more are forgotten.
const MAX_STALE: usize = 1_024;

impl Cluster {
    pub(crate) fn nodes(&self) -> &dyn Nodes {
        self.nodes.get().map_or(&Alone, |nodes| &**nodes)
    }

    /// Takes the other nodes; whether they are the first.
    pub(crate) fn join(&self, nodes: Arc<dyn Nodes>) -> bool {
        self.nodes.set(nodes).is_ok()
    }

    /// Whether there may be other nodes at all, reached or not.
    pub(crate) fn is_joined(&self) -> bool {
        self.nodes.get().is_some()
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<ConversationId, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody watches a conversation at another node. Gives what tells it, where that runs.
    pub(crate) fn watch(&self, conversation: &ConversationId) -> Option<Arc<Notify>> {
        let mut watched = self.watched();
        let now = Instant::now();
        if watched.len() >= MAX_STALE && !watched.contains_key(conversation) {
            watched.retain(|_, one| one.relay.is_some() || one.until > now);
        }
        let one = watched.entry(conversation.clone()).or_insert(Watched { until: now, relay: None });
        one.until = now + WATCHED_FOR;
        one.relay.clone()
    }

    /// Whether somebody watches it at another node.
    pub(crate) fn is_watched(&self, conversation: &ConversationId) -> bool {
        self.watched().get(conversation).is_some_and(|one| one.until > Instant::now())
    }

    /// A place for what tells watchers elsewhere of a conversation that is driven here; `None` where nobody watches, or where
    /// it has one.
    pub(crate) fn begin_relay(&self, conversation: &ConversationId) -> Option<Arc<Notify>> {
        let mut watched = self.watched();
        let one = watched.get_mut(conversation).filter(|one| one.until > Instant::now() && one.relay.is_none())?;
        let anew = Arc::new(Notify::new());
        one.relay = Some(anew.clone());
        Some(anew)
    }

    pub(crate) fn end_relay(&self, conversation: &ConversationId) {
        if let Some(one) = self.watched().get_mut(conversation) {
            one.relay = None;
        }
    }

    fn held(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This node holds the offer of a conversation's turn from here on; whether it did not before.
    pub(crate) fn hold(&self, conversation: &ConversationId) -> bool {
        self.held().insert(conversation.clone())
    }

    pub(crate) fn release(&self, conversation: &ConversationId) {
        self.held().remove(conversation);
    }

    fn is_held(&self, conversation: &ConversationId) -> bool {
        self.held().contains(conversation)
    }
}

impl Inner {
    pub(crate) fn nodes(&self) -> &dyn Nodes {
        self.cluster.nodes()
    }

    /// Whether a new turn that this keeps is offered to all nodes; else this process claims it as it stores it.
    pub(crate) fn is_for_all(&self, kept_by: KeptBy) -> bool {
        kept_by == KeptBy::Servers && self.nodes().is_shared()
    }

    /// Whether other nodes may yet take up the open turn.
    pub(crate) fn may_move_elsewhere(&self, state: &State) -> bool {
        self.is_for_all(state.kept_by().unwrap_or(KeptBy::Servers))
    }

    /// Sees to it that an open turn that can go on is driven, after something was stored in it here: by this process where it
    /// is alone, else by whichever node takes it. There it happens in the background, since it is stored already.
    pub(crate) async fn move_on(self: &Arc<Self>, live: &Arc<Live>) -> Result<(), EngineError> {
        if !self.nodes().is_shared() {
            return self.ensure_driven(live).await.map(drop);
        }
        let (inner, live) = (self.clone(), live.clone());
        let moving = async move {
            inner.tell_appended(&live).await;
            match inner.offer_where_vacant(&live).await {
                Ok(()) | Err(EngineError::ShuttingDown) => {}
                Err(error) => live.context().in_scope(|| tracing::warn!(%error, "the turn is not driven for the moment")),
            }
        };
        // What is logged on the way names the request that it came from.
        self.tasks.spawn(moving.in_current_span());
        Ok(())
    }

    /// Tells other nodes that there is news in a conversation.
    pub(crate) async fn tell_appended(&self, live: &Live) {
        let seq = {
            let state = live.lock();
            state.journal.last_seq().filter(|_| !state.is_gone)
        };
        self.nodes().tell(News::Appended { conversation: live.id.clone(), seq }).await;
    }

    /// Offers the open turn of a conversation where nobody drives it.
    pub(crate) async fn offer_where_vacant(self: &Arc<Self>, live: &Arc<Live>) -> Result<(), EngineError> {
        let (vacancy, is_for_all) = {
            let state = live.lock();
            (state.vacancy(true), self.may_move_elsewhere(&state))
        };
        let is_ending = self.draining.is_cancelled() || self.shutdown.is_cancelled();
        match vacancy {
            Vacancy::Nothing => return Ok(()),
            // Let go of here and not handed over.
            Vacancy::After(holder) if holder == *self.store.driver() && !is_ending => {
                return self.ensure_driven(live).await.map(drop);
            }
            Vacancy::After(holder) if holder != *self.store.driver() && self.store.is_alive(&holder).await? => return Ok(()),
            Vacancy::After(_) | Vacancy::Free => {}
        }
        if !is_for_all {
            return self.ensure_driven(live).await.map(drop);
        }
        let let_go = if is_ending { self.own_claim(live) } else { None };
        let home = self.home_of(live).await?;
        match self.nodes().offer(&Offer { conversation: live.id.clone(), let_go, home }).await {
            Ok(()) => Ok(()),
            Err(NotOffered::Alone) => self.ensure_driven(live).await.map(drop),
            Err(error @ (NotOffered::Unreachable { .. } | NotOffered::Full { .. })) => {
                live.context().in_scope(|| tracing::warn!(%error, "the turn is driven where it was asked for"));
                self.ensure_driven(live).await.map(drop)
            }
        }
    }

    /// The claim of this process on the open turn, where it has the highest.
    fn own_claim(&self, live: &Live) -> Option<Claim> {
        let state = live.lock();
        let claim = state.journal.open_turn()?.claim()?;
        (claim.driver == *self.store.driver()).then(|| claim.clone())
    }

    /// A driver of this process has ended. Tells other nodes how far it came, and hands the turn over where this process ends.
    pub(crate) async fn after_driving(self: &Arc<Self>, live: &Arc<Live>) {
        if !self.nodes().is_shared() {
            return;
        }
        self.tell_appended(live).await;
        // Whoever took it from the queue gives it back.
        if !self.cluster.is_held(&live.id) {
            self.hand_over(live).await;
        }
    }

    /// Offers a turn that this process let go of since it ends.
    pub(crate) async fn hand_over(self: &Arc<Self>, live: &Arc<Live>) {
        let is_ending = self.draining.is_cancelled() || self.shutdown.is_cancelled();
        let (is_open, is_for_all) = {
            let state = live.lock();
            let is_open = state.journal.open_turn().is_some_and(|turn| !turn.is_suspended() || !turn.is_parked());
            (is_open && !state.is_driven && !state.is_gone, self.may_move_elsewhere(&state))
        };
        if !is_ending || !is_open || !is_for_all {
            return;
        }
        // Where the store does not say who lives, any node may have it.
        let home = self.home_of(live).await.unwrap_or_default();
        let offer = Offer { conversation: live.id.clone(), let_go: self.own_claim(live), home };
        if let Err(error) = self.nodes().offer(&offer).await {
            let told = || tracing::warn!(%error, "the turn is not handed over; a sweep finds it once this process is gone");
            live.context().in_scope(told);
        }
    }

    /// Tells watchers at other nodes what happens in a conversation that is driven here, where there are any.
    pub(crate) fn relay(self: &Arc<Self>, live: &Arc<Live>) {
        if !self.cluster.is_joined() || !live.lock().is_driven {
            return;
        }
        if let Some(anew) = self.cluster.begin_relay(&live.id) {
            self.tasks.spawn(relay::run(self.clone(), live.clone(), anew));
        }
    }
}
