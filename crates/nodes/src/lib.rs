//! Turns shared among nodes, over NATS `JetStream`: the engine's port [`turnwright_engine::Nodes`].
//!
//! What is here carries hints and decides nothing: a stream of turns that want a driver, subjects by which nodes tell one
//! another what happens, and a bucket in which each says that it lives. Who drives is decided by the claim in the journal,
//! what happened by its entries; whatever is lost here, the engine's sweep finds. See `docs/nodes.md`.
//!
//! [`NatsNodes::join`] connects, checks and makes what is needed; `names` says what it is called, `queue` is the stream of
//! turns and `fullness` whether it takes more, `presence` the bucket. *Not here:* which turns are offered, and what is told.

mod connection;
mod error;
mod fullness;
mod names;
mod nats;
mod options;
mod presence;
mod queue;

pub use error::JoinError;
pub use nats::NatsNodes;
pub use options::{Credentials, Node, Options};
