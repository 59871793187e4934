//! What carries a server: that which runs for it, is watched while it is used, and ended with it.
//!
//! Child processes and containers have something to end; a server with an address is carried by somebody else. Whoever
//! adds a kind gives it the same five verbs.

mod container;
mod engine;
mod frames;
mod group;
mod ledger;
mod process;

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

pub(crate) use container::{Container, Ends, start};
pub use group::MARK;
pub use ledger::{FileLedger, NoLedger, ProcessLedger, ProcessRecord, Swept, sweep, sweep_driver, sweep_gone};
pub(crate) use process::{Pipes, Process, spawn};

/// See the module.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// A child process with all that it starts.
    Process(Box<Process>),
    /// A container with all that runs in it.
    Container(Box<Container>),
    /// Somebody else's: nothing to watch and nothing to end.
    Remote,
}

impl Carrier {
    /// Waits until it is gone; says how it went.
    pub(crate) async fn exited(&mut self) -> String {
        match self {
            Self::Process(process) => process.exited().await,
            Self::Container(container) => container.exited().await,
            Self::Remote => std::future::pending().await,
        }
    }

    /// How it went, where it goes by itself within `grace`.
    pub(crate) async fn exited_within(&mut self, grace: Duration) -> Option<String> {
        match self {
            Self::Process(process) => process.exited_within(grace).await,
            Self::Container(container) => container.exited_within(grace).await,
            Self::Remote => None,
        }
    }

    /// Waits for what a dead one wrote last.
    pub(crate) async fn last_lines(&mut self) {
        match self {
            Self::Process(process) => process.last_lines().await,
            Self::Container(container) => container.last_lines().await,
            Self::Remote => {}
        }
    }

    /// Ends everything that is left of it, within about twice `grace`.
    pub(crate) async fn end(self, grace: Duration) {
        match self {
            Self::Process(process) => process.end(grace).await,
            Self::Container(container) => container.end(grace).await,
            Self::Remote => {}
        }
    }

    /// What to say of one that closed its side without an end that could be seen.
    pub(crate) fn closed(&self) -> &'static str {
        match self {
            Self::Process(_) | Self::Container(_) => "it closed its output",
            Self::Remote => "its connection was closed",
        }
    }
}

/// A word that is carried by all that one start of a server starts, and by nothing else.
fn new_mark(server: &str) -> String {
    format!("{:016x}{:016x}", RandomState::new().hash_one(server), RandomState::new().hash_one(server))
}
