//! Composition: from a configuration to a running engine; what an embedder or a binary calls.

pub mod config;
pub mod environment;

pub use config::{Config, Loaded, Overrides, Problem, Problems};
pub use environment::Environment;
