//! A conversation in memory: its journal, the message in flight, who watches, whether it is driven.
//!
//! The store is the truth; this is a copy that is never ahead of it. Entries come in by [`Live::apply`]: from the driver,
//! from other doors of this process, and from other processes by [`Live::refresh`]. Whoever appends knew every entry before,
//! so what comes in is either the next entry or known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tracing::Span;
use turnwright_core::{Claim, ConversationId, DriverId, Entry, Journal, JournalError, Seq, StoredEntry, Turn, TurnId, UserId};

use crate::artifacts::artifacts_of;
use crate::fold;
use crate::in_flight::{InFlight, tell_at_another_place, tell_message};
use crate::nodes::mirror::{self, Mirror};
use crate::telemetry::spans;
use crate::watch::{Frame, Watch, WatchFrom, Watchers};
use crate::{Chosen, Event, Incarnation, KeptBy, SettingsOverlay, Slot, Slots, Store, StoreError, weight};

/// How many entries are read from the store at once.
const READ_PAGE: usize = 5_000;

/// A conversation in memory.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: ConversationId,
    pub(crate) owner: UserId,
    created_at_ms: u64,
    state: Mutex<State>,
    /// Wakes the driver: somebody else appended, or the conversation was deleted.
    pub(crate) changed: Notify,
    /// Wakes whoever waits for a turn to end, park or be held, or for its driver to stop.
    pub(crate) settled: Notify,
}

/// What is known of a conversation.
#[derive(Debug)]
pub(crate) struct State {
    id: ConversationId,
    pub(crate) owner: UserId,
    pub(crate) journal: Journal,
    pub(crate) in_flight: Option<InFlight>,
    /// The message in flight at another node, as that tells it.
    pub(crate) mirror: Option<Mirror>,
    /// Whether it is listened to what another node tells.
    pub(crate) followed: Followed,
    pub(crate) watchers: Watchers,
    pub(crate) is_driven: bool,
    /// Its place among the turns that run, while it is driven.
    pub(crate) slot: Option<Slot>,
    /// Why its last driver stopped although the turn was open, where that is no fault of the turn's.
    pub(crate) let_down: Option<LetDown>,
    /// Whether it was deleted.
    pub(crate) is_gone: bool,
    /// What takes a turn up again, and which turn.
    pub(crate) keeper: Option<(TurnId, KeptBy)>,
    pub(crate) broken: Option<JournalError>,
    pub(crate) overlay: SettingsOverlay,
    /// The same as it is stored, with the title.
    pub(crate) chosen: Arc<Chosen>,
    pub(crate) last_used: u64,
    /// With what another conversation began last.
    shared: Option<Box<JournalBeginning>>,
    weight: usize,
    overlay_weight: usize,
}

/// The first entries of a journal, folded: other conversations begin with them.
#[derive(Debug, Clone)]
pub(crate) struct JournalBeginning {
    journal: Journal,
    weight: usize,
    /// The artifacts that it links to.
    holds: Vec<String>,
}

impl JournalBeginning {
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn holds(&self) -> &[String] {
        &self.holds
    }
}

/// What a driver could not go on without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LetDown {
    /// The right of this process to drive, which ran out.
    Lease,
    /// The store.
    Store(StoreError),
}

/// Whether it is listened to what the node tells that drives a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// It is not.
    No,
    /// It is; something that it told may have been missed.
    Behind,
    /// All that it told was heard, so that entries come in their place among the rest.
    InStep,
}

/// Who brings entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The driver of this conversation, who knows already.
    Driver,
    /// Somebody else, of whom the driver must hear.
    Others,
}

/// What a door of this process stored beside entries.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Whether the turn may have something to do now.
    pub(crate) moves_turn: bool,
    /// The claim among the entries.
    pub(crate) claim: Option<Claim>,
    pub(crate) keeper: Option<(TurnId, KeptBy)>,
    pub(crate) retitled: Option<Retitled>,
    /// The place of a turn that begins.
    pub(crate) slot: Option<Slot>,
}

/// The title that a conversation has from then on, or none.
#[derive(Debug)]
pub(crate) struct Retitled(pub(crate) Option<String>);

/// What must be gone before a driver of this process may take the open turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Vacancy {
    /// There is nothing to drive, or it is driven here.
    Nothing,
    /// Nothing.
    Free,
    /// This driver.
    After(DriverId),
}

