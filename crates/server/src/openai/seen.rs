//! Messages that came before. A client that keeps the history itself sends all of it with each request, and only its end is new: what
//! stands before that is not read again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use serde_json::value::RawValue;

use super::history::{Item, Said};
use super::known::Fingerprint;
use super::messages::message;
use crate::error::ApiError;

/// How much text of messages is remembered, in bytes, each counted with every beginning by which it is known, and with
/// [`MESSAGE_BYTES`]. What it is read as takes some three times that.
const MAX_BYTES: usize = 4 * 1_024 * 1_024;
/// What a message takes besides its text, about.
const MESSAGE_BYTES: usize = 512;

/// How the messages of a request begin: a hash of each of their beginnings, from the first message alone to all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Beginnings(Vec<u64>);

impl Beginnings {
    fn of(mut fingerprint: Fingerprint, messages: &[&RawValue]) -> Self {
        let hash = |message: &&RawValue| {
            fingerprint.written(message.get());
            fingerprint.as_number()
        };
        Self(messages.iter().map(hash).collect())
    }

    /// The one that ends before this message, by its place; of all of them where there is no place. Nothing where it is empty.
    pub(crate) fn before(&self, place: Option<usize>) -> Option<u64> {
        let count = place.unwrap_or(self.0.len());
        self.0.get(count.checked_sub(1)?).copied()
    }
}

/// What came last, by its beginnings.
#[derive(Debug)]
pub(crate) struct SeenMessages(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    found: LruCache<u64, ReadMessages>,
    bytes: usize,
}

/// Messages with which requests begin, as they were read: the first `count` of these.
#[derive(Debug)]
struct ReadMessages {
    items: Arc<[Arc<Item>]>,
    count: usize,
    /// How long all of them are, which may be held by this alone.
    bytes: usize,
    /// The fingerprint of what they say, where it was taken.
    marked: Option<Fingerprint>,
}

impl Default for SeenMessages {
    fn default() -> Self {
        Self(Mutex::new(Seen { found: LruCache::unbounded(), bytes: 0 }))
    }
}

impl SeenMessages {
    /// Reads the messages of a chat completion; `fingerprint` is that of an empty history of the user's.
    ///
    /// # Errors
    /// 400, with the message that is wrong.
    pub(crate) fn read(
        &self,
        fingerprint: Fingerprint,
        messages: &[&RawValue],
    ) -> Result<(Vec<Arc<Item>>, Beginnings), ApiError> {
        let beginnings = Beginnings::of(fingerprint, messages);
        let mut items = Vec::with_capacity(messages.len());
        self.seen().longest(&beginnings, &mut items);
        let known = items.len();
        for (at, message) in messages.iter().enumerate().skip(known) {
            items.push(Arc::new(self::message(at, message)?));
        }
        if known < items.len() {
            let bytes = messages.iter().map(|message| message.get().len().saturating_add(MESSAGE_BYTES)).sum();
            self.seen().keep(&beginnings, &items, bytes);
        }
        Ok((items, beginnings))
    }

    /// The fingerprint of what this beginning says, where it was taken before.
    pub(crate) fn marked(&self, beginning: u64) -> Option<Fingerprint> {
        self.seen().found.get(&beginning)?.marked.clone()
    }

    /// Remembers that.
    pub(crate) fn keep_marked(&self, beginning: u64, fingerprint: &Fingerprint) {
        if let Some(found) = self.seen().found.get_mut(&beginning) {
            found.marked = Some(fingerprint.clone());
        }
    }

    /// Forgets all of it: something that was said is to be gone.
    pub(crate) fn forget(&self) {
        *self.seen() = Seen { found: LruCache::unbounded(), bytes: 0 };
    }

    /// Whether nothing is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen().found.is_empty()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Gives the items of the longest beginning that came before.
    fn longest(&mut self, beginnings: &Beginnings, items: &mut Vec<Arc<Item>>) {
        let longest = beginnings.0.iter().rev().find(|hash| self.found.contains(hash));
        let found = longest.and_then(|hash| self.found.get(hash));
        items.extend(found.into_iter().flat_map(|found| found.items.iter().take(found.count)).cloned());
    }

