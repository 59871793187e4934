//! Tells watchers at other nodes what happens in a turn that is driven here: one more watcher, whose frames go out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use super::mirror::live_event;
use super::{LiveFrame, LiveNews, News};
use crate::inner::Inner;
use crate::live::Live;
use crate::{Event, Frame, Watch};

/// How often a relay says that it lives.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Counts the relays of this process.
static RELAYS: AtomicU64 = AtomicU64::new(0);

/// One conversation's relay.
struct Relay {
    inner: Arc<Inner>,
    live: Arc<Live>,
    name: String,
    number: u64,
}

/// However it ends, another may begin.
impl Drop for Relay {
    fn drop(&mut self) {
        self.inner.cluster.end_relay(&self.live.id);
    }
}

/// What comes after a watch.
enum Course {
    /// Another, from a snapshot on.
    Anew,
    /// Nothing.
    Over,
}

/// Tells until the conversation is not driven here any more, or nobody watches it elsewhere.
pub(super) async fn run(inner: Arc<Inner>, live: Arc<Live>, anew: Arc<Notify>) {
    let name = format!("{}/{}", inner.store.driver(), RELAYS.fetch_add(1, Ordering::Relaxed));
    let mut relay = Relay { inner, live, name, number: 0 };
    loop {
        let (snapshot, mut watch) = relay.begin();
        relay.tell(snapshot).await;
        match relay.follow(&mut watch, &anew).await {
            Course::Anew => {}
            Course::Over => {
                relay.tell(LiveNews::Over).await;
                return;
            }
        }
    }
}

impl Relay {
    fn begin(&self) -> (LiveNews, Watch) {
        let (first, watch) = self.live.watch_apart();
        let events = first.events.iter().filter_map(live_event).collect();
        (LiveNews::Snapshot { seq: first.seq, events }, watch)
    }

    async fn tell(&mut self, news: LiveNews) {
        let frame = LiveFrame { relay: self.name.clone(), number: self.number, news };
        self.number = self.number.saturating_add(1);
        self.inner.nodes().tell(News::Live { conversation: self.live.id.clone(), frame }).await;
    }

    async fn follow(&mut self, watch: &mut Watch, anew: &Notify) -> Course {
        let inner = self.inner.clone();
        let live = self.live.clone();
        let mut beat = tokio::time::interval(BEAT_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let settled = live.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            let is_driven = live.lock().is_driven;
            tokio::select! {
                biased;
                frame = watch.next() => match frame {
                    Some(frame) => self.tell(news_of(&frame)).await,
                    // It was too slow, or the engine ends.
                    None if inner.shutdown.is_cancelled() || live.lock().is_gone => return Course::Over,
                    None => return Course::Anew,
                },
                // All that it told was heard.
                () = std::future::ready(()), if !is_driven => return Course::Over,
                () = anew.notified() => return Course::Anew,
                () = settled => {}
                _ = beat.tick() => {
                    if !inner.cluster.is_watched(&live.id) {
                        return Course::Over;
                    }
                    self.tell(LiveNews::Beat).await;
                }
            }
        }
    }
}

/// What a frame tells other nodes: entries by their place alone.
fn news_of(frame: &Frame) -> LiveNews {
    let has_entry = frame.events.iter().any(|event| matches!(event, Event::Entry { .. }));
    match frame.seq.filter(|_| has_entry) {
        Some(seq) => LiveNews::Stored { seq },
        None => LiveNews::Told { events: frame.events.iter().filter_map(live_event).collect() },
    }
}
