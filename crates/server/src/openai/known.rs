//! Which conversation a history is of, for clients that keep the history themselves and name nothing.
//!
//! Kept in memory, for the newest of them; after a restart journals say it (`recalled`). What was taken over once and comes again, as
//! from a client that branches, need not be read again.

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use turnwright_core::{ConversationId, Seq, TurnId, TurnSettings, UserId};

use super::track::Part;

/// How many histories are remembered.
const MAX_KNOWN: usize = 4_096;

/// Histories by their fingerprint.
#[derive(Debug, Default)]
pub(crate) struct KnownHistories {
    keys: RandomState,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    found: HashMap<u64, (ConversationId, TurnId)>,
    order: VecDeque<u64>,
    /// Histories that no journal says.
    missed: HashSet<u64>,
    order_missed: VecDeque<u64>,
    /// What was taken over, and the last entry of that.
    taken_over: HashMap<u64, (ConversationId, Seq)>,
    order_taken: VecDeque<u64>,
    /// What requests began, and when.
    asked: HashMap<u64, (ConversationId, Part, u64)>,
    order_asked: VecDeque<u64>,
    /// When requests came that have begun nothing yet.
    came: HashMap<u64, u64>,
}

/// The fingerprint of a history in the making.
#[derive(Debug, Clone)]
pub(crate) struct Fingerprint(DefaultHasher);

impl Fingerprint {
    /// A person's message.
    pub(crate) fn user(&mut self, text: &str) {
        (0_u8, text.trim()).hash(&mut self.0);
    }

    /// A file or a picture of the message before, in base64.
    pub(crate) fn attached(&mut self, bytes: &str) {
        (4_u8, bytes).hash(&mut self.0);
    }

    /// An answer, with the names of the calls that it left to the client.
    pub(crate) fn answer<'a>(&mut self, text: &str, calls: impl Iterator<Item = &'a str>) {
        (1_u8, text.trim()).hash(&mut self.0);
        for call in calls {
            (2_u8, call).hash(&mut self.0);
        }
    }

    /// A client's result.
    pub(crate) fn result(&mut self, call: &str) {
        (3_u8, call).hash(&mut self.0);
    }

    /// Something of an earlier answer that is named and not said.
    pub(crate) fn named(&mut self, id: &str) {
        (5_u8, id).hash(&mut self.0);
    }
}

impl Fingerprint {
    /// Of a history as it is written, taken over with these settings.
    pub(crate) fn of_history(mut self, written: &[u8], settings: &TurnSettings) -> Self {
        self.0.write(written);
        // What cannot be written is like nothing else.
        serde_json::to_string(settings).map_err(|error| error.to_string()).hash(&mut self.0);
        self
    }
}

impl Fingerprint {
    /// Of a request with these parts.
    pub(crate) fn of_request(mut self, parts: &[&[u8]]) -> Self {
        parts.hash(&mut self.0);
        self
    }
}

impl KnownHistories {
    /// Remembers what a request began at this time, in milliseconds since 1970 UTC.
    pub(crate) fn asked(&self, request: &Fingerprint, conversation: ConversationId, part: Part, at_ms: u64) {
        let key = request.0.finish();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.came.remove(&key);
        if known.asked.insert(key, (conversation, part, at_ms)).is_none() {
            known.order_asked.push_back(key);
        }
        if known.order_asked.len() > MAX_KNOWN
            && let Some(oldest) = known.order_asked.pop_front()
        {
            known.asked.remove(&oldest);
        }
    }

    /// Remembers that a request came at this time, in milliseconds since 1970 UTC, of which nobody knows whether it begins something.
    pub(crate) fn came(&self, request: &Fingerprint, at_ms: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.came.insert(request.0.finish(), at_ms);
        if known.came.len() > MAX_KNOWN
            && let Some((&oldest, _)) = known.came.iter().min_by_key(|(_, at_ms)| **at_ms)
        {
            known.came.remove(&oldest);
        }
    }

    /// When this request came last, where it began nothing that time.
    pub(crate) fn find_came(&self, request: &Fingerprint) -> Option<u64> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).came.get(&request.0.finish()).copied()
    }

    /// What this request began, and when.
    pub(crate) fn find_asked(&self, request: &Fingerprint) -> Option<(ConversationId, Part, u64)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).asked.get(&request.0.finish()).cloned()
    }

    /// Remembers that a history was taken over as the entries of `conversation` through `last`.
    pub(crate) fn taken_over(&self, history: &Fingerprint, conversation: ConversationId, last: Seq) {
        let key = history.0.finish();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.taken_over.insert(key, (conversation, last)).is_none() {
            known.order_taken.push_back(key);
        }
        if known.order_taken.len() > MAX_KNOWN
            && let Some(oldest) = known.order_taken.pop_front()
        {
            known.taken_over.remove(&oldest);
        }
    }

    /// As which entries this history was taken over.
    pub(crate) fn find_taken_over(&self, history: &Fingerprint) -> Option<(ConversationId, Seq)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).taken_over.get(&history.0.finish()).cloned()
    }

    /// Of an empty history of this user's.
    pub(crate) fn fingerprint(&self, user: &UserId) -> Fingerprint {
        let mut hasher = self.keys.build_hasher();
        user.as_str().hash(&mut hasher);
        Fingerprint(hasher)
    }

    /// Remembers that this history is all of `conversation` up to the end of `turn`.
    pub(crate) fn remember(&self, history: &Fingerprint, conversation: ConversationId, turn: TurnId) {
        let key = history.0.finish();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.found.insert(key, (conversation, turn)).is_none() {
            known.order.push_back(key);
        }
        if known.order.len() > MAX_KNOWN
            && let Some(oldest) = known.order.pop_front()
        {
            known.found.remove(&oldest);
        }
    }

    /// The conversation of this history.
    pub(crate) fn find(&self, history: &Fingerprint) -> Option<(ConversationId, TurnId)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).found.get(&history.0.finish()).cloned()
    }

    /// Remembers that no conversation says this history.
    pub(crate) fn missed(&self, history: &Fingerprint) {
        let key = history.0.finish();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.missed.insert(key) {
            known.order_missed.push_back(key);
        }
        if known.order_missed.len() > MAX_KNOWN
            && let Some(oldest) = known.order_missed.pop_front()
        {
            known.missed.remove(&oldest);
        }
    }

    /// Whether this history was looked for in vain.
    pub(crate) fn was_missed(&self, history: &Fingerprint) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).missed.contains(&history.0.finish())
    }

    /// Those of these conversations of which this process told clients nothing: what it told, it knows.
    pub(crate) fn untold(&self, conversations: Vec<ConversationId>) -> Vec<ConversationId> {
        let told: HashSet<ConversationId> = {
            let asked: HashSet<&ConversationId> = conversations.iter().collect();
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known.found.values().map(|(told, _)| told);
            let told = found.chain(known.asked.values().map(|(told, ..)| told));
            told.filter(|told| asked.contains(told)).cloned().collect()
        };
        conversations.into_iter().filter(|conversation| !told.contains(conversation)).collect()
    }
}
