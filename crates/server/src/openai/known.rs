//! Which conversation a history is of, for clients that keep the history themselves and name nothing.
//!
//! Kept in memory, for the newest of them; after a restart journals say it (`recalled`). What was taken over once and comes again, as
//! from a client that branches, need not be read again.

use std::collections::HashSet;
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::hash::{BuildHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use turnwright_core::{ConversationId, Seq, TurnId, TurnSettings, UserId};
use turnwright_engine::{Clock, Forgets};

use super::seen::SeenMessages;
use super::track::Part;

/// How many histories, and requests, are remembered.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();

/// Of how many of the newest it is looked now and then whether their conversations are there.
const MAX_LOOKED_FOR: usize = 1_024;

/// A history as a conversation has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenOver {
    pub(crate) conversation: ConversationId,
    /// Its last entry.
    pub(crate) last: Seq,
    /// What a person said last in it.
    pub(crate) newest_user: Option<Seq>,
}

/// Histories by their fingerprint.
#[derive(Debug)]
pub(crate) struct KnownHistories {
    keys: RandomState,
    /// The one by which conversations are made.
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
    seen: SeenMessages,
}

#[derive(Debug)]
struct Known {
    /// Conversations by their names, each with when it was known: one that was made since is another.
    found: LruCache<u64, (ConversationId, TurnId, u64)>,
    /// Histories that no journal says.
    missed: LruCache<u64, ()>,
    /// What was taken over, and when.
    taken_over: LruCache<u64, (TakenOver, u64)>,
    /// What requests began, and when.
    asked: LruCache<u64, (ConversationId, Part, u64)>,
    /// The keys of those that came before requests that have begun nothing yet.
    came: LruCache<u64, String>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            found: LruCache::new(MAX_KNOWN),
            missed: LruCache::new(MAX_KNOWN),
            taken_over: LruCache::new(MAX_KNOWN),
            asked: LruCache::new(MAX_KNOWN),
            came: LruCache::new(MAX_KNOWN),
        }
    }
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

    /// A client's result: the call's name, and its text.
    pub(crate) fn result(&mut self, call: &str, text: &str) {
        (3_u8, call, text).hash(&mut self.0);
    }

    /// A call that ran elsewhere: its name, its arguments, and what it gave.
    pub(crate) fn ran(&mut self, call: [&str; 3]) {
        (6_u8, call).hash(&mut self.0);
    }

    /// Something of an earlier answer that is named and not said.
    pub(crate) fn named(&mut self, id: &str) {
        (5_u8, id).hash(&mut self.0);
    }
}

impl Fingerprint {
    /// A message as it is written.
    pub(crate) fn written(&mut self, message: &str) {
        message.hash(&mut self.0);
    }

    pub(crate) fn as_number(&self) -> u64 {
        self.0.finish()
    }

