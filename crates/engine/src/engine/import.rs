//! Conversations that come whole, from elsewhere.

use std::sync::Arc;

use turnwright_core::{ConversationId, Entry, IdError, Journal, MessageId, Seq, StoredEntry, ToolResult, fork, fork_given};

use super::{ClientResult, Conversation, Engine, NewConversation, act, new_id, record};
use crate::artifacts::held_by;
use crate::live::From;
use crate::registry::live_of;
use crate::{Append, EngineError, Idempotent, SettingsOverlay, SideRecord, StoreError};

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

impl WholeJournal {
    /// A conversation in which nothing was said.
    pub fn empty(conversation: NewConversation) -> Self {
        Self { conversation, created_at_ms: None, entries: Vec::new(), times_ms: Vec::new() }
    }
}

impl Engine {
    /// Creates a conversation with its journal, all of it or nothing. Nothing runs: its turns are over.
    ///
    /// # Errors
    /// [`EngineError::Exists`] where there is one with the id; [`EngineError::Invalid`] where a setting is out of range, a
    /// turn is open or has an entry that does not fit; [`EngineError::OverLimit`] where its title or settings are too large;
    /// [`EngineError::KeyReused`].
    pub async fn import(&self, new: WholeJournal) -> Result<Conversation, EngineError> {
        self.limits().admit_chosen(new.conversation.title.as_deref(), &new.conversation.overlay)?;
        self.must_not_decide(&new.conversation.overlay).await?;
        self.take_in(new, None).await
    }

    /// `of` is the conversation that it begins as: what that holds, this holds too.
    async fn take_in(&self, new: WholeJournal, of: Option<&ConversationId>) -> Result<Conversation, EngineError> {
        let idempotency = new.conversation.idempotency.clone();
        if let Some(created) = self.created_before(idempotency.as_ref()).await? {
            return Ok(created);
        }
        match self.import_once(new, of).await {
            // The same request may have come twice at once, and the other one was stored first.
            Err(
                known @ (EngineError::Store(StoreError::Repeated { .. } | StoreError::Exists { .. })
                | EngineError::Exists { .. }),
            ) => self.created_before(idempotency.as_ref()).await?.ok_or(known),
            created => created,
        }
    }

    /// Creates a conversation that begins as another does: with all that was said there before the message `before`, or
    /// with all of it. Nothing of it runs again, and the other stays as it is. Whoever may not choose its approve mode has
    /// the installation's in the copy.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::Invalid`] where `before` is no message there; those of [`Engine::import`].
    pub async fn fork(
        &self,
        id: &ConversationId,
        before: Option<MessageId>,
        new: NewConversation,
    ) -> Result<Conversation, EngineError> {
        self.limits().admit_chosen(new.title.as_deref(), &new.overlay)?;
        // Also where its source is gone since.
        if let Some(created) = self.created_before(new.idempotency.as_ref()).await? {
            return Ok(created);
        }
        let conversation = self.conversation(id).await?;
        let journal = self.journal(id).await?;
        if let Some(message) = before {
            let what = match journal.entry(message.0).map(|stored| &*stored.entry) {
                Some(Entry::User(_) | Entry::Assistant(_)) => None,
                Some(Entry::Result(_)) => {
                    Some(format!("`{message}` is the result of a call: name the message of the model's that made it"))
                }
                _ => Some(format!("`{message}` is no message of conversation `{id}`")),
            };
            if let Some(what) = what {
                return Err(EngineError::Invalid { what });
            }
        }
        self.fork_of(conversation, fork(&journal, before), new).await
    }

    /// Creates a conversation that begins as another does up to a model's message, with these results of its client's calls in the
    /// place of those that they were given there. Its last turn can be taken up again.
    ///
    /// # Errors
    /// As [`Engine::fork`]; [`EngineError::Invalid`] where the calls are not of one message that is shown.
    pub async fn fork_given(
        &self,
        id: &ConversationId,
        given: &[ClientResult],
        new: NewConversation,
    ) -> Result<Conversation, EngineError> {
        self.limits().admit_chosen(new.title.as_deref(), &new.overlay)?;
        let conversation = self.conversation(id).await?;
        let given: Vec<ToolResult> = given.iter().map(act::result).collect();
        let entries = self.look(id, |journal| fork_given(journal, &given)).await?;
        let entries = entries.ok_or_else(|| EngineError::Invalid {
            what: format!("the results are not of calls of one message of conversation `{id}`"),
        })?;
        self.fork_of(conversation, entries, new).await
    }

