//! The port, over NATS.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::{Mutex, RwLock, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::{ConversationId, UserId};
use turnwright_engine::Slots;
use turnwright_engine::nodes::{Condition, LiveFrame, News, Nodes, NotOffered, Offer, Offered, Trouble};

use crate::connection::{Line, connect, is_up};
use crate::fullness::Fullness;
use crate::names::Names;
use crate::presence::{Presence, claim_prefix};
use crate::queue::{Queue, Taken};
use crate::{JoinError, Options};

/// How long a message may take to be handed to the connection.
const HANDED_ON_WITHIN: Duration = Duration::from_secs(1);
/// The first and the longest pause after the queue could not be asked.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The other nodes, over NATS `JetStream`. [`Nodes::leave`] ends it.
pub struct NatsNodes {
    client: Client,
    line: Arc<Line>,
    names: Names,
    queue_id: String,
    replicas: usize,
    most: u64,
    queue: RwLock<Queue>,
    fullness: Arc<Fullness>,
    presence: Arc<Presence>,
    heard: Mutex<Heard>,
    /// What other nodes hand to this one.
    handed: Mutex<Subscriber>,
    is_draining: AtomicBool,
    /// Whether nodes of another queue use the same database.
    has_strangers: AtomicBool,
    ending: CancellationToken,
    tasks: TaskTracker,
}

/// What is heard, by one reader.
struct Heard {
    told: Subscriber,
    remade: watch::Receiver<u64>,
}

impl fmt::Debug for NatsNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsNodes").field("names", &self.names).finish_non_exhaustive()
    }
}

impl NatsNodes {
    /// Connects to NATS, checks that it does what is needed and that the prefix belongs to this database, makes what is
    /// missing there, and says from then on that this node lives.
    ///
    /// # Errors
    /// [`JoinError`], in words for people.
    pub async fn join(options: Options) -> Result<Self, JoinError> {
        let names = Names::of(&options.prefix)?;
        if !matches!(options.replicas, 1 | 3 | 5) {
            return Err(JoinError::Invalid { value: options.replicas.to_string(), expected: "a number of copies: 1, 3 or 5" });
        }
        let (client, line) = connect(&options).await?;
        // Before what the server answers: by then it knows of this, so that nothing is missed from here on.
        let subscribe = async |subject: String| {
            let subscribed = client.subscribe(subject.clone()).await;
            subscribed.map_err(|error| JoinError::Stream { name: subject, reason: error.to_string() })
        };
        let told = subscribe(names.told()).await?;
        let handed = Mutex::new(subscribe(names.handed_to(&options.driver)).await?);
        let context = async_nats::jetstream::new(client.clone());
        let key = random_key().map_err(|reason| JoinError::Stream { name: names.nodes(), reason })?;
        let queue_id = claim_prefix(&context, &names, options.replicas, &options.cluster, &key).await?;
        let queue = Queue::open(&context, &names, options.replicas, options.queue).await?;
        let presence = Presence::open(&context, &names, options.replicas, (key, options.node)).await?;
        let heard = Mutex::new(Heard { told, remade: subscribed(&line) });
        let (ending, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(presence.clone().keep(ending.clone()));
        let fullness = Fullness::new(client.clone(), context, names.turns(), options.queue);
        tasks.spawn(fullness.clone().keep_looking(ending.clone()));
        Ok(Self {
            client,
            line,
            names,
            queue_id,
            replicas: options.replicas,
            most: options.queue,
            queue: RwLock::new(queue),
            fullness,
            presence,
            heard,
            handed,
            is_draining: AtomicBool::new(false),
            has_strangers: AtomicBool::new(false),
            ending,
            tasks,
        })
    }

    /// By what the queue is known. Nodes over one database have one; another NATS cluster has another, and so has another prefix.
    pub fn queue_id(&self) -> &str {
        &self.queue_id
    }

    /// Takes note of whether nodes of another queue use the same database, which only the database can tell.
    pub fn note_strangers(&self, are_there: bool) {
        self.has_strangers.store(are_there, Ordering::Relaxed);
    }

    /// The next offer, where there is one and the queue can be asked.
    async fn pull(&self) -> Result<Option<Box<dyn Offered>>, String> {
        let taken = self.queue.read().await.pull().await?;
        Ok(taken.map(|taken| Box::new(taken) as Box<dyn Offered>))
    }

    /// Makes the stream again where it is gone, such as after a server lost what it kept.
    async fn mend(&self) {
        let context = async_nats::jetstream::new(self.client.clone());
        match Queue::open(&context, &self.names, self.replicas, self.most).await {
            Ok(queue) => *self.queue.write().await = queue,
            Err(error) => tracing::debug!(%error, "the queue of turns is not there yet"),
        }
    }

    async fn publish(&self, subject: String, news: Result<Vec<u8>, serde_json::Error>) {
        let Ok(body) = news else { return };
        if !self.is_shared() {
            return;
        }
        let sent = tokio::time::timeout(HANDED_ON_WITHIN, self.client.publish(subject, Bytes::from(body))).await;
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "other nodes are not told"),
            Err(_) => tracing::debug!("other nodes are not told: the connection takes nothing"),
        }
    }
}

