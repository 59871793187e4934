//! The web tools against servers on loopback.

#![cfg(test)]
#![allow(clippy::format_push_string, clippy::format_collect, reason = "texts of tests, made as they read best")]

#[path = "../support/site.rs"]
mod site;
#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod fetch;
mod pdf;
mod search;