/// What came of taking entries in.
#[derive(Debug, Clone, Copy)]
struct News {
    is_new: bool,
    is_settled: bool,
}

impl Live {
    /// With no entries yet; made at this time, in milliseconds since 1970 UTC.
    pub(crate) fn new(
        id: ConversationId,
        (owner, created_at_ms): (UserId, u64),
        overlay: SettingsOverlay,
        chosen: Chosen,
    ) -> Self {
        let state = State {
            id: id.clone(),
            owner: owner.clone(),
            journal: Journal::default(),
            in_flight: None,
            mirror: None,
            followed: Followed::No,
            watchers: Watchers::default(),
            is_driven: false,
            slot: None,
            let_down: None,
            is_gone: false,
            keeper: None,
            broken: None,
            overlay_weight: weight::of_overlay(&overlay),
            overlay,
            chosen: Arc::new(chosen),
            last_used: 0,
            shared: None,
            weight: 0,
        };
        Self { id, owner, created_at_ms, state: Mutex::new(state), changed: Notify::new(), settled: Notify::new() }
    }

    /// The same, of a conversation that begins with what another said.
    pub(crate) fn beginning_with(self, beginning: JournalBeginning) -> Self {
        {
            let mut state = self.lock();
            state.journal = beginning.journal;
            state.weight = beginning.weight;
        }
        self
    }

    /// Which conversation of its name it is.
    pub(crate) fn incarnation(&self) -> Incarnation {
        Incarnation::new(self.created_at_ms, self.owner.clone())
    }

    /// Whether it is that conversation of its name, and no earlier or later one.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.created_at_ms == other.created_at_ms && self.owner == other.owner
    }

    /// Whether it was made after another of its name, by the clocks of those who made them.
    pub(crate) fn was_made_after(&self, other: &Self) -> bool {
        self.created_at_ms >= other.created_at_ms
    }

    /// The state, for as long as nothing is awaited.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the log says beside a line about it: its name, and its open turn.
    pub(crate) fn context(&self) -> Span {
        let turn = self.lock().journal.open_turn().map(Turn::id);
        spans::turn_context(&self.id, turn)
    }

    /// Takes stored entries and tells watchers.
    pub(crate) fn apply(&self, stored: Vec<StoredEntry>, from: From) {
        let news = self.lock().apply(stored);
        self.announce(news, from);
    }

    /// Takes what a door of this process stored. Gives the claim that came with it where it is for the caller to drive under:
    /// the conversation counts as driven from then on, so that nobody sees the turn without a driver.
    pub(crate) fn apply_act(&self, stored: Vec<StoredEntry>, beside: Beside, running: &Slots) -> Option<Claim> {
        let mut state = self.lock();
        let news = state.apply(stored);
        state.keeper = beside.keeper.or(state.keeper);
        if let Some(Retitled(title)) = beside.retitled {
            state.chosen = Arc::new(Chosen { title, settings: state.chosen.settings.clone() });
        }
        let holds = |claim: &Claim| state.journal.open_turn().is_some_and(|turn| turn.is_held_by(claim));
        let claim = beside.claim.filter(|claim| !state.is_driven && holds(claim));
        state.is_driven |= claim.is_some();
        // The driver of the turn before may be about to let go, and goes on with this one.
        if state.is_driven && !news.is_settled {
            let slot = beside.slot.or_else(|| state.slot.take());
            state.slot = Some(slot.unwrap_or_else(|| running.enter(&self.owner)));
        }
        drop(state);
        self.announce(news, From::Others);
        claim
    }

    fn announce(&self, news: News, from: From) {
        if news.is_new && from == From::Others {
            self.changed.notify_one();
        }
        if news.is_new && news.is_settled {
            self.settled.notify_waiters();
        }
    }

    /// The entries of this conversation, and of no other that took its name while they were read.
    async fn read(&self, store: &dyn Store, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError> {
        let entries = store.entries(&self.id, from, limit).await?;
        let chosen = self.lock().chosen.clone();
        if !entries.is_empty() && store.newest(&self.id, &chosen).await?.incarnation != Some(self.incarnation()) {
            return Err(StoreError::Gone { conversation: self.id.clone() });
        }
        Ok(entries)
    }

    /// Reads what others appended.
    pub(crate) async fn refresh(&self, store: &dyn Store) -> Result<(), StoreError> {
        loop {
            let from = self.lock().journal.next_seq();
            let entries = self.read(store, from, READ_PAGE).await?;
            let is_all = entries.len() < READ_PAGE;
            self.apply(entries, From::Others);
            if is_all || self.lock().broken.is_some() {
                return Ok(());
            }
        }
    }

    /// The same of what is stored through `last`.
    pub(crate) async fn refresh_through(&self, store: &dyn Store, last: Seq) -> Result<(), StoreError> {
        loop {
            let from = self.lock().journal.next_seq();
            let left = (last.get() + 1).saturating_sub(from.get());
            let limit = usize::try_from(left).unwrap_or(READ_PAGE).min(READ_PAGE);
            if limit == 0 {
                return Ok(());
            }
            let entries = self.read(store, from, limit).await?;
            let is_all = entries.len() < limit;
            self.apply(entries, From::Others);
            if is_all || self.lock().broken.is_some() {
                return Ok(());
            }
        }
    }

    /// A new watcher, and apart from it what it is told first: the message in flight.
    pub(crate) fn watch_apart(&self) -> (Frame, Watch) {
        let mut events = Vec::new();
        let mut state = self.lock();
        state.tell_in_flight(&mut events);
        let first = Frame { seq: state.journal.last_seq(), events: events.into(), has_caught_up: true };
        let nothing = Frame { seq: first.seq, events: Arc::from([]), has_caught_up: true };
        (first, Watch::new(nothing, state.watchers.join()))
    }

    /// A new watcher, with what it missed.
    pub(crate) fn watch(&self, from: WatchFrom) -> Watch {
        let mut in_flight_events = Vec::new();
        let (journal, seq, watcher) = {
            let mut state = self.lock();
            state.tell_in_flight(&mut in_flight_events);
            let journal = match from {
                WatchFrom::Now => Journal::default(),
                WatchFrom::After(_) => state.journal.clone(),
            };
            (journal, state.journal.last_seq(), state.watchers.join())
        };
        // The journal may be long: it is told while the conversation goes on, whose news wait in the watcher's queue.
        let mut events = Vec::new();
        if let WatchFrom::After(after) = from {
            fold::replay(&journal, after, &mut events);
        }
        events.append(&mut in_flight_events);
        Watch::new(Frame { seq, events: events.into(), has_caught_up: true }, watcher)
    }

    /// Cuts all watchers off.
    pub(crate) fn dismiss(&self) {
        self.lock().watchers.dismiss();
        self.settled.notify_waiters();
    }

    /// The conversation was deleted: its driver stops, its watchers are cut off, and who waits is told.
    pub(crate) fn bury(&self) {
        {
            let mut state = self.lock();
            state.is_gone = true;
            state.watchers.bury();
        }
        self.changed.notify_one();
        self.settled.notify_waiters();
    }
}

