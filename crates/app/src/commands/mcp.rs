//! `turnwright mcp`: MCP servers.

mod change;
pub(super) mod exercise;
mod features;
mod import;
mod login;
mod serve;

use serde_json::{Value, json};
use turnwright_engine::SourceState;
use turnwright_host::{Host, McpStatus, Needs};

use crate::cli::{Everywhere, Listed, Mcp};
use crate::exit::{Exit, Failure};
use crate::flags::flags_elsewhere;
use crate::opened::{self, QUIET, TELLS_OF_SERVERS, people_only};
use crate::output::{Output, say};
use crate::table::{first_line, table};

/// The most characters of a reason in a list.
const MAX_REASON: usize = 100;

pub(super) async fn run(everywhere: &Everywhere, command: Mcp, output: &mut Output) -> Result<Exit, Failure> {
    let log_level =
        if matches!(command, Mcp::Check { .. } | Mcp::Resources(_) | Mcp::Prompts(_)) { TELLS_OF_SERVERS } else { QUIET };
    let opened = opened::open(&opened::overrides(everywhere), log_level)?.of(everywhere);
    let needs = match &command {
        Mcp::Serve(_) => Needs::Everything,
        // What they start is remembered, so that the next start ends it where this is killed.
        Mcp::Check { .. } | Mcp::Resources(_) | Mcp::Prompts(_) => Needs::OnDemand,
        Mcp::List(_)
        | Mcp::Add(_)
        | Mcp::Import(_)
        | Mcp::Approve { .. }
        | Mcp::Remove { .. }
        | Mcp::Logs { .. }
        | Mcp::Login { .. }
        | Mcp::Logout { .. } => Needs::Store,
    };
    let command_flags = flags_elsewhere(everywhere, &opened);
    let host = opened.start(needs).await?;
    for problem in host.problems().iter().filter(|_| needs != Needs::Everything) {
        say(&format!("warning: {problem}"));
    }
    if changes(&command)
        && let Err(refused) = people_only(&host)
    {
        host.shutdown().await;
        return Err(refused);
    }
    let result = match command {
        Mcp::Serve(serve) => serve::run(&host, serve, command_flags).await,
        Mcp::List(listed) => {
            list(&host, listed, output).await;
            Ok(Exit::Done)
        }
        Mcp::Add(add) => change::add(host.mcp(), add, everywhere, output).await,
        Mcp::Import(import) => import::run(host.mcp(), import, output).await,
        Mcp::Approve { name, tool } => change::approve(&host, &name, tool.as_deref(), output).await,
        Mcp::Remove { name } => change::remove(host.mcp(), &name, output).await,
        Mcp::Logs { name, listed } => change::logs(host.mcp(), &name, listed, output).await,
        Mcp::Login { name, open, no_browser } => {
            let browser =
                if no_browser { login::Opener::Nobody } else { open.map_or(login::Opener::System, login::Opener::Program) };
            let signed_in = host.sign_in_mcp(&name, |address| login::show(address, &browser)).await;
            login::signed_in(&name, signed_in.ok_or_else(|| no_server(&name, &host)), output)
        }
        Mcp::Logout { name } => {
            let signed_out = host.sign_out_mcp(&name).await;
            login::signed_out(&name, signed_out.ok_or_else(|| no_server(&name, &host)), output)
        }
        Mcp::Resources(asked) => features::resources(&host, asked, output).await,
        Mcp::Prompts(asked) => features::prompts(&host, asked, output).await,
        Mcp::Check { name, listed } => {
            let status = host.check_mcp(&name).await.map(|status| check(&status, listed, output));
            status.ok_or_else(|| no_server(&name, &host))
        }
    };
    host.shutdown().await;
    result
}

