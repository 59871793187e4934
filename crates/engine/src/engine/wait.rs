//! Waiting for a turn's end, and watching what it came to.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;
use turnwright_core::{Control, ConversationId, Entry, Journal, Seq, TurnId, TurnStatus};

use super::Engine;
use super::resuming::SWEEP_EVERY;
use crate::live::{LetDown, Live};
use crate::{EngineError, KeptBy, Watch, WatchFrom};

/// How far a turn is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnState {
    /// It is over.
    Ended(TurnStatus),
    /// Only a person can move it on.
    Parked,
}

/// Who drives a turn.
enum Drives {
    /// A driver of this process.
    Here,
    /// Another process, which lives.
    Elsewhere,
    /// Nobody.
    Nobody,
}

impl Engine {
    /// Waits until a turn is over or parked. Where the process that drove it dies meanwhile, this one goes on with it; so does a
    /// server with a turn that servers keep, where it finds nobody who drives it.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] where there is no such turn, [`EngineError::NoOpenTurn`], [`EngineError::ShuttingDown`] and, where the
    /// store failed, [`EngineError::Store`], where its driver had to stop and it stays open.
    pub async fn wait(&self, id: &ConversationId, turn: TurnId) -> Result<TurnState, EngineError> {
        self.wait_until(id, turn, state_of).await.map(|(_, state)| state)
    }

    /// As [`Engine::wait`]; a turn whose calls hold their connections for a person's answer is as good as parked
    /// ([`turnwright_core::Turn::is_held`]).
    ///
    /// # Errors
    /// As [`Engine::wait`].
    pub async fn wait_or_held(&self, id: &ConversationId, turn: TurnId) -> Result<TurnState, EngineError> {
        self.wait_until(id, turn, state_or_held).await.map(|(_, state)| state)
    }

    /// Waits as [`Engine::wait_or_held`], and watches the conversation in which the turn came to that. Whoever asks for it by its name
    /// afterwards may find another, where it was deleted and made anew meanwhile, and wait there for what never comes.
    ///
    /// # Errors
    /// As [`Engine::wait`].
    pub async fn watch_once_settled(&self, id: &ConversationId, turn: TurnId, from: WatchFrom) -> Result<Watch, EngineError> {
        let (live, _) = self.wait_until(id, turn, state_or_held).await?;
        self.watch_there(&live, from)
    }

    /// [`Engine::watch`] of a conversation that is in memory.
    pub(super) fn watch_there(&self, live: &Arc<Live>, from: WatchFrom) -> Result<Watch, EngineError> {
        if let WatchFrom::After(after) = from {
            let last = live.lock().journal.last_seq();
            if after > last {
                let last = last.map_or(0, Seq::get);
                let after = after.map_or(0, Seq::get);
                let what = format!("entry {after} in conversation `{}`, of which {last} is the last", live.id);
                return Err(EngineError::NotFound { what });
            }
        }
        let watch = live.watch(from);
        // By itself: the follower looks at conversations under its own lock, so none may be held here.
        let is_driven = live.lock().is_driven;
        self.inner.follow(is_driven);
        if !is_driven {
            self.inner.mirror(live);
        }
        Ok(watch)
    }

    async fn wait_until(
        &self,
        id: &ConversationId,
        turn: TurnId,
        state_of: impl Fn(&Journal, TurnId) -> Option<Result<TurnState, EngineError>>,
    ) -> Result<(Arc<Live>, TurnState), EngineError> {
        let live = self.load_newest(id).await?;
        let mut foreign: Option<watch::Receiver<u64>> = None;
        let mut took_up = false;
        let mut was_here = false;
        loop {
            let settled = live.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            // Before it is asked who drives: what was being stored then may be a turn that is about to be driven.
            let acting = self.inner.acting.under_way(id);
            let found = {
                let state = live.lock();
                if state.is_gone {
                    return Err(EngineError::NotFound { what: format!("conversation `{id}`") });
                }
                if let Some(error) = &state.broken {
                    return Err(EngineError::Journal(error.clone()));
                }
                state_of(&state.journal, turn)
            };
            if let Some(found) = found {
                return found.map(|found| (live.clone(), found));
            }
            if self.inner.shutdown.is_cancelled() {
                return Err(EngineError::ShuttingDown);
            }
            match (self.drives(&live).await?, &mut foreign) {
                (Drives::Here, _) => {
                    was_here = true;
                    tokio::select! {
                        () = settled => {}
                        () = self.inner.shutdown.cancelled() => {}
                    }
                }
                (Drives::Elsewhere, Some(foreign)) => {
                    // It may end like the one before it.
                    took_up = false;
                    tokio::select! {
                        () = settled => {}
                        () = self.inner.shutdown.cancelled() => {}
                        _ = foreign.changed() => {}
                        // That a process is gone is no write: it has to be looked for.
                        () = tokio::time::sleep(SWEEP_EVERY) => {}
                    }
                    self.inner.catch_up(&live).await?;
                }
                // What another process stored or left is driven next by that process, or by a server: this one, if no other does.
                (Drives::Nobody, None) if !was_here && self.keeps(&live) => {
                    foreign = Some(self.inner.store.foreign_writes());
                    self.inner.catch_up(&live).await?;
                }
                (Drives::Elsewhere, None) => {
                    // What is stored between the last look and this is found by the next.
                    foreign = Some(self.inner.store.foreign_writes());
                    self.inner.catch_up(&live).await?;
                }
                (Drives::Nobody, _) if acting.is_some() => {
                    let ended = async {
                        if let Some(mut acting) = acting {
                            let _ = acting.changed().await;
                        }
                    };
                    tokio::select! {
                        () = ended => {}
                        () = settled => {}
                        () = self.inner.shutdown.cancelled() => {}
                    }
                }
                // Who drove it elsewhere is gone.
                (Drives::Nobody, Some(_)) if !took_up && !self.is_draining() => {
                    took_up = true;
                    self.inner.ensure_driven(&live).await?;
                }
                // The lease ran out under it, as while a database is started anew, or others were first to claim it and are gone: the
                // next look of this server goes on with it.
                (Drives::Nobody, _) if self.takes_up_again(&live) => {
                    tokio::select! {
                        () = settled => {}
                        () = self.inner.shutdown.cancelled() => {}
                        () = tokio::time::sleep(SWEEP_EVERY) => {}
                    }
                    self.inner.catch_up(&live).await?;
                }
                // Nobody moves it on any more: whoever waits must not wait for ever.
                (Drives::Nobody, _) if self.is_draining() => return Err(EngineError::ShuttingDown),
                (Drives::Nobody, _) => return Err(Self::stays_open(&live, turn)),
            }
        }
    }

