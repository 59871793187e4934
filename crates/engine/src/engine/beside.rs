//! Texts that a door keeps beside a conversation: what it was told and no entry says. They go with the conversation.

use turnwright_core::{ConversationId, Seq};

use super::Engine;
use crate::{Append, EngineError, Idempotent, SideRecord, StoreError};

/// What the stored form of their names begins with; no idempotency key does.
const BESIDE: &str = "/beside/";

fn stored_name(id: &ConversationId, name: &str) -> String {
    format!("{BESIDE}{id}/{name}")
}

/// The record that keeps a text under this name, together with what is appended.
pub(super) fn kept_with(id: &ConversationId, name: &str, text: &str) -> SideRecord {
    let record = Idempotent { fingerprint: String::new(), answer: text.to_owned() };
    SideRecord::Idempotent { key: stored_name(id, name), record }
}

impl Engine {
    /// Keeps a text beside a conversation under this name, for every process of the database. Where one is kept under it already, that
    /// one stays.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Store`].
    pub async fn keep_beside(&self, id: &ConversationId, name: &str, text: &str) -> Result<(), EngineError> {
        let (engine, id, kept) = (self.clone(), id.clone(), kept_with(id, name, text));
        let keep = async move {
            loop {
                let live = engine.load_newest(&id).await?;
                let at: Seq = live.lock().journal.next_seq();
                let side = vec![SideRecord::Of(live.incarnation()), kept.clone()];
                let at_ms = engine.inner.clock.now_ms();
                let append = Append { conversation: id.clone(), at, entries: Vec::new(), at_ms, side };
                match engine.inner.store.append(append).await {
                    Ok(_) | Err(StoreError::Repeated { .. }) => return Ok(()),
                    // The turn went on meanwhile.
                    Err(StoreError::Conflict { next }) if next >= at => live.refresh(&*engine.inner.store).await?,
                    Err(StoreError::Conflict { .. }) => return Err(StoreError::Gone { conversation: id }.into()),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        self.inner.whole(keep).await
    }

    /// The text that is kept beside a conversation under this name.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Store`].
    pub async fn kept_beside(&self, id: &ConversationId, name: &str) -> Result<Option<String>, EngineError> {
        self.load(id).await?;
        let kept = self.inner.store.idempotent(&stored_name(id, name)).await?;
        Ok(kept.map(|kept| kept.answer))
    }
}
