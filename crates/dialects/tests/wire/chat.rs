//! Chat Completions.

mod elsewhere;
mod golden;
mod presets;
mod quirks;
mod request;
mod taken;
