//! Which conversations' thoughts an endpoint refused, so that later requests do not bring them again.
//!
//! Kept in memory alone: who forgets pays one refused attempt and knows again. How far the thoughts are left out stays the
//! same for a conversation until something newer is refused, so its requests keep one beginning (law 7).

use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use turnwright_core::ConversationId;

/// The most conversations that are remembered; the longest unused is forgotten first.
const MAX_CONVERSATIONS: usize = 4096;

/// A conversation and the model that it is held with.
pub(crate) type Talk = (ConversationId, String);

/// How many messages of which conversations are sent without thoughts.
#[derive(Debug)]
pub(crate) struct MendedTalks(Mutex<LruCache<Talk, usize>>);

impl Default for MendedTalks {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl MendedTalks {
    /// How many messages were mended, where some were.
    pub(crate) fn messages(&self, talk: &Talk) -> Option<usize> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() { None } else { known.get(talk).copied() }
    }

    /// Remembers that the first `messages` messages were.
    pub(crate) fn remember(&self, talk: &Talk, messages: usize) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.put(talk.clone(), messages);
        if known.len() > MAX_CONVERSATIONS {
            known.pop_lru();
        }
    }
}
