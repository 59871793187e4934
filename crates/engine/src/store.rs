//! The port to storage: journals, and the records that are written with them.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use turnwright_core::budgets::{Amount, Most, Period};
use turnwright_core::{ConversationId, DriverId, Entry, Seq, StoredEntry, TurnId, UserId};

use crate::place::Place;

/// Where conversations are kept. Every method may be called from any number of tasks and processes at once.
#[async_trait]
pub trait Store: Send + Sync + Debug {
    /// Creates a conversation.
    ///
    /// # Errors
    /// [`StoreError::Exists`], where one has this id.
    async fn create(&self, conversation: ConversationRecord) -> Result<(), StoreError>;

    /// A conversation's record; `None` where there is none.
    async fn conversation(&self, id: &ConversationId) -> Result<Option<ConversationRecord>, StoreError>;

    /// Replaces the title and settings of the conversation that is meant, where they still are `of`.
    ///
    /// # Errors
    /// [`StoreError::Gone`], where it is not there, also where another has its name by now; [`StoreError::Changed`], where they are
    /// others.
    async fn update(&self, id: &ConversationId, chosen: Chosen, of: (&Incarnation, &Chosen)) -> Result<(), StoreError>;

    /// Conversations of one owner, in the order of their [`Place`]s. One that cannot be read is left out, and the log told of it.
    ///
    /// # Errors
    /// Where the store fails.
    async fn conversations(&self, page: Page<'_>) -> Result<Vec<ConversationRecord>, StoreError>;

    /// Removes whatever conversation has this name, as [`Store::delete_meant`] does.
    ///
    /// # Errors
    /// [`StoreError::Gone`], where there is none.
    async fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        let found = self.conversation(id).await?.ok_or_else(|| StoreError::Gone { conversation: id.clone() })?;
        self.delete_meant(id, &found.incarnation(), None).await
    }

    /// Removes the conversation that is meant with its entries and side records: the answers to idempotency keys, its
    /// [`CONVERSATION_DOCUMENTS`]. Where `of` is given, only where its title and settings still are these.
    ///
    /// # Errors
    /// [`StoreError::Gone`], where it is not there, also where another has its name by now; [`StoreError::Changed`], where they are
    /// others.
    async fn delete_meant(&self, id: &ConversationId, meant: &Incarnation, of: Option<&Chosen>) -> Result<(), StoreError>;

    /// Appends entries and writes side records, all or nothing. Durable when it returns.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], where the journal's next place is not [`Append::at`]; nothing is written then.
    /// [`StoreError::Gone`], where there is no such conversation. [`StoreError::Repeated`], where one of its idempotency keys
    /// has an answer already, through whichever conversation; nothing is written then either. [`StoreError::OverBudget`], where a
    /// reservation is not within its ceilings, likewise, and [`StoreError::TooManyTurns`], where [`SideRecord::RunningTurns`] says so.
    async fn append(&self, append: Append) -> Result<Vec<StoredEntry>, StoreError>;

    /// Creates a conversation with the first entries of another and the files that these name, all or nothing. What came to the other
    /// since, or is beside it, is the other's alone.
    ///
    /// # Errors
    /// [`StoreError::Exists`], where there is one with its id; [`StoreError::Gone`], where the other is not there, is another one of
    /// its name by now, or has not so many.
    async fn copy(&self, copy: Copied) -> Result<(), StoreError> {
        let Copied { conversation, of, meant, through, holds } = copy;
        let count = usize::try_from(through.get()).unwrap_or(usize::MAX);
        let stored = self.entries(&of, Seq::FIRST, count).await?;
        let found = self.newest(&of, &Arc::default()).await?.incarnation;
        if stored.last().map(|last| last.seq) != Some(through) || found != Some(meant) {
            return Err(StoreError::Gone { conversation: of });
        }
        let times_ms = stored.iter().map(|stored| stored.at_ms).collect();
        let entries: Vec<Entry> = stored.into_iter().map(|stored| Arc::unwrap_or_clone(stored.entry)).collect();
        let (id, at_ms) = (conversation.id.clone(), conversation.updated_at_ms);
        let mut side = vec![SideRecord::Create(conversation), SideRecord::Times(times_ms)];
        side.extend(holds.into_iter().map(|artifact| SideRecord::Holds { artifact }));
        self.append(Append { conversation: id, at: Seq::FIRST, entries, at_ms, side }).await.map(drop)
    }

