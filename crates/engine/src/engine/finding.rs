//! Listing conversations and finding them by what was said, and forgetting those that the store removed by itself.

use turnwright_core::ConversationId;

use super::{Conversation, Engine, conversation};
use crate::search::{Excerpt, Search, Texts};
use crate::{EngineError, Page, Place};

impl Engine {
    /// The user's conversations, the one with the newest entry first, from behind `after`, at most `limit`.
    pub async fn conversations(&self, after: Option<&Place>, limit: usize) -> Result<Vec<Conversation>, EngineError> {
        self.page(Page { owner: &self.user, after, limit, only_pinned: false }).await
    }

    /// Those of them that are pinned, in the same order.
    pub async fn pinned(&self, after: Option<&Place>, limit: usize) -> Result<Vec<Conversation>, EngineError> {
        self.page(Page { owner: &self.user, after, limit, only_pinned: true }).await
    }

    async fn page(&self, page: Page<'_>) -> Result<Vec<Conversation>, EngineError> {
        self.inner.store.conversations(page).await?.into_iter().map(conversation).collect()
    }

    /// The user's conversations that have these words, in what was said or in their titles, as `texts` finds them.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub async fn search(
        &self,
        texts: &dyn Texts,
        words: &str,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<(Conversation, Option<Excerpt>)>, EngineError> {
        let found = texts.search(Search { owner: &self.user, words, after, limit }).await?;
        found.into_iter().map(|found| Ok((conversation(found.conversation)?, found.excerpt))).collect()
    }

    /// A conversation was deleted in the store: who drives or watches it is told.
    pub(crate) fn forget(&self, id: &ConversationId) {
        self.inner.forget(id);
    }
}
