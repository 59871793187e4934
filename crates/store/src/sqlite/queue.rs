//! The way to the writer: many tasks put in, one thread takes everything out at once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

/// The most kibibytes that wait for the writer, what it has in hand included.
const ROOM_KIB: u32 = 32 * 1024;
/// What an item takes beside its text, so that small ones have a bound too: 8,192 of them.
const ITEM_KIB: u32 = 4;

/// A bounded queue from tasks to one thread. An item waits for room before it is in.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
    room: Semaphore,
}

#[derive(Debug)]
struct State<T> {
    items: Vec<T>,
    /// The room that the items take.
    weight: u32,
    is_closed: bool,
    is_nudged: bool,
    thread: Thread,
}

/// What the thread does while it is not in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Works,
    /// Until the first item comes, or its time is over.
    Waits,
    /// Until the first item comes.
    WaitsWithoutEnd,
}

/// What the thread finds.
#[derive(Debug)]
pub(super) enum Taken<T> {
    /// Everything that waited, in order; at least one item.
    Items {
        /// The items.
        items: Vec<T>,
        /// What to give back with [`Queue::release`].
        weight: u32,
    },
    /// Nothing came in time, or the thread was nudged.
    Nothing,
    /// Nothing is left and nothing comes any more.
    Closed,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                items: Vec::new(),
                weight: 0,
                is_closed: false,
                is_nudged: false,
                thread: Thread::Works,
            }),
            wake: Condvar::new(),
            room: Semaphore::new(ROOM_KIB as usize),
        }
    }

    /// Puts an item of `bytes` in, as soon as there is room. Gives it back where the queue is closed.
    pub(super) async fn push(&self, item: T, bytes: usize) -> Result<(), T> {
        let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        let weight = kib.saturating_add(ITEM_KIB).min(ROOM_KIB);
        let Ok(room) = self.room.acquire_many(weight).await else { return Err(item) };
        let mut state = self.state();
        if state.is_closed {
            return Err(item);
        }
        room.forget();
        state.items.push(item);
        state.weight = state.weight.saturating_add(weight);
        let before = std::mem::replace(&mut state.thread, Thread::Works);
        drop(state);
        if before != Thread::Works {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Puts items in at once, whatever room there is. They are dropped where the queue is closed.
    pub(super) fn push_beyond_room(&self, mut items: Vec<T>) {
        let mut state = self.state();
        if state.is_closed || items.is_empty() {
            return;
        }
        state.items.append(&mut items);
        let before = std::mem::replace(&mut state.thread, Thread::Works);
        drop(state);
        if before != Thread::Works {
            self.wake.notify_one();
        }
    }

    /// Whether nothing waits, and something still may.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.items.is_empty() && !state.is_closed
    }

    /// Whether nothing comes any more.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Takes everything, waiting for the first item: without end, or for a time.
    pub(super) fn take(&self, wait: Option<Duration>) -> Taken<T> {
        let mut state = self.state();
        if state.items.is_empty() && !state.is_closed && !state.is_nudged {
            state = match wait {
                None => {
                    state.thread = Thread::WaitsWithoutEnd;
                    self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Some(wait) => {
                    state.thread = Thread::Waits;
                    self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.thread = Thread::Works;
        }
        state.is_nudged = false;
        match (state.items.is_empty(), state.is_closed) {
            (true, true) => Taken::Closed,
            (true, false) => Taken::Nothing,
            (false, _) => Taken::Items { items: std::mem::take(&mut state.items), weight: std::mem::take(&mut state.weight) },
        }
    }

    /// Makes room again after items were dealt with.
    pub(super) fn release(&self, weight: u32) {
        self.room.add_permits(weight as usize);
    }

    /// Lets a thread that waits without end think again about that. One that does not will do so anyway.
    pub(super) fn nudge(&self) {
        let mut state = self.state();
        state.is_nudged = true;
        if state.thread == Thread::WaitsWithoutEnd {
            self.wake.notify_one();
        }
    }

    /// Takes nothing more in; what is in is still taken out.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.room.close();
        self.wake.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
