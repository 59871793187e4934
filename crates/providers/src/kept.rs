//! What was written of each conversation's last request, so that the next one costs only what is new.

use std::sync::{Mutex, PoisonError};

use lru::LruCache;
use turnwright_core::ConversationId;
use turnwright_dialects::Kept;

/// The most bytes that are kept for all conversations of an endpoint.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Requests shorter than this, in bytes, are written anew as quickly.
const MIN_BYTES: usize = 16 * 1024;

/// What was written of the last requests, by conversation and model, the longest unused dropped first.
#[derive(Debug)]
pub(crate) struct KeptRequests(Mutex<Cache>);

#[derive(Debug)]
struct Cache {
    requests: LruCache<(ConversationId, String), Kept>,
    bytes: usize,
}

impl Default for KeptRequests {
    fn default() -> Self {
        Self(Mutex::new(Cache { requests: LruCache::unbounded(), bytes: 0 }))
    }
}

impl KeptRequests {
    /// Takes what is kept for a conversation's next request to `model`; empty where nothing is.
    pub(crate) fn take(&self, conversation: Option<&ConversationId>, model: &str) -> Kept {
        let Some(conversation) = conversation else { return Kept::default() };
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.requests.is_empty() {
            return Kept::default();
        }
        let kept = cache.requests.pop(&(conversation.clone(), model.to_owned())).unwrap_or_default();
        cache.bytes -= kept.bytes();
        kept
    }

    /// Keeps what was written for the next time, where it is worth it.
    pub(crate) fn put(&self, conversation: Option<&ConversationId>, model: &str, kept: Kept) {
        let Some(conversation) = conversation.filter(|_| (MIN_BYTES..MAX_BYTES).contains(&kept.bytes())) else { return };
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.bytes += kept.bytes();
        if let Some(before) = cache.requests.put((conversation.clone(), model.to_owned()), kept) {
            cache.bytes -= before.bytes();
        }
        while cache.bytes > MAX_BYTES {
            let Some((_, oldest)) = cache.requests.pop_lru() else { break };
            cache.bytes -= oldest.bytes();
        }
    }
}
