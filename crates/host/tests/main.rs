//! The tests of the crate from outside.
//!
//! One program, since each of its own would be linked with all that the crate needs.

#![cfg(test)]

mod added_servers;
mod config;
mod embedding;
mod look;
mod oidc;
mod processes;
mod retention;