    /// The entries from `from` on, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError::Gone`], where there is no such conversation; [`StoreError::Newer`] or [`StoreError::Damaged`], where
    /// an entry cannot be read.
    async fn entries(&self, id: &ConversationId, from: Seq, limit: usize) -> Result<Vec<StoredEntry>, StoreError>;

    /// The place of the last entry; `None` where there is none or no such conversation.
    async fn last_seq(&self, id: &ConversationId) -> Result<Option<Seq>, StoreError>;

    /// The same, with what is chosen for the conversation where that is other than `known`.
    async fn newest(&self, id: &ConversationId, known: &Arc<Chosen>) -> Result<Newest, StoreError>;

    /// Whether an entry may take back what others show: a message is hidden, or a turn taken up again. A store that does not
    /// know says so too; its conversations are then read whole where a part would do.
    ///
    /// # Errors
    /// Where the store fails.
    async fn takes_back(&self, _id: &ConversationId) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The turns that are not over, over all conversations. One that cannot be read is left out, and the log told of it.
    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError>;

    /// The answer that an idempotency key was given, with the fingerprint of its request.
    async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, StoreError>;

    /// The last of the idempotency keys from `from` on that are before `before`, by their bytes.
    async fn last_key(&self, from: &str, before: &str) -> Result<Option<String>, StoreError>;

    /// Rises when another process may have written; looked at by whoever waits for entries. Notice takes at most 100 ms.
    fn foreign_writes(&self) -> watch::Receiver<u64>;

    /// What was spent on models in a time and what is reserved for calls under way, by one user, or by all where `None`. What is
    /// there once a conversation was deleted too.
    ///
    /// # Errors
    /// Where the store fails, or keeps no ledger.
    async fn balance(&self, _owner: Option<&UserId>, _period: Period) -> Result<Balance, StoreError> {
        Err(StoreError::Unusable { reason: "this store keeps no ledger of what was spent".to_owned() })
    }

    /// This process as a driver. Alive as long as the store is open.
    fn driver(&self) -> &DriverId;

    /// Whether a driver's process is alive, also this one.
    async fn is_alive(&self, driver: &DriverId) -> Result<bool, StoreError>;

    /// The number of the right by which this process drives, where it has it at this moment; looked at directly before each
    /// effect, on a monotonic clock, without asking anybody. Where it ran out and was taken again it is another number: what
    /// was begun under the one before may be another driver's now. A store whose drivers are alive for as long as their
    /// processes has one number.
    fn lease(&self) -> Option<u64> {
        Some(0)
    }

    /// Waits until the right of this number is not held any more, on the same clock as [`Store::lease`]; for ever where it does not
    /// run out.
    async fn lease_over(&self, _lease: u64) {
        std::future::pending::<()>().await;
    }

    /// Rises when another driver was found to be alive no more: what it drove wants another. A store that does not look for that
    /// never says so.
    fn departures(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }

    /// Whether the process of a driver may still run when [`Store::is_alive`] says that it is not alive: its lease ran out. It needs
    /// a moment then to stop what it began. Not so where it is the end of the process that is seen.
    fn outlives_its_lease(&self) -> bool {
        false
    }

    /// Whether something can be stored at this moment, for whoever is asked by a probe: by a write, or by one of a moment ago.
    /// It waits for no outage to be over.
    ///
    /// # Errors
    /// What stands in the way, in words for the operator.
    async fn can_store(&self) -> Result<(), StoreError>;

    /// Ends the writer after what it has in hand.
    async fn close(&self);
}

/// The kind of the documents that belong to conversations and go with them: their keys begin with the conversation's name and
/// a `/`.
pub const CONVERSATION_DOCUMENTS: &str = "of_conversation";

