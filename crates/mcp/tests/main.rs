//! The tests of the crate from outside.
//!
//! One program, since each of its own would be linked with all that the crate needs.

#![cfg(test)]

mod docker;
mod elicitation;
mod failures;
mod features;
mod foreign;
mod granted;
mod http;
mod http_failures;
mod http_modern;
mod http_sse;
mod http_types;
mod kept;
mod ledger;
mod misbehaving;
mod orphans;
mod real_servers;
mod serve;
mod shapes;
mod sign_in;
mod supervised;
mod support;
mod tasks;
