//! Finding conversations by what was said, and forgetting those that the store removed by itself.

use turnwright_core::ConversationId;

use super::{Conversation, Engine, conversation};
use crate::EngineError;
use crate::search::{Excerpt, Search, Texts};

impl Engine {
    /// The user's conversations that have these words, in what was said or in their titles, as `texts` finds them.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] where there is no conversation `after`.
    pub async fn search(
        &self,
        texts: &dyn Texts,
        words: &str,
        after: Option<&ConversationId>,
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
