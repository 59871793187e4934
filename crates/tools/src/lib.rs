//! The built-in tool sources: [`filesystem`] and [`command`]. [`TypedSource`] makes one of an embedder's own functions.
//!
//! Everything here is reached through the engine's `ToolSource` port, and fails as its `ToolError` does: with a kind, and
//! a text for the model that says what would be right.

mod command;
mod error;
mod filesystem;
mod roots;
mod typed;

pub use command::{CommandConfig, Launch, Launcher, PlainLauncher, Program, command};
pub use filesystem::{Edit, EditRefusal, FilesystemConfig, Found, PathGlob, Replaced, apply_edits, filesystem};
pub use roots::RootsError;
pub use typed::{ToolSpec, TypedSource};
