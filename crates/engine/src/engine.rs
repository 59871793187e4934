//! The engine: what an embedder calls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use turnwright_core::policy::{Policy, RuleText};
use turnwright_core::{
    ApprovalId, CallId, ConversationId, DriverId, Journal, ModelRef, QuestionReason, ToolDefinition, TurnId, TurnSettings,
    UserId,
};

use crate::acting::Acting;
use crate::arguments::Validators;
use crate::catalog::Catalogs;
use crate::follow::Follower;
use crate::forgetting::Forgetting;
use crate::inner::{Choices, Inner};
use crate::live::Live;
use crate::nodes::cluster::Cluster;
use crate::pins::Pins;
use crate::registry::{Registry, live_of};
use crate::rules::Rules;
use crate::upkeep::Erasing;
use crate::{
    Clock, ConversationRecord, EngineError, Idempotent, Place, Providers, SetAside, SettingsOverlay, Slots, SourceSet, Store,
    StoreError, Telemetry, ToolFace, ToolSource, Watch, WatchFrom,
};

mod act;
mod agree;
mod asking;
mod beginning;
mod beside;
mod branch;
mod changing;
mod compacting;
mod context;
mod finding;
mod folder;
mod import;
mod news;
mod reach;
mod resuming;
mod rule_room;
mod ruling;
mod spent;
mod tool_call;
mod wait;
mod waiting;
mod waits;

pub use act::{
    About, Answers, Beneath, Choice, ClientResult, Decided, Given, Joins, KnownAs, NewMessage, OnWaiting, Sent, SentState,
    Stale, beside_message,
};
pub use asking::{WaitingQuestion, questions_in};
pub use beginning::Extent;
pub use compacting::Compaction;
pub use import::WholeJournal;
pub use ruling::{Explained, NewRule, Remember};
pub use tool_call::{PageCall, PageCalled};
pub use wait::TurnState;
pub use waiting::always;
use waiting::waiting_in;
pub use waits::{Awaited, TurnWaits, Wait};

pub use reach::Door;
use reach::not_there;

/// How long people are waited for while a call holds its connection, where nothing else is said: 10 minutes.
const DEFAULT_QUESTION_MS: u64 = 600_000;

/// What an engine is made of.
#[derive(Debug)]
pub struct EngineParts {
    /// The model providers.
    pub providers: Arc<dyn Providers>,
    /// The tool sources, each with a name of its own. The engine stops them at its end.
    pub sources: Vec<Arc<dyn ToolSource>>,
    /// Where conversations are kept.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// The rules.
    pub policy: Policy,
    /// The settings of turns for which nobody chose others.
    pub defaults: TurnSettings,
}

/// Drives turns and tells watchers what happens. Cheap to clone; all clones are one engine.
///
/// [`Engine::send`], [`Engine::decide`], [`Engine::cancel`] and [`Engine::retry`] store what they are told before they
/// return; what follows happens in the background and belongs to no caller. [`Engine::watch`] tells it,
/// [`Engine::wait`] waits for its end. Call [`Engine::shutdown`] once at the end.
///
/// Each handle acts for one user, [`UserId::LOCAL`] at first: what it makes belongs to that user, and what belongs to
/// another is not there for it. [`Engine::acting_for`] gives a handle for somebody else.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    user: UserId,
    may_decide: bool,
    /// Where whoever asks stands, unless they are known to be a person.
    door: Option<Arc<dyn Door>>,
}

/// What an engine has to do at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EngineLoad {
    /// Turns that this process drives.
    pub driven_turns: usize,
    /// Those who watch conversations.
    pub watchers: usize,
    /// Conversations in memory.
    pub conversations: usize,
}

/// A conversation, besides its journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Its name.
    pub id: ConversationId,
    /// To whom it belongs.
    pub owner: UserId,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// Its own settings over the installation's.
    pub overlay: SettingsOverlay,
    /// When it was created, in milliseconds since 1970 UTC.
    pub created_at_ms: u64,
    /// When its newest entry was stored, in milliseconds since 1970 UTC.
    pub updated_at_ms: u64,
}

