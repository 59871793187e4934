//! The stream of turns that want a driver.
//!
//! One message for each conversation at most: it is there from the offer until the node that took it says that the turn wants
//! no driver any more. Whoever took it says every second that it goes on; who is silent for [`SILENCE`] has lost it to
//! another node. Who took it may hand it to another node, which says so from then on.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{AckKind, Context, Message};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use turnwright_core::{ConversationId, DriverId};
use turnwright_engine::nodes::{HANDED_WITHIN, NotOffered, Offer, Offered};

use crate::JoinError;
use crate::names::Names;

/// How long a node may be silent about a turn that it took.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);
/// How long a node waits for a turn before it asks again.
const PULL_FOR: Duration = Duration::from_secs(10);
/// How much later than that its answer may come, before what was asked counts as lost.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long the server may take to store an offer, or what became of one.
const STORED_WITHIN: Duration = Duration::from_secs(2);
/// The name of the consumer that all nodes pull from.
const CONSUMER: &str = "drivers";

/// The queue, as one node uses it.
#[derive(Debug)]
pub(crate) struct Queue {
    context: Context,
    consumer: Consumer<pull::Config>,
    names: Names,
    most: u64,
}

impl Queue {
    /// Makes the stream and its consumer where they are not there.
    pub(crate) async fn open(context: &Context, names: &Names, replicas: usize, most: u64) -> Result<Self, JoinError> {
        let name = names.turns();
        let wrong = |reason: String| JoinError::Stream { name: name.clone(), reason };
        let config = Config {
            name: name.clone(),
            description: Some("turns of turnwright that want a driver".to_owned()),
            subjects: vec![names.all_turns()],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            num_replicas: replicas,
            max_messages: i64::try_from(most).unwrap_or(i64::MAX),
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            ..Config::default()
        };
        context.create_or_update_stream(config).await.map_err(|error| wrong(error.to_string()))?;
        let consumer = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: SILENCE,
            max_ack_pending: -1,
            ..pull::Config::default()
        };
        let consumer =
            context.create_consumer_on_stream(consumer, name.clone()).await.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { context: context.clone(), consumer, names: names.clone(), most })
    }

    /// Stores an offer. One that is there already is the same.
    pub(crate) async fn put(&self, offer: &Offer) -> Result<(), NotOffered> {
        let unreachable = |reason: String| NotOffered::Unreachable { reason };
        let body = serde_json::to_vec(offer).map_err(|error| unreachable(error.to_string()))?;
        let publish = async {
            let stored = self.context.publish(self.names.turn(&offer.conversation), body.into()).await?;
            stored.await
        };
        match tokio::time::timeout(STORED_WITHIN, publish).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                let reason = whole(&error);
                if reason.contains("maximum messages per subject exceeded") {
                    return Ok(());
                }
                if reason.contains("maximum messages exceeded") {
                    return Err(NotOffered::Full { most: self.most });
                }
                Err(unreachable(reason))
            }
            Err(_) => Err(unreachable(format!("an offer was not stored within {} s", STORED_WITHIN.as_secs()))),
        }
    }

    /// The next offer; none where there was none for a while.
    pub(crate) async fn pull(&self) -> Result<Option<Taken>, String> {
        // Without heartbeats: async-nats 0.51 falls asleep at the first, and wakes up at the end of the wait alone.
        let batch = self.consumer.batch().max_messages(1).expires(PULL_FOR);
        let mut batch = batch.messages().await.map_err(|error| whole(&error))?;
        let next = tokio::time::timeout(PULL_FOR + ANSWER_WITHIN, batch.next());
        match next.await.map_err(|_| "NATS did not answer whether a turn is there".to_owned())? {
            None => Ok(None),
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(message)) => match serde_json::from_slice(&message.payload) {
                Ok(offer) => Ok(Some(Taken { offer, message, names: self.names.clone(), came: Came::ByQueue })),
                Err(error) => {
                    tracing::error!(%error, subject = %message.subject, "a message in the queue of turns is not an offer; it is dropped");
                    message.ack_with(AckKind::Term).await.map_err(|error| error.to_string())?;
                    Ok(None)
                }
            },
        }
    }
}

/// What one node hands to another: the offer, and where is said what becomes of it, which any node may say.
#[derive(Debug, Serialize, Deserialize)]
struct Handed {
    offer: Offer,
    said_at: String,
}

/// How an offer came into the hands of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    ByQueue,
    /// By another node, which may still have it where it did not hear that it is taken.
    ByHand,
}

/// An offer in the hands of this node.
#[derive(Debug)]
pub(crate) struct Taken {
    offer: Offer,
    message: Message,
    names: Names,
    came: Came,
}

impl Taken {
    /// What another node hands to this one, which hears by this that it is taken; `None` where it is not understood.
    pub(crate) async fn by_hand(handed: async_nats::Message, context: &Context, names: &Names) -> Option<Self> {
        let Handed { offer, said_at } = serde_json::from_slice(&handed.payload).ok()?;
        context.client().publish(handed.reply.clone()?, handed.payload.slice(..0)).await.ok()?;
        let message = async_nats::Message { reply: Some(said_at.into()), ..handed };
        let message = Message { message, context: context.clone() };
        Some(Self { offer, message, names: names.clone(), came: Came::ByHand })
    }

    fn conversation(&self) -> &ConversationId {
        &self.offer.conversation
    }

    async fn say(&self, kind: AckKind) {
        if let Err(error) = self.message.ack_with(kind).await {
            tracing::debug!(conversation = %self.conversation(), %error, "NATS was not told how a turn is");
        }
    }
}

#[async_trait]
impl Offered for Taken {
    fn offer(&self) -> &Offer {
        &self.offer
    }

    async fn progress(&self) {
        if let Ok(said) = tokio::time::timeout(SILENCE / 2, self.say(AckKind::Progress)).await {
            return said;
        }
        tracing::debug!(conversation = %self.conversation(), "NATS cannot be told that a turn goes on");
    }

    async fn done(&self) {
        let done = tokio::time::timeout(STORED_WITHIN, self.message.double_ack()).await;
        if !matches!(done, Ok(Ok(()))) {
            // It comes again, to a node that sees that there is nothing to do.
            tracing::debug!(conversation = %self.conversation(), "NATS was not told that a turn is over");
        }
    }

    async fn give_back(&self, after: Duration) {
        if self.came == Came::ByHand {
            // Nobody may have it but who handed it: that nobody says anything of it is enough.
            return;
        }
        let after = (!after.is_zero()).then_some(after);
        // Where NATS does not hear, it finds out by the silence.
        drop(tokio::time::timeout(STORED_WITHIN, self.say(AckKind::Nak(after))).await);
    }

    async fn hand_to(&self, home: &DriverId) -> bool {
        let Some(said_at) = self.message.reply.as_ref().map(ToString::to_string) else { return false };
        let Ok(body) = serde_json::to_vec(&Handed { offer: self.offer.clone(), said_at }) else { return false };
        let client = self.message.context.client();
        // A node that takes none, or is not there, is known at once: nobody hears this.
        let asked = client.request(self.names.handed_to(home), body.into());
        matches!(tokio::time::timeout(HANDED_WITHIN, asked).await, Ok(Ok(_)))
    }
}

/// An error with what it comes from: which of NATS' answers it was is in there alone.
fn whole(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}