/// One append.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// Which conversation.
    pub conversation: ConversationId,
    /// The place that the first entry must take.
    pub at: Seq,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The time to store with them, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// What is written in the same transaction.
    pub side: Vec<SideRecord>,
}

impl Append {
    /// The time to store with each entry, in their order.
    pub fn times_ms(&self) -> Vec<u64> {
        let own = self.side.iter().find_map(|record| match record {
            SideRecord::Times(times_ms) => Some(times_ms.as_slice()),
            SideRecord::Create(_)
            | SideRecord::Of(_)
            | SideRecord::Title(_)
            | SideRecord::TurnOpen { .. }
            | SideRecord::TurnOver
            | SideRecord::Document { .. }
            | SideRecord::Holds { .. }
            | SideRecord::HoldsAs { .. }
            | SideRecord::RunningTurns { .. }
            | SideRecord::Reserve(_)
            | SideRecord::Settle { .. }
            | SideRecord::Idempotent { .. } => None,
        });
        let mut own = own.unwrap_or_default().iter();
        self.entries.iter().map(|_| own.next().copied().unwrap_or(self.at_ms)).collect()
    }
}

/// A conversation that begins with the first entries of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Copied {
    /// The one that begins so.
    pub conversation: ConversationRecord,
    /// The other's name.
    pub of: ConversationId,
    /// Which of that name.
    pub meant: Incarnation,
    /// The last entry that both have.
    pub through: Seq,
    /// The artifacts that these entries name.
    pub holds: Vec<String>,
}

/// A record that is written with entries, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub enum SideRecord {
    /// Creates the conversation before the entries are appended, in the same transaction. [`StoreError::Exists`], and
    /// nothing written, where there is one with the id; [`Append::at`] is the first place then.
    Create(ConversationRecord),
    /// Which conversation of the name is meant. [`StoreError::Gone`], and nothing written, where there is another one now: that is
    /// looked at before [`Append::at`].
    Of(Incarnation),
    /// When each of the entries happened, in their order, where that is not [`Append::at_ms`]: they were taken over from
    /// elsewhere. In milliseconds since 1970 UTC.
    Times(Vec<u64>),
    /// Gives the conversation a title, or takes it away.
    Title(Option<String>),
    /// Sets the conversation's row in the index of open turns.
    TurnOpen {
        /// Which turn.
        turn: TurnId,
        /// Whether only a person can move it on.
        parked: bool,
        /// What may take it up again.
        kept_by: KeptBy,
    },
    /// Removes the conversation's row from the index of open turns.
    TurnOver,
    /// Stores a document ([`crate::Documents`]), or removes it where there is no body. One of [`CONVERSATION_DOCUMENTS`] goes
    /// with its conversation.
    Document {
        /// Its kind.
        kind: String,
        /// Its key.
        key: String,
        /// Its text.
        body: Option<String>,
    },
    /// The conversation holds an artifact of its owner from here on; nothing, where there is none with this id.
    Holds {
        /// The artifact's id.
        artifact: String,
    },
    /// The conversation holds every artifact that another holds, from here on, and has copies of the documents beside it;
    /// [`StoreError::Gone`] of the other, and nothing written, where it is not there. It is not removed in between.
    HoldsAs {
        /// The other.
        other: ConversationId,
    },
    /// The user's other conversations must have fewer turns than this that are not over and wait for no person. Looked at in the
    /// append's own transaction, so that it holds for those who begin turns at the same instant, in whichever process.
    RunningTurns {
        /// Whose turns count.
        owner: UserId,
        /// As many as this are too many.
        most: usize,
    },
    /// Reserves what a model call may come to, within what was spent and is reserved; in the place of what the conversation has
    /// reserved for the same purpose. It counts on its day until it is settled, whatever becomes of its process: nobody knows
    /// better what the call came to.
    Reserve(Reservation),
    /// What a reservation of the conversation came to: it is spent, on the reservation's day and by its owner. Nothing where it is
    /// not there any more. Done before anything is reserved.
    Settle {
        /// Its purpose.
        purpose: String,
        /// What the call came to.
        amount: Amount,
    },
    /// The answer to give when the same request comes again.
    Idempotent {
        /// The key as the client sent it, made unique per route by the caller.
        key: String,
        /// Fingerprint and answer.
        record: Idempotent,
    },
}

