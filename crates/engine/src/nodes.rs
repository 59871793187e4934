//! The port to the other processes ("nodes") that share the store: who drives an open turn, and who is told at once what
//! happens in it.
//!
//! What goes through it is a hint. The journal is the truth: a node that hears nothing finds in the store what it missed, a
//! node that hears a thing twice does it once. So an implementation may lose what it is told, and needs no agreement among
//! nodes; whoever drives is decided by the claim in the journal.
//!
//! There are two implementations. [`Alone`] is the one process that drives what it is sent, at no cost. The other is
//! `turnwright-nodes`, over NATS `JetStream`. Here is what both mean to an engine: `work` takes turns from the queue, `home` says
//! which node a turn is handed to since what its calls left is there, `relay`
//! tells other nodes what happens in a turn that is driven here, `mirror` tells watchers here what happens in a turn that is
//! driven elsewhere, `sweep` finds the turns for which a hint was lost.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use turnwright_core::{CallId, Claim, ConversationId, DriverId, MessageId, Seq, UserId};

use crate::Slots;

pub(crate) mod cluster;
pub(crate) mod hearing;
pub(crate) mod home;
pub(crate) mod mirror;
pub(crate) mod mirroring;
pub(crate) mod relay;
pub(crate) mod sweep;
pub(crate) mod work;

/// The other nodes, as one node sees them. Every method may be called from any number of tasks at once.
#[async_trait]
pub trait Nodes: Send + Sync + Debug {
    /// Whether other nodes can be reached now. Where they cannot, this process drives what it is sent, as if it were alone.
    fn is_shared(&self) -> bool;

    /// Offers an open turn to whichever node takes it. An offer of a conversation that is offered already is one.
    ///
    /// # Errors
    /// [`NotOffered`]: nobody was told, so whoever asked drives it, or leaves it to the sweep.
    async fn offer(&self, offer: &Offer) -> Result<(), NotOffered>;

    /// The next turn that another node hands to this one ([`Offered::hand_to`]), which has what it needs. Waits for it; for one
    /// reader. Whoever handed it is told by this that it is taken.
    async fn handed(&self) -> Box<dyn Offered>;

    /// The next turn that some node offered, also this one. Waits for it, for ever where there are no other nodes. Whoever
    /// drops the wait loses nothing: what was not handed out goes to another node.
    async fn next(&self) -> Box<dyn Offered>;

    /// Tells all other nodes. Waits at most until it is handed on, and may be lost.
    async fn tell(&self, news: News);

    /// What another node told, in the order in which it did. Waits for it; for one reader.
    async fn hear(&self) -> News;

    /// What the node that drives a conversation tells of it, from here on. `None` where other nodes cannot be reached.
    async fn follow(&self, conversation: &ConversationId) -> Option<BoxStream<'static, LiveFrame>>;

    /// From now on tells the other nodes how many of these streams each user has open at this one, soon after that changes. Counts
    /// once.
    fn share_streams(&self, streams: &Slots);

    /// How many streams a user has open at the other nodes, as they said last; what is not known to be open is not counted.
    fn streams_elsewhere(&self, user: &UserId) -> usize;

    /// Says that this node takes no more turns. It is still heard.
    async fn drain(&self);

    /// Leaves the others, after all turns were handed over.
    async fn leave(&self);

    /// How things are, for whoever watches over this node.
    fn condition(&self) -> Condition;
}

/// A turn that wants a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The conversation whose newest turn it is.
    pub conversation: ConversationId,
    /// The claim that its driver gave up in order: it counts as gone although its process lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub let_go: Option<Claim>,
    /// The process that has what the conversation's calls left at their sources, where one has and lives. Whoever takes the offer
    /// hands it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<DriverId>,
}

/// A turn that was offered, in the hands of this node until it says what became of it. Dropped without a word, or silent for
/// longer than the nodes agreed on, it goes to another node.
#[async_trait]
pub trait Offered: Send + Sync + Debug {
    /// What is offered.
    fn offer(&self) -> &Offer;
    /// This node still drives it. To be called every [`PROGRESS_EVERY`].
    async fn progress(&self);
    /// It wants no driver any more. Returns once that is known to be stored.
    async fn done(&self);
    /// Another node may have it, after a while.
    async fn give_back(&self, after: Duration);
    /// Hands it to the node whose process this is, at most within [`HANDED_WITHIN`]; whether that said that it has it. From then
    /// on it is that node's, and nothing more is to be said of it here. Where that was said and not heard both have it, and the
    /// claim decides.
    async fn hand_to(&self, home: &DriverId) -> bool;
}

/// How long a node may take to say that it has what is handed to it.
pub const HANDED_WITHIN: Duration = Duration::from_secs(1);

/// How often a node says of a turn that it drives it.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// Why nobody was offered a turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOffered {
    /// There are no other nodes.
    #[error("this process is alone")]
    Alone,
    /// They cannot be reached.
    #[error("the other nodes cannot be reached: {reason}")]
    Unreachable {
        /// Why.
        reason: String,
    },
    /// As many turns are offered as there may be.
    #[error("{most} turns wait for a node, which is the limit")]
    Full {
        /// The limit.
        most: u64,
    },
}

