//! The port to tool sources: MCP servers, the built-ins, an HTTP API, an embedder's own functions.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use turnwright_core::{ContentBlock, ConversationId, Declared, Resumption, ToolErrorKind, UserId, changes_direction};

pub use crate::writes::Writes;
use crate::{Asks, Nobody, Spool, Standstill, Tasks, ToolReply, TraceContext};

/// Something that offers tools.
#[async_trait]
pub trait ToolSource: Send + Sync + Debug {
    /// Its name in the configuration: the first half of its tools' qualified names.
    fn name(&self) -> &str;

    /// What it is doing at this moment.
    fn state(&self) -> SourceState;

    /// Its tools, in a stable order. Kept from the last time while it is not running; empty where it never said.
    fn tools(&self) -> Arc<[SourceTool]>;

    /// The one user in whose conversations it is offered; everybody's where `None`.
    fn owner(&self) -> Option<&UserId> {
        None
    }

    /// A number that changes whenever [`ToolSource::tools`] does; `None` where they stay the same.
    fn news(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// What it has and cannot offer, as far as it sees that itself.
    fn set_aside(&self) -> Vec<SetAside> {
        Vec::new()
    }

    /// Whether a turn waits for it before it begins: what it offers is about to be known for the first time. One that is started
    /// again is not waited for by those that do not call it.
    fn is_awaited(&self) -> bool {
        self.state() == SourceState::Starting
    }

    /// The same for the turns of this user: one that waits for others waits for those that are this user's.
    fn is_awaited_by(&self, _user: &UserId) -> bool {
        self.is_awaited()
    }

    /// What people who wait for it are told: its name, and how long that may take where it knows. `None` for one that only
    /// waits for others.
    fn wait_in_words(&self) -> Option<String> {
        Some(self.name().to_owned())
    }

    /// Waits until it is not [`SourceState::Starting`] any more, at most its own start limit. Starts it where it must be
    /// started for its tools to be known.
    async fn settled(&self);

    /// The same for the turns of this user, as [`ToolSource::is_awaited_by`].
    async fn settled_for(&self, _user: &UserId) {
        self.settled().await;
    }

    /// Runs a tool. Its arguments were validated against the tool's schema. When `context.cancel` fires it should end
    /// soon, with the real result where there is one.
    ///
    /// All calls of a turn are polled in one task, its driver's: what computes for long or blocks holds up the others, the turn and
    /// whoever stops it, and belongs in `tokio::task::spawn_blocking`. A panic is a failure of the call.
    ///
    /// # Errors
    /// [`ToolError`], for the model. A tool that ran and says that it failed is `Ok` with [`ToolOutput::is_error`].
    async fn call(&self, call: SourceCall, context: CallContext) -> Result<ToolOutput, ToolError>;

    /// Runs a tool as [`ToolSource::call`] does, to its end or to where people must answer something first. It is called
    /// again with the answers in `context.resume`. What [`ToolSource::call`] needs of people it asks by `context.asks`.
    ///
    /// # Errors
    /// As [`ToolSource::call`].
    async fn advance(&self, call: SourceCall, context: CallContext) -> Result<ToolReply, ToolError> {
        self.call(call, context).await.map(ToolReply::Done)
    }

    /// Nobody needs what a call of `tool` comes to that goes on by itself, and that nobody here asks for; `task` was kept by
    /// [`Tasks::accepted`]. It may be ended, and may be told so more than once.
    async fn call_off(&self, _tool: &str, _task: &Value) {}

    /// A conversation was stopped or deleted: what this source keeps running for it beyond its calls ends. Must not block.
    /// May be told more than once, also of conversations that it never had to do with.
    fn conversation_over(&self, _conversation: &ConversationId) {}

    /// Whether what a call of `tool` leaves behind stays in this process, where later calls of its conversation find it: so it is
    /// for a child process that remembers what it was told. No other process over the same data has any of it.
    fn keeps_state(&self, _tool: &str) -> bool {
        false
    }

    /// What a call of `tool`, which is declared serial, writes with these validated arguments. Calls of a step that write the same
    /// run one after the other, in call order, and others at the same time. Asked under a lock: it must not touch the world.
    fn writes(&self, _tool: &str, _arguments: &Map<String, Value>) -> Writes {
        Writes::All
    }

    /// How long a call of `tool` may take.
    fn limits(&self, tool: &str) -> CallLimits;

    /// How long a successful result of `tool` may be given again to the same user for the same arguments, where its operator
    /// says that it may.
    fn cache_ttl(&self, _tool: &str) -> Option<Duration> {
        None
    }

    /// Whether what it offers is others' to change, so that a change is shown to a person first.
    fn is_foreign(&self) -> bool {
        false
    }

    /// The most calls that may run at once, over all conversations.
    fn max_concurrent_calls(&self) -> usize {
        16
    }

    /// Ends it with all that it started. Later calls fail as [`ToolErrorKind::Unavailable`].
    async fn stop(&self);
}

/// The sources of an engine, where they may change while it runs ([`crate::Engine::follow_sources`]).
#[async_trait]
pub trait SourceSet: Send + Sync + Debug {
    /// The sources of this moment, each with a name of its own; the very same list for as long as nothing changed.
    async fn sources(&self) -> Arc<[Arc<dyn ToolSource>]>;

