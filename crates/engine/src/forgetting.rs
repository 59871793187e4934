//! What is kept in memory of conversations that are gone: it goes where their deletion is heard of.
//!
//! This process hears at once of what it deletes itself, and of what the nodes that share its turns delete. Of other processes over
//! the same data nobody tells; there is a look now and then.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use turnwright_core::ConversationId;

use crate::engine::Engine;
use crate::inner::Inner;
use crate::{ConversationRecord, EngineError};

/// Keeps something of conversations in memory beside the engine.
pub trait Forgets: Send + Sync + Debug {
    /// A conversation was deleted: nothing that was said in it is kept any more. Must not block.
    fn forget(&self, conversation: &ConversationId);

    /// The conversations of which it may keep something, those of now and not of all time: each is looked for now and then.
    fn kept(&self) -> Vec<ConversationId>;
}

/// Those that do, and when it was looked for deletions last.
#[derive(Debug)]
pub(crate) struct Forgetting {
    all: Mutex<Vec<Weak<dyn Forgets>>>,
    /// What [`crate::Store::foreign_writes`] said then.
    looked_at: AtomicU64,
}

impl Default for Forgetting {
    fn default() -> Self {
        Self { all: Mutex::default(), looked_at: AtomicU64::new(u64::MAX) }
    }
}

impl Forgetting {
    fn all(&self) -> Vec<Arc<dyn Forgets>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|forgets| forgets.strong_count() > 0);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Inner {
    /// A conversation is gone: who keeps something of it in memory is told.
    pub(crate) fn tell_gone(&self, conversation: &ConversationId) {
        self.providers.forget(conversation);
        for forgets in self.forgetting.all() {
            forgets.forget(conversation);
        }
    }
}

impl Engine {
    /// Tells this of conversations that are gone, for as long as it lives.
    pub fn tell_gone_to(&self, forgets: Weak<dyn Forgets>) {
        self.inner().forgetting.all.lock().unwrap_or_else(PoisonError::into_inner).push(forgets);
    }

    /// Forgets the conversations that other processes deleted of which something is in memory here. It costs little where none wrote
    /// since the last time.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub async fn forget_deleted(&self) -> Result<(), EngineError> {
        let inner = self.inner();
        // Before anything is looked at: what is written meanwhile is seen the next time.
        let writes = inner.foreign_writes();
        if inner.forgetting.looked_at.load(Ordering::Relaxed) == writes {
            return Ok(());
        }
        // One that is driven looks by itself.
        for live in inner.registry.all().into_iter().filter(|live| !live.lock().is_driven) {
            let found = inner.store.conversation(&live.id).await?;
            if found.as_ref().map(ConversationRecord::incarnation) != Some(live.incarnation()) {
                inner.bury(&live);
            }
        }
        let mut kept: BTreeSet<ConversationId> = inner.providers.kept().into_iter().collect();
        kept.extend(inner.forgetting.all().into_iter().flat_map(|forgets| forgets.kept()));
        for id in &kept {
            if inner.store.conversation(id).await?.is_none() {
                inner.tell_gone(id);
            }
        }
        inner.forgetting.looked_at.store(writes, Ordering::Relaxed);
        Ok(())
    }
}