/// What a model call may come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// What the call is for; a conversation has one for each purpose.
    pub purpose: String,
    /// Who spends it.
    pub owner: UserId,
    /// On which day it counts, in days since 1970-01-01 UTC.
    pub day: u64,
    /// What it may come to.
    pub amount: Amount,
    /// What it must be within, together with what was spent and is reserved.
    pub within: Vec<Ceiling>,
}

/// The most that may be spent in a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// By whom; by all together where `None`.
    pub owner: Option<UserId>,
    /// On which days.
    pub period: Period,
    /// How much.
    pub most: Most,
}

/// What a ledger says of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balance {
    /// What calls came to.
    pub spent: Amount,
    /// What calls may come to that are not settled.
    pub reserved: Amount,
}

/// What takes an open turn up again at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBy {
    /// Every server (`serve`).
    Servers,
    /// Only who asks for its conversation (`chat`).
    Chat,
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotent {
    /// A hash of the request, to tell a repetition from another request with the same key.
    pub fingerprint: String,
    /// The answer, JSON text.
    pub answer: String,
}

/// A turn that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its conversation.
    pub conversation: ConversationId,
    /// To whom that belongs.
    pub owner: UserId,
    /// Which turn.
    pub turn: TurnId,
    /// Whether only a person can move it on.
    pub parked: bool,
    /// What may take it up again.
    pub kept_by: KeptBy,
    /// The place of its conversation's last entry.
    pub last: Option<Seq>,
}

/// What is known of a conversation besides its journal.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationRecord {
    /// Its name.
    pub id: ConversationId,
    /// To whom it belongs.
    pub owner: UserId,
    /// A title; made from the first message where nobody gave one.
    pub title: Option<String>,
    /// The conversation's own settings over the configuration's, a JSON object text: see `SettingsOverlay`.
    pub settings: String,
    /// When it was created, in milliseconds since 1970 UTC.
    pub created_at_ms: u64,
    /// When its newest entry was stored, in milliseconds since 1970 UTC.
    pub updated_at_ms: u64,
}

impl ConversationRecord {
    /// Where it is in a list.
    pub fn place(&self) -> Place {
        Place { updated_at_ms: self.updated_at_ms, id: self.id.clone() }
    }

    /// Which of its name it is.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation::new(self.created_at_ms, self.owner.clone())
    }

    /// What is chosen for it.
    pub fn chosen(&self) -> Chosen {
        Chosen { title: self.title.clone(), settings: self.settings.clone() }
    }
}

/// Which conversation of a name is meant: once it is deleted another may be made under the same name, also by another user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incarnation {
    created_at_ms: u64,
    owner: UserId,
}

impl Incarnation {
    /// That of a conversation that `owner` made at this time, in milliseconds since 1970 UTC.
    pub fn new(created_at_ms: u64, owner: UserId) -> Self {
        // No database stores a later one.
        Self { created_at_ms: created_at_ms.min(i64::MAX.unsigned_abs()), owner }
    }

    /// When it was made, in milliseconds since 1970 UTC.
    pub fn created_at_ms(&self) -> u64 {
        self.created_at_ms
    }

    /// Whose it is.
    pub fn owner(&self) -> &UserId {
        &self.owner
    }
}

/// What is chosen for a conversation, as it is stored: see [`ConversationRecord`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// A title, where it has one.
    pub title: Option<String>,
    /// The conversation's own settings, a JSON object text.
    pub settings: String,
}

impl Chosen {
    /// This, where it is other than what is known.
    pub fn unless_known(title: Option<&str>, settings: &str, known: &Self) -> Option<Self> {
        let is_known = known.title.as_deref() == title && known.settings == settings;
        (!is_known).then(|| Self { title: title.map(str::to_owned), settings: settings.to_owned() })
    }
}