    /// Remembers what was read as two beginnings: all, with which the next request begins, and what stands before what a person says
    /// now, which they may say otherwise.
    fn keep(&mut self, beginnings: &Beginnings, items: &[Arc<Item>], bytes: usize) {
        if bytes > MAX_BYTES {
            return;
        }
        let answered = items.iter().rposition(|item| matches!(item.said, Said::Answer { .. })).map(|at| at.saturating_add(1));
        let shared: Arc<[Arc<Item>]> = items.into();
        for count in [Some(items.len()), answered.filter(|count| *count < items.len())].into_iter().flatten() {
            let Some(hash) = beginnings.before(Some(count)) else { continue };
            let before = self.found.put(hash, ReadMessages { items: shared.clone(), count, bytes, marked: None });
            self.bytes = self.bytes.saturating_add(bytes).saturating_sub(before.map_or(0, |before| before.bytes));
        }
        while self.bytes > MAX_BYTES
            && let Some((_, oldest)) = self.found.pop_lru()
        {
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use turnwright_core::UserId;
    use turnwright_engine::SystemClock;

    use super::{Beginnings, MAX_BYTES, MESSAGE_BYTES};
    use crate::error::ApiError;
    use crate::openai::history::{History, Item, Messages, mark};
    use crate::openai::known::KnownHistories;

    fn read(known: &KnownHistories, messages: &[Value]) -> Result<(Vec<Arc<Item>>, Beginnings), ApiError> {
        let raw: Vec<Box<RawValue>> = messages.iter().map(|one| serde_json::value::to_raw_value(one).unwrap()).collect();
        let raw: Vec<&RawValue> = raw.iter().map(AsRef::as_ref).collect();
        known.seen().read(known.fingerprint(&UserId::local()), &raw)
    }

    fn says(role: &str, text: &str) -> Value {
        json!({"role": role, "content": text})
    }

    fn shared(one: &[Arc<Item>], other: &[Arc<Item>]) -> usize {
        one.iter().zip(other).take_while(|(one, other)| Arc::ptr_eq(one, other)).count()
    }

    #[test]
    fn what_came_before_is_not_read_again_and_is_what_it_was() {
        let known = KnownHistories::new(Arc::new(SystemClock));
        let said = [says("user", "a"), says("assistant", "b"), says("user", "c")];
        let (first, beginnings) = read(&known, &said).unwrap();
        let more = [&said[..], &[says("assistant", "d"), says("user", "e")]].concat();
        let (longer, _) = read(&known, &more).unwrap();
        let (otherwise, other) = read(&known, &[&said[..2], &[says("user", "x")]].concat()).unwrap();
        assert_eq!([shared(&first, &longer), shared(&first, &otherwise)], [3, 2]);
        let alone = KnownHistories::new(Arc::new(SystemClock));
        assert_eq!(read(&alone, &more).unwrap().0, longer);
        assert_eq!(beginnings.before(Some(2)), other.before(Some(2)));
        assert_ne!(beginnings.before(None), other.before(None));
        assert_eq!((beginnings.before(Some(0)), beginnings.before(Some(4))), (None, None));

        let mut history = History::of(first);
        history.before_users_mut().map(Arc::make_mut).for_each(|item| item.messages = Messages::Made(Vec::new()));
        assert_eq!(read(&known, &more).unwrap().0, longer);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place_behind_what_came_before() {
        let known = KnownHistories::new(Arc::new(SystemClock));
        let said = [says("user", "a"), says("assistant", "b")];
        read(&known, &said).unwrap();
        let refused = read(&known, &[&said[..], &[says("nobody", "c")]].concat()).unwrap_err();
        assert_eq!(refused.param(), Some("messages[2]"));
    }

    #[test]
    fn what_a_beginning_says_is_marked_once_and_forgotten_with_it() {
        let known = KnownHistories::new(Arc::new(SystemClock));
        let said = [says("user", "a"), says("assistant", "b"), says("system", "c"), says("user", "d")];
        let (items, beginnings) = read(&known, &said).unwrap();
        let history = History { beginnings, ..History::of(items) };
        let beginning = history.written_before().unwrap();
        assert_eq!(known.seen().marked(beginning).map(|marked| marked.as_number()), None);
        let mut marked = known.fingerprint(&UserId::local());
        mark(&mut marked, history.before.iter().map(Arc::as_ref));
        known.seen().keep_marked(beginning, &marked);
        // The one that ends with the answer is known, and what the model is told behind it makes another.
        assert_eq!(known.seen().marked(beginning).map(|marked| marked.as_number()), None);

        let (items, beginnings) = read(&known, &[&said[..2], &said[3..]].concat()).unwrap();
        let history = History { beginnings, ..History::of(items) };
        let beginning = history.written_before().unwrap();
        known.seen().keep_marked(beginning, &marked);
        assert_eq!(known.seen().marked(beginning).map(|marked| marked.as_number()), Some(marked.as_number()));
        known.seen().forget();
        assert_eq!(known.seen().marked(beginning).map(|marked| marked.as_number()), None);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let known = KnownHistories::new(Arc::new(SystemClock));
        let long = |name: &str| [says("user", &format!("{name}{}", "x".repeat(MAX_BYTES / 2))), says("assistant", "b")];
        let (first, _) = read(&known, &long("1")).unwrap();
        let (second, _) = read(&known, &long("2")).unwrap();
        assert_eq!(shared(&second, &read(&known, &long("2")).unwrap().0), 2);
        assert_eq!(shared(&first, &read(&known, &long("1")).unwrap().0), 0);
        known.seen().forget();
        assert_eq!(shared(&second, &read(&known, &long("2")).unwrap().0), 0);
        for number in 0..=MAX_BYTES / MESSAGE_BYTES {
            read(&known, &[says("user", &number.to_string())]).unwrap();
        }
        assert!(known.seen().seen().found.len() < MAX_BYTES / MESSAGE_BYTES);
        let huge = says("user", &"x".repeat(MAX_BYTES));
        let (once, _) = read(&known, std::slice::from_ref(&huge)).unwrap();
        assert_eq!(shared(&once, &read(&known, &[huge]).unwrap().0), 0);
    }
}
