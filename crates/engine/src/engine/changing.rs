//! Changing what is chosen for a conversation, and deleting it.

use turnwright_core::ConversationId;

use super::{Conversation, ConversationChange, Engine, act, conversation, not_there, record_since};
use crate::nodes::News;
use crate::{Chosen, EngineError, Incarnation, SettingsOverlay, StoreError};

/// Which of all conversations that ever had its name it is.
fn incarnation_of(known: &Conversation) -> Incarnation {
    Incarnation::new(known.created_at_ms, known.owner.clone())
}

impl Engine {
    /// Changes a conversation's title or settings; turns that are open go on with what they began with.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Invalid`]; [`EngineError::OverLimit`] where its title or settings are too
    /// large; [`StoreError::Changed`] where it is not [`ConversationChange::of`] any more.
    pub async fn update(&self, id: &ConversationId, change: ConversationChange) -> Result<Conversation, EngineError> {
        let title = change.title.as_ref().and_then(Option::as_deref);
        self.limits().admit_chosen(title, change.overlay.as_ref().unwrap_or(&SettingsOverlay::default()))?;
        loop {
            let found = self.inner.store.conversation(id).await?.filter(|record| record.owner == self.user);
            let found = found.ok_or_else(|| not_there(id))?;
            let of = found.chosen();
            let mut changed = conversation(found)?;
            if change.of.as_ref().is_some_and(|of| of.title != changed.title || of.overlay != changed.overlay) {
                return Err(StoreError::Changed { conversation: id.clone() }.into());
            }
            if let Some(overlay) = change.overlay.as_ref().filter(|after| after.approve != changed.overlay.approve) {
                let default = self.inner.defaults().approve;
                let before = changed.overlay.approve.unwrap_or(default);
                self.must_not_widen(overlay.approve.unwrap_or(default), Some(before)).await?;
            }
            if let Some(title) = &change.title {
                changed.title = title.clone().and_then(act::given_title);
            }
            let before = changed.overlay.clone();
            changed.overlay = change.overlay.clone().unwrap_or(changed.overlay);
            match self.choose((&before, &changed), of).await {
                // What others chose meanwhile, and is not named here, stays.
                Err(EngineError::Store(StoreError::Changed { .. })) if change.of.is_none() => {}
                done => return done.map(|()| changed),
            }
        }
    }

    /// Deletes a conversation with its journal. A turn that is open is stopped with its tools.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn delete(&self, id: &ConversationId) -> Result<(), EngineError> {
        let known = self.conversation(id).await?;
        self.remove(&known, None).await
    }

    /// Deletes a conversation as [`Engine::delete`] does, where its title and settings still are those `of` it.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`StoreError::Changed`], where they are others.
    pub async fn delete_unchanged(&self, of: &Conversation) -> Result<(), EngineError> {
        let found = self.inner.store.conversation(&of.id).await?.filter(|record| record.owner == self.user);
        let found = found.ok_or_else(|| not_there(&of.id))?;
        let chosen = found.chosen();
        let now = conversation(found)?;
        if of.title != now.title || of.overlay != now.overlay {
            return Err(StoreError::Changed { conversation: of.id.clone() }.into());
        }
        self.remove(&now, Some(chosen)).await
    }

    /// Removes this conversation, and none that somebody made under its name since.
    async fn remove(&self, known: &Conversation, of: Option<Chosen>) -> Result<(), EngineError> {
        let (inner, id, meant) = (self.inner.clone(), known.id.clone(), incarnation_of(known));
        let delete = async move {
            inner.store.delete_meant(&id, &meant, of.as_ref()).await?;
            inner.forget(&id);
            if inner.nodes().is_shared() {
                inner.nodes().tell(News::Appended { conversation: id, seq: None }).await;
            }
            Ok(())
        };
        self.inner.whole(delete).await
    }

    async fn choose(&self, (before, changed): (&SettingsOverlay, &Conversation), of: Chosen) -> Result<(), EngineError> {
        let chosen = record_since(changed, before)?.chosen();
        let (inner, id, overlay) = (self.inner.clone(), changed.id.clone(), changed.overlay.clone());
        let meant = incarnation_of(changed);
        let choose = async move {
            inner.store.update(&id, chosen.clone(), (&meant, &of)).await?;
            let Some(live) = inner.registry.known(&id) else { return Ok(()) };
            let is_next = {
                let mut state = live.lock();
                let is_next = *state.chosen == of;
                if is_next {
                    state.choose(overlay, chosen);
                }
                is_next
            };
            inner.registry.weigh(&live);
            // Another change is on its way here, from before this one or after it: what is stored is the newest. This one is stored,
            // whatever comes of looking.
            if !is_next && let Err(error) = Box::pin(inner.catch_up(&live)).await {
                tracing::warn!(conversation = %id, %error, "what was chosen at the same time cannot be read");
            }
            Ok(())
        };
        self.inner.whole(choose).await
    }
}