#[async_trait]
impl Nodes for NatsNodes {
    fn is_shared(&self) -> bool {
        is_up(&self.client) && !self.ending.is_cancelled()
    }

    async fn offer(&self, offer: &Offer) -> Result<(), NotOffered> {
        if !self.is_shared() {
            let reason = self.line.wrong().unwrap_or_else(|| "NATS is not connected".to_owned());
            return Err(NotOffered::Unreachable { reason });
        }
        let put = self.queue.read().await.put(offer).await;
        if let Err(why) = &put {
            self.fullness.refused(why);
        }
        put
    }

    async fn handed(&self) -> Box<dyn Offered> {
        let mut handed = self.handed.lock().await;
        let context = async_nats::jetstream::new(self.client.clone());
        while let Some(message) = handed.next().await {
            if let Some(taken) = Taken::by_hand(message, &context, &self.names).await {
                return Box::new(taken);
            }
            tracing::debug!("what another node hands over is not understood, or it is not told that it is taken");
        }
        std::future::pending().await
    }

    async fn next(&self) -> Box<dyn Offered> {
        let mut pause = FIRST_PAUSE;
        let mut remade = subscribed(&self.line);
        loop {
            if self.is_draining.load(Ordering::Relaxed) {
                return std::future::pending().await;
            }
            let pulled = tokio::select! {
                pulled = self.pull(), if is_up(&self.client) => pulled,
                // What was asked of the connection before is lost.
                _ = remade.changed() => continue,
                () = tokio::time::sleep(LONGEST_PAUSE), if !is_up(&self.client) => continue,
            };
            match pulled {
                Ok(Some(offered)) => return offered,
                Ok(None) => pause = FIRST_PAUSE,
                Err(reason) => {
                    tracing::debug!(reason, "the queue of turns cannot be asked for the moment");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        _ = remade.changed() => {}
                    }
                    pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
                    if is_up(&self.client) {
                        self.mend().await;
                    }
                }
            }
        }
    }

    async fn tell(&self, news: News) {
        match &news {
            News::Live { conversation, frame } => {
                let subject = self.names.live(conversation);
                self.publish(subject, serde_json::to_vec(frame)).await;
            }
            News::Appended { .. } | News::Watching { .. } => self.publish(self.names.told(), serde_json::to_vec(&news)).await,
            News::Reconnected => {}
        }
    }

    async fn hear(&self) -> News {
        let mut heard = self.heard.lock().await;
        let Heard { told, remade } = &mut *heard;
        loop {
            tokio::select! {
                biased;
                changed = remade.changed() => match changed {
                    Ok(()) => return News::Reconnected,
                    Err(_) => return std::future::pending().await,
                },
                message = told.next() => match message {
                    Some(message) => match serde_json::from_slice(&message.payload) {
                        Ok(news) => return news,
                        // A newer version's; nothing that is told must be understood.
                        Err(error) => tracing::debug!(%error, "what another node told is not understood"),
                    },
                    None => return std::future::pending().await,
                },
            }
        }
    }

    async fn follow(&self, conversation: &ConversationId) -> Option<BoxStream<'static, LiveFrame>> {
        if !self.is_shared() {
            return None;
        }
        let messages = self.client.subscribe(self.names.live(conversation)).await.ok()?;
        let frames = messages.filter_map(|message| std::future::ready(serde_json::from_slice(&message.payload).ok()));
        Some(frames.boxed())
    }

    fn share_streams(&self, streams: &Slots) {
        self.presence.share_streams(streams);
    }

    fn streams_elsewhere(&self, user: &UserId) -> usize {
        self.presence.streams_elsewhere(user)
    }

    async fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.presence.drain();
        // Nobody takes what is handed any more: whoever would hand it knows at once.
        let leaving = async { self.handed.lock().await.unsubscribe().await };
        if !matches!(tokio::time::timeout(HANDED_ON_WITHIN, leaving).await, Ok(Ok(()))) {
            tracing::debug!("other nodes find out by themselves that nothing is taken here any more");
        }
    }

    async fn leave(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if is_up(&self.client) {
            self.presence.leave().await;
            drop(tokio::time::timeout(HANDED_ON_WITHIN, self.client.flush()).await);
        }
    }

    fn condition(&self) -> Condition {
        if is_up(&self.client) {
            let other = self.has_strangers.load(Ordering::Relaxed).then_some(Trouble::OtherQueue);
            let troubles = self.fullness.wrong().into_iter().chain(other).collect();
            return Condition::Connected { nodes: *self.presence.count.borrow(), troubles };
        }
        Condition::Unreachable { reason: self.line.wrong().unwrap_or_else(|| "NATS is not connected".to_owned()) }
    }
}

/// Hears of connections that are made from here on.
fn subscribed(line: &Line) -> watch::Receiver<u64> {
    let mut remade = line.remade.subscribe();
    remade.mark_unchanged();
    remade
}

fn random_key() -> Result<String, String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}
