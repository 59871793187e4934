//! What a server offers besides tools: resources with their templates, prompts, and completion of their arguments.
//!
//! It is listed once, kept over restarts of the host, and listed again when the server says that it changed: [`Shelf`] is
//! what is kept, `shelving` keeps it, `reading` asks for single things, `watching` hears that a resource changed, and
//! [`ResourceSource`] is what models are given of it. Who decides: of resources whoever uses them, of prompts people.

pub(crate) mod asking;
mod items;
mod pages;
mod reading;
pub(crate) mod shelving;
mod source;
pub(crate) mod watching;

pub use items::{Prompt, PromptArgument, Resource, ResourceTemplate, Shelf};
pub use reading::{Completion, CompletionOf, PromptMessages, SaidMessage};
pub use source::ResourceSource;
pub use watching::Watched;
