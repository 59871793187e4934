//! Nodes in one process: a queue and subjects in memory, whose messages can be lost and whose connections break.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::{Notify, mpsc};
use turnwright_core::{ConversationId, DriverId, UserId};
use turnwright_engine::Slots;
use turnwright_engine::nodes::{Condition, LiveFrame, News, Nodes, NotOffered, Offer, Offered};

/// What nodes share.
#[derive(Debug, Clone, Default)]
pub struct Exchange(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    offered: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Offer>,
    /// With the number of the node that holds each.
    held: Vec<(usize, Offer)>,
    nodes: Vec<Ears>,
    /// Who took the last offer: the others come first for the next.
    last: Option<usize>,
    frames_to_lose: usize,
    offers_to_lose: usize,
    handing: Handing,
    frames: usize,
}

/// What becomes of turns that one node hands to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Handing {
    /// They come, and that is heard.
    #[default]
    Works,
    /// They do not come.
    IsLost,
    /// They come, and that is not heard.
    IsUnheard,
    /// They come twice.
    IsDoubled,
}

#[derive(Debug)]
struct Ears {
    told: mpsc::UnboundedSender<News>,
    handed: mpsc::UnboundedSender<Offer>,
    driver: DriverId,
    takes: bool,
    live: Vec<(ConversationId, mpsc::UnboundedSender<LiveFrame>)>,
    is_connected: bool,
    streams: Option<Slots>,
}

/// One node of an [`Exchange`].
#[derive(Debug)]
pub struct TestNode {
    number: usize,
    shared: Arc<Shared>,
    told: tokio::sync::Mutex<mpsc::UnboundedReceiver<News>>,
    handed: tokio::sync::Mutex<mpsc::UnboundedReceiver<Offer>>,
    is_draining: AtomicBool,
}

impl Exchange {
    /// One more node, whose process this is.
    pub fn node(&self, driver: &DriverId) -> Arc<TestNode> {
        let (sender, told) = mpsc::unbounded_channel();
        let (hands, handed) = mpsc::unbounded_channel();
        let mut state = self.0.state();
        let driver = driver.clone();
        state.nodes.push(Ears {
            told: sender,
            handed: hands,
            driver,
            takes: true,
            live: Vec::new(),
            is_connected: true,
            streams: None,
        });
        let number = state.nodes.len().saturating_sub(1);
        let (told, handed) = (tokio::sync::Mutex::new(told), tokio::sync::Mutex::new(handed));
        Arc::new(TestNode { number, shared: self.0.clone(), told, handed, is_draining: AtomicBool::new(false) })
    }

    /// What becomes from here on of turns that one node hands to another.
    pub fn set_handing(&self, handing: Handing) {
        self.0.state().handing = handing;
    }

    /// The next so many frames reach nobody.
    pub fn lose_frames(&self, count: usize) {
        self.0.state().frames_to_lose = count;
    }

    /// The next so many offers count as stored and are not.
    pub fn lose_offers(&self, count: usize) {
        self.0.state().offers_to_lose = count;
    }

    /// How many frames were told.
    pub fn frames(&self) -> usize {
        self.0.state().frames
    }

    /// The offers that wait and those that are held.
    pub fn offers(&self) -> (usize, usize) {
        let state = self.0.state();
        (state.waiting.len(), state.held.len())
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a node holds waits for another.
    fn release(&self, is_meant: impl Fn(&(usize, Offer)) -> bool) {
        let mut state = self.state();
        let held = std::mem::take(&mut state.held);
        let (released, kept): (Vec<_>, Vec<_>) = held.into_iter().partition(is_meant);
        state.held = kept;
        state.waiting.extend(released.into_iter().map(|(_, offer)| offer));
        drop(state);
        self.offered.notify_waiters();
    }
}

impl TestNode {
    /// The connection breaks; what this node holds goes to others.
    pub fn cut(&self) {
        if let Some(ears) = self.shared.state().nodes.get_mut(self.number) {
            ears.is_connected = false;
        }
        self.shared.release(|(node, _)| *node == self.number);
    }

    /// It is there again.
    pub fn mend(&self) {
        if let Some(ears) = self.shared.state().nodes.get_mut(self.number) {
            ears.is_connected = true;
            drop(ears.told.send(News::Reconnected));
        }
        self.shared.offered.notify_waiters();
    }
}

#[async_trait]
impl Nodes for TestNode {
    fn is_shared(&self) -> bool {
        self.shared.state().nodes.get(self.number).is_some_and(|ears| ears.is_connected)
    }

    async fn offer(&self, offer: &Offer) -> Result<(), NotOffered> {
        if !self.is_shared() {
            return Err(NotOffered::Unreachable { reason: "the connection is cut".to_owned() });
        }
        {
            let mut state = self.shared.state();
            let is_there = |other: &Offer| other.conversation == offer.conversation;
            if state.offers_to_lose > 0 {
                state.offers_to_lose -= 1;
            } else if !state.waiting.iter().any(is_there) && !state.held.iter().any(|(_, other)| is_there(other)) {
                state.waiting.push_back(offer.clone());
            }
        }
        self.shared.offered.notify_waiters();
        Ok(())
    }