/// How far a conversation is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Newest {
    /// The place of the last entry; `None` where there is none or no such conversation.
    pub last: Option<Seq>,
    /// What is chosen for it, where that is other than was known.
    pub chosen: Option<Chosen>,
    /// Which of its name it is; `None` where there is no such conversation.
    pub incarnation: Option<Incarnation>,
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<'a> {
    /// Whose.
    pub owner: &'a UserId,
    /// Goes on behind this place, whatever became of its conversation; from the start where `None`.
    pub after: Option<&'a Place>,
    /// At most so many.
    pub limit: usize,
    /// Whether those that are not pinned are left out.
    pub only_pinned: bool,
}

/// Why the store did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else appended first. Read what is new and try again.
    #[error("somebody else appended first: the next place is {next}")]
    Conflict {
        /// The journal's next place.
        next: Seq,
    },
    /// There is no such conversation.
    #[error("there is no conversation `{conversation}`")]
    Gone {
        /// Its name.
        conversation: ConversationId,
    },
    /// There is one with this id.
    #[error("there is a conversation `{conversation}` already")]
    Exists {
        /// Its name.
        conversation: ConversationId,
    },
    /// Its title or its settings are others than the change was made of.
    #[error("conversation `{conversation}` was changed since; read it again")]
    Changed {
        /// Its name.
        conversation: ConversationId,
    },
    /// It is other than the change was made of.
    #[error("{what} was changed since; read it again")]
    Altered {
        /// What, and its name.
        what: String,
    },
    /// Nobody could come in any more who may do everything.
    #[error("`{name}` is the last admin who can come in; make somebody else an admin first")]
    LastAdmin {
        /// The user's name.
        name: String,
    },
    /// Somebody else has this name.
    #[error("the name `{what}` is taken")]
    Taken {
        /// The name.
        what: String,
    },
    /// There is no such thing.
    #[error("there is no {what}")]
    Missing {
        /// What, and its name.
        what: String,
    },
    /// An append of this idempotency key was stored before; ask for its answer.
    #[error("a request with the idempotency key `{key}` was stored before")]
    Repeated {
        /// The key.
        key: String,
    },
    /// A reservation is not within its ceilings.
    #[error("the budget does not allow it")]
    OverBudget,
    /// As many turns of the user run as may.
    #[error("the user has as many turns that run as may")]
    TooManyTurns,
    /// A newer version wrote this.
    #[error("{what} was written by a newer version of turnwright; use that version or newer")]
    Newer {
        /// The database, or an entry.
        what: String,
    },
    /// Something stored cannot be read.
    #[error("{what} cannot be read: {reason}")]
    Damaged {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
    /// The database cannot be used: read-only, locked, full, not a database.
    #[error("{reason}")]
    Unusable {
        /// Why, with the file's name.
        reason: String,
    },
    /// It was closed, since what used it ends. Nothing was stored.
    #[error("the store is closed, since what used it ends")]
    Closed,
}

impl StoreError {
    /// What a client is told, where the error's own words name the database's host and user, or a file of the server.
    pub fn in_general(&self) -> Option<&'static str> {
        match self {
            Self::Unusable { .. } => Some("the server's database cannot be used at the moment; the server's log says why"),
            Self::Damaged { .. } => Some("something that is stored cannot be read; the server's log says what"),
            Self::Newer { .. } => Some("it was stored by a newer version of the server; the server's log says more"),
            Self::Conflict { .. }
            | Self::Gone { .. }
            | Self::Exists { .. }
            | Self::Changed { .. }
            | Self::Altered { .. }
            | Self::LastAdmin { .. }
            | Self::Taken { .. }
            | Self::Missing { .. }
            | Self::Repeated { .. }
            | Self::OverBudget
            | Self::TooManyTurns
            | Self::Closed => None,
        }
    }

    /// The words for a client that may be anybody's: [`StoreError::in_general`] where there is such, else its own.
    pub fn for_clients(&self) -> String {
        self.in_general().map_or_else(|| self.to_string(), str::to_owned)
    }

    /// Whether something stored is the reason, which the next time finds as it is, and of which the rest of the store knows nothing.
    pub fn is_of_what_is_stored(&self) -> bool {
        matches!(self, Self::Newer { .. } | Self::Damaged { .. })
    }
}
