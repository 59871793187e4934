//! Which conversation a client's next call is put in.
//!
//! A conversation has one open turn at a time, and a client may have many calls: each takes a conversation of the client's
//! that is free, or a new one. After some calls a conversation is not used any more, so that none grows without end.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use turnwright_core::ConversationId;

/// How many calls a conversation takes.
pub(super) const MAX_CALLS: u32 = 50;
/// How many free conversations are remembered of all clients.
const MAX_FREE: usize = 256;

/// A conversation and how many calls it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) conversation: ConversationId,
    pub(super) calls: u32,
}

/// The conversations that are free, by client.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<HashMap<String, Vec<Slot>>>);

impl Pool {
    /// A free conversation of the client's, which is not free from then on.
    pub(super) fn take(&self, client: &str) -> Option<Slot> {
        let mut free = self.lock();
        let slots = free.get_mut(client)?;
        let slot = slots.pop();
        if slots.is_empty() {
            free.remove(client);
        }
        slot
    }

    /// Gives a conversation back whose call ended.
    pub(super) fn give(&self, client: &str, slot: Slot) {
        let mut free = self.lock();
        let has_room = free.values().map(Vec::len).sum::<usize>() < MAX_FREE;
        if slot.calls < MAX_CALLS && has_room {
            free.entry(client.to_owned()).or_default().push(slot);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Vec<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str, calls: u32) -> Slot {
        Slot { conversation: name.parse().unwrap(), calls }
    }

    #[test]
    fn a_conversation_is_used_by_one_call_at_a_time_of_one_client_and_not_for_ever() {
        let pool = Pool::default();
        assert_eq!(pool.take("a"), None);
        pool.give("a", slot("one", 1));
        pool.give("b", slot("two", MAX_CALLS));
        assert_eq!((pool.take("b"), pool.take("a"), pool.take("a")), (None, Some(slot("one", 1)), None));
    }
}
