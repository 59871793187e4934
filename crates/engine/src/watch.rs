//! Watching a conversation: a watcher's end, and the watchers that a conversation has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_channel::mpsc;
use futures_util::stream::StreamExt;
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

    /// The next events. `None` where the watcher was too slow, or the engine ends: come back later; and where the conversation
    /// [was deleted](Watch::is_deleted).
    pub async fn next(&mut self) -> Option<Frame> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Whether it ended since the conversation was deleted, so that there is nothing to come back to.
    pub fn is_deleted(&self) -> bool {
        self.queue.is_deleted.load(Ordering::Acquire)
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
    is_deleted: Arc<AtomicBool>,
    bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Queued {
    frame: Frame,
    bytes: usize,
}

impl Queue {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        let queued = std::task::ready!(self.frames.poll_next_unpin(context));
        Poll::Ready(queued.map(|Queued { frame, bytes }| {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            frame
        }))
    }
}

/// How many frames are held at most.
const MAX_HELD_FRAMES: usize = 64;

/// The watchers of a conversation.
///
/// While its driver goes on without waiting for anything, what happens is held, and told at once when it waits: so it is
/// passed on together, in one write.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    all: Vec<Watcher>,
    held: Vec<Frame>,
    is_holding: bool,
    is_deleted: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Watcher {
    frames: mpsc::Sender<Queued>,
    bytes: Arc<AtomicUsize>,
}

impl Watchers {
    /// How many are there; those that are gone are forgotten.
    pub(crate) fn count(&mut self) -> usize {
        self.all.retain(|watcher| !watcher.frames.is_closed());
        self.all.len()
    }

    /// One more.
    pub(crate) fn join(&mut self) -> Queue {
        // It is told all up to now in another way.
        self.tell_held();
        // Its one sender has a place beside these.
        let (sender, receiver) = mpsc::channel(QUEUE_FRAMES - 1);
        let bytes = Arc::new(AtomicUsize::new(0));
        self.all.retain(|watcher| !watcher.frames.is_closed());
        self.all.push(Watcher { frames: sender, bytes: bytes.clone() });
        Queue { frames: receiver, is_deleted: self.is_deleted.clone(), bytes }
    }

    /// Tells a frame to all; cuts off those that are too slow or gone.
    pub(crate) fn tell(&mut self, frame: Frame) {
        if self.is_holding && self.held.len() < MAX_HELD_FRAMES {
            self.held.push(frame);
            return;
        }
        self.tell_held();
        self.send(&frame);
    }

    /// Holds what is told until [`Watchers::release`].
    pub(crate) fn hold(&mut self) {
        self.is_holding = true;
    }

    /// Tells what was held, and holds no more.
    pub(crate) fn release(&mut self) {
        if self.is_holding {
            self.is_holding = false;
            self.tell_held();
        }
    }

    fn tell_held(&mut self) {
        for frame in std::mem::take(&mut self.held) {
            self.send(&frame);
        }
    }

    fn send(&mut self, frame: &Frame) {
        let bytes = frame.events.iter().map(Event::weight).fold(0, usize::saturating_add);
        self.all.retain_mut(|watcher| {
            let waiting = watcher.bytes.fetch_add(bytes, Ordering::Relaxed);
            let has_room = waiting == 0 || waiting.saturating_add(bytes) <= QUEUE_BYTES;
            has_room && watcher.frames.try_send(Queued { frame: frame.clone(), bytes }).is_ok()
        });
    }

    /// Whether none joined, or all that did were found to be gone.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether any is still there.
    pub(crate) fn are_there(&self) -> bool {
        self.all.iter().any(|watcher| !watcher.frames.is_closed())
    }

    /// Cuts all off, since the conversation was deleted.
    pub(crate) fn bury(&mut self) {
        self.is_deleted.store(true, Ordering::Release);
        self.dismiss();
    }

    /// Cuts all off.
    pub(crate) fn dismiss(&mut self) {
        self.tell_held();
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn frame(text: &str) -> Frame {
        let event = Event::Notice { level: "info", text: text.to_owned() };
        Frame { seq: None, events: Arc::from([event]), has_caught_up: true }
    }

    fn watch(watchers: &mut Watchers) -> Watch {
        Watch::new(Frame { seq: None, events: Arc::from([]), has_caught_up: true }, watchers.join())
    }

    fn next(watch: &mut Watch) -> Option<Frame> {
        watch.next().now_or_never().flatten()
    }

    #[test]
    fn what_is_held_is_told_in_order_once_it_is_released() {
        let mut watchers = Watchers::default();
        let mut early = watch(&mut watchers);
        watchers.tell(frame("one"));
        watchers.hold();
        watchers.tell(frame("two"));
        assert_eq!((next(&mut early), next(&mut early)), (Some(frame("one")), None));
        watchers.tell(frame("three"));
        watchers.release();
        watchers.tell(frame("four"));
        let told = [next(&mut early), next(&mut early), next(&mut early), next(&mut early)];
        assert_eq!(told, [Some(frame("two")), Some(frame("three")), Some(frame("four")), None]);
    }

    #[test]
    fn who_comes_while_something_is_held_is_not_told_it_again() {
        let mut watchers = Watchers::default();
        let mut early = watch(&mut watchers);
        watchers.hold();
        watchers.tell(frame("one"));
        let mut late = watch(&mut watchers);
        watchers.tell(frame("two"));
        watchers.release();
        assert_eq!([next(&mut early), next(&mut early)], [Some(frame("one")), Some(frame("two"))]);
        assert_eq!([next(&mut late), next(&mut late)], [Some(frame("two")), None]);
    }

    #[test]
    fn who_watches_what_is_deleted_knows_it() {
        for is_deleted in [false, true] {
            let mut watchers = Watchers::default();
            let watch = watch(&mut watchers);
            if is_deleted {
                watchers.bury();
            } else {
                watchers.dismiss();
            }
            assert_eq!(watch.is_deleted(), is_deleted);
        }
    }

    #[test]
    fn who_is_gone_is_not_counted_and_forgotten() {
        let mut watchers = Watchers::default();
        let (early, late) = (watch(&mut watchers), watch(&mut watchers));
        assert_eq!(watchers.count(), 2);
        drop(early);
        assert_eq!(watchers.count(), 1);
        drop(late);
        assert_eq!((watchers.count(), watchers.is_empty()), (0, true));
    }

    #[test]
    fn no_more_than_some_frames_are_held() {
        let mut watchers = Watchers::default();
        let mut early = watch(&mut watchers);
        watchers.hold();
        for number in 0..=MAX_HELD_FRAMES {
            watchers.tell(frame(&number.to_string()));
        }
        let told = std::iter::from_fn(|| next(&mut early)).count();
        assert_eq!(told, MAX_HELD_FRAMES + 1);
    }
}
