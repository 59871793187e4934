//! The conversations that are in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use turnwright_core::ConversationId;

use crate::live::Live;
use crate::{ConversationRecord, EngineError, EngineLoad, SettingsOverlay, Store, StoreError};

/// The most bytes of idle conversations, about, that are kept in memory to spare a read.
const MAX_IDLE_BYTES: usize = 64 << 20;
/// How many bytes may come to rest before it is looked how much that is in all.
const WEIGH_EVERY: usize = MAX_IDLE_BYTES / 8;
/// The most idle conversations that are kept.
const MAX_IDLE: usize = 256;
/// Up to this many bytes a conversation is a few dozen entries, which are soon read again.
const SMALL_BYTES: usize = 16 << 10;
/// The most idle conversations of that size that are kept: many that end at once, each after a turn, would be all of the memory.
const MAX_SMALL_IDLE: usize = 64;

/// The conversations in memory. Those that are driven or watched stay; others go, the longest unused first.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    all: Mutex<HashMap<ConversationId, Arc<Live>>>,
    uses: AtomicU64,
    /// What has come to rest, in bytes, since room was made.
    weighed: AtomicUsize,
    /// How many there were once room was made.
    left: AtomicUsize,
}

impl Registry {
    /// The conversation, read from the store where it is not in memory.
    pub(crate) async fn load(&self, id: &ConversationId, store: &dyn Store) -> Result<Arc<Live>, EngineError> {
        if let Some(live) = self.known(id) {
            return Ok(live);
        }
        let not_found = || EngineError::NotFound { what: format!("conversation `{id}`") };
        loop {
            let record = store.conversation(id).await?.ok_or_else(not_found)?;
            let live = Arc::new(live_of(&record)?);
            match Box::pin(live.refresh(store)).await {
                Ok(()) => return Ok(self.keep(live)),
                // It was deleted since its record was read; another may have its name.
                Err(StoreError::Gone { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The conversation, where it is in memory.
    pub(crate) fn known(&self, id: &ConversationId) -> Option<Arc<Live>> {
        let live = self.all.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()?;
        live.lock().last_used = self.uses.fetch_add(1, Ordering::Relaxed);
        Some(live)
    }

    /// The conversation, where it is in memory, without a use of it.
    pub(crate) fn peek(&self, id: &ConversationId) -> Option<Arc<Live>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Takes a conversation in; the one that is there already where there is one. An older one of its name was deleted by another
    /// process, and is buried.
    pub(crate) fn keep(&self, live: Arc<Live>) -> Arc<Live> {
        self.keep_where(live, Live::was_made_after)
    }

    /// Takes in one that was made a moment ago: whatever else is known by its name is gone, by whatever clock that was made.
    pub(crate) fn keep_made(&self, live: Arc<Live>) -> Arc<Live> {
        self.keep_where(live, |_, _| true)
    }

    /// `replaces` is asked where another conversation is known by the name.
    fn keep_where(&self, live: Arc<Live>, replaces: impl Fn(&Live, &Live) -> bool) -> Arc<Live> {
        live.lock().last_used = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut deleted = None;
        let kept = match all.entry(live.id.clone()) {
            Entry::Occupied(known) if live.is_same_as(known.get()) || !replaces(&live, known.get()) => known.get().clone(),
            Entry::Occupied(mut known) => {
                deleted = Some(known.insert(live.clone()));
                live
            }
            Entry::Vacant(place) => place.insert(live).clone(),
        };
        // A quarter more than were left: each is looked at a few times at most while it is here.
        if all.len() > (self.left.load(Ordering::Relaxed) * 5 / 4).max(MAX_SMALL_IDLE + MAX_SMALL_IDLE / 4) {
            self.shrink(&mut all);
        }
        drop(all);
        if let Some(deleted) = deleted {
            deleted.bury();
        }
        self.weigh(&kept);
        kept
    }

    /// A conversation came in, or to rest: makes room where that was much since the last time.
    pub(crate) fn weigh(&self, live: &Live) {
        let weight = live.lock().weight();
        if self.weighed.fetch_add(weight, Ordering::Relaxed).saturating_add(weight) >= WEIGH_EVERY {
            self.make_room();
        }
    }

    /// Makes room where what is in memory has grown too large.
    pub(crate) fn make_room(&self) {
        self.weighed.store(0, Ordering::Relaxed);
        self.shrink(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn shrink(&self, all: &mut HashMap<ConversationId, Arc<Live>>) {
        shrink(all);
        self.left.store(all.len(), Ordering::Relaxed);
    }

    /// The conversation was deleted: it is forgotten, and who drives or watches it is told.
    pub(crate) fn bury(&self, id: &ConversationId) {
        let buried = self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(live) = buried {
            live.bury();
        }
    }

    /// The same for this one, whether or not another of its name took its place.
    pub(crate) fn bury_this(&self, live: &Arc<Live>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&live.id).is_some_and(|known| Arc::ptr_eq(known, live)) {
            all.remove(&live.id);
        }
        drop(all);
        live.bury();
    }

    /// What there is to do.
    pub(crate) fn workload(&self) -> EngineLoad {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut load = EngineLoad { conversations: all.len(), ..EngineLoad::default() };
        for live in all.values() {
            let mut state = live.lock();
            load.driven_turns += usize::from(state.is_driven);
            load.watchers += state.watchers.count();
        }
        load
    }

    /// The conversations that somebody watches.
    pub(crate) fn watched(&self) -> Vec<Arc<Live>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().filter(|live| live.lock().watchers.are_there()).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Forgets the longest unused idle conversations until the rest is within the limits.
fn shrink(all: &mut HashMap<ConversationId, Arc<Live>>) {
    let mut idle: Vec<(u64, usize, ConversationId)> = all
        .values()
        .filter(|live| Arc::strong_count(live) == 1)
        .filter_map(|live| {
            let mut state = live.lock();
            state.is_idle().then(|| (state.last_used, state.weight(), live.id.clone()))
        })
        .collect();
    idle.sort_unstable_by_key(|(last_used, ..)| std::cmp::Reverse(*last_used));
    let (mut bytes, mut small) = (0_usize, 0_usize);
    for (place, (_, weight, id)) in idle.into_iter().enumerate() {
        bytes = bytes.saturating_add(weight);
        small += usize::from(weight <= SMALL_BYTES);
        let is_one_too_many = weight <= SMALL_BYTES && small > MAX_SMALL_IDLE;
        if is_one_too_many || place >= MAX_IDLE || bytes > MAX_IDLE_BYTES {
            all.remove(&id);
        }
    }
}

/// A conversation of a record, with no entries yet.
pub(crate) fn live_of(record: &ConversationRecord) -> Result<Live, EngineError> {
    let overlay = SettingsOverlay::stored(&record.id, &record.settings)?;
    Ok(Live::new(record.id.clone(), (record.owner.clone(), record.created_at_ms), overlay, record.chosen()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chosen;

    #[test]
    fn idle_conversations_with_large_settings_go_before_they_are_many() {
        let registry = Registry::default();
        for number in 0..30 {
            let overlay = SettingsOverlay { system_prompt: Some("x".repeat(MAX_IDLE_BYTES / 8)), ..SettingsOverlay::default() };
            let id = format!("c{number}").parse().unwrap();
            registry.keep(Arc::new(Live::new(id, ("me".parse().unwrap(), 0), overlay, Chosen::default())));
        }
        assert!(registry.workload().conversations <= 8, "{:?}", registry.workload());
        registry.make_room();
        assert_eq!(registry.workload().conversations, 7);
    }

    #[test]
    fn of_many_small_ones_the_last_used_stay_and_a_larger_one_beside_them() {
        let registry = Registry::default();
        let made = |name: String, prompt: usize| {
            let overlay = SettingsOverlay { system_prompt: Some("x".repeat(prompt)), ..SettingsOverlay::default() };
            registry.keep(Arc::new(Live::new(name.parse().unwrap(), ("me".parse().unwrap(), 0), overlay, Chosen::default())));
        };
        made("large".to_owned(), SMALL_BYTES);
        for number in 0..1_000 {
            made(format!("c{number}"), 0);
        }
        assert!(registry.workload().conversations <= MAX_SMALL_IDLE * 5 / 4 + 1, "{:?}", registry.workload());
        registry.make_room();
        assert_eq!(registry.workload().conversations, MAX_SMALL_IDLE + 1);
        let is_there = |name: &str| registry.peek(&name.parse().unwrap()).is_some();
        assert_eq!(["large", "c999", "c936", "c935"].map(is_there), [true, true, true, false]);
    }

    #[test]
    fn one_that_was_made_a_moment_ago_takes_the_place_of_what_a_wrong_clock_says_is_newer() {
        let registry = Registry::default();
        let made = |owner: &str, at_ms| {
            let owner = (owner.parse().unwrap(), at_ms);
            Arc::new(Live::new("c1".parse().unwrap(), owner, SettingsOverlay::default(), Chosen::default()))
        };
        let first = registry.keep(made("anna", 1_000));
        // Read at the same time, or a moment before it was deleted.
        assert!(Arc::ptr_eq(&registry.keep(made("anna", 1_000)), &first));
        assert!(Arc::ptr_eq(&registry.keep(made("ben", 999)), &first));
        assert!(!first.lock().is_gone);
        let second = registry.keep_made(made("ben", 999));
        assert_eq!((second.owner.as_str(), first.lock().is_gone), ("ben", true));
        let third = registry.keep(made("anna", 2_000));
        assert_eq!((third.owner.as_str(), second.lock().is_gone), ("anna", true));
    }
}
