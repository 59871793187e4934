//! The conversations that are in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use turnwright_core::ConversationId;

use crate::live::Live;
use crate::{ConversationRecord, EngineError, KeptBy, SettingsOverlay, Store};

/// The most bytes of idle conversations, about, that are kept in memory to spare a read.
const MAX_IDLE_BYTES: usize = 64 << 20;
/// The most idle conversations that are kept.
const MAX_IDLE: usize = 256;

/// The conversations in memory. Those that are driven or watched stay; others go, the longest unused first.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    all: Mutex<HashMap<ConversationId, Arc<Live>>>,
    uses: AtomicU64,
}

impl Registry {
    /// The conversation, read from the store where it is not in memory.
    pub(crate) async fn load(&self, id: &ConversationId, store: &dyn Store) -> Result<Arc<Live>, EngineError> {
        if let Some(live) = self.known(id) {
            return Ok(live);
        }
        let not_found = || EngineError::NotFound { what: format!("conversation `{id}`") };
        let record = store.conversation(id).await?.ok_or_else(not_found)?;
        let live = Arc::new(live_of(&record)?);
        live.refresh(store).await?;
        let is_open = live.lock().journal.open_turn().is_some();
        if is_open {
            let row = store.open_turns().await?.into_iter().find(|open| open.conversation == *id);
            live.lock().kept_by = row.map_or(KeptBy::Chat, |open| open.kept_by);
        }
        Ok(self.keep(live))
    }

    /// The conversation, where it is in memory.
    pub(crate) fn known(&self, id: &ConversationId) -> Option<Arc<Live>> {
        let live = self.all.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()?;
        live.lock().last_used = self.uses.fetch_add(1, Ordering::Relaxed);
        Some(live)
    }

    /// Takes a conversation in; the one that is there already where there is one.
    pub(crate) fn keep(&self, live: Arc<Live>) -> Arc<Live> {
        live.lock().last_used = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.entry(live.id.clone()).or_insert(live).clone();
        if all.len() > MAX_IDLE + MAX_IDLE / 4 {
            shrink(&mut all);
        }
        kept
    }

    /// Makes room where what is in memory has grown too large.
    pub(crate) fn make_room(&self) {
        shrink(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn forget(&self, id: &ConversationId) -> Option<Arc<Live>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
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
    let mut bytes = 0_usize;
    for (place, (_, weight, id)) in idle.into_iter().enumerate() {
        bytes = bytes.saturating_add(weight);
        if place >= MAX_IDLE || bytes > MAX_IDLE_BYTES {
            all.remove(&id);
        }
    }
}

/// A conversation of a record, with no entries yet.
pub(crate) fn live_of(record: &ConversationRecord) -> Result<Live, EngineError> {
    let overlay: SettingsOverlay = serde_json::from_str(&record.settings).map_err(|error| {
        EngineError::Store(crate::StoreError::Damaged {
            what: format!("the settings of conversation `{}`", record.id),
            reason: error.to_string(),
        })
    })?;
    Ok(Live::new(record.id.clone(), overlay, record.title.clone(), record.updated_at_ms))
}