/// What nodes tell one another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum News {
    /// Entries were stored in a conversation, by somebody who does not drive it, or its turn came to rest.
    Appended {
        /// Which.
        conversation: ConversationId,
        /// Its last entry by then; nothing where it was deleted.
        seq: Option<Seq>,
    },
    /// Somebody watches a conversation at the node that tells this: whoever drives it, now or soon, is to tell what happens.
    /// Holds for [`WATCHED_FOR`].
    Watching {
        /// Which.
        conversation: ConversationId,
        /// Whether it must be told from a [`LiveNews::Snapshot`] on.
        anew: bool,
    },
    /// What happens in a conversation that this node drives. For those who follow it.
    Live {
        /// Which.
        conversation: ConversationId,
        /// What.
        frame: LiveFrame,
    },
    /// The other nodes can be reached again: anything may have been missed. Told by the implementation itself.
    Reconnected,
}

/// How long a word of a watcher holds.
pub const WATCHED_FOR: Duration = Duration::from_secs(5);

/// What happens in a conversation, as the node that drives it tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveFrame {
    /// By what it is told: numbers of another relay are no successors of this one's.
    pub relay: String,
    /// Counts what a relay tells, from 0.
    pub number: u64,
    /// What it tells.
    pub news: LiveNews,
}

/// What one [`LiveFrame`] tells. Entries are not in it: they come from the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveNews {
    /// Where the conversation stands: what was told before does not matter.
    Snapshot {
        /// Its last entry.
        seq: Option<Seq>,
        /// The message in flight, from its beginning.
        events: Vec<LiveEvent>,
    },
    /// Events that are not stored.
    Told {
        /// They.
        events: Vec<LiveEvent>,
    },
    /// Entries are stored up to this one.
    Stored {
        /// The last of them.
        seq: Seq,
    },
    /// Nothing happened; the relay lives.
    Beat,
    /// The conversation is not driven any more at the node that told it.
    Over,
}

/// An event that is told and not stored, see [`crate::Event`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LiveEvent {
    /// A model is asked.
    StepStarted {
        /// The message that is being made.
        message_id: MessageId,
    },
    /// What the step produced does not count.
    StepReset,
    /// More of a block.
    Delta {
        /// Of what kind.
        kind: TextKind,
        /// The block's index in the message.
        block: u32,
        /// Bytes of the block that were told before.
        offset: u64,
        /// The text.
        text: String,
    },
    /// The model begins to ask for a tool.
    CallStarted {
        /// The call.
        call_id: CallId,
        /// The block's index in the message.
        block: u32,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// More of a call's arguments.
    Arguments {
        /// The call.
        call_id: CallId,
        /// The block's index in the message.
        block: u32,
        /// Bytes of the arguments that were told before.
        offset: u64,
        /// The text.
        text: String,
    },
    /// A call says how far it is.
    Progress {
        /// The call.
        call_id: CallId,
        /// Rises with time.
        progress: f64,
        /// The value at the end, where known.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
    /// Something that people should know.
    Notice {
        /// Whether it is a warning.
        is_warning: bool,
        /// One sentence.
        text: String,
    },
}

/// What a block that grows consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// What is said.
    Text,
    /// Reasoning.
    Reasoning,
    /// A refusal.
    Refusal,
}

/// How a node and its connection to the others are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There are no others.
    Alone,
    /// The others can be reached.
    Connected {
        /// How many nodes are known to live, this one among them; `None` where that is not known yet.
        nodes: Option<usize>,
        /// What is wrong all the same.
        troubles: Vec<Trouble>,
    },
    /// They cannot; what this node drives goes on.
    Unreachable {
        /// Why, where that is known.
        reason: String,
    },
}

/// What is wrong among nodes that reach one another. Nothing is lost by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// As many turns are offered as there may be: further ones are driven where they are asked for.
    Full {
        /// The limit.
        most: u64,
    },
    /// The queue does not answer, though the connection is up: turns are driven where they are asked for.
    Silent,
    /// Nodes that share their turns by another queue use the same store.
    OtherQueue,
}

/// The one process that drives what it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alone;

#[async_trait]
impl Nodes for Alone {
    fn is_shared(&self) -> bool {
        false
    }
    async fn offer(&self, _offer: &Offer) -> Result<(), NotOffered> {
        Err(NotOffered::Alone)
    }
    async fn handed(&self) -> Box<dyn Offered> {
        std::future::pending().await
    }
    async fn next(&self) -> Box<dyn Offered> {
        std::future::pending().await
    }
    async fn tell(&self, _news: News) {}
    async fn hear(&self) -> News {
        std::future::pending().await
    }
    async fn follow(&self, _conversation: &ConversationId) -> Option<BoxStream<'static, LiveFrame>> {
        None
    }
    fn share_streams(&self, _streams: &Slots) {}
    fn streams_elsewhere(&self, _user: &UserId) -> usize {
        0
    }
    async fn drain(&self) {}
    async fn leave(&self) {}
    fn condition(&self) -> Condition {
        Condition::Alone
    }
}
