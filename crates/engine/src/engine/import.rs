//! Conversations that come whole, from elsewhere.

use std::sync::Arc;

use turnwright_core::{Entry, Journal, Seq, StoredEntry};

use super::{Conversation, Engine, NewConversation, act, new_id, record};
use crate::{Append, EngineError, SideRecord};

/// A conversation with its journal, all of whose turns are over.
#[derive(Debug, Clone, PartialEq)]
pub struct WholeJournal {
    /// Its name, title and settings; without a title one is made from the first message.
    pub conversation: NewConversation,
    /// When it was created, in milliseconds since 1970 UTC; now where `None`.
    pub created_at_ms: Option<u64>,
    /// The entries, from the first place on.
    pub entries: Vec<Entry>,
    /// When each happened, in milliseconds since 1970 UTC, as far as is known.
    pub times_ms: Vec<Option<u64>>,
}

impl Engine {
    /// Creates a conversation with its journal, all of it or nothing. Nothing runs: its turns are over.
    ///
    /// # Errors
    /// [`EngineError::Exists`] where there is one with the id; [`EngineError::Invalid`] where a setting is out of range, a
    /// turn is open or has an entry that does not fit.
    pub async fn import(&self, new: WholeJournal) -> Result<Conversation, EngineError> {
        let WholeJournal { conversation, created_at_ms, entries, times_ms } = new;
        let NewConversation { id, title, overlay } = conversation;
        let id = match id {
            Some(id) => id,
            None => new_id()?,
        };
        let now = self.inner.clock.now_ms();
        let created_at_ms = created_at_ms.unwrap_or(now);
        let mut at_ms = created_at_ms;
        let mut known = times_ms.into_iter();
        let times_ms: Vec<u64> = entries
            .iter()
            .map(|_| {
                // Time goes on in a journal, also where a file's does not.
                at_ms = known.next().flatten().unwrap_or(at_ms).max(at_ms);
                at_ms
            })
            .collect();
        let entries = journal(entries)?;
        let first = entries.iter().find_map(|entry| match entry {
            Entry::User(message) => act::title_of(&message.content),
            _ => None,
        });
        let conversation =
            Conversation { id: id.clone(), title: title.or(first), overlay, created_at_ms, updated_at_ms: at_ms };
        let side = vec![SideRecord::Create(record(&conversation)?), SideRecord::Times(times_ms)];
        let append = Append { conversation: id, at: Seq::FIRST, entries, at_ms, side };
        let inner = self.inner.clone();
        let store = async move {
            inner.store.append(append).await?;
            Ok(conversation)
        };
        self.inner.whole(store).await
    }
}

/// The entries, where they are a journal of turns that are over.
fn journal(entries: Vec<Entry>) -> Result<Vec<Entry>, EngineError> {
    let places = std::iter::successors(Some(Seq::FIRST), |seq| Some(seq.next()));
    let stored = entries.into_iter().zip(places).map(|(entry, seq)| StoredEntry { seq, at_ms: 0, entry: Arc::new(entry) });
    let journal = Journal::replay(stored).map_err(|error| EngineError::Invalid { what: error.to_string() })?;
    if let Some(turn) = journal.open_turn() {
        return Err(EngineError::Invalid { what: format!("{} is not over", turn.id()) });
    }
    let stored = journal.entries().to_vec();
    drop(journal);
    Ok(stored.into_iter().map(|stored| Arc::unwrap_or_clone(stored.entry)).collect())
}
