//! The terminal chat through its public door.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approval;
mod carry;
mod renderer;
