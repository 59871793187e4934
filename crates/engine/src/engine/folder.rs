//! In which folder the calls of an open turn run, where the configuration gives their tools none.

use std::sync::atomic::Ordering;

use turnwright_core::ConversationId;

use super::Engine;
use crate::{EngineError, KeptBy};

impl Engine {
    /// Refuses what would go on with the open turn in another folder than its tools worked in: what a model wrote for the one would be
    /// done in the other. Fine where a living process goes on with it, where the configuration names the folders, and where nothing is
    /// known of the one before.
    ///
    /// # Errors
    /// [`EngineError::OtherFolder`]; [`EngineError::NotFound`]; [`EngineError::Store`].
    pub async fn stays_in_its_folder(&self, id: &ConversationId) -> Result<(), EngineError> {
        let inner = &self.inner;
        let Some(here) = inner.choices.folder.get() else { return Ok(()) };
        let live = self.load_newest(id).await?;
        let (claim, may_take) = {
            let state = live.lock();
            let Some(turn) = state.journal.open_turn() else { return Ok(()) };
            let Some(claim) = turn.claim().cloned() else { return Ok(()) };
            let is_free = inner.is_server.load(Ordering::Relaxed) || state.kept_by() == Some(KeptBy::Chat);
            (claim, turn.holder().is_none() && is_free)
        };
        let Some(folder) = claim.folder.filter(|folder| folder != here) else { return Ok(()) };
        if !may_take && inner.store.is_alive(&claim.driver).await? {
            return Ok(());
        }
        Err(EngineError::OtherFolder { folder })
    }
}
