//! Storing what a driver learned: each append, what is held where nothing can be stored, and what is stored late.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use turnwright_core::{Control, Entry, JournalError, Outcome, Seq, ToolErrorKind, check};

use super::call::Rest;
use super::{Driver, Halt, Job};
use crate::artifacts::held_by;
use crate::inner::Inner;
use crate::live::{From, LetDown, Live};
use crate::telemetry::spans;
use crate::{Append, Fact, SideRecord, StoreError};

/// How long is waited before an append is tried again that carries something that cannot be had again. It is tried for as
/// long as this process lives: a known result must not become an unknown one.
const HOLD_PAUSE: Duration = Duration::from_secs(1);
/// How many of those tries are told of once.
const HOLD_TRIES_PER_WARNING: u32 = 60;

impl Driver {
    /// Stops although the turn is open, and stores what still comes.
    pub(super) async fn halt(mut self: Box<Self>, halt: Halt) {
        self.model = None;
        self.summary = None;
        self.gathering = None;
        self.reserving.clear();
        {
            let mut state = self.live.lock();
            state.watchers.release();
            state.let_down = match &halt {
                Halt::Store(error) => Some(LetDown::Store(error.clone())),
                Halt::Quietly | Halt::Broken(_) => (!self.fence.holds()).then_some(LetDown::Lease),
            };
        }
        // What goes on by itself is let go of, what needs us is told to end.
        self.halts.cancel();
        for cancel in self.running.values() {
            cancel.cancel();
        }
        let reason = match &halt {
            Halt::Store(error) => Some(error.to_string()),
            Halt::Broken(reason) => Some(reason.clone()),
            Halt::Quietly => None,
        };
        if let Some(reason) = reason {
            tracing::error!(conversation = %self.live.id, reason, "the turn cannot go on; it stays open");
        }
        // Results that come now are stored where that can still be done: a known result must not become an unknown one. A
        // call that gave none stays without: nobody stopped it, so the next driver decides what becomes of it.
        // Tasks that nobody stored are let go of. What is asked within calls stays open meanwhile: nobody answered it, so nothing is told that
        // a tool could act on.
        self.asked.release();
        let mut calls = std::mem::take(&mut self.calls);
        let mut rests = VecDeque::from(std::mem::take(&mut self.rested));
        while let Some(rest) = or_next(rests.pop_front(), &mut calls).await {
            let entries = match rest {
                Rest::Result(result) if result.outcome == Outcome::Error(ToolErrorKind::Interrupted) => continue,
                rest => self.entries_of(rest),
            };
            let mut storing = std::pin::pin!(self.store_late(entries));
            let stored = loop {
                tokio::select! {
                    biased;
                    stored = &mut storing => break stored,
                    // The others end, however long the store takes.
                    Some(rest) = calls.next(), if !calls.is_empty() => rests.push_back(rest),
                }
            };
            if stored.is_err() {
                break;
            }
        }
    }

    async fn store_late(&mut self, entries: Vec<Entry>) -> Result<(), ()> {
        loop {
            let at = {
                let state = self.live.lock();
                let holds = state.journal.open_turn().is_some_and(|turn| turn.is_held_by(&self.claim));
                if !holds || state.is_gone || state.broken.is_some() {
                    return Err(());
                }
                match check(&state.journal, &entries) {
                    Ok(()) => state.journal.next_seq(),
                    // It is known by now what became of the call; of the others it may not be.
                    Err(JournalError::Misfit { .. }) => return Ok(()),
                    Err(JournalError::OutOfOrder { .. }) => return Err(()),
                }
            };
            match store(&self.inner, &self.live, (at, Worth::Dear), entries.clone(), Vec::new()).await {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict { .. }) => self.live.refresh(&*self.inner.store).await.map_err(drop)?,
                Err(_) => return Err(()),
            }
        }
    }
}

/// What has come to rest, or the next call that does.
async fn or_next(rest: Option<Rest>, calls: &mut FuturesUnordered<Job>) -> Option<Rest> {
    match rest {
        Some(rest) => Some(rest),
        None => calls.next().await,
    }
}

/// What becomes of entries that the store fails to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// They are held and tried again, for as long as this process lives.
    Dear,
    /// Whoever drives next makes them anew.
    Cheap,
}

