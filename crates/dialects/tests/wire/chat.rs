//! Chat Completions.

mod golden;
mod quirks;
mod request;
