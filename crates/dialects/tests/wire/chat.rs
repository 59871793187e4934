//! Chat Completions.

mod golden;
mod presets;
mod quirks;
mod request;
mod taken;
