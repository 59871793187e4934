//! What a handle reaches: the conversations of the user for whom it acts.

use std::sync::Arc;

use turnwright_core::{ApproveMode, ConversationId, UserId};

use super::Engine;
use crate::live::Live;
use crate::{EngineError, OpenTurn, SettingsOverlay, StoreError};

impl Engine {
    /// The same engine, acting for this user.
    #[must_use]
    pub fn acting_for(&self, user: UserId) -> Self {
        Self { inner: self.inner.clone(), user, may_decide: self.may_decide }
    }

    /// The same engine, which decides nothing: no call is allowed through this handle, nothing that a tool asks is answered,
    /// and no turn begins in which all calls run.
    #[must_use]
    pub fn without_decisions(&self) -> Self {
        Self { inner: self.inner.clone(), user: self.user.clone(), may_decide: false }
    }

    /// Whether this handle takes decisions.
    pub fn may_decide(&self) -> bool {
        self.may_decide
    }

    /// For whom this handle acts.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// Refuses a decision where this handle takes none.
    pub(super) fn must_decide(&self) -> Result<(), EngineError> {
        if self.may_decide {
            return Ok(());
        }
        Err(EngineError::NotAllowed { what: "whoever asks may not decide about calls or answer for people".to_owned() })
    }

    /// Refuses settings that decide about every call beforehand, where this handle takes no decisions.
    pub(super) fn must_not_decide(&self, overlay: &SettingsOverlay) -> Result<(), EngineError> {
        match overlay.approve {
            Some(ApproveMode::All) => self.must_decide(),
            Some(ApproveMode::Ask | ApproveMode::None | ApproveMode::ReadOnly) | None => Ok(()),
        }
    }

    pub(super) async fn load(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.load_own(id).await?;
        self.learn_keeper(&live).await?;
        Ok(live)
    }

    async fn load_own(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.inner.registry.load(id, &*self.inner.store).await?;
        if live.owner == self.user { Ok(live) } else { Err(not_there(id)) }
    }

    pub(super) async fn own_open_turns(&self) -> Result<impl Iterator<Item = OpenTurn>, EngineError> {
        let open = self.inner.store.open_turns().await?;
        Ok(open.into_iter().filter(|open| open.owner == self.user))
    }

    /// The stored form of an idempotency key: one user's keys are nobody else's. No key that a client sends has a tab.
    pub(super) fn own_key(&self, key: &str) -> String {
        if self.user.is_local() { key.to_owned() } else { format!("{}\t{key}", self.user) }
    }

    /// The conversation with everything that any process has stored.
    pub(super) async fn load_newest(&self, id: &ConversationId) -> Result<Arc<Live>, EngineError> {
        let live = self.newest(self.load_own(id).await?).await?;
        if live.owner != self.user {
            return Err(not_there(id));
        }
        self.learn_keeper(&live).await?;
        Ok(live)
    }

    /// The same for a row of the index of open turns.
    pub(super) async fn load_open(&self, open: &OpenTurn) -> Result<Arc<Live>, EngineError> {
        let live = self.inner.registry.load(&open.conversation, &*self.inner.store).await?;
        let live = self.newest(live).await?;
        let mut state = live.lock();
        if state.kept_by().is_none() {
            state.keeper = Some((open.turn, open.kept_by));
        }
        drop(state);
        Ok(live)
    }

    async fn newest(&self, live: Arc<Live>) -> Result<Arc<Live>, EngineError> {
        if live.lock().is_driven {
            return Ok(live);
        }
        match self.inner.catch_up(&live).await {
            Ok(()) => Ok(live),
            // What was known is gone; there may be another of its name.
            Err(StoreError::Gone { .. }) => self.inner.registry.load(&live.id, &*self.inner.store).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what takes the open turn up again, where another process began it.
    async fn learn_keeper(&self, live: &Live) -> Result<(), EngineError> {
        let is_known = {
            let state = live.lock();
            state.journal.open_turn().is_none() || state.kept_by().is_some()
        };
        if !is_known {
            let row = self.inner.store.open_turns().await?.into_iter().find(|open| open.conversation == live.id);
            live.lock().keeper = row.map(|open| (open.turn, open.kept_by));
        }
        Ok(())
    }
}

/// There is no such conversation, or it is somebody else's: nobody is told which.
pub(super) fn not_there(id: &ConversationId) -> EngineError {
    EngineError::NotFound { what: format!("conversation `{id}`") }
}
