//! The web tools against servers on loopback.

#![allow(clippy::format_push_string, clippy::format_collect, reason = "texts of tests, made as they read best")]

mod attacks;
mod fetch;
mod pdf;
mod search;
