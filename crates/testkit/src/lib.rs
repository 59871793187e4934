//! Test doubles for the engine's ports: a scripted provider, scripted tools, a memory store with a crash fuse, files in memory, a manual
//! clock. For tests and benchmarks alone; nothing here is part of the product.

mod artifacts;
mod clock;
mod documents;
mod ledger;
pub mod model_server;
pub mod nats_server;
mod nodes;
mod port;
mod provider;
mod record;
mod source;
mod store;

pub use artifacts::MemoryArtifacts;
pub use clock::ManualClock;
pub use documents::MemoryDocuments;
pub use nodes::{Exchange, Handing, TestNode};
pub use port::Port;
pub use provider::{Answer, ScriptedProvider, ScriptedProviders, call, text};
pub use record::{copied, record};
pub use source::{Effect, ScriptedSource, ScriptedTool};
pub use store::{Disk, Fuse, MemoryStore};
