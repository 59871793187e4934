//! A conversation that begins with the very entries of another.

use std::sync::Arc;

use turnwright_core::{ConversationId, Seq};

use super::{Conversation, Engine, NewConversation, act, new_id, record};
use crate::registry::live_of;
use crate::{Copied, EngineError};

impl Engine {
    /// Creates a conversation with the first entries of another as they are, those through `through`, in which every turn is
    /// over. Nothing is read that is in memory, and the store does not look at what they say: for a client that says the same again
    /// and goes on otherwise. What came to the other since, files and documents too, is the other's alone. No idempotency key is
    /// looked at. `known_at_ms`, in milliseconds since 1970 UTC, is when it was known what those entries say.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], also where the other was made after `known_at_ms`: it has the name of one that was deleted;
    /// [`EngineError::Exists`]; [`EngineError::Invalid`] where a setting is out of range, there is
    /// no entry `through`, or a turn is open there.
    pub async fn branch(
        &self,
        id: &ConversationId,
        (through, known_at_ms): (Seq, u64),
        new: NewConversation,
    ) -> Result<Conversation, EngineError> {
        self.limits().admit_chosen(new.title.as_deref(), &new.overlay)?;
        self.must_not_decide(&new.overlay).await?;
        // Entries never change: those that are known need not be read. The store looks whether they are still there.
        let mut of = self.load_own(id).await?;
        let mut beginning = of.lock().beginning(through);
        if beginning.is_none() {
            of = self.load_newest(id).await?;
            beginning = of.lock().beginning(through);
        }
        let meant = of.incarnation();
        if meant.created_at_ms() > known_at_ms {
            return Err(EngineError::NotFound { what: format!("conversation `{id}` of that time") });
        }
        let beginning =
            beginning.ok_or_else(|| EngineError::Invalid { what: format!("conversation `{id}` has no entry {through}") })?;
        if let Some(turn) = beginning.journal().open_turn() {
            return Err(EngineError::Invalid { what: format!("{} is not over", turn.id()) });
        }
        let made = act::title_in(beginning.journal().entries().iter().map(|stored| &*stored.entry));
        let now = self.inner.clock.now_ms();
        let conversation = Conversation {
            id: new.id.map_or_else(new_id, Ok)?,
            owner: self.user.clone(),
            title: new.title.and_then(act::given_title).or(made),
            overlay: new.overlay,
            created_at_ms: now,
            updated_at_ms: now,
        };
        let record = record(&conversation)?;
        let holds = beginning.holds().to_vec();
        let live = live_of(&record)?.beginning_with(beginning);
        let copy = Copied { conversation: record, of: id.clone(), meant, through, holds };
        let inner = self.inner.clone();
        let store = async move {
            inner.store.copy(copy).await?;
            inner.registry.keep_made(Arc::new(live));
            Ok(conversation)
        };
        self.inner.whole(store).await
    }
}
