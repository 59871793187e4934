//! The other side of the protocol: all tools offered to MCP clients, over standard input and output, and over HTTP.
//!
//! [`Backing`] is the port to whatever has the tools and runs them; `handler` answers a client's requests from it in both
//! eras, `approval` asks the client's person where a call needs one, [`stdio`] and [`HttpEndpoint`] are the two ways in.
//! `rmcp` speaks the protocol. Not here: whether a call may run, its limits and its journal, which are behind the port.

mod approval;
mod backing;
#[expect(deprecated, reason = "sampling and logging are in every revision up to 2025-11-25, and the suite looks at both")]
mod fixtures;
#[expect(deprecated, reason = "the log level is set in every revision up to 2025-11-25")]
mod handler;
mod http;
mod result;
mod stdio;

pub use backing::{Backing, Happened, OfferedCall, Question, Refused, RunningCall};
pub use fixtures::FixtureTools;
pub use http::HttpEndpoint;
pub use stdio::{StdioEnd, stdio};
