//! Tells watchers here what happens in a turn that is driven at another node: entries from the journal, the rest as that node
//! tells it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, MissedTickBehavior};
use turnwright_core::{Entry, MessageId, Seq};

use super::mirror::{Mirror, Place, reconcile};
use super::{LiveEvent, LiveFrame, LiveNews, News};
use crate::inner::Inner;
use crate::live::{Followed, Live, State};
use crate::{Event, StoreError};

/// How often the node that drives is told that somebody watches here.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How long that node may be silent before the store is looked at instead.
const SILENCE: Duration = Duration::from_secs(3);

impl Inner {
    /// Sees to it that those who watch a conversation here are told what another node tells of its turn.
    pub(crate) fn mirror(self: &Arc<Self>, live: &Arc<Live>) {
        if !self.nodes().is_shared() {
            return;
        }
        let mut state = live.lock();
        if state.followed == Followed::No && is_worth_it(&state) {
            state.followed = Followed::Behind;
            drop(state);
            self.tasks.spawn(run(self.clone(), live.clone()));
        }
    }
}

/// Whether somebody watches here what may be driven elsewhere.
fn is_worth_it(state: &State) -> bool {
    let is_open = state.journal.open_turn().is_some_and(|turn| !turn.is_parked());
    is_open && !state.is_driven && !state.is_gone && state.watchers.are_there()
}

/// However it ends, another may begin, and until then the store is looked at.
struct Following {
    inner: Arc<Inner>,
    live: Arc<Live>,
    place: Place,
    heard_at: Instant,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.live.lock().followed = Followed::No;
    }
}

async fn run(inner: Arc<Inner>, live: Arc<Live>) {
    let mut following = Following { inner, live, place: Place::default(), heard_at: Instant::now() };
    if let Err(error) = following.follow().await
        && !matches!(error, StoreError::Gone { .. })
    {
        following.live.context().in_scope(|| tracing::warn!(%error, "cannot see what another node drives"));
    }
    let (inner, live) = (following.inner.clone(), following.live.clone());
    drop(following);
    // What was stored between its last look and its end, and a turn that began meanwhile.
    if inner.catch_up(&live).await.is_ok() && !inner.shutdown.is_cancelled() {
        inner.mirror(&live);
    }
}

impl Following {
    async fn follow(&mut self) -> Result<(), StoreError> {
        let inner = self.inner.clone();
        let Some(mut frames) = inner.nodes().follow(&self.live.id).await else {
            // Whoever calls begins another at the next sign of life.
            tokio::time::sleep(RENEW_EVERY).await;
            return Ok(());
        };
        self.ask(true).await;
        let mut renew = tokio::time::interval_at(Instant::now() + RENEW_EVERY, RENEW_EVERY);
        renew.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = inner.shutdown.cancelled() => return Ok(()),
                frame = frames.next() => match frame {
                    None => return Ok(()),
                    Some(frame) => self.hear(&frame).await?,
                },
                _ = renew.tick() => {
                    if self.heard_at.elapsed() >= SILENCE || !inner.nodes().is_shared() {
                        self.place.lose();
                        self.live.lock().followed = Followed::Behind;
                        inner.catch_up(&self.live).await?;
                    }
                    self.ask(!self.place.is_known()).await;
                }
            }
            if !is_worth_it(&self.live.lock()) {
                return Ok(());
            }
        }
    }

    async fn ask(&self, anew: bool) {
        self.inner.nodes().tell(News::Watching { conversation: self.live.id.clone(), anew }).await;
    }

    async fn hear(&mut self, frame: &LiveFrame) -> Result<(), StoreError> {
        self.heard_at = Instant::now();
        let knew = self.place.is_known();
        if !self.place.take(frame) {
            self.live.lock().followed = Followed::Behind;
            if knew {
                // Something was lost.
                self.ask(true).await;
            }
            return Ok(());
        }
        match &frame.news {
            LiveNews::Snapshot { seq, events } => {
                if let Some(seq) = seq {
                    self.read_through(*seq).await?;
                }
                let mut state = self.live.lock();
                state.followed = Followed::InStep;
                state.hear_snapshot(events);
            }
            LiveNews::Told { events } => self.live.lock().hear_events(events),
            LiveNews::Stored { seq } => {
                self.live.lock().set_exact(true);
                let read = self.read_through(*seq).await;
                self.live.lock().set_exact(false);
                read?;
            }
            LiveNews::Beat => {}
            LiveNews::Over => {
                self.place.lose();
                self.live.lock().followed = Followed::Behind;
                self.inner.catch_up(&self.live).await?;
            }
        }
        Ok(())
    }

    async fn read_through(&self, seq: Seq) -> Result<(), StoreError> {
        let known = self.live.lock().journal.last_seq();
        if known >= Some(seq) {
            return Ok(());
        }
        self.live.refresh_through(&*self.inner.store, seq).await
    }
}

impl State {
    /// Whether a message that is told as in flight is stored already: what is told of it is late.
    fn is_stored(&self, message: MessageId) -> bool {
        let entries = self.journal.entries().iter().rev();
        entries.take_while(|stored| stored.seq >= message.0).any(|stored| matches!(&*stored.entry, Entry::Assistant(_)))
    }

    fn set_exact(&mut self, is_exact: bool) {
        if let Some(mirror) = &mut self.mirror {
            mirror.is_exact = is_exact;
        }
    }

    fn hear_snapshot(&mut self, events: &[LiveEvent]) {
        let is_late = |event: &LiveEvent| match event {
            LiveEvent::StepStarted { message_id } => self.is_stored(*message_id),
            _ => false,
        };
        if self.is_driven || events.iter().any(is_late) {
            return;
        }
        let mut out = Vec::new();
        reconcile(&mut self.mirror, events, &mut out);
        self.tell(out);
    }

    fn hear_events(&mut self, events: &[LiveEvent]) {
        if self.is_driven {
            return;
        }
        let mut out = Vec::new();
        for event in events {
            match event {
                LiveEvent::StepStarted { message_id } => {
                    if self.is_stored(*message_id) {
                        self.mirror = None;
                    } else {
                        self.mirror = Some(Mirror::of(*message_id));
                        out.push(Event::StepStarted { message_id: *message_id });
                    }
                }
                LiveEvent::StepReset => {
                    if let Some(mirror) = &mut self.mirror {
                        *mirror = Mirror::of(mirror.message());
                        out.push(Event::StepReset);
                    }
                }
                LiveEvent::Progress { call_id, progress, total, message } => out.push(Event::ToolProgress {
                    call_id: *call_id,
                    progress: *progress,
                    total: *total,
                    message: message.clone(),
                }),
                LiveEvent::Notice { is_warning, text } => {
                    out.push(Event::Notice { level: if *is_warning { "warning" } else { "info" }, text: text.clone() });
                }
                LiveEvent::Delta { .. } | LiveEvent::CallStarted { .. } | LiveEvent::Arguments { .. } => {
                    out.extend(self.mirror.as_mut().and_then(|mirror| mirror.take(event)));
                }
            }
        }
        self.tell(out);
    }
}