    async fn handed(&self) -> Box<dyn Offered> {
        match self.handed.lock().await.recv().await {
            Some(offer) => Box::new(TestOffer { node: self.number, offer, shared: self.shared.clone(), by_hand: true }),
            None => std::future::pending().await,
        }
    }

    async fn next(&self) -> Box<dyn Offered> {
        loop {
            let offered = self.shared.offered.notified();
            tokio::pin!(offered);
            offered.as_mut().enable();
            let took_last = self.shared.state().last == Some(self.number);
            if took_last {
                tokio::task::yield_now().await;
            }
            if self.is_shared() && !self.is_draining.load(Ordering::Relaxed) {
                let mut state = self.shared.state();
                if let Some(offer) = state.waiting.pop_front() {
                    state.last = Some(self.number);
                    state.held.push((self.number, offer.clone()));
                    return Box::new(TestOffer { node: self.number, offer, shared: self.shared.clone(), by_hand: false });
                }
            }
            offered.await;
        }
    }

    async fn tell(&self, news: News) {
        if !self.is_shared() {
            return;
        }
        let mut state = self.shared.state();
        if let News::Live { conversation, frame } = &news {
            state.frames += 1;
            if state.frames_to_lose > 0 {
                state.frames_to_lose -= 1;
                return;
            }
            for (_, ears) in state.nodes.iter_mut().enumerate().filter(|(number, _)| *number != self.number) {
                let is_connected = ears.is_connected;
                ears.live.retain(|(of, frames)| of != conversation || (is_connected && frames.send(frame.clone()).is_ok()));
            }
            return;
        }
        for (number, ears) in state.nodes.iter().enumerate() {
            if number != self.number && ears.is_connected {
                drop(ears.told.send(news.clone()));
            }
        }
    }

    async fn hear(&self) -> News {
        match self.told.lock().await.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    async fn follow(&self, conversation: &ConversationId) -> Option<BoxStream<'static, LiveFrame>> {
        if !self.is_shared() {
            return None;
        }
        let (sender, frames) = mpsc::unbounded_channel();
        self.shared.state().nodes.get_mut(self.number)?.live.push((conversation.clone(), sender));
        let next = async |mut frames: mpsc::UnboundedReceiver<LiveFrame>| Some((frames.recv().await?, frames));
        Some(futures_util::stream::unfold(frames, next).boxed())
    }

    fn share_streams(&self, streams: &Slots) {
        if let Some(ears) = self.shared.state().nodes.get_mut(self.number) {
            ears.streams = Some(streams.clone());
        }
    }

    fn streams_elsewhere(&self, user: &UserId) -> usize {
        if !self.is_shared() {
            return 0;
        }
        let state = self.shared.state();
        let others = state.nodes.iter().enumerate().filter(|(number, ears)| *number != self.number && ears.is_connected);
        let streams = others.filter_map(|(_, ears)| ears.streams.as_ref());
        streams.filter_map(|streams| streams.busiest(usize::MAX, usize::MAX).get(user).copied()).sum()
    }

    async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        if let Some(ears) = self.shared.state().nodes.get_mut(self.number) {
            ears.takes = false;
        }
    }

    async fn leave(&self) {
        self.cut();
    }

    fn condition(&self) -> Condition {
        if self.is_shared() {
            return Condition::Connected { nodes: Some(self.shared.state().nodes.len()), troubles: Vec::new() };
        }
        Condition::Unreachable { reason: "the connection is cut".to_owned() }
    }
}

#[derive(Debug)]
struct TestOffer {
    node: usize,
    offer: Offer,
    shared: Arc<Shared>,
    by_hand: bool,
}

#[async_trait]
impl Offered for TestOffer {
    fn offer(&self) -> &Offer {
        &self.offer
    }
    async fn progress(&self) {}
    async fn done(&self) {
        self.shared.state().held.retain(|held| *held != (self.node, self.offer.clone()));
    }
    async fn give_back(&self, after: Duration) {
        if self.by_hand {
            return;
        }
        tokio::time::sleep(after).await;
        self.shared.release(|held| *held == (self.node, self.offer.clone()));
    }
    async fn hand_to(&self, home: &DriverId) -> bool {
        let mut state = self.shared.state();
        let handing = state.handing;
        let is_it = |ears: &Ears| ears.driver == *home && ears.is_connected && ears.takes;
        let Some(at) = state.nodes.iter().position(is_it) else { return false };
        let times = match handing {
            Handing::IsLost => 0,
            Handing::Works | Handing::IsUnheard => 1,
            Handing::IsDoubled => 2,
        };
        let own = (self.node, self.offer.clone());
        if handing != Handing::IsUnheard && times > 0 {
            state.held.iter_mut().filter(|held| **held == own).for_each(|held| held.0 = at);
        }
        if let Some(ears) = state.nodes.get(at) {
            (0..times).for_each(|_| drop(ears.handed.send(self.offer.clone())));
        }
        times > 0 && handing != Handing::IsUnheard
    }
}
