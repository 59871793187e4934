//! Servers that a client of this process brings along, as editors do with each session: they are there as long as the process is, and
//! are stored nowhere.

use turnwright_mcp::{ServerConfig, TransportConfig};

use super::{McpChangeError, McpServers, fits};
use crate::config;
use crate::sources::server_config;

impl McpServers {
    /// Takes these servers in beside the others, all of them or none, each with its name and the keys of `[mcp.servers.NAME]`, variables
    /// put in. One that is there as it is stays; one that was brought before and is another now takes the place of that; those that were
    /// brought before and are not among these stay, since others may use them.
    ///
    /// # Errors
    /// [`McpChangeError::Exists`] where a name is there twice, or belongs to another server that was not brought: rules name servers, and
    /// none is taken for another. [`McpChangeError::Invalid`], [`McpChangeError::Store`].
    pub async fn bring(&self, brought: Vec<(String, config::McpServer)>) -> Result<(), McpChangeError> {
        if brought.is_empty() {
            return Ok(());
        }
        let changing = self.set.changing.lock().await;
        self.refresh().await?;
        let mut new: Vec<ServerConfig> = Vec::new();
        for (name, keys) in brought {
            fits(&name)?;
            let mut config = server_config(&name, &keys).map_err(McpChangeError::Invalid)?;
            sort(&mut config.transport);
            let holder = self.set.entry_not_brought(&name).map(|entry| entry.server);
            let is_there = new.iter().any(|other| other.name == name);
            match holder {
                Some(Ok(server)) if !is_there && server.config().enabled && is_reached_alike(server.config(), &config) => {}
                None if !is_there && !self.set.is_built_in(&name) => new.push(config),
                Some(_) | None => {
                    let why = "in the configuration or in this request; give this one another name";
                    return Err(McpChangeError::Exists(format!("there is an MCP server `{name}` already, {why}")));
                }
            }
        }
        let taken = self.set.take_brought(new);
        let leaving = self.set.begin_brought(taken);
        drop(changing);
        // A turn waits for servers that have begun.
        for left in leaving {
            let _ = left.await;
        }
        self.engine.refresh_sources().await;
        Ok(())
    }
}

/// Clients say variables and headers in another order each time.
fn sort(transport: &mut TransportConfig) {
    match transport {
        TransportConfig::Stdio(stdio) => stdio.env.sort(),
        TransportConfig::Http(http) => http.headers.sort(),
        TransportConfig::Docker(docker) => docker.env.sort(),
    }
}

fn is_reached_alike(known: &ServerConfig, sorted: &ServerConfig) -> bool {
    let mut transport = known.transport.clone();
    sort(&mut transport);
    transport == sorted.transport
}
