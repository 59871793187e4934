//! What can be said about a server.

use serde_json::{Map, Value};
use turnwright_engine::{SetAside, SourceState, ToolSource, shown_name};
use turnwright_mcp::Agreed;

use super::stored::shown;
use super::{Entry, Origin, Owner};

/// An MCP server, of a file or added.
#[derive(Debug, Clone, PartialEq)]
pub struct McpStatus {
    /// Its name.
    pub name: String,
    /// How it is reached: the command line, or the address.
    pub transport: String,
    /// The file that names it, or `added`.
    pub origin: String,
    /// Whether somebody added it: then it can be changed and removed.
    pub is_added: bool,
    /// Whose it is, where it was added.
    pub owner: Option<Owner>,
    /// The keys of one that was added, without secrets.
    pub config: Option<Map<String, Value>>,
    /// Whether it may run.
    pub is_enabled: bool,
    /// What it is doing.
    pub state: SourceState,
    /// What it and we agreed on, while it is there.
    pub agreed: Option<Agreed>,
    /// The qualified names of its tools.
    pub tools: Vec<String>,
    /// Its last log lines.
    pub log: Vec<String>,
    /// Its tools that are not offered, with the reasons.
    pub quarantined: Vec<String>,
}

/// A server as it is. `set_aside` is of all sources.
pub(crate) fn status(entry: &Entry, set_aside: &[SetAside]) -> McpStatus {
    let (is_added, origin, owner, config) = match &entry.origin {
        Origin::File(_) | Origin::Brought => (false, entry.origin.holder().unwrap_or_default().to_owned(), None, None),
        Origin::Added(stored) => {
            let (owner, config) = stored.as_ref().map(|stored| (stored.owner.clone(), shown(&stored.config))).unzip();
            (true, "added".to_owned(), owner, config)
        }
    };
    let name = entry.name.clone();
    let server = match &entry.server {
        Ok(server) => server,
        Err(reason) => {
            return McpStatus {
                name,
                transport: String::new(),
                origin,
                is_added,
                owner,
                config,
                is_enabled: true,
                state: SourceState::Failing { reason: reason.clone() },
                agreed: None,
                tools: Vec::new(),
                log: Vec::new(),
                quarantined: Vec::new(),
            };
        }
    };
    let aside: Vec<&SetAside> = set_aside.iter().filter(|tool| tool.source == name).collect();
    // What the server itself sets aside is not among its tools, but for one of two that share a name.
    let by_server = server.set_aside();
    let is_offered = |name: &str| !aside.iter().any(|tool| tool.tool == name && !by_server.contains(tool));
    let tools = server.tools();
    let offered = tools.iter().filter(|tool| is_offered(&tool.name));
    McpStatus {
        transport: server.shown_transport(),
        origin,
        is_added,
        owner,
        config,
        is_enabled: server.config().enabled,
        state: server.state(),
        agreed: server.agreed(),
        tools: offered.map(|tool| turnwright_engine::qualified(&name, &tool.name)).collect(),
        log: server.logs().into_iter().map(|line| line.text).collect(),
        quarantined: aside.iter().map(|tool| format!("{}: {}", shown_name(&tool.tool), tool.reason)).collect(),
        name,
    }
}
