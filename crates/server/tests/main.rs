//! The tests of the crate from outside.
//!
//! One program, since each of its own would be linked with all that the crate needs.

#![cfg(test)]

mod artifacts;
mod documented;
mod embedding;
mod gathering;
mod http;
mod openai;
mod openapi;
mod questions;
mod reports;
mod socket;
mod users;
