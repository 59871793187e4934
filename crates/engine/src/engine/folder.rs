//! In which folder the calls of an open turn run, where the configuration gives their tools none.

use std::sync::atomic::Ordering;

use turnwright_core::ConversationId;

use super::Engine;
use crate::{EngineError, KeptBy};

impl Engine {
    /// The folder in which the tools of the open turn worked, where this process would go on with that turn and its own tools work in
    /// another: what a model wrote for the one would be done in the other. `None` where a living process goes on with it, where
    /// the configuration names the folders, and where nothing is known of the one before.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Store`].
    pub async fn worked_elsewhere(&self, id: &ConversationId) -> Result<Option<String>, EngineError> {
        let inner = &self.inner;
        let Some(here) = inner.choices.folder.get() else { return Ok(None) };
        let live = self.load(id).await?;
        let (claim, may_take) = {
            let state = live.lock();
            let Some(turn) = state.journal.open_turn() else { return Ok(None) };
            let Some(claim) = turn.claim().cloned() else { return Ok(None) };
            let is_free = inner.is_server.load(Ordering::Relaxed) || state.kept_by() == Some(KeptBy::Chat);
            (claim, turn.holder().is_none() && is_free)
        };
        let Some(folder) = claim.folder.filter(|folder| folder != here) else { return Ok(None) };
        if !may_take && inner.store.is_alive(&claim.driver).await? {
            return Ok(None);
        }
        Ok(Some(folder))
    }
}
