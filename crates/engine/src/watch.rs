//! A watcher's end of a conversation.

use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use turnwright_core::Seq;

use crate::Event;

/// How many frames may wait for a slow watcher before it is cut off. It can come back with the last seq it saw.
pub(crate) const WATCH_QUEUE_FRAMES: usize = 1_024;

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
    receiver: mpsc::Receiver<Frame>,
}

impl Watch {
    pub(crate) fn new(first: Frame, receiver: mpsc::Receiver<Frame>) -> Self {
        Self { first: Some(first), receiver }
    }

    /// The next events. `None` where the watcher was too slow, or the engine ends: come back later.
    pub async fn next(&mut self) -> Option<Frame> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// [`Watch::next`] for a hand-written stream.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame>> {
        match self.first.take() {
            Some(first) if !first.events.is_empty() => Poll::Ready(Some(first)),
            _ => self.receiver.poll_recv(context),
        }
    }
}
