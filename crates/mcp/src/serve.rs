//! The other side of the protocol: all tools offered to MCP clients, over standard input and output, and over HTTP.
//!
//! [`Backing`] is the port to whatever has the tools and runs them; `handler` answers a client's requests from it in both
//! eras, `wanted` is what a call waits for from the client's person and `approval` one kind of it, [`stdio`] and
//! [`HttpEndpoint`] (with `batch`, `body` and `sessions`) are the two ways in. `rmcp` speaks the protocol. Not here: whether a
//! call may run, its limits and its journal, which are behind the port.

mod approval;
mod backing;
mod batch;
mod body;
#[expect(deprecated, reason = "sampling and logging are in every revision up to 2025-11-25, and the suite looks at both")]
mod fixtures;
#[expect(deprecated, reason = "the log level is set in every revision up to 2025-11-25")]
mod handler;
mod http;
mod result;
mod sessions;
mod stdio;
mod wanted;

pub use backing::{Asks, Backing, Happened, Inquiry, Leave, OfferedCall, OfferedTool, Question, Refused, RunningCall};
pub use fixtures::FixtureTools;
pub use http::HttpEndpoint;
pub use sessions::SessionKeeping;
pub use stdio::{StdioEnd, stdio};