    /// Of a history as it is written, or as its fingerprint says that it is, taken over with these settings.
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
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { keys: RandomState::default(), clock, known: Mutex::default(), seen: SeenMessages::default() }
    }

    /// The messages that came before.
    pub(crate) fn seen(&self) -> &SeenMessages {
        &self.seen
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a request began at this time, in milliseconds since 1970 UTC.
    pub(crate) fn asked(&self, request: &Fingerprint, conversation: ConversationId, part: Part, at_ms: u64) {
        let key = request.0.finish();
        let mut known = self.known();
        known.came.pop(&key);
        known.asked.put(key, (conversation, part, at_ms));
    }

    /// Remembers that a request came of which nobody knows whether it begins something, and the key under which the same was kept last.
    pub(crate) fn came(&self, request: &Fingerprint, last: Option<String>) {
        let (key, mut known) = (request.0.finish(), self.known());
        match last {
            Some(last) => drop(known.came.put(key, last)),
            None => drop(known.came.pop(&key)),
        }
    }

    /// The key of the same request that was there as this one came last, where it began nothing that time.
    pub(crate) fn find_came(&self, request: &Fingerprint) -> Option<String> {
        self.known().came.peek(&request.0.finish()).cloned()
    }

    /// What this request began, and when.
    pub(crate) fn find_asked(&self, request: &Fingerprint) -> Option<(ConversationId, Part, u64)> {
        self.known().asked.peek(&request.0.finish()).cloned()
    }

    /// Remembers as what a history was taken over.
    pub(crate) fn taken_over(&self, history: &Fingerprint, taken: TakenOver) {
        self.known().taken_over.put(history.0.finish(), (taken, self.clock.now_ms()));
    }

    /// As what this history was taken over, and when that was known, in milliseconds since 1970 UTC.
    pub(crate) fn find_taken_over(&self, history: &Fingerprint) -> Option<(TakenOver, u64)> {
        self.known().taken_over.get(&history.0.finish()).cloned()
    }

    /// Of an empty history of this user's.
    pub(crate) fn fingerprint(&self, user: &UserId) -> Fingerprint {
        let mut hasher = self.keys.build_hasher();
        user.as_str().hash(&mut hasher);
        Fingerprint(hasher)
    }

    /// Remembers that this history is all of `conversation` up to the end of `turn`.
    pub(crate) fn remember(&self, history: &Fingerprint, conversation: ConversationId, turn: TurnId) {
        self.known().found.put(history.0.finish(), (conversation, turn, self.clock.now_ms()));
    }

    /// The conversation of this history, its turn, and when that was known, in milliseconds since 1970 UTC.
    pub(crate) fn find(&self, history: &Fingerprint) -> Option<(ConversationId, TurnId, u64)> {
        self.known().found.get(&history.0.finish()).cloned()
    }

    /// Remembers that no conversation says this history.
    pub(crate) fn missed(&self, history: &Fingerprint) {
        self.known().missed.put(history.0.finish(), ());
    }

    /// Whether this history was looked for in vain.
    pub(crate) fn was_missed(&self, history: &Fingerprint) -> bool {
        self.known().missed.get(&history.0.finish()).is_some()
    }

    /// Those of these conversations of which this process told clients nothing: what it told, it knows.
    pub(crate) fn untold(&self, conversations: Vec<ConversationId>) -> Vec<ConversationId> {
        let told: HashSet<ConversationId> = {
            let asked: HashSet<&ConversationId> = conversations.iter().collect();
            let known = self.known();
            let found = known.found.iter().map(|(_, (told, ..))| told);
            let told = found.chain(known.asked.iter().map(|(_, (told, ..))| told));
            told.filter(|told| asked.contains(told)).cloned().collect()
        };
        conversations.into_iter().filter(|conversation| !told.contains(conversation)).collect()
    }
}

impl Forgets for KnownHistories {
    fn forget(&self, conversation: &ConversationId) {
        // What came with requests is known by what it says, and not by its conversation.
        self.seen.forget();
        // Nor is it looked for this one again.
        let mut known = self.known();
        let of_it = known.found.iter().filter(|(_, (of, ..))| of == conversation);
        let gone: Vec<u64> = of_it.map(|(history, _)| *history).collect();
        for history in gone {
            known.found.pop(&history);
        }
    }

    fn kept(&self) -> Vec<ConversationId> {
        if self.seen.is_empty() {
            return Vec::new();
        }
        let known = self.known();
        known.found.iter().take(MAX_LOOKED_FOR).map(|(_, (conversation, ..))| conversation.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use turnwright_core::{Seq, TurnId, UserId};
    use turnwright_engine::{Forgets, SystemClock};

    use super::{Fingerprint, KnownHistories, MAX_KNOWN};

    #[test]
    fn a_conversation_that_is_gone_is_looked_for_no_more() {
        let known = KnownHistories::new(Arc::new(SystemClock));
        for (text, conversation) in [("a", "c1"), ("b", "c2"), ("c", "c1")] {
            let mut history = known.fingerprint(&UserId::local());
            history.user(text);
            known.remember(&history, conversation.parse().unwrap(), TurnId(Seq::FIRST));
        }
        let read = || {
            let said = serde_json::value::to_raw_value(&serde_json::json!({"role": "user", "content": "a"})).unwrap();
            known.seen().read(known.fingerprint(&UserId::local()), &[&said]).unwrap();
        };
        assert_eq!(known.kept(), [], "nothing that was said is in memory");
        read();
        let names = |kept: Vec<turnwright_core::ConversationId>| kept.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(known.kept()), ["c1", "c2", "c1"]);
        known.forget(&"c1".parse().unwrap());
        read();
        assert_eq!(names(known.kept()), ["c2"]);
    }

    #[test]
    fn what_is_said_again_is_remembered_longer_than_what_was_said_once() {
        let known = KnownHistories::new(Arc::new(SystemClock));
        let history = |number: usize| -> Fingerprint {
            let mut history = known.fingerprint(&UserId::local());
            history.user(&number.to_string());
            history
        };
        let remember = |number| known.remember(&history(number), "c1".parse().unwrap(), TurnId(Seq::FIRST));
        (0..MAX_KNOWN.get()).for_each(remember);
        remember(0);
        assert!(known.find(&history(1)).is_some());
        (0..2).for_each(|more| remember(MAX_KNOWN.get() + more));
        let are_known = [0, 1, 2, 3, 4].map(|number| known.find(&history(number)).is_some());
        assert_eq!(are_known, [true, true, false, false, true]);
    }
}