impl Conversation {
    /// Where it is in a list.
    pub fn place(&self) -> Place {
        Place { updated_at_ms: self.updated_at_ms, id: self.id.clone() }
    }
}

/// A conversation to create.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewConversation {
    /// Its name; a new one where `None`.
    pub id: Option<ConversationId>,
    /// Its title; made from the first message where `None`.
    pub title: Option<String>,
    /// Its own settings.
    pub overlay: SettingsOverlay,
    /// A key that makes a repetition harmless, and a hash of the request.
    pub idempotency: Option<(String, String)>,
}

/// What to change of a conversation; `None` leaves as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConversationChange {
    /// The title, or none.
    pub title: Option<Option<String>>,
    /// The settings, whole.
    pub overlay: Option<SettingsOverlay>,
    /// What it was made of, where nothing is to be changed of a conversation whose title or settings are others by now.
    pub of: Option<Conversation>,
}

/// A call about which a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its name.
    pub call: CallId,
    /// The question's.
    pub approval: ApprovalId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments, JSON text as the model wrote it.
    pub arguments: String,
    /// Why a person is asked.
    pub reason: QuestionReason,
    /// The rule that asks, where one does.
    pub rule: Option<String>,
    /// The rule that "always" would store, where it waits to be allowed.
    pub always: Option<RuleText>,
}

impl Engine {
    /// An engine of these parts. Needs a tokio runtime with time.
    pub fn new(parts: EngineParts) -> Self {
        let inner = Inner {
            providers: parts.providers,
            store: parts.store,
            clock: parts.clock,
            policy: parts.policy,
            defaults: RwLock::new(Arc::new(parts.defaults)),
            catalogs: Catalogs::new(parts.sources),
            validators: Validators::default(),
            pins: Pins::default(),
            rules: Rules::default(),
            source_set: OnceLock::new(),
            telemetry: OnceLock::new(),
            secrets: OnceLock::new(),
            context: OnceLock::new(),
            registry: Registry::default(),
            acting: Acting::default(),
            running: Slots::default(),
            choices: Choices::default(),
            result_cache: Arc::default(),
            follower: Follower::default(),
            cluster: Cluster::default(),
            foreign: OnceLock::new(),
            shutdown: CancellationToken::new(),
            draining: CancellationToken::new(),
            tasks: TaskTracker::new(),
            drivers: TaskTracker::new(),
            is_server: AtomicBool::new(false),
            door: OnceLock::new(),
            question_limit_ms: AtomicU64::new(DEFAULT_QUESTION_MS),
            erasing: Erasing::default(),
            forgetting: Forgetting::default(),
            approval_limit_ms: AtomicU64::new(0),
            is_unattended: AtomicBool::new(false),
            begins_to_wait: watch::Sender::new(0),
        };
        Self { inner: Arc::new(inner), user: UserId::local(), may_decide: true, door: None }
    }

    /// Nobody is there who could answer while a call holds its connection: such questions are declined.
    pub fn leave_unattended(&self) {
        self.inner.is_unattended.store(true, Ordering::Relaxed);
    }

    /// The folder of tools to which the configuration gives none, where there are such: each claim names it. Counts once, before
    /// the first turn.
    pub fn work_in(&self, folder: Option<String>) {
        if folder.is_some_and(|folder| self.inner.choices.folder.set(folder).is_err()) {
            tracing::error!("the folder of an engine's tools is chosen once, before its first turn");
        }
    }

    /// What is told of this engine from now on. Counts once, before its first turn.
    pub fn tell(&self, telemetry: Telemetry) {
        if self.inner.telemetry.set(telemetry).is_err() {
            tracing::error!("the telemetry of an engine is chosen once, before its first turn");
        }
    }

