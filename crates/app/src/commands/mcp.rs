//! `turnwright mcp`: MCP servers.

pub(super) mod exercise;
mod login;
mod serve;

use serde_json::{Value, json};
use turnwright_engine::SourceState;
use turnwright_host::{McpStatus, Needs};

use crate::cli::{Everywhere, Listed, Mcp};
use crate::exit::{Exit, Failure};
use crate::opened::{self, QUIET};
use crate::output::{Output, say};
use crate::table::table;

pub(super) async fn run(everywhere: &Everywhere, command: Mcp, output: &mut Output) -> Result<Exit, Failure> {
    let opened = opened::open(&opened::overrides(everywhere), QUIET)?;
    let needs = if matches!(command, Mcp::Serve(_)) { Needs::Everything } else { Needs::Store };
    let host = opened.start(needs).await?;
    for problem in host.problems().iter().filter(|_| needs == Needs::Store) {
        say(&format!("warning: {problem}"));
    }
    let result = match command {
        Mcp::Serve(serve) => serve::run(&host, serve).await,
        Mcp::List(listed) => {
            list(&host.mcp_servers(), listed, output);
            Ok(Exit::Done)
        }
        Mcp::Login { name, open, no_browser } => {
            let browser =
                if no_browser { login::Opener::Nobody } else { open.map_or(login::Opener::System, login::Opener::Program) };
            let signed_in = host.sign_in_mcp(&name, |address| login::show(address, &browser)).await;
            login::signed_in(&name, signed_in.ok_or_else(|| no_server(&name, &host.mcp_servers())), output)
        }
        Mcp::Logout { name } => {
            let signed_out = host.sign_out_mcp(&name).await;
            login::signed_out(&name, signed_out.ok_or_else(|| no_server(&name, &host.mcp_servers())), output)
        }
        Mcp::Check { name, listed } => {
            let status = host.check_mcp(&name).await.map(|status| check(&status, listed, output));
            status.ok_or_else(|| no_server(&name, &host.mcp_servers()))
        }
    };
    host.shutdown().await;
    result
}

fn no_server(name: &str, servers: &[McpStatus]) -> Failure {
    let known: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let hint = if known.is_empty() { "none is configured".to_owned() } else { format!("there are: {}", known.join(", ")) };
    Failure::usage(format!("there is no MCP server `{name}`")).hint(hint)
}

/// The servers as they are configured; none is started to say so.
fn list(servers: &[McpStatus], listed: Listed, output: &mut Output) {
    if listed.json {
        let servers = servers.iter().map(|server| {
            json!({
                "name": server.name,
                "enabled": server.is_enabled,
                "transport": server.transport,
                "origin": server.origin,
            })
        });
        output.json_pretty(&servers.collect::<Vec<_>>());
        return;
    }
    let rows: Vec<_> = servers
        .iter()
        .map(|server| {
            let enabled = if server.is_enabled { "on" } else { "off" };
            [server.name.clone(), enabled.to_owned(), server.transport.clone(), server.origin.clone()]
        })
        .collect();
    output.lines(&table(&rows));
}

fn check(status: &McpStatus, listed: Listed, output: &mut Output) -> Exit {
    let exit = if status.state == SourceState::Ready { Exit::Done } else { Exit::Failed };
    let reason = match &status.state {
        SourceState::Failing { reason } | SourceState::NeedsSignIn { reason } => Some(reason.as_str()),
        SourceState::Disabled => Some("it is switched off (enabled = false)"),
        SourceState::Starting | SourceState::Ready | SourceState::Stopped => None,
    };
    if listed.json {
        let value: Value = json!({
            "name": status.name,
            "enabled": status.is_enabled,
            "transport": status.transport,
            "origin": status.origin,
            "state": status.state.as_str(),
            "reason": reason,
            "protocol": status.agreed.as_ref().map(|agreed| json!({
                "version": agreed.version,
                "because": agreed.ground.as_str(),
                "server": agreed.server,
            })),
            "tools": status.tools,
            "quarantined": status.quarantined,
            "log": status.log,
        });
        output.json_pretty(&value);
        return exit;
    }
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    output.line(&format!("{} is {}{reason}", status.name, status.state.as_str()));
    if let Some(agreed) = &status.agreed {
        let server = agreed.server.as_deref().unwrap_or("a server that does not name itself");
        output.line(&format!("  {server}, protocol {}: {}", agreed.version, agreed.ground.as_str()));
    }
    status.tools.iter().for_each(|tool| output.line(&format!("  {tool}")));
    status.quarantined.iter().for_each(|text| output.line(&format!("  set aside: {text}")));
    if exit == Exit::Failed {
        status.log.iter().for_each(|line| output.line(&format!("  log: {line}")));
    }
    exit
}