    /// A number that changes whenever this process changes the list; `None` where it never does. What other processes
    /// change is seen by [`SourceSet::sources`].
    fn news(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// A tool that is there and cannot be offered. The others of its source are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The tool source's name.
    pub source: String,
    /// The tool's name at its source; empty where it has none.
    pub tool: String,
    /// Why, in words for people.
    pub reason: String,
    /// What it is now where it changed since a person agreed to it: a hash of its definition.
    pub definition: Option<String>,
}

impl std::fmt::Display for SetAside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { source, tool, reason, definition: _ } = self;
        if tool.is_empty() { write!(f, "{source}: {reason}") } else { write!(f, "{} of {source}: {reason}", shown_name(tool)) }
    }
}

/// A tool's own name as people are shown it: a source may have chosen one that fills a page.
pub fn shown_name(name: &str) -> String {
    const MOST: usize = 100;
    let plain: String = name.chars().take(MOST).filter(|letter| !letter.is_control() && !changes_direction(*letter)).collect();
    if name.chars().nth(MOST).is_some() { plain + "…" } else { plain }
}

/// What a tool source is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// It is being started.
    Starting,
    /// It answers.
    Ready,
    /// It does not answer, for this reason; it may be tried again by itself.
    Failing {
        /// Why, for the operator, with its last words.
        reason: String,
    },
    /// It does not answer before somebody signs in.
    NeedsSignIn {
        /// Why, for whoever can.
        reason: String,
    },
    /// It was stopped, or nobody has needed it yet.
    Stopped,
    /// It is switched off.
    Disabled,
}

impl SourceState {
    /// The state in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failing { .. } => "failing",
            Self::NeedsSignIn { .. } => "needs_sign_in",
            Self::Stopped => "stopped",
            Self::Disabled => "disabled",
        }
    }
}

/// A tool as its source offers it.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceTool {
    /// Its name at the source.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments; a tool without one takes any object.
    pub input_schema: Value,
    /// The source's own hints, shown and not trusted.
    pub annotations: Option<Value>,
    /// What the operator declares.
    pub declared: Declared,
    /// What else its source says of it.
    pub face: Arc<ToolFace>,
}

/// What a source says of a tool besides what models are told.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolFace {
    /// The JSON Schema that its structured results promise to fit.
    pub output_schema: Option<Value>,
    /// Pictures that stand for it.
    pub icons: Vec<Icon>,
    /// Whom its source means it for.
    pub visibility: Visibility,
    /// The page that shows its calls: a `ui://` address at its source (MCP Apps, `_meta.ui.resourceUri`).
    pub app: Option<String>,
}

/// A picture (MCP `icons`). The source's own word: its address is shown, never fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// Where it is: an address, or the picture itself as a `data:` address.
    pub src: String,
    /// Its MIME type, where its source says it.
    pub mime_type: Option<String>,
    /// Its sizes, such as `48x48` or `any`.
    pub sizes: Vec<String>,
    /// The background that it is for: `light` or `dark`.
    pub theme: Option<String>,
}

