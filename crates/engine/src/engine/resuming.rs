//! Taking up open turns: at the start, and for as long as a server runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use turnwright_core::UserId;

use super::{Engine, act};
use crate::nodes::sweep::{Extent, Seen};
use crate::nodes::{Condition, Nodes, hearing, work};
use crate::{EngineError, KeptBy, OpenTurn, Slots};

/// How often a server looks for turns whose driver is gone.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(5);

impl Engine {
    /// Shares turns with other nodes from now on: see [`Nodes`]. Counts once, before the first turn; without it this process is
    /// alone.
    pub fn join(&self, nodes: Arc<dyn Nodes>) {
        if !self.inner.cluster.join(nodes) {
            tracing::error!("an engine joins other nodes once");
            return;
        }
        self.inner.tasks.spawn(hearing::run(self.inner.clone()));
    }

    /// How this process and its connection to the other nodes are.
    pub fn nodes(&self) -> Condition {
        self.inner.nodes().condition()
    }

    /// Counts these streams with those that are open at the other nodes; after [`Engine::join`], once.
    pub fn share_streams(&self, streams: &Slots) {
        self.inner.nodes().share_streams(streams);
    }

    /// How many streams a user has open at the other nodes, as they said last.
    pub fn streams_elsewhere(&self, user: &UserId) -> usize {
        self.inner.nodes().streams_elsewhere(user)
    }

    /// Takes up every open turn that servers keep and whose driver is gone; how many.
    pub async fn resume_open_turns(&self) -> Result<usize, EngineError> {
        if self.inner.nodes().is_shared() {
            return self.inner.sweep(&mut Seen::default(), Extent::All).await;
        }
        let mut resumed = 0;
        for open in self.inner.store.open_turns().await? {
            if open.kept_by != KeptBy::Servers || open.parked || self.is_looked_after(&open).await? {
                continue;
            }
            let turn = match self.load_open(&open).await {
                Ok(live) => self.take_up(&live).await,
                Err(error) => Err(error),
            };
            match turn {
                Ok(turn) => resumed += usize::from(turn.is_some()),
                Err(EngineError::NotFound { .. }) => {}
                Err(error) => {
                    tracing::error!(conversation = %open.conversation, turn = %open.turn, %error, "a turn could not be taken up");
                }
            }
        }
        Ok(resumed)
    }

    /// Keeps looking for turns to take up: what a decision in another process moved on, what a dead process left. Runs
    /// until [`Engine::shutdown`].
    pub fn keep_resuming(&self) {
        self.inner.is_server.store(true, Ordering::Relaxed);
        let engine = self.clone();
        if self.inner.cluster.is_joined() {
            self.inner.tasks.spawn(work::run(self.inner.clone()));
            self.inner.tasks.spawn(work::run_handed(self.inner.clone()));
        }
        self.inner.tasks.spawn(async move {
            let mut foreign = engine.inner.store.foreign_writes();
            let mut departures = engine.inner.store.departures();
            let mut deadlines = act::Deadlines::default();
            let mut seen = Seen::default();
            let mut due = Box::pin(tokio::time::sleep(SWEEP_EVERY));
            // What became overdue while no server ran is denied at once.
            let mut overdue = Box::pin(tokio::time::sleep(Duration::ZERO));
            loop {
                let extent = tokio::select! {
                    () = engine.inner.draining.cancelled() => return,
                    () = engine.inner.shutdown.cancelled() => return,
                    changed = foreign.changed() => match changed {
                        Err(_closed) => return,
                        // What others store they tell, and what wants a driver they offer.
                        Ok(()) if engine.inner.nodes().is_shared() => continue,
                        Ok(()) => Some(Extent::All),
                    },
                    () = engine.inner.cluster.sweep_now.notified() => Some(Extent::All),
                    // A turn that nobody offered is found now that its driver is gone, and not with the next look.
                    Ok(()) = departures.changed() => Some(Extent::All),
                    () = &mut due => {
                        engine.inner.registry.make_room();
                        due.set(tokio::time::sleep(SWEEP_EVERY));
                        Some(Extent::Still)
                    }
                    () = &mut overdue => None,
                };
                if let Some(Err(error)) = engine.look_for_open_turns(extent, &mut seen).await {
                    tracing::warn!(%error, "cannot look for open turns");
                }
                let again = engine.deny_overdue(&mut deadlines).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "cannot look for calls that nobody decided about in time");
                    SWEEP_EVERY
                });
                overdue.set(tokio::time::sleep(again));
            }
        });
    }

    /// Takes up what has no driver, as far as it is to be looked.
    async fn look_for_open_turns(&self, extent: Option<Extent>, seen: &mut Seen) -> Option<Result<usize, EngineError>> {
        let extent = extent?;
        Some(if self.inner.nodes().is_shared() { self.inner.sweep(seen, extent).await } else { self.resume_open_turns().await })
    }

    /// Whether a turn is known to be driven, here or by another process that lives: then its journal need not be read.
    async fn is_looked_after(&self, open: &OpenTurn) -> Result<bool, EngineError> {
        let Some(live) = self.inner.registry.known(&open.conversation) else { return Ok(false) };
        let holder = {
            let state = live.lock();
            if state.is_driven {
                return Ok(true);
            }
            let turn = state.journal.open_turn().filter(|turn| turn.id() == open.turn);
            turn.and_then(|turn| turn.holder()).map(|claim| claim.driver.clone())
        };
        match holder {
            Some(holder) if holder != *self.inner.store.driver() => Ok(self.inner.store.is_alive(&holder).await?),
            Some(_) | None => Ok(false),
        }
    }
}
