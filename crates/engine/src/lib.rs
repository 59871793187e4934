//! The ports and the driver: carries out the steps that the turn machine decides.
//!
//! The ports are traits: [`Provider`], [`ToolSource`], [`Store`], [`Clock`]. [`Engine`] drives turns over them and tells
//! watchers what happens. It holds no policy of its own beyond what [`turnwright_core`] decides, and knows no wire format,
//! no database and no protocol.

pub mod clock;
pub mod event;
pub mod provider;
pub mod source;
pub mod store;

pub use clock::{Clock, SystemClock};
pub use event::Event;
pub use provider::{ModelInfo, ModelStream, Provider, Providers};
pub use source::{
    CallContext, CallLimits, Progress, ProgressSink, SourceCall, SourceState, SourceTool, ToolError, ToolOutput, ToolSource,
};
pub use store::{Append, ConversationRecord, Idempotent, KeptBy, OpenTurn, Page, SideRecord, Store, StoreError};
