//! The ports and the driver: carries out the steps that the turn machine decides.
//!
//! The ports are traits. Those that an engine is made of, see [`EngineParts`]: [`Providers`] with a [`Provider`] each,
//! [`ToolSource`], [`Store`], [`Clock`]. Those that it does without where nobody brings them: [`SourceSet`], [`ContextSource`],
//! [`Documents`], [`Observer`], [`Door`], [`Nodes`], [`accounts::Accounts`], [`artifacts::Artifacts`], [`search::Texts`],
//! [`upkeep::Upkeep`], [`knowledge::KnowledgeIndex`] and [`knowledge::Embedder`], [`Rates`], [`Locks`]. [`Engine`] drives turns over them and tells
//! watchers what happens. It holds no policy of its own beyond what [`turnwright_core`] decides, and knows no wire format,
//! no database and no protocol.

pub mod accounts;
mod acting;
mod arguments;
pub mod artifacts;
mod asked;
pub mod asks;
mod budget;
mod budgets;
mod catalog;
pub mod chosen_tools;
pub mod clock;
pub mod context;
pub mod documents;
mod driver;
mod engine;
mod error;
pub mod event;
mod fold;
mod follow;
mod forgetting;
mod in_flight;
mod inner;
pub mod knowledge;
mod limits;
mod live;
mod locks;
mod names;
pub mod nodes;
mod offering;
mod pins;
mod place;
pub mod provider;
pub mod rates;
mod registry;
mod report;
mod resent;
mod result_cache;
mod ruler;
mod rules;
mod schema;
pub mod search;
mod secrets;
mod settings;
mod shelf;
mod slots;
pub mod source;
mod spent;
mod spool;
mod stand_back;
pub mod store;
mod summary;
pub mod telemetry;
pub mod tool_search;
pub mod upkeep;
mod uses;
mod watch;
mod weight;
mod withheld;
mod writes;

pub use arguments::number_that_would_change;
pub use asks::{Asks, Completed, Held, Nobody, Reply, Standstill, Tasks, ToolReply};
pub use budget::Length;
pub use budgets::Budgets;
pub use chosen_tools::ChosenTools;
pub use clock::{Clock, SystemClock};
pub use context::{ContextAsk, ContextSource, Gathered};
pub use documents::{Document, Documents, REPEATABLE_REQUESTS};
pub use engine::{
    About, Answers, Awaited, Beneath, Choice, ClientResult, Compaction, Conversation, ConversationChange, Decided, Door,
    Engine, EngineLoad, EngineParts, Explained, Extent, Given, Joins, KnownAs, NewConversation, NewMessage, NewRule, OnWaiting,
    PageCall, PageCalled, Remember, Sent, SentState, Stale, TurnState, TurnWaits, Wait, WaitingCall, WaitingQuestion,
    WholeJournal, always, beside_message, questions_in,
};
pub use error::EngineError;
pub use event::{Event, TurnError};
pub use forgetting::Forgets;
pub use limits::{Limits, MAX_REASON_CHARS, MAX_TITLE_CHARS, OverLimit};
pub use locks::{Lock, Locks};
pub use names::qualified;
pub use nodes::{Alone, Nodes};
pub use offering::HoldBack;
pub use place::{NoPlace, Place};
pub use provider::{ModelInfo, ModelStream, Provider, Providers};
pub use rates::{Admission, Rate, Rates};
pub use schema::{BoundedValidator, bounded_validator};
pub use secrets::KnownSecrets;
pub use settings::SettingsOverlay;
pub use slots::{Full, Slot, Slots};
pub use source::{
    CallContext, CallLimits, Icon, Progress, ProgressSink, SetAside, SourceCall, SourceSet, SourceState, SourceTool, ToolError,
    ToolFace, ToolOutput, ToolSource, Visibility, Writes, shown_name,
};
pub use spent::{DayOfTurns, Spending, Spent, ToolUse};
pub use spool::{LargeResults, Spool, Spooling};
pub use stand_back::let_others_run;
pub use store::{
    Append, Balance, CONVERSATION_DOCUMENTS, Ceiling, Chosen, ConversationRecord, Copied, Idempotent, Incarnation, KeptBy,
    Newest, OpenTurn, Page, Reservation, SideRecord, Store, StoreError,
};
pub use telemetry::{Fact, ModelEnd, Observer, Telemetry, TraceContext};
pub use watch::{Frame, Watch, WatchFrom};