impl State {
    fn apply(&mut self, stored: Vec<StoredEntry>) -> News {
        let before = self.journal.next_seq();
        let mut events = Vec::new();
        let mut stored = stored.into_iter().peekable();
        while let Some(entry) = stored.next() {
            if entry.seq >= self.journal.next_seq() && self.broken.is_none() {
                self.take(entry, stored.peek().map(|next| &*next.entry), &mut events);
            }
        }
        let is_new = self.journal.next_seq() != before;
        if is_new {
            self.tell(events);
        }
        let is_settled = self.journal.turn().is_none_or(|turn| turn.ended().is_some() || turn.is_parked());
        if is_settled {
            // Before anybody hears of its end: who waited for it may begin another.
            self.slot = None;
        }
        let is_held = self.journal.open_turn().is_some_and(Turn::is_held);
        News { is_new, is_settled: is_settled || is_held }
    }

    /// The entries through a place, folded once for all conversations that begin with them one after another; nothing where there
    /// are not so many.
    pub(crate) fn beginning(&mut self, through: Seq) -> Option<JournalBeginning> {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.journal.last_seq() == Some(through)) {
            return Some(JournalBeginning::clone(shared));
        }
        let journal = self.journal.begin_with(through)?;
        let entries = || journal.entries().iter().map(|stored| &*stored.entry);
        let (weight, holds) = (entries().map(weight::of_entry).sum(), artifacts_of(entries()));
        let beginning = JournalBeginning { journal, weight, holds };
        self.shared = Some(Box::new(beginning.clone()));
        Some(beginning)
    }

    fn take(&mut self, stored: StoredEntry, next: Option<&Entry>, events: &mut Vec<Event>) {
        self.weight = self.weight.saturating_add(weight::of_entry(&stored.entry));
        let entry = stored.entry.clone();
        let seq = stored.seq;
        if let Err(error) = self.journal.apply(stored) {
            let turn = self.journal.open_turn().map(Turn::id);
            let told = || tracing::error!(%error, "the journal is damaged; the conversation can only be read");
            spans::turn_context(&self.id, turn).in_scope(told);
            self.broken = Some(error);
            return;
        }
        if let Entry::Assistant(message) = &*entry {
            let told = self.in_flight.take();
            let mirror = self.mirror.take().filter(|_| told.is_none());
            if let Some(mirror) = mirror {
                mirror::complete(mirror, seq, &message.blocks, events);
            } else if told.as_ref().is_none_or(|told| told.seq() != seq) && self.is_watched() {
                let mut whole = Vec::new();
                tell_message(seq, &message.blocks, &mut whole);
                let before = told.map(|told| {
                    let mut before = Vec::new();
                    tell_message(seq, told.assembler.blocks(), &mut before);
                    before
                });
                tell_at_another_place(before, whole, events);
            }
        }
        if self.is_watched() {
            fold::tell_newest(&self.journal, next, events);
        }
    }

    /// Tells the message in flight, here or elsewhere, from its beginning.
    fn tell_in_flight(&self, out: &mut Vec<Event>) {
        match (&self.in_flight, &self.mirror) {
            (Some(in_flight), _) => in_flight.tell_all(out),
            (None, Some(mirror)) => mirror.tell_all(out),
            (None, None) => {}
        }
    }

    /// Tells watchers; cuts off those that are too slow or gone.
    pub(crate) fn tell(&mut self, events: Vec<Event>) {
        if self.watchers.is_empty() || events.is_empty() {
            return;
        }
        let frame = Frame { seq: self.journal.last_seq(), events: events.into(), has_caught_up: true };
        self.watchers.tell(frame);
    }

    /// Whether anybody watches, so that events are worth making.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// What takes the open turn up again, where that is known.
    pub(crate) fn kept_by(&self) -> Option<KeptBy> {
        let open = self.journal.open_turn()?.id();
        self.keeper.filter(|(turn, _)| *turn == open).map(|(_, kept_by)| kept_by)
    }

    /// What must be gone before a driver of this process may take the open turn. A turn that a process parked is left to
    /// that process while it lives, unless this one is a server or the turn is a chat's: this one may be about to end.
    pub(crate) fn vacancy(&self, is_server: bool) -> Vacancy {
        let open = self.journal.open_turn().filter(|turn| !turn.is_parked() || !turn.is_suspended());
        let Some(turn) = open.filter(|_| !self.is_driven && !self.is_gone && self.broken.is_none()) else {
            return Vacancy::Nothing;
        };
        let may_take = turn.holder().is_none() && (is_server || self.kept_by() == Some(KeptBy::Chat));
        match turn.claim() {
            Some(claim) if !may_take => Vacancy::After(claim.driver.clone()),
            Some(_) | None => Vacancy::Free,
        }
    }

    /// Whether this is the claim that holds, or held last.
    pub(crate) fn is_claimed_by(&self, claim: Option<&Claim>) -> bool {
        claim.is_some() && self.journal.open_turn().and_then(|turn| turn.claim()) == claim
    }

    /// The last entry that a model asked at this moment is shown.
    pub(crate) fn shown_now(&self) -> Seq {
        self.journal.last_seq().unwrap_or(Seq::FIRST)
    }

    /// About how many bytes it holds.
    pub(crate) fn weight(&self) -> usize {
        let chosen = self.chosen.title.as_ref().map_or(0, String::len).saturating_add(self.chosen.settings.len());
        // What these entries say is counted with the journal's own.
        let shared = self.shared.as_ref().map_or(0, |shared| size_of_val(shared.journal.entries()));
        let own = self.weight.saturating_add(self.overlay_weight).saturating_add(shared);
        own.saturating_add(chosen).saturating_add(weight::OF_CONVERSATION)
    }

    /// Takes the conversation's own settings, and how they are stored with its title.
    pub(crate) fn choose(&mut self, overlay: SettingsOverlay, chosen: Chosen) {
        self.overlay_weight = weight::of_overlay(&overlay);
        self.overlay = overlay;
        self.chosen = Arc::new(chosen);
    }

    /// Whether it may be forgotten: nobody drives or watches. Watchers that are gone are forgotten already.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.watchers.count() == 0 && !self.is_driven
    }
}
