//! The AI SDK UI message stream, v1: a pure fold over engine events.
//!
//! One stream is one message of the client, which is one turn. [`UiFold`] holds what the client was told so far and turns
//! each frame of events into the bytes that say what is new. Reading requests of that protocol is
//! the routes' work, carrying the bytes is the response body's.

mod assembled;
mod chunk;
mod fold;
mod history;
#[cfg(test)]
mod tests;

pub(crate) use assembled::{Assembled, assembled};
pub(crate) use fold::seen;
pub use fold::{Begin, UiFold};
pub(crate) use history::{chunks_of, turns_of};

/// The major version of the client library `ai`; decides which chunks it can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UiVersion {
    /// Knows no approvals: calls that would need one are denied.
    V5,
    /// Knows approvals, but not their echo, and cannot drop a step.
    V6,
    /// Knows all.
    V7,
}

impl UiVersion {
    /// The version with this number.
    pub fn of(number: &str) -> Option<Self> {
        match number {
            "5" => Some(Self::V5),
            "6" => Some(Self::V6),
            "7" => Some(Self::V7),
            _ => None,
        }
    }
}
