//! `turnwright mcp serve`: our tools for the MCP client that started us.

use turnwright_core::ApproveMode;
use turnwright_host::{Host, McpServing, StdioEnd};
use turnwright_terminal::Interrupts;

use crate::cli::McpServe;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;

pub(super) async fn run(host: &Host, serve: McpServe, command_flags: String) -> Result<Exit, Failure> {
    let mut signals = Signals::new().map_err(|error| Failure::failed(format!("signals cannot be heard: {error}")))?;
    let serving = McpServing { approve: serve.approve.map(ApproveMode::from), command_flags, ..McpServing::default() };
    let end = host
        .serve_mcp(serving, async {
            signals.next().await;
        })
        .await;
    match end {
        StdioEnd::Closed | StdioEnd::Stopped => Ok(Exit::Done),
        StdioEnd::NotUnderstood(why) => {
            let failure = Failure::failed(format!("what came on standard input is no MCP client: {why}"));
            Err(failure.hint("this command is started by an MCP client; name it in the client's configuration"))
        }
    }
}
