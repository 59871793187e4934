//! Which turns pages were told of since this process began: one whose process died in it may have been told to nobody.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use turnwright_core::{ConversationId, TurnId};

/// How many conversations are known. Of one that was forgotten a page may be told an answer a second time.
const MOST: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// The newest turn of each conversation that a page has heard, or read.
#[derive(Debug)]
pub(crate) struct Heard(Mutex<LruCache<ConversationId, TurnId>>);

impl Default for Heard {
    fn default() -> Self {
        // It takes its memory as it fills.
        let mut heard = LruCache::unbounded();
        heard.resize(MOST);
        Self(Mutex::new(heard))
    }
}

impl Heard {
    /// A page is told this turn.
    pub(crate) fn hear(&self, conversation: &ConversationId, turn: TurnId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(conversation.clone(), turn);
    }

    /// Whether a page was told this turn.
    pub(crate) fn has(&self, conversation: &ConversationId, turn: TurnId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(conversation) == Some(&turn)
    }
}