    /// How many turns this process drives at this moment, and how many watchers it has.
    pub fn workload(&self) -> EngineLoad {
        self.inner.registry.workload()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The name under which this process drives.
    pub fn driver(&self) -> &DriverId {
        self.inner.store.driver()
    }

    /// Whether the process of a driver is alive.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lives(&self, driver: &DriverId) -> Result<bool, EngineError> {
        Ok(self.inner.store.is_alive(driver).await?)
    }

    /// Whether drivers are alive by leases: the process of one that [`Engine::lives`] says is alive may just have been killed.
    pub fn goes_by_leases(&self) -> bool {
        self.inner.store.outlives_its_lease()
    }

    /// The time of day.
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// The same, for whoever outlives this handle.
    pub fn shared_clock(&self) -> Arc<dyn Clock> {
        self.inner.clock.clone()
    }

    /// The model providers.
    pub fn providers(&self) -> &Arc<dyn Providers> {
        &self.inner.providers
    }

    /// The tool sources that are everybody's, and the user's own.
    pub fn sources(&self) -> Arc<[Arc<dyn ToolSource>]> {
        self.inner.catalogs.sources_of(&self.user)
    }

    /// Takes the sources from `set` from now on, in place of those that it was made of: before each turn's first model call
    /// and whenever tools are listed. Turns that run keep what they were offered; a call to a tool whose source is gone fails
    /// as [`turnwright_core::ToolErrorKind::Unavailable`]. Who makes the set stops what leaves it. Only the first set counts.
    pub fn follow_sources(&self, set: Arc<dyn SourceSet>) {
        if self.inner.source_set.set(set).is_err() {
            tracing::error!("the tool sources of an engine can be followed once");
        }
    }

    /// Takes the sources over as the followed set has them now.
    pub async fn refresh_sources(&self) {
        self.inner.refresh_sources().await;
    }

    /// The settings of turns for which nobody chose others.
    pub fn defaults(&self) -> Arc<TurnSettings> {
        self.inner.defaults()
    }

    /// Answers with this model from now on where nobody names one. Turns that run keep theirs.
    pub fn answer_by_default(&self, model: ModelRef) {
        let mut defaults = self.inner.defaults.write().unwrap_or_else(PoisonError::into_inner);
        *defaults = Arc::new(TurnSettings { model, ..TurnSettings::clone(&defaults) });
    }