    /// Whether this process is one of those that take the open turn up again.
    fn keeps(&self, live: &Live) -> bool {
        self.inner.is_server.load(Ordering::Relaxed) && live.lock().kept_by() == Some(KeptBy::Servers)
    }

    /// Whether this process takes the open turn up again at its next look. Where the store let it down, whoever waits is told of that.
    fn takes_up_again(&self, live: &Live) -> bool {
        let can_go_on = match let_down(live) {
            Some(LetDown::Store(_)) => false,
            Some(LetDown::Lease) | None => true,
        };
        can_go_on && self.keeps(live) && !self.is_draining()
    }

    /// Why a turn stays open that nobody drives.
    fn stays_open(live: &Live, turn: TurnId) -> EngineError {
        match let_down(live) {
            // It can be asked again once the store can be used.
            Some(LetDown::Store(error)) => EngineError::Store(error),
            Some(LetDown::Lease) | None => {
                EngineError::NoOpenTurn { why: format!("`{turn}` had to stop and stays open; the log says why") }
            }
        }
    }

    async fn drives(&self, live: &Arc<Live>) -> Result<Drives, EngineError> {
        let (claimer, may_move) = {
            let state = live.lock();
            match state.journal.open_turn() {
                Some(turn) if !state.is_driven => {
                    (turn.claim().map(|claim| claim.driver.clone()), self.inner.may_move_elsewhere(&state))
                }
                // Over is settled too, and seen at the next look.
                Some(_) | None => return Ok(Drives::Here),
            }
        };
        match claimer {
            Some(claimer) if claimer != *self.inner.store.driver() && self.inner.store.is_alive(&claimer).await? => {
                Ok(Drives::Elsewhere)
            }
            // It is offered, or will be.
            Some(_) | None if may_move => Ok(Drives::Elsewhere),
            Some(_) | None => Ok(Drives::Nobody),
        }
    }
}

/// What the last driver of this process could not go on without.
fn let_down(live: &Live) -> Option<LetDown> {
    live.lock().let_down.clone()
}

/// As [`state_of`]; a turn that is held is as good as parked.
fn state_or_held(journal: &Journal, turn: TurnId) -> Option<Result<TurnState, EngineError>> {
    let is_held = journal.open_turn().is_some_and(|open| open.id() == turn && open.is_held());
    if is_held { Some(Ok(TurnState::Parked)) } else { state_of(journal, turn) }
}

fn state_of(journal: &Journal, turn: TurnId) -> Option<Result<TurnState, EngineError>> {
    match journal.turn() {
        Some(newest) if newest.id() == turn => match newest.ended() {
            Some(status) => Some(Ok(TurnState::Ended(status.clone()))),
            None if newest.is_parked() => Some(Ok(TurnState::Parked)),
            None => None,
        },
        Some(newest) if newest.id() > turn => {
            let ended = journal.turn_entries(turn).filter_map(|stored| match &*stored.entry {
                Entry::Control(Control::Ended { status, .. }) => Some(status.clone()),
                _ => None,
            });
            Some(ended.last().map(TurnState::Ended).ok_or_else(|| no_such_turn(turn)))
        }
        Some(_) | None => Some(Err(no_such_turn(turn))),
    }
}

fn no_such_turn(turn: TurnId) -> EngineError {
    EngineError::NotFound { what: format!("turn `{turn}` in this conversation") }
}
