//! The built-in tool sources: [`filesystem`], [`command`], [`web`] and [`artifact()`]; [`http`] makes tools of an API's
//! description, [`TypedSource`] makes one of an embedder's own functions.
//!
//! Everything here is reached through the engine's `ToolSource` port, and fails as its `ToolError` does: with a kind, and
//! a text for the model that says what would be right.

mod artifact;
mod command;
mod error;
mod executable;
mod filesystem;
mod gathered;
mod hidden;
pub mod http;
mod instructions;
pub mod knowledge;
mod links;
mod memory;
pub mod net;
mod own_paths;
mod practice;
mod roots;
mod typed;
mod web;

pub use artifact::artifact;
pub use command::{
    BackgroundLimits, CommandConfig, CommandLimits, Enclosure, Launch, Launcher, Leader, Network, PlainLauncher, Prepared,
    Program, Protections, SandboxConfig, SandboxLauncher, SandboxMode, command, confine,
};
pub use executable::{ExecutableTool, Executables};
pub use filesystem::{Edit, EditRefusal, FilesystemConfig, Found, PathGlob, Replaced, apply_edits, check_denied, filesystem};
pub use gathered::Gatherer;
pub use hidden::Hidden;
pub use instructions::{Instruction, Instructions, InstructionsConfig};
pub use knowledge::{Knowledge, KnowledgeConfig, KnowledgeFolder};
pub use memory::{MAX_MEMORY_BYTES, Memory, MemoryError};
pub use own_paths::OwnPaths;
pub use practice::PracticeForm;
pub use roots::RootsError;
pub use typed::{ToolSpec, TypedSource};
pub use web::{FetchConfig, Manners, SearchConfig, SearchEngine, WebConfig, web};