/// Whom a tool is meant for (MCP Apps, `_meta.ui.visibility`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Visibility {
    /// Models, and its server's own pages.
    #[default]
    Everyone,
    /// Models alone.
    Models,
    /// Its server's own pages alone: no model is offered it.
    Pages,
}

impl Visibility {
    /// As the protocol lists it.
    pub fn as_list(self) -> &'static [&'static str] {
        match self {
            Self::Everyone => &["model", "app"],
            Self::Models => &["model"],
            Self::Pages => &["app"],
        }
    }
}

/// A call to a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceCall {
    /// The tool's name at the source.
    pub tool: String,
    /// Its arguments, validated.
    pub arguments: Map<String, Value>,
    /// The same for every attempt at the same call, and no other's: a hash of conversation, call, tool, arguments and decision.
    pub idempotency_key: String,
}

/// What surrounds a call.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Fires when the call should end: also where it may not have its effect any more. A source that waits before it has one asks
    /// this first, once it goes on.
    pub cancel: CancellationToken,
    /// Takes what the tool says on the way; each report extends the idle limit.
    pub progress: Arc<dyn ProgressSink>,
    /// Asks people while the call runs.
    pub asks: Arc<dyn Asks>,
    /// Lets the limits of the call stand still.
    pub standstill: Standstill,
    /// Keeps that the call goes on by itself.
    pub tasks: Arc<dyn Tasks>,
    /// What was kept by [`Tasks::accepted`], where the call goes on by itself: it is asked for, and not made.
    pub task: Option<Arc<Value>>,
    /// Whose conversation calls.
    pub user: UserId,
    /// The conversation that calls. `None` for a call by hand, or of a page.
    pub conversation: Option<ConversationId>,
    /// What [`ToolReply::Asks`] left, and the answers, where the call is made again.
    pub resume: Option<Resumption>,
    /// Where the call stands in a trace, for whom it is passed on to.
    pub trace: Option<TraceContext>,
    /// Where a result goes that is too large to be held in memory, where there is such a place.
    pub spool: Option<Spool>,
}

impl CallContext {
    /// A call that can ask nobody.
    pub fn new(cancel: CancellationToken, progress: Arc<dyn ProgressSink>) -> Self {
        let (asks, tasks) = (Arc::new(Nobody), Arc::new(Nobody));
        let (standstill, user) = (Standstill::default(), UserId::local());
        let (task, conversation, resume, trace, spool) = (None, None, None, None, None);
        Self { cancel, progress, asks, standstill, tasks, task, user, conversation, resume, trace, spool }
    }

    /// The same in a conversation of this user.
    #[must_use]
    pub fn of(self, user: &UserId) -> Self {
        Self { user: user.clone(), ..self }
    }
}

/// Takes a call's progress.
pub trait ProgressSink: Send + Sync + Debug {
    /// The call is alive and says how far it is.
    fn report(&self, progress: Progress);
}

/// How far a call is (MCP `notifications/progress`).
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Rises with time.
    pub progress: f64,
    /// The value at the end, where known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// For the model.
    pub content: Vec<ContentBlock>,
    /// The same as JSON, where there is a JSON form.
    pub structured_content: Option<Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// What only the operator is told.
    pub diagnostic: Option<String>,
}

impl ToolOutput {
    /// A success with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], structured_content: None, is_error: false, diagnostic: None }
    }

    /// A success with a JSON value, which is also its text.
    pub fn json(value: Value) -> Self {
        Self {
            content: vec![ContentBlock::text(value.to_string())],
            structured_content: Some(value),
            is_error: false,
            diagnostic: None,
        }
    }
}

/// A call that gave no result of its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{model_text}")]
pub struct ToolError {
    /// What kind.
    pub kind: ToolErrorKind,
    /// What the model is told: what happened and what to do next. Holds no secret.
    pub model_text: String,
    /// What only the operator is told.
    pub diagnostic: Option<String>,
}

impl ToolError {
    /// An error with nothing more for the operator.
    pub fn new(kind: ToolErrorKind, model_text: impl Into<String>) -> Self {
        Self { kind, model_text: model_text.into(), diagnostic: None }
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Without a sign of life.
    pub idle: Duration,
    /// In all.
    pub total: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { idle: Duration::from_mins(2), total: Duration::from_mins(10) }
    }
}
