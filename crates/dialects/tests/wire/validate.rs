//! What each API takes: strict validators of request bodies, independent of what writes them.
//!
//! Each gives a list of violations, a JSON pointer before each; empty where the API takes the body. They know the rules of
//! an API as it documents them and nothing of this crate.

pub(crate) mod anthropic;
pub(crate) mod chat;
mod check;
pub(crate) mod gemini;
mod mutations;
pub(crate) mod ollama;
mod recorded;
pub(crate) mod responses;
mod schema;
