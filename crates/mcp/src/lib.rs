//! Tool sources over the Model Context Protocol, and the supervision of their processes.
//!
//! [`McpServer`] is a [`turnwright_engine::ToolSource`] over the standard input and output of a child process. Its parts,
//! from the process up: `process` spawns and ends a process tree, `group` finds and signals its members, [`FileLedger`]
//! remembers them for the next start, `line` and `cleaner` turn whatever comes out into JSON-RPC messages, `transport`
//! hands them to `rmcp`, `probe` asks which era of the protocol is spoken, `connection` opens all that, `list` and `call`
//! use it, and `supervisor` keeps it alive. [`import`] reads the server lists of other programs.
//!
//! Not here: variables of configuration files, which the host expands, and limits on what reaches the model, which are
//! the engine's. The protocol is MCP 2025-11-25 and before, and 2026-07-28; <https://modelcontextprotocol.io/specification>.

mod backoff;
mod call;
mod cleaner;
mod config;
mod connection;
mod error;
mod group;
pub mod import;
mod ledger;
mod line;
mod list;
mod log;
mod outgoing;
mod output;
mod probe;
mod process;
mod server;
mod supervisor;
mod transport;
mod wire;

pub use backoff::RestartPolicy;
pub use config::{ServerConfig, Surroundings, ToolDeclaration, is_inherited};
pub use error::McpError;
pub use group::MARK;
pub use ledger::{FileLedger, NoLedger, ProcessLedger, ProcessRecord, sweep, sweep_driver, sweep_gone};
pub use list::Quarantined;
pub use log::{LogLine, LogOrigin};
pub use server::McpServer;