    /// Creates a conversation with these entries, each with its time in milliseconds since 1970 UTC, which come of another.
    async fn fork_of(
        &self,
        conversation: Conversation,
        entries: Vec<(Entry, u64)>,
        new: NewConversation,
    ) -> Result<Conversation, EngineError> {
        let (entries, times_ms) = entries.into_iter().map(|(entry, at_ms)| (entry, Some(at_ms))).unzip();
        let title = new.title.or(conversation.title);
        let overlay = match self.must_not_decide(&conversation.overlay).await {
            Ok(()) => conversation.overlay,
            Err(EngineError::NotAllowed { .. } | EngineError::PeopleOnly { .. }) => {
                SettingsOverlay { approve: None, ..conversation.overlay }
            }
            Err(error) => return Err(error),
        };
        let of = conversation.id;
        let conversation = NewConversation { title, overlay, ..new };
        self.take_in(WholeJournal { conversation, created_at_ms: None, entries, times_ms }, Some(&of)).await
    }

    /// The conversation that the same request created before.
    async fn created_before(&self, idempotency: Option<&(String, String)>) -> Result<Option<Conversation>, EngineError> {
        let Some((key, fingerprint)) = idempotency else { return Ok(None) };
        let Some(record) = self.inner.store.idempotent(&self.own_key(key)).await? else { return Ok(None) };
        if record.fingerprint != *fingerprint {
            return Err(EngineError::KeyReused { key: key.clone() });
        }
        let id = record.answer.parse().map_err(|error: IdError| StoreError::Damaged {
            what: format!("idempotency key `{key}`"),
            reason: error.to_string(),
        })?;
        self.conversation(&id).await.map(Some)
    }

    async fn import_once(&self, new: WholeJournal, of: Option<&ConversationId>) -> Result<Conversation, EngineError> {
        let WholeJournal { conversation, created_at_ms, entries, times_ms } = new;
        let NewConversation { id, title, overlay, idempotency } = conversation;
        let id = match id {
            Some(id) => id,
            None => new_id()?,
        };
        let now = self.inner.clock.now_ms();
        let mut at_ms = created_at_ms.or_else(|| times_ms.iter().find_map(|at_ms| *at_ms)).unwrap_or(now);
        let created_at_ms = created_at_ms.unwrap_or(now);
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
        let made = act::title_in(entries.iter());
        let conversation = Conversation {
            id: id.clone(),
            owner: self.user.clone(),
            title: title.and_then(act::given_title).or(made),
            overlay,
            created_at_ms,
            updated_at_ms: at_ms.max(created_at_ms),
        };
        let record_of_it = record(&conversation)?;
        let live = live_of(&record_of_it)?;
        let mut side = vec![SideRecord::Create(record_of_it), SideRecord::Times(times_ms)];
        side.extend(held_by(&entries));
        // A file of a message is in the message, which does not name it; also what only later messages brought goes with it.
        side.extend(of.map(|other| SideRecord::HoldsAs { other: other.clone() }));
        if let Some((key, fingerprint)) = idempotency {
            let record = Idempotent { fingerprint, answer: id.to_string() };
            side.push(SideRecord::Idempotent { key: self.own_key(&key), record });
        }
        // The entries have their own times: what was made of old ones is new all the same.
        let at_ms = conversation.updated_at_ms;
        let append = Append { conversation: id, at: Seq::FIRST, entries, at_ms, side };
        let inner = self.inner.clone();
        let store = async move {
            // Whoever brings a conversation goes on with it: what was stored need not be read again for that.
            live.apply(inner.store.append(append).await?, From::Others);
            inner.registry.keep_made(Arc::new(live));
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
