//! The real binary, with the practice model, in a folder of its own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and bounds its own waits"
)]

mod acp;
mod acp_sessions;
mod ag_ui;
mod api;
mod approvals;
mod assembling;
mod budgets;
mod chat;
mod config;
mod costs;
mod database;
mod door;
mod doors;
mod editor;
mod examples;
mod executables;
mod forms;
mod identity;
mod interactive;
mod jira;
mod knowledge;
mod large;
mod lists;
mod load;
mod long;
mod loops;
mod mcp_features;
mod message;
mod mock_api;
mod moving;
mod network;
mod nginx;
mod nodes;
mod notify;
mod openai;
mod owner;
mod pipes;
mod prefix;
mod proxied;
mod questions;
mod quiet_logs;
mod ready;
mod sampling;
mod sandbox;
mod scripted;
mod sealed;
mod search;
mod secrets;
mod serve;
mod servers;
mod signals;
mod stops;
mod streams;
mod support;
mod tasks;
mod tls;
mod traces;
mod two_servers;
mod use_chat;
mod users;
mod watching;
mod way;
mod web;