/// Stores entries at a place and takes them in.
///
/// Where the store fails it may have stored them all the same, and its answer is lost. So what is tried again is the same at the same
/// place; and where that place is taken it is looked whether these entries stand there: nothing is stored twice.
pub(super) async fn store(
    inner: &Inner,
    live: &Live,
    (at, worth): (Seq, Worth),
    mut entries: Vec<Entry>,
    mut side: Vec<SideRecord>,
) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        let (these, beside) = match worth {
            Worth::Dear => (entries.clone(), side.clone()),
            Worth::Cheap => (std::mem::take(&mut entries), std::mem::take(&mut side)),
        };
        let error = match append(inner, live, at, these, beside).await {
            Err(StoreError::Conflict { next }) if tries > 0 && next > at => match live.refresh(&*inner.store).await {
                Ok(()) if !has_stored(live, at, &entries) => return Err(StoreError::Conflict { next }),
                Ok(()) => {
                    for entry in &entries {
                        tell_of(inner, entry);
                    }
                    return Ok(());
                }
                Err(error) => error,
            },
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let is_refused = matches!(error, StoreError::Conflict { .. } | StoreError::Gone { .. } | StoreError::OverBudget);
        if is_refused || worth == Worth::Cheap || inner.shutdown.is_cancelled() {
            return Err(error);
        }
        live.lock().watchers.release();
        hold(inner, live, &mut tries, &error).await;
    }
}

/// Whether these entries stand in the journal from this place on.
fn has_stored(live: &Live, at: Seq, entries: &[Entry]) -> bool {
    let state = live.lock();
    let places = std::iter::successors(Some(at), |seq| Some(seq.next()));
    entries.iter().zip(places).all(|(entry, seq)| {
        let stored = state.journal.entry(seq).map(|stored| &*stored.entry);
        // What is read from a database went through its stored form, which need not give every number back to the last bit.
        let read = || Entry::decode(entry.version(), &entry.encode().ok()?).ok();
        stored.is_some_and(|stored| stored == entry || read().is_some_and(|read| *stored == read))
    })
}

/// Stores entries and takes them in, once.
async fn append(inner: &Inner, live: &Live, at: Seq, entries: Vec<Entry>, mut side: Vec<SideRecord>) -> Result<(), StoreError> {
    side.push(SideRecord::Of(live.incarnation()));
    side.extend(held_by(&entries));
    let closed = live.lock().journal.closed_by(&entries);
    side.extend(inner.ledger_records(&live.owner, closed, &entries).await?);
    let append = Append { conversation: live.id.clone(), at, entries, at_ms: inner.clock.now_ms(), side };
    let stored = inner.store.append(append).await?;
    for entry in &stored {
        tell_of(inner, &entry.entry);
    }
    live.apply(stored, From::Driver);
    Ok(())
}

/// Tells who watches over the engine where a turn came to rest.
fn tell_of(inner: &Inner, entry: &Entry) {
    if let Entry::Control(Control::Suspended) = entry {
        inner.telemetry().tell(&Fact::TurnParked);
    }
    if matches!(entry, Entry::Control(Control::Suspended) | Entry::Elicited(_)) {
        inner.begins_to_wait.send_modify(|count| *count = count.wrapping_add(1));
    }
    if let Entry::Control(Control::Ended { status, .. }) = entry {
        tracing::info!(status = status.as_contract(), "the turn is over");
        spans::end_turn(&tracing::Span::current(), status);
        inner.telemetry().tell(&Fact::TurnOver { status });
    }
}

/// Waits before what is held is tried to be stored again.
pub(super) async fn hold(inner: &Inner, live: &Live, tries: &mut u32, error: &StoreError) {
    // Once for each minute or so: the reason stays the same.
    if tries.is_multiple_of(HOLD_TRIES_PER_WARNING) {
        tracing::warn!(conversation = %live.id, %error, "cannot store; what is known is held and tried again");
    }
    *tries = tries.wrapping_add(1);
    tokio::select! {
        () = tokio::time::sleep(HOLD_PAUSE) => {}
        () = inner.shutdown.cancelled() => {}
    }
}