    /// All tools of all sources by qualified name, sorted. Waits for sources that are starting, at most their start limit.
    pub async fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.inner.settle_sources(&self.user, |_| true).await;
        self.inner.catalogs.of(&self.user).offered(None)
    }

    /// The same at this moment, without waiting for anything. A tool that did not change is the very same value as before.
    pub fn tools_now(&self) -> Vec<Arc<ToolDefinition>> {
        self.inner.catalogs.of(&self.user).offered(None)
    }

    /// What a source says of the tool with this qualified name besides what models are told; nothing where there is none.
    pub fn tool_face(&self, name: &str) -> Arc<ToolFace> {
        self.inner.catalogs.of(&self.user).get(name).map(|tool| tool.face.clone()).unwrap_or_default()
    }

    /// Tools that cannot be offered, each with the reason.
    pub fn tools_set_aside(&self) -> Vec<SetAside> {
        let catalogs = &self.inner.catalogs;
        let mut all: Vec<SetAside> = catalogs.sources_of(&self.user).iter().flat_map(|source| source.set_aside()).collect();
        all.extend(catalogs.of(&self.user).set_aside.iter().cloned());
        all
    }

    /// A name that no conversation has.
    ///
    /// # Errors
    /// [`EngineError::Invalid`], where the system has no random numbers.
    pub fn new_id() -> Result<ConversationId, EngineError> {
        new_id()
    }

    /// Carries `work` out to its end, also where nobody waits for it any more; the end of the engine waits for it.
    ///
    /// # Errors
    /// [`EngineError::ShuttingDown`] where it could not be carried out.
    pub async fn carry_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, EngineError> {
        self.inner.whole(async move { Ok(work.await) }).await
    }

    /// The same for what nobody waits for.
    pub fn carry_out(&self, work: impl Future<Output = ()> + Send + 'static) {
        // Where everything ends, so does this.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.inner.tasks.spawn(tracing::Instrument::in_current_span(work));
        }
    }

    /// Creates a conversation.
    ///
    /// # Errors
    /// [`EngineError::Exists`] where there is one with the id, [`EngineError::Invalid`] where a setting is out of range,
    /// [`EngineError::OverLimit`] where its title or settings are too large, [`EngineError::KeyReused`].
    pub async fn create(&self, new: NewConversation) -> Result<Conversation, EngineError> {
        self.limits().admit_chosen(new.title.as_deref(), &new.overlay)?;
        self.must_not_decide(&new.overlay).await?;
        if new.idempotency.is_some() {
            return self.import(WholeJournal::empty(new)).await;
        }
        let id = match new.id {
            Some(id) => id,
            None => new_id()?,
        };
        let now = self.inner.clock.now_ms();
        let conversation = Conversation {
            id,
            owner: self.user.clone(),
            title: new.title.and_then(act::given_title),
            overlay: new.overlay,
            created_at_ms: now,
            updated_at_ms: now,
        };
        let record = record(&conversation)?;
        let live = Arc::new(live_of(&record)?);
        self.inner.store.create(record).await?;
        self.inner.registry.keep_made(live);
        Ok(conversation)
    }

    /// A conversation, besides its journal.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn conversation(&self, id: &ConversationId) -> Result<Conversation, EngineError> {
        let record = self.inner.store.conversation(id).await?.filter(|record| record.owner == self.user);
        record.map(conversation).ok_or_else(|| not_there(id))?
    }

    /// The journal as it is now. Cheap: entries are shared.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn journal(&self, id: &ConversationId) -> Result<Journal, EngineError> {
        self.look(id, Journal::clone).await
    }

    /// What `look` finds in a conversation's journal as it is now. Nobody else can look or append meanwhile, so it is for
    /// what takes little; for the rest there is [`Engine::journal`].
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn look<T>(&self, id: &ConversationId, look: impl FnOnce(&Journal) -> T) -> Result<T, EngineError> {
        let live = self.load_newest(id).await?;
        let found = look(&live.lock().journal);
        Ok(found)
    }

    /// Watches a conversation.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], also where `from` lies after the journal's end: whoever was there before knows a conversation that was
    /// deleted since, and made anew under its name.
    pub async fn watch(&self, id: &ConversationId, from: WatchFrom) -> Result<Watch, EngineError> {
        let live = match from {
            WatchFrom::Now => self.load(id).await?,
            WatchFrom::After(_) => self.load_newest(id).await?,
        };
        self.watch_there(&live, from)
    }

    /// What the calls of a conversation ask of people.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn questions(&self, id: &ConversationId) -> Result<Vec<WaitingQuestion>, EngineError> {
        let live = self.load_newest(id).await?;
        let state = live.lock();
        Ok(questions_in(id, &state.journal))
    }

    /// What the calls of all conversations of the user ask of people, but for those that cannot be read.
    pub async fn all_questions(&self) -> Result<Vec<WaitingQuestion>, EngineError> {
        let mut questions = Vec::new();
        for open in self.own_open_turns().await? {
            if let Some(live) = self.load_readable(&open).await? {
                questions.extend(questions_in(&open.conversation, &live.lock().journal));
            }
        }
        Ok(questions)
    }

    /// The calls of a conversation about which a person is asked.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn waiting(&self, id: &ConversationId) -> Result<Vec<WaitingCall>, EngineError> {
        let live = self.load_newest(id).await?;
        let state = live.lock();
        Ok(waiting_in(id, &state.journal, &self.inner.policy))
    }

    /// The calls of all conversations of the user about which a person is asked, but for those that cannot be read.
    pub async fn all_waiting(&self) -> Result<Vec<WaitingCall>, EngineError> {
        let mut waiting = Vec::new();
        for open in self.own_open_turns().await? {
            if let Some(live) = self.load_readable(&open).await? {
                waiting.extend(waiting_in(&open.conversation, &live.lock().journal, &self.inner.policy));
            }
        }
        Ok(waiting)
    }

    /// The answer that an idempotency key was given.
    pub async fn idempotent(&self, key: &str) -> Result<Option<Idempotent>, EngineError> {
        Ok(self.inner.store.idempotent(&self.own_key(key)).await?)
    }

    /// Takes a conversation's open turn up where its driver is gone; the turn that is driven then.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub async fn resume(&self, id: &ConversationId) -> Result<Option<TurnId>, EngineError> {
        let live = self.load_newest(id).await?;
        self.take_up(&live).await
    }

    async fn take_up(&self, live: &Arc<Live>) -> Result<Option<TurnId>, EngineError> {
        let is_driven = self.inner.ensure_driven(live).await?;
        let state = live.lock();
        Ok(state.journal.open_turn().filter(|_| is_driven).map(turnwright_core::Turn::id))
    }

    /// Lets no turn begin and none go further than to the end of its step: the model call and the tool calls that run come
    /// to their end and are stored. Says whether all did within `grace`. [`Engine::shutdown`] comes after it; the next
    /// start goes on where they stopped. What people decide meanwhile is stored.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.inner.draining.cancel();
        self.inner.drivers.close();
        tokio::time::timeout(grace, self.inner.drivers.wait()).await.is_ok()
    }

    /// Whether [`Engine::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.is_cancelled()
    }

    /// Whether something can be stored at this moment. It waits for no outage to be over, but maybe for somebody who writes.
    ///
    /// # Errors
    /// What stands in the way, in words for the operator.
    pub async fn can_store(&self) -> Result<(), StoreError> {
        self.inner.store.can_store().await
    }

    /// Ends the engine. Drivers stop where they are: calls that run are told to end and their results stored, turns stay
    /// open and are taken up again at the next start. Then sources and the store are closed.
    pub async fn shutdown(&self) {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.nodes().leave().await;
        for live in self.inner.registry.all() {
            live.dismiss();
        }
        futures_util::future::join_all(self.inner.catalogs.sources().iter().map(|source| source.stop())).await;
        self.inner.store.close().await;
    }
}

