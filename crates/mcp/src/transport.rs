//! How messages travel between a server and `rmcp`.
//!
//! Each transport hands what comes in to one [`inbox`], which decides what `rmcp` sees of it, and asks [`outbox`] about what
//! goes out: calls, progress, changes and logs are the same over all of them. `pipe` is for whatever is read and written as
//! lines (a child process, a container), `http` for what has an address; `wire` is what a transport shares with the calls.

mod cleaner;
pub(crate) mod http;
mod inbox;
pub(crate) mod line;
mod mended;
mod notices;
mod outbox;
mod outgoing;
mod pipe;
mod shallow;
mod wire;

pub(crate) use cleaner::Message;
pub(crate) use http::call_of;
pub(crate) use pipe::PipeTransport;
pub(crate) use wire::{Door, ProgressRoute, Wire};
