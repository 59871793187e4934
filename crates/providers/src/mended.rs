//! Which conversations' thoughts, images and files an endpoint refused, so that later requests do not bring them again.
//!
//! Kept in memory alone: who forgets pays one refused attempt and knows again. How far the thoughts are left out stays the
//! same for a conversation until something newer is refused, so its requests keep one beginning (law 7).

use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use turnwright_core::ConversationId;
use turnwright_dialects::MediaMark;

/// The most conversations that are remembered; the longest unused is forgotten first.
const MAX_CONVERSATIONS: usize = 4096;

/// A conversation and the model that it is held with.
pub(crate) type Talk = (ConversationId, String);

/// The most images and files that are remembered of a conversation; the oldest is forgotten first.
const MAX_MEDIA: usize = 256;

/// What a conversation's requests are without.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut {
    /// How many messages are sent without thoughts, where some are.
    pub(crate) messages: Option<usize>,
    /// The images and files that are left out.
    pub(crate) media: Vec<MediaMark>,
}

/// What the requests of which conversations are without.
#[derive(Debug)]
pub(crate) struct MendedTalks(Mutex<LruCache<Talk, LeftOut>>);

impl Default for MendedTalks {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl MendedTalks {
    /// What was refused of it.
    pub(crate) fn left_out(&self, talk: &Talk) -> LeftOut {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() { LeftOut::default() } else { known.get(talk).cloned().unwrap_or_default() }
    }

    /// Remembers that this was refused too.
    pub(crate) fn remember(&self, talk: &Talk, more: LeftOut) {
        if more.messages.is_none() && more.media.is_empty() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = known.get_or_insert_mut(talk.clone(), LeftOut::default);
        left_out.messages = more.messages.or(left_out.messages);
        left_out.media.extend(more.media);
        let forgotten = left_out.media.len().saturating_sub(MAX_MEDIA);
        left_out.media.drain(..forgotten);
        if known.len() > MAX_CONVERSATIONS {
            known.pop_lru();
        }
    }
}