fn new_id() -> Result<ConversationId, EngineError> {
    let id = format!("conv_{}", crate::names::random::<12>()?).parse();
    id.map_err(|error: turnwright_core::IdError| EngineError::Invalid { what: error.to_string() })
}

/// A new conversation as it is stored.
fn record(conversation: &Conversation) -> Result<ConversationRecord, EngineError> {
    record_since(conversation, &SettingsOverlay::default())
}

/// A conversation as it is stored, whose settings come of those `before`.
fn record_since(conversation: &Conversation, before: &SettingsOverlay) -> Result<ConversationRecord, EngineError> {
    if let Some(problem) = conversation.overlay.problem_since(before) {
        return Err(EngineError::Invalid { what: problem });
    }
    let settings =
        serde_json::to_string(&conversation.overlay).map_err(|error| EngineError::Invalid { what: error.to_string() })?;
    Ok(ConversationRecord {
        id: conversation.id.clone(),
        owner: conversation.owner.clone(),
        title: conversation.title.clone(),
        settings,
        created_at_ms: conversation.created_at_ms,
        updated_at_ms: conversation.updated_at_ms,
    })
}

fn conversation(record: ConversationRecord) -> Result<Conversation, EngineError> {
    Ok(Conversation {
        overlay: SettingsOverlay::stored(&record.id, &record.settings)?,
        id: record.id,
        owner: record.owner,
        title: record.title,
        created_at_ms: record.created_at_ms,
        updated_at_ms: record.updated_at_ms,
    })
}
