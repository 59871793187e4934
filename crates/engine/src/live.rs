//! A conversation in memory: its journal, the message in flight, who watches, whether it is driven.
//!
//! The store is the truth; this is a copy that is never ahead of it. Entries come in by [`Live::apply`] in any order, from
//! the driver, from other doors of this process, and from other processes by [`Live::refresh`]; they are taken in theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use turnwright_core::{ContentBlock, ConversationId, Entry, Journal, JournalError, Seq, StoredEntry};

use crate::fold;
use crate::in_flight::{InFlight, tell_message};
use crate::watch::{Frame, WATCH_QUEUE_FRAMES, Watch, WatchFrom};
use crate::{Event, KeptBy, SettingsOverlay, Store, StoreError};

/// How many entries are read from the store at once.
const READ_PAGE: usize = 5_000;

/// A conversation in memory.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: ConversationId,
    state: Mutex<State>,
    /// Wakes the driver: somebody else appended.
    pub(crate) changed: Notify,
    /// Wakes whoever waits for a turn to end or park.
    pub(crate) settled: Notify,
}

/// What is known of a conversation.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) journal: Journal,
    /// Stored entries that came before an earlier one did.
    early: BTreeMap<Seq, StoredEntry>,
    pub(crate) in_flight: Option<InFlight>,
    watchers: Vec<mpsc::Sender<Frame>>,
    pub(crate) is_driven: bool,
    pub(crate) kept_by: KeptBy,
    pub(crate) broken: Option<JournalError>,
    pub(crate) overlay: SettingsOverlay,
    pub(crate) title: Option<String>,
    pub(crate) updated_at_ms: u64,
    pub(crate) last_used: u64,
    weight: usize,
}

/// Who brings entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The driver of this conversation, who knows already.
    Driver,
    /// Somebody else, of whom the driver must hear.
    Others,
}

impl Live {
    pub(crate) fn new(id: ConversationId, overlay: SettingsOverlay, title: Option<String>, updated_at_ms: u64) -> Self {
        let state = State {
            journal: Journal::default(),
            early: BTreeMap::new(),
            in_flight: None,
            watchers: Vec::new(),
            is_driven: false,
            kept_by: KeptBy::Chat,
            broken: None,
            overlay,
            title,
            updated_at_ms,
            last_used: 0,
            weight: 0,
        };
        Self { id, state: Mutex::new(state), changed: Notify::new(), settled: Notify::new() }
    }

    /// The state, for as long as nothing is awaited.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes stored entries and tells watchers.
    pub(crate) fn apply(&self, stored: Vec<StoredEntry>, from: From) {
        let mut state = self.lock();
        let before = state.journal.next_seq();
        for entry in stored {
            if entry.seq >= state.journal.next_seq() {
                state.early.insert(entry.seq, entry);
            }
        }
        let mut events = Vec::new();
        while let Some(entry) = state.next_in_order() {
            state.take(entry, &mut events);
        }
        let is_new = state.journal.next_seq() != before;
        if is_new {
            state.tell(events);
        }
        let is_settled = state.journal.turn().is_none_or(|turn| turn.ended().is_some() || turn.is_suspended());
        drop(state);
        if is_new && from == From::Others {
            self.changed.notify_one();
        }
        if is_new && is_settled {
            self.settled.notify_waiters();
        }
    }

    /// Reads what others appended.
    pub(crate) async fn refresh(&self, store: &dyn Store) -> Result<(), StoreError> {
        loop {
            let from = self.lock().journal.next_seq();
            let entries = store.entries(&self.id, from, READ_PAGE).await?;
            let is_all = entries.len() < READ_PAGE;
            self.apply(entries, From::Others);
            if is_all || self.lock().broken.is_some() {
                return Ok(());
            }
        }
    }

    /// A new watcher, with what it missed.
    pub(crate) fn watch(&self, from: WatchFrom) -> Watch {
        let (sender, receiver) = mpsc::channel(WATCH_QUEUE_FRAMES);
        let mut state = self.lock();
        let mut events = Vec::new();
        if let WatchFrom::After(after) = from {
            fold::replay(&state.journal, after, &mut events);
        }
        if let Some(in_flight) = &state.in_flight {
            in_flight.tell_all(&mut events);
        }
        let first = Frame { seq: state.journal.last_seq(), events: events.into(), has_caught_up: true };
        state.watchers.retain(|watcher| !watcher.is_closed());
        state.watchers.push(sender);
        Watch::new(first, receiver)
    }

    /// Cuts all watchers off.
    pub(crate) fn dismiss(&self) {
        self.lock().watchers.clear();
        self.settled.notify_waiters();
    }
}

impl State {
    fn next_in_order(&mut self) -> Option<StoredEntry> {
        let next = self.journal.next_seq();
        if self.broken.is_some() { None } else { self.early.remove(&next) }
    }

    fn take(&mut self, stored: StoredEntry, events: &mut Vec<Event>) {
        self.updated_at_ms = self.updated_at_ms.max(stored.at_ms);
        self.weight = self.weight.saturating_add(weight(&stored.entry));
        let entry = stored.entry.clone();
        let seq = stored.seq;
        if let Err(error) = self.journal.apply(stored) {
            tracing::error!(%error, "the journal is damaged; the conversation can only be read");
            self.broken = Some(error);
            return;
        }
        if let Entry::Assistant(message) = &*entry {
            let told = self.in_flight.take();
            if told.as_ref().is_none_or(|told| told.seq() != seq) && !self.watchers.is_empty() {
                if told.is_some() {
                    events.push(Event::StepReset);
                }
                tell_message(seq, &message.blocks, events);
            }
        }
        if !self.watchers.is_empty() {
            fold::tell_newest(&self.journal, events);
        }
    }

    /// Tells watchers; cuts off those that are too slow or gone.
    pub(crate) fn tell(&mut self, events: Vec<Event>) {
        if self.watchers.is_empty() || events.is_empty() {
            return;
        }
        let frame = Frame { seq: self.journal.last_seq(), events: Arc::from(events), has_caught_up: true };
        self.watchers.retain(|watcher| watcher.try_send(frame.clone()).is_ok());
    }

    /// Whether anybody watches, so that events are worth making.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// About how many bytes it holds.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// Whether it may be forgotten: nobody drives, watches or waits.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.watchers.retain(|watcher| !watcher.is_closed());
        !self.is_driven && self.watchers.is_empty() && self.early.is_empty()
    }
}

/// About how many bytes an entry holds.
fn weight(entry: &Entry) -> usize {
    const BASE: usize = 400;
    let blocks = |blocks: &[ContentBlock]| -> usize {
        blocks
            .iter()
            .map(|block| match block {
                ContentBlock::Text { text } => text.len(),
                ContentBlock::Image { data, .. } | ContentBlock::Audio { data, .. } => data.len(),
                ContentBlock::Resource { resource } => {
                    resource.text.as_ref().map_or(0, String::len) + resource.blob.as_ref().map_or(0, String::len)
                }
                ContentBlock::ResourceLink { .. } => BASE,
            })
            .sum()
    };
    BASE + match entry {
        Entry::User(message) => blocks(&message.content),
        Entry::Assistant(message) => {
            message.text().len() + message.calls().map(|call| BASE + call.arguments.len()).sum::<usize>()
        }
        Entry::Result(result) => blocks(&result.content),
        Entry::Decision(_) | Entry::Question(_) | Entry::Started(_) | Entry::Control(_) => 0,
    }
}