/// Whether a command changes what servers there are, what is agreed to of their tools, or by what they are signed in at.
fn changes(command: &Mcp) -> bool {
    match command {
        Mcp::Add(_) | Mcp::Approve { .. } | Mcp::Remove { .. } | Mcp::Login { .. } | Mcp::Logout { .. } => true,
        Mcp::Import(import) => import.write,
        Mcp::List(_) | Mcp::Logs { .. } | Mcp::Serve(_) | Mcp::Resources(_) | Mcp::Prompts(_) | Mcp::Check { .. } => false,
    }
}

fn no_server(name: &str, host: &Host) -> Failure {
    let servers = host.mcp_servers();
    if let Some(SourceState::Failing { reason }) = servers.iter().find(|known| known.name == name).map(|known| &known.state) {
        return Failure::failed(format!("the MCP server `{name}` cannot run: {reason}"));
    }
    let known: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let hint = if known.is_empty() { "none is configured".to_owned() } else { format!("there are: {}", known.join(", ")) };
    Failure::usage(format!("there is no MCP server `{name}`")).hint(hint)
}

/// The servers, and how they are in the process that runs them; none is started to say so.
async fn list(host: &Host, listed: Listed, output: &mut Output) {
    let servers = host.mcp_servers();
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for server in &servers {
        let elsewhere = host.mcp().elsewhere(&server.name).await.filter(|_| server.state == SourceState::Stopped);
        let (state, reason) = match (&server.state, elsewhere) {
            (SourceState::Failing { reason } | SourceState::NeedsSignIn { reason }, _) => {
                (server.state.as_str().to_owned(), Some(reason.clone()))
            }
            (_, Some(notice)) => (notice.state, notice.reason),
            (state, None) => (state.as_str().to_owned(), None),
        };
        values.push(json!({
            "name": server.name,
            "enabled": server.is_enabled,
            "state": state,
            "reason": reason,
            "transport": server.transport,
            "origin": server.origin,
            "owner": server.owner.as_ref().map(turnwright_host::Owner::as_str),
        }));
        let reason = reason.as_deref().map(in_a_line).unwrap_or_default();
        rows.push([server.name.clone(), state, server.transport.clone(), server.origin.clone(), reason]);
    }
    if listed.json {
        output.json_pretty(&values);
    } else {
        output.lines(&table(&rows));
    }
}

/// Why a server failed, with the last of its own lines where it wrote some: most say there what is wrong.
fn in_a_line(reason: &str) -> String {
    let why = turnwright_host::without_last_lines(reason);
    let last = reason.lines().last().filter(|_| why.len() < reason.len());
    first_line(&last.map_or_else(|| why.to_owned(), |last| format!("{why}: {last}")), MAX_REASON)
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
    // Its last lines are among those of the log, below.
    let reason = reason.map(turnwright_host::without_last_lines);
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let state = match &status.state {
        SourceState::NeedsSignIn { .. } => "not signed in",
        SourceState::Disabled
        | SourceState::Starting
        | SourceState::Ready
        | SourceState::Failing { .. }
        | SourceState::Stopped => status.state.as_str(),
    };
    output.line(&format!("{} is {state}{why}", status.name));
    if let Some(agreed) = &status.agreed {
        let server = agreed.server.as_deref().unwrap_or("a server that does not name itself");
        output.line(&format!("  {server}, protocol {}: {}", agreed.version, agreed.ground.as_str()));
    }
    status.tools.iter().for_each(|tool| output.line(&format!("  {tool}")));
    status.quarantined.iter().for_each(|text| output.line(&format!("  set aside: {}", text.trim_start_matches(": "))));
    if exit == Exit::Failed {
        let others = status.log.iter().filter(|line| Some(line.as_str()) != reason);
        others.for_each(|line| output.line(&format!("  log: {line}")));
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::in_a_line;

    #[test]
    fn a_reason_in_a_line_ends_with_the_last_line_of_the_server() {
        assert_eq!(in_a_line("it ended; its last lines:\none\nboom: no key"), "it ended: boom: no key");
        assert_eq!(in_a_line("there is no program `x`"), "there is no program `x`");
    }
}
