//! Looking at how a long conversation begins, without reading all of it.

use turnwright_core::{ConversationId, Entry, Journal, JournalError, Seq, StoredEntry};

use super::{Engine, not_there};
use crate::EngineError;

/// How many entries are read at once.
const PART: usize = 512;
/// How many parts are read before the whole conversation is worth more than another part.
const MAX_PARTS: usize = 4;

impl Engine {
    /// What `look` finds in a conversation's first entries: for a list that begins with the oldest. A conversation that is not
    /// in memory is read in parts until `look` finds something, so that a long one opens as quickly as a short one. What
    /// `look` is shown ends before a model's message, so every call in it has its result, and later entries take nothing of
    /// it back. Where nothing is found in the first parts, or later entries may take something back, it is shown the whole.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn look_at_beginning<T>(
        &self,
        id: &ConversationId,
        mut look: impl FnMut(&Journal, Extent) -> Option<T>,
    ) -> Result<Option<T>, EngineError> {
        if let Some(found) = self.look_at_parts(id, &mut look).await? {
            return Ok(Some(found));
        }
        self.look(id, |journal| look(journal, Extent::Whole)).await
    }

    async fn look_at_parts<T>(
        &self,
        id: &ConversationId,
        look: &mut impl FnMut(&Journal, Extent) -> Option<T>,
    ) -> Result<Option<T>, EngineError> {
        if self.inner.registry.known(id).is_some() {
            return Ok(None);
        }
        let store = &self.inner.store;
        if store.conversation(id).await?.is_none_or(|record| record.owner != self.user) {
            return Err(not_there(id));
        }
        // A short one is read whole at once.
        if store.last_seq(id).await?.is_none_or(|last| last.get() <= PART as u64) || store.takes_back(id).await? {
            return Ok(None);
        }
        let mut journal = Journal::default();
        let mut held_back: Vec<StoredEntry> = Vec::new();
        for _ in 0..MAX_PARTS {
            let from = held_back.last().map(|stored| stored.seq).or(journal.last_seq()).map_or(Seq::FIRST, Seq::next);
            let part = store.entries(id, from, PART).await?;
            if part.len() < PART {
                return Ok(None);
            }
            let read: Vec<StoredEntry> = held_back.drain(..).chain(part).collect();
            let newest = read.iter().rposition(|stored| matches!(*stored.entry, Entry::Assistant(_))).unwrap_or_default();
            let mut read = read.into_iter();
            if take(&mut journal, read.by_ref().take(newest)).is_err() {
                // It is damaged: whoever reads it whole is told.
                return Ok(None);
            }
            held_back.extend(read);
            if let Some(found) = look(&journal, Extent::Beginning) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// How much of a conversation is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Its first entries.
    Beginning,
    /// All of it.
    Whole,
}

fn take(journal: &mut Journal, mut entries: impl Iterator<Item = StoredEntry>) -> Result<(), JournalError> {
    entries.try_for_each(|stored| journal.apply(stored))
}
