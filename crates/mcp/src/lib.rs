//! Tool sources over the Model Context Protocol, and the supervision of their processes.
//!
//! [`McpServer`] is a [`turnwright_engine::ToolSource`] over a server that is reached in one of the ways of
//! [`TransportConfig`]. Its parts, from the server up: `carrier` is what runs for it and is ended with it ([`FileLedger`]
//! remembers that for the next start), `transport` is how messages travel, `era` asks which form of the protocol is spoken,
//! `client` is our side of it, `login` signs in where a server wants that, `connection` opens all that, [`Agreed`] is what
//! came of it, `list` (with `face`), `advance`, `call` (with `pending`, `output` and `promise`) and `task` use it, `features` is what servers have besides tools, `listen` hears of changes, `kept` remembers what a server offered, `board` tells other processes how it is, `supervision` decides what happens to a
//! server next, and `supervisor` does it. [`import`] reads the server lists of other
//! programs. [`serve`] is the other side: our tools for MCP clients.
//!
//! Not here: variables of configuration files, which the host expands, and limits on what reaches the model, which are
//! the engine's. The protocol is MCP 2025-11-25 and before, and 2026-07-28; <https://modelcontextprotocol.io/specification>.

mod advance;
mod again;
mod agreed;
mod app;
mod backoff;
mod board;
mod call;
mod carrier;
mod client;
mod config;
mod connection;
mod era;
mod error;
mod face;
mod features;
pub mod import;
mod input;
mod kept;
mod list;
mod listen;
mod log;
mod login;
mod meant;
mod output;
mod pending;
mod promise;
mod protocol;
mod secrets;
pub mod serve;
mod server;
mod supervision;
mod supervisor;
mod task;
mod transport;
mod weight;

pub use agreed::{Agreed, Offer};
pub use app::{AppPage, AppPermission, Domains};
pub use backoff::RestartPolicy;
pub use board::{Board, FileBoard, NoBoard, Notice};
pub use carrier::{FileLedger, MARK, NoLedger, ProcessLedger, ProcessRecord, Swept, sweep, sweep_driver, sweep_gone};
pub use config::{
    Bounds, DockerConfig, Granted, HttpConfig, LogLevel, Mount, OauthConfig, OauthGrant, Root, Roots, ServerConfig,
    StartPolicy, StdioConfig, Surroundings, ToolDeclaration, TransportConfig, Ways, is_inherited,
};
pub use era::Ground;
pub use error::McpError;
pub use features::{
    Completion, CompletionOf, Prompt, PromptArgument, PromptMessages, Resource, ResourceSource, ResourceTemplate, SaidMessage,
    Shelf, Watched,
};
pub use kept::{Definitions, FileDefinitions, NoDefinitions};
pub use list::Quarantined;
pub use log::{LogLine, LogOrigin, without_last_lines};
pub use login::{FileTokens, NoTokens, Removed, SealKey, SignedOut, TokenStore};
pub use protocol::Protocol;
pub use server::McpServer;
