//! Watching a conversation: a watcher's end, and the watchers that a conversation has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use turnwright_core::Seq;

use crate::Event;

/// How many frames may wait for a slow watcher before it is cut off. It can come back with the last seq it saw.
const QUEUE_FRAMES: usize = 1_024;
/// How many bytes may, about. A single frame may be larger.
const QUEUE_BYTES: usize = 8 << 20;

/// Where a watcher begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchFrom {
    /// With the message in flight, then what happens from here on.
    Now,
    /// With every entry after this one, or all, then the message in flight, then what happens.
    After(Option<Seq>),
}

/// Events that happened together.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The last stored entry that these events tell or follow; the cursor to come back with.
    pub seq: Option<Seq>,
    /// The events.
    pub events: Arc<[Event]>,
    /// Whether the watcher is up to date with this frame.
    pub has_caught_up: bool,
}

/// A conversation being watched. Dropping it stops nothing but the watching (law 5).
#[derive(Debug)]
pub struct Watch {
    first: Option<Frame>,
    queue: Queue,
}

impl Watch {
    pub(crate) fn new(first: Frame, queue: Queue) -> Self {
        Self { first: Some(first), queue }
    }

    /// The next events. `None` where the watcher was too slow, or the engine ends: come back later.
    pub async fn next(&mut self) -> Option<Frame> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// [`Watch::next`] for a hand-written stream.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        match self.first.take() {
            Some(first) if !first.events.is_empty() => Poll::Ready(Some(first)),
            _ => self.queue.poll_next(context),
        }
    }
}

/// The frames that wait for a watcher.
#[derive(Debug)]
pub(crate) struct Queue {
    frames: mpsc::Receiver<Queued>,
    bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Queued {
    frame: Frame,
    bytes: usize,
}

impl Queue {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        let queued = std::task::ready!(self.frames.poll_recv(context));
        Poll::Ready(queued.map(|Queued { frame, bytes }| {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            frame
        }))
    }
}

/// The watchers of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Vec<Watcher>);

#[derive(Debug)]
struct Watcher {
    frames: mpsc::Sender<Queued>,
    bytes: Arc<AtomicUsize>,
}

impl Watchers {
    /// One more.
    pub(crate) fn join(&mut self) -> Queue {
        let (sender, receiver) = mpsc::channel(QUEUE_FRAMES);
        let bytes = Arc::new(AtomicUsize::new(0));
        self.0.retain(|watcher| !watcher.frames.is_closed());
        self.0.push(Watcher { frames: sender, bytes: bytes.clone() });
        Queue { frames: receiver, bytes }
    }

    /// Tells a frame to all; cuts off those that are too slow or gone.
    pub(crate) fn tell(&mut self, frame: &Frame) {
        let bytes = frame.events.iter().map(Event::weight).fold(0, usize::saturating_add);
        self.0.retain(|watcher| {
            let waiting = watcher.bytes.fetch_add(bytes, Ordering::Relaxed);
            let has_room = waiting == 0 || waiting.saturating_add(bytes) <= QUEUE_BYTES;
            has_room && watcher.frames.try_send(Queued { frame: frame.clone(), bytes }).is_ok()
        });
    }

    /// Whether none joined, or all that did were found to be gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any is still there.
    pub(crate) fn are_there(&self) -> bool {
        self.0.iter().any(|watcher| !watcher.frames.is_closed())
    }

    /// Cuts all off.
    pub(crate) fn dismiss(&mut self) {
        self.0.clear();
    }
}
